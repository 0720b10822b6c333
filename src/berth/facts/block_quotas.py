"""The account quotas of Capacity Blocks: vCPUs of blocks that are active at once, 0 until AWS raises it.

Source: EC2 service quotas page of the AWS General Reference, read 2026-11.
"""

from __future__ import annotations

from dataclasses import dataclass

from berth.facts.instance_types import instance_type

_CODES = {
    "p4d": ("P4d", "L-2C8F52B3"),
    "p4de": ("P4de", "L-CFF3E941"),
    "p5": ("P5", "L-DA6814F2"),
    "p5e": ("P5e", "L-C45F30BC"),
    "p5en": ("P5en", "L-4F9BB70B"),
    "p6-b200": ("P6-B200", "L-8B23CEF3"),
    "p6-b300": ("P6-B300", "L-9C38E5AB"),
    "p6e-gb200": ("P6e-GB200", "L-FCF0179E"),
    "trn1": ("Trn1", "L-2E30FD7D"),
    "trn2": ("Trn2", "L-64569A79"),
}


@dataclass(frozen=True, slots=True)
class BlockQuota:
    """The quota that a type counts against. `vcpus` are one instance's, None where they are not known."""

    family: str
    code: str
    vcpus: int | None


def block_quota(type_name: str) -> BlockQuota | None:
    """The Capacity Block quota of an EC2 type; None where no code of its family was published."""
    found = _CODES.get(type_name.partition(".")[0])
    if found is None:
        return None
    kind = instance_type(type_name)
    return BlockQuota(*found, kind.vcpus if kind else None)
