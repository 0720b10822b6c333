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


class GroupCommit:
    """The writer's body: a group of jobs in, one commit. Not tied to any thread."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], datetime], ids: IdSource) -> None:
        self._connection = connection
        self._now = now
        self._ids = ids

    def perform(self, jobs: Sequence[_Job]) -> None:
        """Run the jobs in order, commit once, then tell everybody."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as problem:
            self._fail(jobs, problem)
            return
        done: list[_Job] = []
        for job in jobs:
            if self._run(job):
                done.append(job)
            if not self._connection.in_transaction:
                # SQLite rolled the whole group back by itself (a full disk, an I/O error): what ran before is
                # undone, and nothing more may run outside a transaction.
                self._roll_back(done, RuntimeError("the database undid the whole group"))
                self._fail(jobs, RuntimeError("the database undid the whole group"))
                return
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as problem:
            self._roll_back(done, problem)
            return
        for job in done:
            assert job.transaction is not None
            try:
                job.transaction.carry_on()
            except Exception:
                # Stored all the same: the yard starts what its rows ask for when it comes back.
                log.exception("committed, but what was to follow failed")
            job.future.set_result(job.result)

    def _run(self, job: _Job) -> bool:
        job.transaction = Transaction(self._connection, self._now(), self._ids)
        self._connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(job.transaction)
        except BaseException as problem:
            job.transaction.take_back()
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO job")
                self._connection.execute("RELEASE job")
            job.future.set_exception(problem)
            return False
        self._connection.execute("RELEASE job")
        return True

    def _roll_back(self, done: Sequence[_Job], problem: Exception) -> None:
        for job in reversed(done):
            assert job.transaction is not None
            job.transaction.take_back()
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._fail(done, problem)

    @staticmethod
    def _fail(jobs: Sequence[_Job], problem: Exception) -> None:
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(NotStored(f"nothing was stored: {problem}"))


class SerialWriter:
    """Does each piece of work at once, in the caller's thread: for tests and seeded simulation."""

    def __init__(self, body: GroupCommit) -> None:
        self._body = body

    def submit(self, work: Work[T]) -> Future[T]:
        """Do `work` now; the future is done when this returns."""
        job = _Job(work)
        self._body.perform([job])
        return job.future

    def close(self) -> None:
        """Nothing to finish."""


class ThreadWriter:
    """The writer of a running yard: one thread, groups of up to `GROUP_MAX`."""

    def __init__(self, body: GroupCommit) -> None:
        self._body = body
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="yard-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue `work`."""
        job = _Job(work)
        self._jobs.put(job)
        return job.future

    def close(self) -> None:
        """Finish the queue and end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while True:
            group, stop = self._next_group()
            if group:
                self._body.perform(group)
            if stop:
                return

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
