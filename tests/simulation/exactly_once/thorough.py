"""How much is done: everything where CI is true, a part of it elsewhere, the same part every time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
IN_CI = os.environ.get("CI", "").lower() == "true"
PART = 4


def all_in_ci(things: Sequence[T]) -> Sequence[T]:
    """All of them; outside of CI every fourth, from the first on."""
    return things if IN_CI else things[::PART]
