"""Ids of what is always there and has no row: the same for the same account and place, in every process."""

from __future__ import annotations

import hashlib


def derived_id(prefix: str, *parts: str) -> str:
    """`prefix` and 17 hexadecimal digits that depend on nothing but `prefix` and `parts`."""
    digest = hashlib.blake2b("/".join((prefix, *parts)).encode(), digest_size=9, person=b"berth-ec2-ids")
    return f"{prefix}-{digest.hexdigest()[:17]}"
