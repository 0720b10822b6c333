"""A tag that cannot be read may be any tag: it makes nothing somebody else's."""

from __future__ import annotations

from typing import Any

import pytest

from berth.orders.seen import read_tags


def test_whole_tags_are_read() -> None:
    """Every one, and that is known to be all."""
    assert read_tags([{"Key": "a", "Value": "1"}, {"Key": "b", "Value": ""}]) == ({"a": "1", "b": ""}, True)
    assert read_tags([]) == ({}, True)


@pytest.mark.parametrize("broken", [{"Value": "1"}, {"Key": "a"}, {"Key": None, "Value": "1"}, "a=1"])
def test_a_broken_one_is_no_tag_and_the_list_is_not_whole(broken: Any) -> None:
    """What can be read is kept."""
    assert read_tags([broken, {"Key": "b", "Value": "2"}]) == ({"b": "2"}, False)
