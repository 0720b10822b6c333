"""A plan's name derives from account, need and sequence, and from nothing else."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.orders.names import is_ours, reservation_name
from berth.orders.order import OrderKey

PATTERN = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
keys = st.builds(
    OrderKey,
    st.from_regex(r"\A[0-9]{12}\Z"),
    st.text(min_size=1, max_size=300),
    st.integers(1, 10**6),
)


@settings(deadline=None, max_examples=200)
@given(keys)
def test_every_order_has_a_name_that_aws_takes(key: OrderKey) -> None:
    """Whatever the need is called, the name fits the pattern of plans, endpoints and models."""
    assert PATTERN.fullmatch(reservation_name(key))
    assert reservation_name(key) == reservation_name(key).lower()


@settings(deadline=None, max_examples=200)
@given(keys, keys)
def test_different_orders_have_different_names(one: OrderKey, other: OrderKey) -> None:
    """Account, need and sequence all count, also where the readable part is cut or alike."""
    if one != other and one.sequence != other.sequence:
        assert reservation_name(one) != reservation_name(other)
    assert is_ours({"berth:order": one.mark}, other) == (one == other)


def test_the_name_is_readable() -> None:
    """Need, sequence, and four characters to tell accounts apart."""
    first = reservation_name(OrderKey("111122223333", "eval", 1))
    assert re.fullmatch(r"eval-1-[0-9a-z]{4}", first)
    assert first != reservation_name(OrderKey("111122224444", "eval", 1))
    assert reservation_name(OrderKey("111122223333", "Eval?", 1)) != first
    assert first.startswith("eval-1-")


def test_the_name_is_frozen() -> None:
    """The name is the lock everywhere, so a later program must derive the same one."""
    assert reservation_name(OrderKey("111122223333", "eval", 1)) == "eval-1-menp"
