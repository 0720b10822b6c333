"""What a store of rows offers, whether a file keeps it (`sqlite`) or a server (`postgresql`).

Statements are SQL that both take, with `?` for each value; rows are read by the names of their columns.
Both let one writer in at a time, so that what a write has read stays true until it commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Unusable(RuntimeError):
    """The store cannot be used. The words hold no secret; nothing of the write under way was kept.

    `hint` is what to do about it, '' where nothing is known to help.
    """

    def __init__(self, words: str, hint: str = "") -> None:
        super().__init__(words)
        self.hint = hint


class CommitUnknown(Unusable):
    """The connection was lost while a write was committed, and whether it was kept could not be asked."""


class Row(Protocol):
    """One row."""

    def __getitem__(self, name: str, /) -> Any:
        """The value of the column of that name."""
        ...


class Answer(Protocol):
    """What a statement answers."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """The next row; None when there is none."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        ...


class Database(Protocol):
    """One connection to a store; for one thread."""

    def execute(self, sql: str, values: Sequence[object] = (), /) -> Answer:
        """Run one statement: a read, or inside of `writing` anything."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """One write: nobody else writes meanwhile; kept as a whole at its end, or not at all.

        When it ends without raising, it is on the disk. Raises CommitUnknown when that is not known.
        """
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Reads that all see the same moment. Inside of `writing` it changes nothing."""
        ...

    def close(self) -> None:
        """Let go of the store."""
        ...
