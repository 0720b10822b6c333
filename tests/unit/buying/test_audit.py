"""The journal as evidence: copied before it changes, exported without being written, refused when newer."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.cli.main import run
from berth.orders.audit import read_audit
from berth.orders.journal import Who, open_journal
from berth.orders.journal_file import MIGRATIONS, FilePlace, opened
from berth.orders.order import Approval, OrderKey, OrderState
from berth.storage import sqlite
from berth.storage.sqlite import migrations
from berth.terms.instants import iso

KEY = OrderKey("111122223333", "eval", 1)
AT = datetime(2026, 12, 1, 9, tzinfo=UTC)
HEAD = migrations(MIGRATIONS)[-1][0]


def old_journal(file: Path, version: int = 2) -> None:
    """A journal as a program of that version left it, with one order."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        for number, script in migrations(MIGRATIONS):
            if number <= version:
                db.executescript(f"{script}\nPRAGMA user_version={number};")
        db.execute(
            "INSERT INTO orders (order_id, realm, account, need, sequence, state, reservation_name, offer,"
            " context, created_at, changed_at) VALUES ('aws 111122223333/eval/1', 'aws', '111122223333',"
            " 'eval', 1, 'bought', 'eval-1', '{}', '{}', 0, 0)"
        )
        db.execute(
            "INSERT INTO attempts VALUES ('aws 111122223333/eval/1', 1, 'i1', 'tpo-1', 228770000, 'USD',"
            " 'host boot 7 99', 0, NULL, NULL, '')"
        )
        for number, kind in enumerate(("intended", "bought"), start=1):
            db.execute(
                "INSERT INTO events (order_id, number, at, kind, detail)"
                f" VALUES ('aws 111122223333/eval/1', {number}, {number * 1_000_000}, '{kind}', 'x')"
            )
        db.commit()


def copies(folder: Path) -> list[Path]:
    """The copies that lie beside the journal."""
    return sorted(folder.glob("journal.v*"))


def tables(file: Path) -> list[Any]:
    """Version and whole content of a database."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
        return [db.execute("PRAGMA user_version").fetchone()[0], *db.iterdump()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the command line's journal; its file is there only when a test makes it."""
    monkeypatch.setenv("BERTH_HOME", str(tmp_path))
    return tmp_path


def test_an_older_journal_is_copied_before_it_changes(tmp_path: Path) -> None:
    """Version and time in the name, mode 0600, the content as it was; the journal is this program's after."""
    file = tmp_path / "journal.sqlite"
    old_journal(file)
    before = tables(file)
    opened(file, lambda: AT).close()
    (copy,) = copies(tmp_path)
    assert copy.name == "journal.v2.20261201T090000Z.sqlite"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert tables(copy) == before
    assert tables(file)[0] == HEAD
    opened(file, lambda: AT + timedelta(days=1)).close()
    assert copies(tmp_path) == [copy]


def test_a_copy_holds_what_still_lies_in_the_log(tmp_path: Path) -> None:
    """A commit that no checkpoint has moved yet is in the copy: it is SQLite's backup, not a copied file."""
    file = tmp_path / "journal.sqlite"
    old_journal(file)
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA wal_autocheckpoint=0")
        other.execute("INSERT INTO plans VALUES ('aws', '1', 'late', 0, '{}')")
        other.commit()
        opened(file, lambda: AT).close()
    (copy,) = copies(tmp_path)
    assert any("'late'" in line for line in tables(copy)[1:])


def test_a_copy_is_never_written_over(tmp_path: Path) -> None:
    """Another of the same version and second has a number of its own; a new journal has none."""
    file = tmp_path / "journal.sqlite"
    opened(file, lambda: AT).close()
    assert copies(tmp_path) == []
    for _ in range(2):
        for path in tmp_path.glob("journal.sqlite*"):
            path.unlink()
        old_journal(file)
        opened(file, lambda: AT).close()
    assert [copy.name for copy in copies(tmp_path)] == [
        "journal.v2.20261201T090000Z.2.sqlite",
        "journal.v2.20261201T090000Z.sqlite",
    ]


def test_without_a_copy_nothing_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk while copying: the error is told, the journal is as it was, and no half copy is left."""
    file = tmp_path / "journal.sqlite"
    old_journal(file)
    before = tables(file)

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sqlite, "_to_disk", full)
    with pytest.raises(OSError, match="No space left"):
        opened(file, lambda: AT)
    assert tables(file) == before
    assert [path.name for path in tmp_path.iterdir() if "-" not in path.name] == ["journal.sqlite"]


def test_a_migration_that_fails_leaves_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All steps or none."""
    file = tmp_path / "journal.sqlite"
    old_journal(file, 1)
    before = tables(file)
    broken = [*migrations(MIGRATIONS), (99, "CREATE TABLE late (x BIGINT);\nCREATE TABLE events (x BIGINT);")]
    monkeypatch.setattr(sqlite, "migrations", lambda package: broken)
    with pytest.raises(sqlite3.OperationalError, match="events already exists"):
        opened(file, lambda: AT)
    assert tables(file) == before


def test_two_programs_that_start_at_once_migrate_once(tmp_path: Path) -> None:
    """The second waits, reads the version again behind the lock, and makes neither copy nor change."""
    file = tmp_path / "journal.sqlite"
    old_journal(file, 1)
    troubles: list[BaseException] = []
    together = threading.Barrier(4)

    def start() -> None:
        together.wait()
        try:
            opened(file, lambda: AT).close()
        except BaseException as trouble:  # noqa: BLE001 - told below
            troubles.append(trouble)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    assert len(copies(tmp_path)) == 1
    assert tables(file)[0] == HEAD


