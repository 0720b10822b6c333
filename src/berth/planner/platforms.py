"""Operating system platforms, in EC2's words (`CapacityReservationInstancePlatform`)."""

from __future__ import annotations

LINUX = "Linux/UNIX"
# EC2 guide, Capacity Blocks, platforms, read 2026-11: blocks take these five, by API.
BLOCK_PLATFORMS = (LINUX, "Red Hat Enterprise Linux", "RHEL with HA", "SUSE Linux", "Ubuntu Pro")
# The enum of the model of 2016-11-15 (botocore 1.43); the other thirteen are for reservations on demand.
PLATFORMS = (
    *BLOCK_PLATFORMS,
    "Windows",
    "Windows with SQL Server",
    "Windows with SQL Server Enterprise",
    "Windows with SQL Server Standard",
    "Windows with SQL Server Web",
    "Linux with SQL Server Standard",
    "Linux with SQL Server Web",
    "Linux with SQL Server Enterprise",
    "RHEL with SQL Server Standard",
    "RHEL with SQL Server Enterprise",
    "RHEL with SQL Server Web",
    "RHEL with HA and SQL Server Standard",
    "RHEL with HA and SQL Server Enterprise",
)
