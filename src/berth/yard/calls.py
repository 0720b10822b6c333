"""The log of accepted calls: who asked for what, and how it ended (`berth yard log`)."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from berth.yard.store.transaction import Transaction
from berth.yard.store.writer import Writer

KEPT_READS = 200_000
FLUSH_AT = 2_000


class CallRecord(NamedTuple):
    """One accepted call: a row of `calls`, whose columns have these names.

    Instants in microseconds; `outcome` is `ok` or the error code that was answered. All attempts that an SDK
    makes of one call carry the same `invocation_id`.
    """

    at_us: int
    real_us: int
    account_id: str
    region: str
    service: str
    operation: str
    request_id: str
    invocation_id: str
    wrote: bool
    outcome: str

    def store(self, tx: Transaction) -> None:
        """Write the record in `tx`."""
        tx.insert_many("calls", self._fields, [self])


class CallLog:
    """Keeps records of calls that wrote nothing until enough have gathered; they are lost in a crash.

    A call that wrote is logged in the transaction that did the writing, so the log never lacks it.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._lock = threading.Lock()
        self._waiting: list[CallRecord] = []

    def note(self, record: CallRecord) -> None:
        """Remember a call that wrote nothing."""
        with self._lock:
            self._waiting.append(record)
            full = len(self._waiting) >= FLUSH_AT
        if full:
            self.flush()

    def flush(self) -> Any:
        """Hand what has gathered to the writer; the future of that write."""
        with self._lock:
            records, self._waiting = self._waiting, []
        return self._writer.submit(lambda tx: _store_all(tx, records))


def _store_all(tx: Transaction, records: list[CallRecord]) -> None:
    if not records:
        return
    tx.insert_many("calls", CallRecord._fields, records)
    tx.run(
        "DELETE FROM calls WHERE wrote = 0 AND call_id <= (SELECT max(call_id) FROM calls) - ?", KEPT_READS
    )
