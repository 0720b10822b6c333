"""A PostgreSQL server of the tests' own: private, on a unix socket, in a folder that goes away with it.

It runs as an unprivileged user, because PostgreSQL refuses root, and ends with the tests even where these are
killed. As a program, `postgresql_server.py make test`, it starts one for a whole command (`.ci/run`); without
that each test process that needs a server starts its own.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")
GIVEN = "BERTH_TEST_POSTGRESQL"
"""The environment's name for the folder of a server that is running already."""

_PDEATHSIG = 1
# Speed over safety: the data of a test is worth nothing.
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "16MB",
    "log_min_messages": "fatal",
    "autovacuum": "off",
}

OURS = "berth-tests"
"""By this name the server knows the lines that are the tests' own, which nobody cuts."""

# The history's triggers are passed over, as only a superuser can.
EMPTIED = """
DO $$
DECLARE one record;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    SET session_replication_role = replica;
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'berth' AND tablename <> 'schema_version'
    LOOP
        EXECUTE format('DELETE FROM berth.%I', one.tablename);
    END LOOP;
END $$
"""


def binaries() -> Path | None:
    """The folder of the newest `initdb` and `postgres` of this machine; None where there are none."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    for pattern in PLACES:
        folders += sorted(Path("/").glob(pattern.lstrip("/")))
    whole = [folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()]
    return whole[-1] if whole else None


class NoServer(RuntimeError):
    """There is nothing to start."""


class Server:
    """A running server. Its superuser is `postgres`, without a password, on its socket alone.

    `process` None: somebody else started it, and ends it.
    """

    def __init__(self, folder: Path, process: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        self.process = process
        self._numbers = count(1)
        self._clean: list[str] = []
        self._lines: dict[str, Any] = {}

    def url(self, database: str, user: str = "postgres", password: str | None = None) -> str:
        """The URL of a database."""
        secret = "" if password is None else f":{password}"
        return f"postgresql://{user}{secret}@/{database}?host={self.folder}"

    def execute(self, database: str, *statements: str) -> list[Any]:
        """Run statements as the superuser; the rows of the last, [] where it has none."""
        rows: list[Any] = []
        for statement in statements:
            cursor = self._line(database).execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
        return rows

    def _line(self, database: str) -> Any:
        """Our own connection to a database, kept: a test asks for clean ones by the hundred."""
        import psycopg

        if database not in self._lines:
            self._lines[database] = psycopg.connect(
                self.url(database), autocommit=True, application_name=OURS
            )
        return self._lines[database]

    def empty(self) -> str:
        """The name of a new database with nothing in it."""
        name = f"t{os.getpid()}_{next(self._numbers)}"
        self.execute("postgres", f"CREATE DATABASE {name} TEMPLATE template0")
        return name

    @contextmanager
    def journals(self) -> Iterator[Callable[[], str]]:
        """Gives names of databases, each with an empty journal of today's schema.

        One that nobody is connected to any more is emptied and given again: to make one costs a tenth of a
        second.
        """
        given: list[str] = []

        def new() -> str:
            name = self._left(given)
            if name is None:
                name = self._clean.pop() if self._clean else self._new_journal()
                given.append(name)
            return name

        try:
            yield new
        finally:
            for name in given:
                self.execute(name, EMPTIED)
            self._clean += given

    def drop_connections(self, url: str) -> None:
        """Cut every line to the database of a URL."""
        name = url.partition("@/")[2].partition("?")[0]
        self.execute(
            "postgres",
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            f" WHERE datname = '{name}' AND application_name <> '{OURS}'",
        )

    def empty_journal(self, url: str) -> None:
        """Remove every row of the journal at a URL."""
        self.execute(url.partition("@/")[2].partition("?")[0], EMPTIED)

    def _left(self, given: list[str]) -> str | None:
        """One of the databases that nobody is connected to, emptied; None when there is none."""
        listed = ", ".join(f"'{name}'" for name in given) or "''"
        busy = self.execute(
            "postgres",
            "SELECT datname FROM pg_stat_activity"
            f" WHERE datname IN ({listed}) AND application_name <> '{OURS}'",
        )
        name = next((name for name in given if (name,) not in busy), None)
        if name is not None:
            self.execute(name, EMPTIED)
        return name

    def _new_journal(self) -> str:
        from berth.orders.journal import open_journal

        name = self.empty()
        open_journal(self.url(name), "aws").close()
        return name

    def stop(self) -> None:
        """Let go of it; end it, and remove its folder, if it is ours."""
        for line in self._lines.values():
            line.close()
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start(**changed: str) -> Server:
    """The server that is given, else a new one over a new cluster; raises NoServer where none is there.

    `changed` are settings of a new one that differ from `SETTINGS`.
    """
    if os.environ.get(GIVEN):
        return Server(Path(os.environ[GIVEN]))
    where = binaries()
    if where is None:
        raise NoServer("no PostgreSQL server is installed here (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="berth-pg-"))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    plain = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    data = folder / "data"
    subprocess.run(
        [where / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
        env=plain, cwd=folder, check=True, capture_output=True, **who,
    )  # fmt: skip
    settings = {**SETTINGS, **changed, "unix_socket_directories": str(folder)}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [where / "postgres", "-D", data, *options], env=plain, cwd=folder, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, preexec_fn=_end_with_us(), **who,  # noqa: PLW1509 - no threads here yet
        )  # fmt: skip
    server = Server(folder, process)
    try:
        _wait_until_it_answers(server)
    except BaseException:
        server.stop()
        raise
    return server


def _end_with_us() -> Callable[[], None]:
    """What makes the kernel end the server when this process is gone, however it went."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def ask() -> None:
        if prctl is not None:
            prctl(_PDEATHSIG, int(signal.SIGINT))

    return ask


def _wait_until_it_answers(server: Server, most_s: float = 60.0) -> None:
    import psycopg

    until = time.monotonic() + most_s
    while True:
        try:
            server.execute("postgres", "SELECT 1")
        except psycopg.OperationalError:
            if server.process is None or server.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((server.folder / "log").read_text(errors="replace")) from None
            time.sleep(0.05)
        else:
            return


def main(command: list[str]) -> int:
    """Run a command with a server for the tests in it; its exit code."""
    try:
        server = start()
    except NoServer as missing:
        print(missing, file=sys.stderr)
        return 1
    try:
        return subprocess.run(command, env={**os.environ, GIVEN: str(server.folder)}, check=False).returncode
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