@pytest.mark.parametrize(
    "asked",
    ["show eval", "buy eval#1 --yes --max 500", "clean eval", "run NEED", "audit"],
    ids=lambda asked: asked.split()[0],
)
def test_a_newer_journal_is_refused(home: Path, asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 20, which file, which versions, what to do; untouched, and nothing was spent."""
    file = home / "journal.sqlite"
    old_journal(file)
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version=99")
    need = home / "eval.toml"
    need.write_text(
        'name = "eval"\ninstance_type = "p5.48xlarge"\ncount = 1\nduration = "24h"\n'
        'target = "instances"\nregions = ["us-east-1"]\n'
    )
    before = tables(file)
    assert run([str(need) if word == "NEED" else word for word in asked.split()]) == 20
    said = capsys.readouterr()
    words = " ".join(said.err.split())
    assert f"{file}: schema version 99 is newer than this program knows ({HEAD}); use the newer" in words
    assert said.err.splitlines()[-1] == "nothing was spent"
    assert said.out == ""
    assert tables(file) == before
    assert copies(home) == []


@pytest.fixture
def written(world: Any, home: Path) -> Iterator[Path]:
    """One bought order of AWS, written by somebody who is known, and one of a rehearsal, refused."""
    file = home / "journal.sqlite"
    who = Who("arn:aws:sts::111122223333:assumed-role/buyer/ada", "ada@desk, process 7")
    journal = open_journal(file, "aws", who=who)
    order = journal.intend(KEY, Approval(world.approved), intent_id="i1", holder="p1", now=AT)
    journal.settle(
        order, OrderState.BOUGHT, now=AT + timedelta(seconds=2), detail="answered \x1b[31m", arn="arn:x"
    )
    yard = open_journal(file, "127.0.0.1:4599")
    other = yard.intend(
        KEY, Approval(world.approved), intent_id="i2", holder="p2", now=AT + timedelta(seconds=1)
    )
    yard.note(KEY, "said", "hello", AT + timedelta(minutes=1))
    yard.settle(other, OrderState.REFUSED, now=AT + timedelta(minutes=2), detail="gone")
    yield file
    yard.close()
    journal.close()


def test_the_audit_holds_every_event(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All realms, oldest first, with order, amount where it is about money, and who where that is known."""
    assert run(["audit", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "berth.audit/1"
    assert [(one["realm"], one["kind"]) for one in found["events"]] == [
        ("aws", "intended"), ("127.0.0.1:4599", "intended"), ("aws", "bought"), ("127.0.0.1:4599", "said"),
        ("127.0.0.1:4599", "refused"),
    ]  # fmt: skip
    first, _, bought, said, _ = found["events"]
    assert bought == {
        "at": iso(AT + timedelta(seconds=2)), "realm": "aws", "account": KEY.account, "order": "eval",
        "number": 2, "kind": "bought", "detail": "answered \x1b[31m",
        "amount": {"amount": "228.77", "currency": "USD"},
        "caller": "arn:aws:sts::111122223333:assumed-role/buyer/ada", "process": "ada@desk, process 7",
    }  # fmt: skip
    assert first["amount"] == bought["amount"]
    assert (said["amount"], said["caller"], said["process"]) == (None, None, None)


def test_the_audit_as_lines(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line an event, rehearsals named, nothing that a terminal obeys; --since cuts before."""
    assert run(["audit", "--since", iso(AT + timedelta(seconds=1))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("2026-12-01T09:00:01Z  rehearsal 127.0.0.1:4599  111122223333/eval  intended")
    assert "\x1b" not in lines[1]
    assert lines[1].endswith("by arn:aws:sts::111122223333:assumed-role/buyer/ada, ada@desk, process 7")
    assert "228.77 USD" in lines[1]


def test_an_older_journal_is_audited_as_it_stands(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not migrated and not copied; who is known from the attempt, and only for its intent."""
    for version in range(1, HEAD):
        file = home / "journal.sqlite"
        old_journal(file, version)
        before = tables(file)
        entries = read_audit(FilePlace(file))
        assert [(one.kind, str(one.amount), one.caller, one.process) for one in entries] == [
            ("intended", "228.77 USD", None, "host boot 7 99"),
            ("bought", "228.77 USD", None, None),
        ]
        assert tables(file) == before
        assert copies(home) == []
        for path in home.iterdir():
            path.unlink()


def test_reading_never_writes(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While others have it open, and in a folder that cannot be written: the same, and no byte moves."""
    before = written.read_bytes()
    entries = read_audit(FilePlace(written))
    assert written.read_bytes() == before
    frozen = written.parent / "frozen"
    frozen.mkdir()
    with closing(sqlite3.connect(written)) as db, closing(sqlite3.connect(frozen / "journal.sqlite")) as copy:
        db.backup(copy)
    before = (frozen / "journal.sqlite").read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert read_audit(FilePlace(frozen / "journal.sqlite")) == entries
    assert (frozen / "journal.sqlite").read_bytes() == before
    assert [path.name for path in frozen.iterdir()] == ["journal.sqlite"]
    shutil.rmtree(frozen)


def test_no_journal_is_an_empty_audit(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, said on stderr, and none is made; a bad --since is a usage error."""
    assert run(["audit"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "there is no journal" in said.err
    assert list(home.iterdir()) == []
    assert run(["audit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == []
    assert run(["audit", "--since", "2026-12-01"]) == 2
    assert "names no time zone" in capsys.readouterr().err


def test_what_is_no_journal_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of something else: exit 1 and which file, not a trace."""
    (home / "journal.sqlite").write_text("this is no database, and long enough to be read as one" * 40)
    assert run(["audit"]) == 1
    assert f"the journal {home}/journal.sqlite cannot be used" in " ".join(capsys.readouterr().err.split())
