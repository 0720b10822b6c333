"""What a survey keeps of what it heard: in the local history, or nowhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from berth.planner.cost import HourlyRate
from berth.planner.offers import PlaceAnswer
from berth.sources.history import History, HourSeen, open_history
from berth.storage.sqlite import NewerSchema
from berth.terms.clock import Clock

FLUSH_EVERY_S = 5.0
TROUBLES = (OSError, sqlite3.Error, NewerSchema)


class Memory(Protocol):
    """Keeps answers, and knows what was asked lately. Raises nothing: a plan is worth more."""

    def sent_ago(self, region: str) -> tuple[float, ...]:
        """How many seconds ago each search that a bucket counts was sent to the Region."""
        ...

    def by_hour(self, instance_type: str) -> tuple[HourSeen, ...]:
        """What the account's own asks saw of the type by hour of the day; () where nothing is kept."""
        ...

    def keep(self, answer: PlaceAnswer, sent: Mapping[str, int]) -> None:
        """Keep an answer; `sent` counts the searches that each Region was sent since its pacer was made."""
        ...

    def end(self, sent: Mapping[str, int], rates: Iterable[HourlyRate], at: datetime) -> None:
        """The survey is over: keep what is left, and the rates, each with its type, as of `at`."""
        ...


class NoMemory:
    """Keeps nothing."""

    def sent_ago(self, region: str) -> tuple[float, ...]:
        """Nothing is known."""
        return ()

    def by_hour(self, instance_type: str) -> tuple[HourSeen, ...]:
        """Nothing is known."""
        return ()

    def keep(self, answer: PlaceAnswer, sent: Mapping[str, int]) -> None:
        """It is not kept."""

    def end(self, sent: Mapping[str, int], rates: Iterable[HourlyRate], at: datetime) -> None:
        """Nothing is left."""


class Kept:
    """Keeps answers in the local history, a few seconds' worth at a time.

    `clock` is this machine's own. `warn` is told once what stands in the way; then nothing more is kept.
    """

    def __init__(
        self, file: Path, realm: str, account: str, *, clock: Clock, warn: Callable[[str], None]
    ) -> None:
        self._clock = clock
        self._warn = warn
        self._file = file
        self._waiting: list[PlaceAnswer] = []
        self._sent: dict[str, int] = {}
        self._flushed_at = clock.elapsed()
        self._history: History | None = None
        try:
            self._history = open_history(file, realm, account)
        except TROUBLES as problem:
            self._give_up(problem)

    @property
    def history(self) -> History | None:
        """The history; None where it cannot be used."""
        return self._history

    def sent_ago(self, region: str) -> tuple[float, ...]:
        """How many seconds ago each counted search was sent to the Region, by this machine."""
        if self._history is None:
            return ()
        try:
            return self._history.sent_ago(region, self._clock.now())
        except TROUBLES as problem:
            self._give_up(problem)
            return ()

    def by_hour(self, instance_type: str) -> tuple[HourSeen, ...]:
        """What the account's own asks saw of the type by hour of the day."""
        if self._history is None:
            return ()
        try:
            return self._history.by_hour(instance_type)
        except TROUBLES as problem:
            self._give_up(problem)
            return ()

    def keep(self, answer: PlaceAnswer, sent: Mapping[str, int]) -> None:
        """Keep an answer; it is on the disk a few seconds later."""
        self._waiting.append(answer)
        if self._clock.elapsed() - self._flushed_at >= FLUSH_EVERY_S:
            self._flush(sent, (), answer.seen_at)

    def end(self, sent: Mapping[str, int], rates: Iterable[HourlyRate], at: datetime) -> None:
        """Keep what is left, and the rates."""
        self._flush(sent, rates, at)

    def close(self) -> None:
        """Let go of the file."""
        if self._history is not None:
            self._history.close()
            self._history = None

    def _flush(self, sent: Mapping[str, int], rates: Iterable[HourlyRate], at: datetime) -> None:
        self._flushed_at = self._clock.elapsed()
        waiting, self._waiting = self._waiting, []
        more = {region: number - self._sent.get(region, 0) for region, number in sent.items()}
        self._sent = dict(sent)
        if self._history is None:
            return
        try:
            self._history.add(waiting, rates, more, at=at, wall=self._clock.now())
        except TROUBLES as problem:
            self._give_up(problem)

    def _give_up(self, problem: Exception) -> None:
        self.close()
        self._warn(f"what was seen is not kept: {self._file} cannot be used: {problem}")
