"""Pages by key: together they are the whole list, and nobody's made-up token does anything."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.errors import ServiceError
from berth.yard.services.paging import page, read_token, write_token

from .conftest import Store, open_store


def put(store: Store, name: str, created_us: int) -> None:
    """One model row."""
    store.do(
        lambda tx: tx.insert(
            "models", arn=name, account_id="1", region="r", name=name, created_us=created_us, request="{}"
        )
    )


def listed(store: Store, size: int, descending: bool, column: str, between: Any = None) -> list[str]:
    """All names, page by page; `between` is called after the first page."""
    found: list[str] = []
    token: str | None = None
    for _ in range(200):
        params: dict[str, Any] = {"MaxResults": size, **({"NextToken": token} if token else {})}
        rows, token = store.do(
            lambda tx, p=params: page(
                tx, p, scope="models", table="models", where=["account_id = ?"], values=["1"],
                sort_column=column, descending=descending,
            )
        )  # fmt: skip
        assert len(rows) <= size
        found += [row["name"] for row in rows]
        if between is not None:
            between()
            between = None
        if token is None:
            return found
    raise AssertionError("there is always another page")


NAMES = st.dictionaries(st.text("abcXYZ019-", min_size=1, max_size=6), st.integers(0, 3), max_size=20)


@settings(deadline=None, max_examples=40)
@given(NAMES, NAMES, st.integers(1, 7), st.booleans(), st.sampled_from(["created_us", "name"]))
def test_pages_together_are_the_list(
    before: dict[str, int], meanwhile: dict[str, int], size: int, descending: bool, column: str
) -> None:
    """Sorted, nothing twice, nothing lost, whatever is inserted while somebody turns the pages."""
    store = open_store()
    for name, created in before.items():
        put(store, name, created)

    def insert() -> None:
        for name, created in meanwhile.items():
            if name not in before:
                put(store, name, created)

    found = listed(store, size, descending, column, insert)
    assert len(found) == len(set(found))
    assert set(before) <= set(found) <= set(before) | set(meanwhile)
    everything = {**meanwhile, **before}
    keys = [(everything[name] if column == "created_us" else 0, name) for name in found]
    assert keys == sorted(keys, reverse=descending)
    store.connection.close()


def made_up(*content: Any) -> str:
    """A token that nobody gave out."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


@pytest.mark.parametrize(
    "token",
    [
        "nonsense",
        "!!!!",
        "\N{SNOWMAN}",
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        base64.urlsafe_b64encode(b"[" * 5000).decode(),
        made_up(),
        made_up("other", "a", "b"),
        made_up("scope", "a"),
        made_up("scope", "a", "b", "c"),
        made_up("scope", {"a": 1}, "b"),
        made_up("scope", ["a"], "b"),
        made_up("scope", None, "b"),
        made_up("scope", True, "b"),
        made_up("scope", 1.5, "b"),
        made_up("scope", 2**63, "b"),
        made_up("scope", -(2**63) - 1, "b"),
        made_up("scope", "\ud800", "b"),
        made_up("scope", "a\x00b", "b"),
        json.dumps(["scope", "a", "b"]),
    ],
)
def test_a_token_that_nobody_gave_out_is_refused(token: str) -> None:
    """ValidationException, whatever it holds: never a fault inside the yard."""
    with pytest.raises(ServiceError) as refused:
        read_token(token, "scope", 2)
    assert (refused.value.code, refused.value.message) == (
        "ValidationException", "Invalid pagination token given.",
    )  # fmt: skip


@given(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1) | st.from_regex(r"[a-zA-Z0-9-]{1,64}", fullmatch=True), st.text("ab")
    )
)
def test_a_token_gives_its_key_back(key: tuple[Any, str]) -> None:
    """What was written is read, and matches AWS's `.*` within 8192 characters."""
    token = write_token("scope", key)
    assert read_token(token, "scope", 2) == list(key)
    assert len(token) <= 8192
    assert token.isprintable()
