"""The one writer: every change of the yard goes through it, in one order, in groups, durably.

One thread owns the connection and the calendar. Whatever waits when it comes round is committed together
(group commit: one sync for many), and a caller hears back only after the commit, so what was acknowledged
survives `kill -9` and power loss. A unit of work that refuses (raises) leaves nothing behind and does not
disturb the others of its group.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from berth.terms.ids import IdSource
from berth.yard.store.transaction import Transaction

log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[Transaction], T]
GROUP_MAX = 64


class NotStored(RuntimeError):
    """The commit failed (disk full, I/O error): nothing of the group was stored."""


class Writer(Protocol):
    """Where changes are handed in. Tests and simulations hand in a serial one."""

    def submit(self, work: Work[T]) -> Future[T]:
        """Do `work` in a transaction. The future has its result once it is durable, or what it raised."""
        ...

    def close(self) -> None:
        """Finish what was submitted, then stop."""
        ...


@dataclass(slots=True)
class _Job:
    work: Work[Any]
    future: Future[Any] = field(default_factory=Future)
    transaction: Transaction | None = None
    result: Any = None
    refusal: BaseException | None = None


class _RolledBack(Exception):
    """SQLite took the whole transaction back by itself, as it does on a full disk."""


class GroupCommit:
    """The writer's body: a group of jobs in, one commit. Not tied to any thread."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], datetime], ids: IdSource) -> None:
        self._connection = connection
        self._now = now
        self._ids = ids

    def perform(self, jobs: Sequence[_Job]) -> None:
        """Run the jobs in order, commit once, then tell everybody. A job whose caller gave up is left out."""
        waiting = [job for job in jobs if job.future.set_running_or_notify_cancel()]
        while waiting:
            waiting = self._perform_some(waiting)

    def _perform_some(self, jobs: list[_Job]) -> list[_Job]:
        """Run and commit `jobs`; those that have to be run again, in a transaction of their own."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as problem:
            self._fail(jobs, problem)
            return []
        ran: list[_Job] = []
        try:
            for job in jobs:
                ran.append(job)
                self._run(job)
            self._connection.execute("COMMIT")
        except (sqlite3.Error, _RolledBack) as problem:
            self._roll_back(ran, problem)
            return jobs[len(ran) :]
        for job in jobs:
            self._tell(job)
        return []

    def _run(self, job: _Job) -> None:
        job.transaction = Transaction(self._connection, self._now(), self._ids)
        self._connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(job.transaction)
        except BaseException as problem:  # noqa: BLE001 - handed to whoever asked, once the group is stored
            job.refusal = problem
            job.transaction.take_back()
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO job")
        if not self._connection.in_transaction:
            # Going on would begin a transaction without the earlier jobs, and commit it job by job.
            raise _RolledBack(str(job.refusal))
        self._connection.execute("RELEASE job")

    def _roll_back(self, ran: Sequence[_Job], problem: Exception) -> None:
        for job in reversed(ran):
            if job.transaction is not None:
                job.transaction.take_back()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._fail(ran, problem)

    @staticmethod
    def _tell(job: _Job) -> None:
        """Say what became of a job, its group being stored: a refusal may rest on what another wrote."""
        if job.refusal is not None:
            job.future.set_exception(job.refusal)
            return
        assert job.transaction is not None
        try:
            job.transaction.carry_on()
        except Exception:
            # Stored all the same: the yard starts what its rows ask for when it comes back.
            log.exception("committed, but what was to follow failed")
        job.future.set_result(job.result)

    @staticmethod
    def _fail(jobs: Sequence[_Job], problem: Exception) -> None:
        for job in jobs:
            job.future.set_exception(NotStored(f"nothing was stored: {problem}"))


class SerialWriter:
    """Does each piece of work at once, in the caller's thread: for tests and seeded simulation.

    A second thread, such as the one that hands containers to the engine and reports what failed, waits.
    """

    def __init__(self, body: GroupCommit) -> None:
        self._body = body
        self._alone = threading.RLock()  # what follows a commit may submit again, in the same thread

    def submit(self, work: Work[T]) -> Future[T]:
        """Do `work` now; the future is done when this returns."""
        job = _Job(work)
        with self._alone:
            self._body.perform([job])
        return job.future

    def close(self) -> None:
        """Nothing to finish."""


class ThreadWriter:
    """The writer of a running yard: one thread, groups of up to `GROUP_MAX`."""

    def __init__(self, body: GroupCommit) -> None:
        self._body = body
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._ended: str | None = None
        self._thread = threading.Thread(target=self._loop, name="yard-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue `work`. After `close` the future holds NotStored at once, so that nobody waits for ever."""
        job = _Job(work)
        with self._lock:
            if self._ended is None:
                self._jobs.put(job)
                return job.future
        job.future.set_exception(NotStored(self._ended))
        return job.future

    def close(self) -> None:
        """Finish the queue and end the thread."""
        self._end("the yard has stopped")
        self._thread.join()

    def _end(self, why: str) -> None:
        with self._lock:
            if self._ended is None:
                self._ended = why
                self._jobs.put(None)

    def _loop(self) -> None:
        while True:
            group, stop = self._next_group()
            try:
                self._body.perform(group)
            except Exception as fault:
                # Memory and rows may differ now, and only a restart counts the memory again from the rows.
                log.critical(
                    "the writer has failed; the yard stores nothing until it is restarted", exc_info=True
                )
                self._give_up(group, f"the writer has failed: {fault}")
                return
            if stop:
                return

    def _give_up(self, group: list[_Job], why: str) -> None:
        self._end(why)
        while (job := self._jobs.get()) is not None:
            group.append(job)
        for job in group:
            if not job.future.done():
                job.future.set_exception(NotStored(why))

    def _next_group(self) -> tuple[list[_Job], bool]:
        group: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            group.append(job)
            if len(group) >= GROUP_MAX:
                return group, False
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return group, False
        return group, True
