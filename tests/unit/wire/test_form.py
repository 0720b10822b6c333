"""Forms: fields, trees, and what is refused."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.wire import form
from berth.yard.wire.form import FormFault

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="."), min_size=1, max_size=8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(names, texts, max_size=6))
def test_what_is_form_encoded_is_read_back(fields: dict[str, str]) -> None:
    """Any names and values, in either of the encodings of a space."""
    assert form.fields(urlencode(fields)) == fields
    assert form.fields("", urlencode(fields).replace("+", "%20")) == fields


def test_dots_make_a_tree() -> None:
    """Names are paths; order does not matter."""
    fields = {"Filter.1.Value.2": "b", "Filter.1.Name": "state", "DryRun": "true", "Filter.1.Value.1": "a"}
    assert form.tree(fields) == {
        "Filter": {"1": {"Value": {"2": "b", "1": "a"}, "Name": "state"}},
        "DryRun": "true",
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"A": "1", "A.B": "2"},
        {"A.B": "2", "A": "1"},
        {"A.B": "1", "A.B.C": "2"},
        {".".join("a" * 30): "1"},
        {".".join("a" * 100_000): "1"},
    ],
)
def test_names_that_make_no_tree_are_refused(fields: dict[str, str]) -> None:
    """A leaf that is also a branch, and nesting beyond any request."""
    with pytest.raises(FormFault):
        form.tree(fields)


@pytest.mark.parametrize("text", ["A=1&A=2", "A=1&%41=2", "A=%ff", "%ff=1", "&".join(["A"] * 20_000)])
def test_fields_that_cannot_be_told_are_refused(text: str) -> None:
    """The same name twice in any spelling, bytes that are no UTF-8, more fields than a request has."""
    with pytest.raises(FormFault):
        form.fields(text)


def test_a_name_in_query_and_body_is_given_twice() -> None:
    """Query string and form are one set of parameters."""
    assert form.fields("A=1", "B=2") == {"A": "1", "B": "2"}
    with pytest.raises(FormFault):
        form.fields("A=1", "A=1")
