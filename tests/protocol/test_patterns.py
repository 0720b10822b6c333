"""Every pattern of every served model is run, as a full match, under bounds."""

from __future__ import annotations

import pytest

from berth.yard.wire.models import Shape, read_model
from berth.yard.wire.patterns import UNBOUNDED_LENGTH_MAX, PatternTimeout, matcher, translate
from berth.yard.wire.service import SERVICES
from berth.yard.wire.validate import check_for

from .samples import text_for

PATTERNS = sorted({pattern for service in SERVICES for pattern in read_model(service).patterns()})
# Texts of which every pattern refuses at least one, but for those that by their own words accept any text.
PROBES = ("", " ", "A", "\u2028", "\x00", "é!", "-", "a" * 5000)
ACCEPT_ANYTHING = {r"[\S\s]*"}
TRAPS = (
    "a" * 3000 + "\u2028",
    "0" * 3000 + "\u2028",
    "-a" * 1500 + "_\u2028",
    " " * 3000 + "\u2028",
    "a b " * 800 + "\u2028",
    "https://" + "/a" * 2000 + "\n",
    "arn:aws:sagemaker:us-east-1:123456789012:" + "a/" * 1500 + "\u2028",
)


def test_no_pattern_is_left_unenforced() -> None:
    """Every string with a pattern is checked; the list of those that are not is empty."""
    unenforced = []
    for service in SERVICES:
        for name, traits in read_model(service).shapes.items():
            if "pattern" in traits and traits["pattern"] not in ACCEPT_ANYTHING:
                check = check_for(Shape(name, {"pattern": traits["pattern"], "type": "string"}))
                if check is None or not any(check(probe) for probe in PROBES):
                    unenforced.append(f"{service} {name}")
    assert unenforced == []
    assert len(PATTERNS) > 250


@pytest.mark.filterwarnings("error")
def test_every_pattern_accepts_a_text_made_for_it() -> None:
    """The translation keeps what the model's author meant: a text made from the pattern is accepted."""
    refused = {pattern: text_for(pattern) for pattern in PATTERNS if not matcher(pattern)(text_for(pattern))}
    assert refused == {}


def test_a_pattern_matches_whole_strings_only() -> None:
    """Neither what stands before nor what stands after a match is overlooked, line ends included."""
    name = matcher(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
    assert name("plan-1")
    for text in ("plan-1\n", "\nplan-1", "plan 1", "plan-1 ", "plan-1\x00", "", "-plan"):
        assert not name(text), text


def test_no_text_keeps_a_pattern_busy() -> None:
    """Text made to trap a backtracking matcher is answered or given up on, for every pattern."""
    for pattern in PATTERNS:
        for trap in TRAPS:
            try:
                matcher(pattern)(trap)
            except PatternTimeout:
                break


def test_a_string_without_a_maximum_is_bounded_before_its_pattern_runs() -> None:
    """A pattern of a shape without `max` never sees more than the stated length."""
    check = check_for(Shape("Unbounded", {"type": "string", "pattern": ".*"}))
    assert check is not None
    assert list(check("a" * UNBOUNDED_LENGTH_MAX)) == []
    assert "length less than or equal to 16384" in check("a" * (UNBOUNDED_LENGTH_MAX + 1))[0]


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"),
    [
        (r"\d{12}", ["123456789012"], ["١٢٣٤٥٦٧٨٩٠١٢"]),
        (r"[\w-]+", ["a_b-1"], ["ä", "a b"]),
        (r"\A\S[\p{Print}]*\z", ["x y~"], [" x", "x\ty", "xé"]),
        (r"\p{ASCII}*", ["", "a\x00\x7f"], ["é"]),
        (r"arn:[\p{Alnum}\-]+", ["arn:aws-cn"], ["arn:é", "arn:_"]),
        (r"[\p{L}\p{Z}\p{N}_.:/=+\-@]*", ["Größe 1", ""], ["a,b", "a;b"]),
        (r"([\p{L}\p{Z}\p{N}_.:\/=+\-@]*)${1,128}", ["a=b"], ["a,b"]),
        (r".*", ["a\tb"], ["a\nb", "a\rb", "a\u2028b"]),
        (r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\t]*", ["a\tb", "\U0001f600"], ["\x01", "\n"]),
        (r"^arn:aws([a-z-]+)?:ec2:[a-z\d-]+:\d{12}:placement-group/^.{1,255}$",
         ["arn:aws:ec2:us-east-1:123456789012:placement-group/g"], ["arn:aws:ec2:us-east-1:123456789012:"]),
        (r"(^DisplayName$)|(^Description$)", ["Description"], ["DescriptionX", "DisplayName\n"]),
        (r"(?!^[.-])^([a-zA-Z0-9-_.]+)", ["a.b"], [".a", "-a"]),
        (r"[^ ~^:?*\[]+", ["a]b"], ["a[b", "a^b"]),
        (r"\D+\W", ["ab-"], ["a1-", "abc"]),
    ],
)  # fmt: skip
def test_dialects_are_understood(pattern: str, accepted: list[str], refused: list[str]) -> None:
    """What Java and ECMAScript mean by a pattern is what is enforced."""
    matches = matcher(pattern)
    assert [text for text in accepted if not matches(text)] == [], translate(pattern)
    assert [text for text in refused if matches(text)] == [], translate(pattern)
