"""Timers: what happens by itself, played in order on the yard's clock.

Nothing in a yard changes state because somebody reads it: it changes because a request came, an engine
reported, or a timer fell due. Timers are rows; playing one deletes its row in the same transaction.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from berth.terms.clock import Clock
from berth.terms.instants import from_micros, iso, to_micros
from berth.yard.lifecycle.clock import ClockRefused, YardClock
from berth.yard.store.transaction import Transaction
from berth.yard.store.writer import Writer

log = logging.getLogger(__name__)

PLAYED_AT_ONCE = 256
ENGINE_PATIENCE_S = 900.0
LONGEST_REST_S = 30.0


class Rank(IntEnum):
    """Order among timers of one instant: windows are half-open, so ends come before starts."""

    END = 0
    RECLAIM = 1
    PAYMENT = 2
    START = 3
    DEMAND = 4


@dataclass(frozen=True, slots=True)
class Timer:
    """How one kind of timer is played; with `touches_process` a moving clock then waits for the engine."""

    play: Callable[[Transaction, str], None]
    touches_process: bool = False


@dataclass(frozen=True, slots=True)
class Played:
    """What one step did: how many timers, and whether one of them touched a process."""

    count: int
    touched_process: bool


class Timekeeper:
    """Plays due timers and moves a stopped clock.

    `settled` asks the engine whether every container has reported. One thread (real clock) or the caller
    (stopped clock) drives it, one at a time.
    """

    def __init__(
        self,
        writer: Writer,
        clock: YardClock,
        real: Clock,
        kinds: Mapping[str, Timer],
        settled: Callable[[], bool],
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._real = real
        self._kinds = kinds
        self._settled = settled
        self._driving = threading.Lock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    # -- one step ----------------------------------------------------------------------------------------
    def step(self, until: datetime) -> Played:
        """Play the next timers due by `until` in one transaction, up to the first that touches a process."""
        return self._writer.submit(lambda tx: self._play_some(tx, until)).result()

    def _play_some(self, tx: Transaction, until: datetime) -> Played:
        for count in range(PLAYED_AT_ONCE):
            row = tx.one(
                "SELECT timer_id, due_us, kind, subject FROM timers WHERE due_us <= ?"
                " ORDER BY due_us, rank, timer_id LIMIT 1",
                to_micros(until),
            )
            if row is None:
                return Played(count, touched_process=False)
            if self._play(tx, row["timer_id"], row["due_us"], row["kind"], row["subject"]):
                return Played(count + 1, touched_process=True)
        return Played(PLAYED_AT_ONCE, touched_process=False)

    def _play(self, tx: Transaction, timer_id: int, due_us: int, kind: str, subject: str) -> bool:
        if self._clock.stopped and due_us > to_micros(self._clock.now()):
            self._clock.move(tx, from_micros(due_us))
        tx.run("DELETE FROM timers WHERE timer_id = ?", timer_id)
        timer = self._kinds[kind]
        timer.play(tx, subject)
        return timer.touches_process

    # -- a stopped clock ---------------------------------------------------------------------------------
    def move_to(self, target: datetime) -> int:
        """Move a stopped clock to `target`, playing every timer on the way; how many were played.

        After each timer that touches a process it waits until the engine has settled, so that what a
        container does falls on the right instant. Raises ClockRefused, TimeoutError.
        """
        with self._driving:
            self._clock.check(target)
            self._wait_for_engine()
            played = 0
            while True:
                self._go_on()
                step = self.step(target)
                played += step.count
                if step.touched_process:
                    self._wait_for_engine()
                elif step.count < PLAYED_AT_ONCE:
                    break
            self._writer.submit(lambda tx: self._clock.move(tx, max(target, self._clock.now()))).result()
            return played

    def _wait_for_engine(self) -> None:
        deadline = self._real.elapsed() + ENGINE_PATIENCE_S
        while not self._settled():
            self._go_on()
            if self._real.elapsed() > deadline:
                raise TimeoutError(f"a container has neither started nor ended for {ENGINE_PATIENCE_S:.0f} s")
            self._real.sleep(0.005)

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise ClockRefused(f"the yard is stopping; its clock stands at {iso(self._clock.now())}")

    # -- a real clock ------------------------------------------------------------------------------------
    def run_in_thread(self, next_due: Callable[[], datetime | None]) -> None:
        """Play timers as they fall due, until `close`. For a real clock; a stopped one needs no thread."""
        self._thread = threading.Thread(target=self._loop, args=(next_due,), name="yard-timers", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """A timer may have been added: look again."""
        self._wake.set()

    def _loop(self, next_due: Callable[[], datetime | None]) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                due = next_due()
                now = self._clock.now()
                if due is not None and due <= now:
                    self.step(now)
                    continue
            except Exception:
                # The timer's row is still there; a disk that is full now may not be later.
                log.exception("a timer could not be played; trying again in a second")
                self._stop.wait(1.0)
                continue
            rest = LONGEST_REST_S if due is None else (due - now).total_seconds()
            self._wake.wait(min(rest, LONGEST_REST_S))

    def stop(self) -> None:
        """Let a clock that is being moved stop where it is, and the thread end. Returns at once."""
        self._stop.set()
        self._wake.set()

    def close(self) -> None:
        """End the thread."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
