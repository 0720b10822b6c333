"""A PostgreSQL database as a store: one writer at a time, commits that are known, connections that break.

Nothing is lost silently and nothing is done twice: a read is asked once more on a new connection; a write
whose connection breaks before its commit was not kept, and says so; for one that breaks inside its commit
the server is asked what became of it (`pg_xact_status`), and CommitUnknown is raised where it does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

from berth.storage.database import Answer, CommitUnknown, Unusable
from berth.storage.postgresql_address import Address, driver

T = TypeVar("T")
SCHEMA = "berth"
"""The schema of the database in which all tables are."""

LOCK = 0x6265727468  # "berth": the advisory lock that lets one writer in at a time
WAITS_S = 15
"""How long a writer waits for another; longer than an idle one is left to hold the lock (`IDLE_S`)."""
IDLE_S = 10

# A role or a server may say `synchronous_commit = off`; then a commit that was answered may still be lost.
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)
_BEGIN = (
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '{WAITS_S}s';"
    f" SET LOCAL idle_in_transaction_session_timeout = '{IDLE_S}s'; SELECT pg_advisory_xact_lock({LOCK})"
)


class PostgreSQL:
    """One connection as a `Database`; it is made anew, once, where that is safe."""

    def __init__(self, address: Address) -> None:
        """Connect. Raises Unusable."""
        self._address = address
        self._inside = False
        self._connection = self._connect()

    def execute(self, sql: str, values: Sequence[object] = (), /) -> Answer:
        """One statement; outside of `writing` it only reads, so it may be asked twice. Raises Unusable."""
        if self._inside:
            return self._run(sql, values)
        return self._asked_again(lambda: self._run(sql, values))

    def script(self, sql: str) -> None:
        """Several statements without values, inside of `writing`."""
        self._guarded(lambda: self._connection.execute(sql))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One write, alone from its beginning, under READ COMMITTED and a lock that all writers take."""
        transaction = self._asked_again(self._begin)
        self._inside = True
        try:
            yield
        except BaseException:
            self._roll_back()
            raise
        self._commit(transaction)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads of one moment."""
        if self._inside:
            yield
            return
        self._asked_again(lambda: self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        self._inside = True
        try:
            yield
        finally:
            self._roll_back()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # -- one write -------------------------------------------------------------------------------------
    def _begin(self) -> str:
        """Begin, wait for the lock; the transaction's number, by which the server knows what became of it."""
        try:
            self._guarded(lambda: self._connection.execute(_BEGIN))
            return str(self._run("SELECT pg_current_xact_id()::text AS id").fetchone()["id"])
        except BaseException:
            self._roll_back()
            raise

    def _commit(self, transaction: str) -> None:
        try:
            ended = self._connection.execute("COMMIT").statusmessage
        except driver().Error as problem:
            if not self._lost():
                self._roll_back()
                raise self._unusable(problem) from None
            self._inside = False
            self._learn(transaction, problem)
            return
        except BaseException:  # Ctrl-C while the answer is awaited
            self._inside = False
            self._drop()
            raise
        self._inside = False
        if ended != "COMMIT":  # a statement had failed, and whoever wrote went on all the same
            raise Unusable("the server undid the write: one of its statements had failed")

    def _learn(self, transaction: str, problem: Exception) -> None:
        """What became of a write whose connection broke inside its commit.

        Asked behind the lock, which the lost write held until it had ended one way or the other.
        """
        try:
            self._connection = self._connect()
            self._begin()
            row = self._run("SELECT pg_xact_status(?::xid8) AS became", (transaction,)).fetchone()
            became = row["became"]
        except (Unusable, driver().Error):
            became = None
        self._roll_back()
        if became == "committed":
            return
        said = self._address.told(problem)
        if became == "aborted":
            raise Unusable(f"the connection was lost, and the write was undone: {said}", "run it again")
        raise CommitUnknown(
            f"the connection was lost inside a commit, and whether that was kept is not known: {said}",
            "run it again when the server answers: it looks before it does anything",
        )

    def _roll_back(self) -> None:
        self._inside = False
        with suppress(driver().Error):
            if self._connection.info.transaction_status:
                self._connection.execute("ROLLBACK")

    # -- the connection --------------------------------------------------------------------------------
    def _connect(self) -> Any:
        psycopg = driver()
        try:
            connection = psycopg.connect(
                **self._address.settings, autocommit=True, prepare_threshold=None,
                row_factory=psycopg.rows.dict_row,
            )  # fmt: skip
            connection.execute(f"SET search_path TO {SCHEMA}")
            connection.execute(_DURABLE)
        except psycopg.Error as problem:
            raise Unusable(
                f"no connection: {self._address.told(problem)}",
                "see that the server runs and lets you in (docs/howto/share-a-journal.md)",
            ) from None
        return connection

    def _asked_again(self, ask: Callable[[], T]) -> T:
        """What `ask` gives; once more on a new connection where the old one turns out to be lost."""
        try:
            return ask()
        except Unusable:
            if not self._lost():
                raise
        self._connection = self._connect()
        return ask()

    def _run(self, sql: str, values: Sequence[object] = ()) -> Answer:
        asked = (sql,) if not values else (_placeholders(sql), [_storable(value) for value in values])
        answer: Answer = self._guarded(lambda: self._connection.execute(*asked))
        return answer

    def _guarded(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except driver().Error as problem:
            raise self._unusable(problem) from None

    def _unusable(self, problem: Exception) -> Unusable:
        said = self._address.told(problem)
        if self._lost():
            return Unusable(f"the connection was lost: {said}", "run it again")
        if isinstance(problem, driver().errors.LockNotAvailable):
            return Unusable(f"others have been writing for {WAITS_S} s and more: {said}", "run it again")
        if isinstance(problem, driver().errors.InsufficientPrivilege):
            return Unusable(
                said, "ask whoever keeps the database for the rights (docs/howto/share-a-journal.md)"
            )
        return Unusable(said)

    def _lost(self) -> bool:
        return bool(self._connection.closed)

    def _drop(self) -> None:
        with suppress(driver().Error):
            self._connection.close()


def _storable(value: object) -> object:
    """The value as the server takes it: a text without NUL, which a message from elsewhere may hold."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


@lru_cache(maxsize=256)
def _placeholders(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")
