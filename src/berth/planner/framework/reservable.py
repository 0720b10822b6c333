"""What an On-Demand Capacity Reservation can be had for: at once, or from a date ahead."""

from __future__ import annotations

import re
from datetime import timedelta

from berth.planner.framework.case import Case

SOON = timedelta(days=1)
"""How near a start is for which an ODCR that is paid from now on can make sense. AWS gives no number."""

AHEAD_LEAST = timedelta(days=5)
AHEAD_MOST = timedelta(days=120)
COMMITMENT_LEAST = timedelta(days=14)
VCPUS_LEAST = 32
_FAMILIES = re.compile(r"[cgimrt]\d")
"""Families that future-dated reservations take: C, G, I, M, R, T (EC2 API reference,
CreateCapacityReservation, read 2026-11). Trn, Inf and P are none of them."""


def is_scarce(case: Case) -> bool:
    """Whether the type is one of P or Trn, whose on-demand capacity is rarely to be had at short notice."""
    return case.need.instance_type.removeprefix("ml.").startswith(("p", "trn", "u-p", "u-trn"))


def future_dated(case: Case) -> bool:
    """Whether an ODCR may be had from a date: 5 to 120 days ahead, 14 days and 32 vCPUs, no P or Trn.

    False where the type's vCPUs are not known.
    """
    begin, need = case.need.start or case.need.earliest_start, case.need
    if begin is None or is_scarce(case) or not _FAMILIES.match(need.instance_type):
        return False
    vcpus = (case.kind.vcpus or 0) if case.kind else 0
    return (
        AHEAD_LEAST <= begin - case.now <= AHEAD_MOST
        and need.duration >= COMMITMENT_LEAST
        and vcpus * need.count >= VCPUS_LEAST
    )
