"""Ids: opaque names from a source that is handed in, so that a seed can replay them."""

from __future__ import annotations

import random
import secrets
from typing import Protocol


class IdSource(Protocol):
    """Where new ids come from."""

    def hex(self, digits: int) -> str:
        """`digits` lower-case hexadecimal digits, not used before."""
        ...


class SystemIds:
    """Ids from the operating system's randomness."""

    def hex(self, digits: int) -> str:
        """`digits` hexadecimal digits."""
        return secrets.token_hex((digits + 1) // 2)[:digits]


class SeededIds:
    """Ids from a seed: the same seed gives the same ids in the same order. For tests and simulation."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def hex(self, digits: int) -> str:
        """`digits` hexadecimal digits."""
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"
