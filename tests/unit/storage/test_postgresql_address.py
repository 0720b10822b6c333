"""The URL of a journal: what is taken from it, and what of it is never shown."""

from __future__ import annotations

import builtins
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.orders.journal_file import FilePlace, ServerPlace, journal_place
from berth.storage.database import Unusable
from berth.storage.postgresql_address import parse_address

SECRET = "Qx7secretQx7"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://ada:{SECRET}@db.example:5433/team", "postgresql://ada@db.example:5433/team"),
        (f"postgres://ada:{SECRET}@10.0.0.1/team?sslmode=require", "postgresql://ada@10.0.0.1/team"),
        (f"postgresql:///team?user=ada&password={SECRET}", "postgresql://ada@/team"),
        (f"postgresql://ada:{SECRET}@/team?host=/run/pg", "postgresql://ada@/team?host=/run/pg"),
        (f"postgresql://ada:{SECRET}@a:5432,b:5433/team", "postgresql://ada@a,b:5432,5433/team"),
        (f"postgresql://[::1]/team?sslpassword={SECRET}", "postgresql://::1/team"),
        ("postgresql:///?service=team", "postgresql:/// (service team)"),
    ],
)
def test_only_the_place_is_shown(url: str, shown: str) -> None:
    """User, host, port and database; in `str` and in `repr`, so that no trace holds more."""
    address = parse_address(url)
    assert str(address) == shown
    assert SECRET not in repr(address)
    assert SECRET not in str(ServerPlace(address))


@settings(deadline=None, max_examples=200)
@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=8),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=8),
)
def test_an_unescaped_password_is_never_repeated(before: str, after: str) -> None:
    """Whatever a forgotten % makes of the URL (a host, a port): nothing of the password is said."""
    password = f"{before}{SECRET}{after}"
    try:
        said = str(parse_address(f"postgresql://ada:{password}@db.example/team"))
    except Unusable as problem:
        said = f"{problem} {problem.hint}"
    assert SECRET not in said


@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20))
def test_an_escaped_password_arrives(password: str) -> None:
    """The % form carries any character, and a message that repeats the password is cleaned."""
    address = parse_address(f"postgresql://ada:{quote(password, safe='')}@db.example/team")
    assert address.settings["password"] == password
    assert (
        password not in address.told(f'FATAL: no entry for "{password}"').replace("***", "")
        or len(password) < 3
    )


@pytest.mark.parametrize("url", ["mysql://x", "journal.sqlite", "postgresql", "http://postgresql://", "  "])
def test_what_is_no_such_url_is_refused(url: str) -> None:
    """With the setting's name and what to write, and not with what was written."""
    with pytest.raises(Unusable, match="BERTH_JOURNAL: it is not the URL") as caught:
        journal_place({"BERTH_JOURNAL": f"{url}{SECRET}"})
    assert SECRET not in str(caught.value)
    assert "postgresql://USER@HOST" in caught.value.hint


def test_without_the_setting_it_is_a_file() -> None:
    """An empty setting is none."""
    for environ in ({"BERTH_HOME": "/x"}, {"BERTH_HOME": "/x", "BERTH_JOURNAL": ""}):
        place = journal_place(environ)
        assert isinstance(place, FilePlace)
        assert str(place) == "/x/journal.sqlite"
        assert not place.shared


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core install has no psycopg; only a journal on a server needs it."""
    load = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "psycopg":
            raise ModuleNotFoundError("No module named 'psycopg'")
        return load(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Unusable, match="PostgreSQL needs psycopg") as caught:
        journal_place({"BERTH_JOURNAL": "postgresql:///team"})
    assert "gpu-berth[team]" in caught.value.hint
