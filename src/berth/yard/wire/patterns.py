"""The models' regular expressions, as Python can run them.

The models carry expressions of Java and of ECMAScript (Smithy 2.0 specification, constraint traits: "ECMA
262 dialect"). `translate` rewrites what Python reads differently; `matcher` runs the result as a full match,
under a bound on length and on time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import regex

# A string whose shape has a pattern but no `max` is refused beyond this many characters.
UNBOUNDED_LENGTH_MAX = 16_384
# Processor seconds that one match may take. Every pattern of the served models settles ordinary values in
# microseconds; only text made to trap a backtracking matcher comes near.
MATCH_TIMEOUT_S = 0.25

# How many answers of one pattern are remembered, and how long a text may be for that.
REMEMBERED = 512
REMEMBERED_LENGTH = 256

_CLASSES = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "ASCII": r"\x00-\x7f",
    "Print": r"\x20-\x7e",
    "Alnum": "a-zA-Z0-9",
}
_END = r"\Z"
# What a token that stands outside a class becomes.
_ALONE = {
    ".": r"[^\n\r\u2028\u2029]",  # ECMAScript's dot
    r"\z": _END,
    r"\d": f"[{_CLASSES['d']}]",
    r"\w": f"[{_CLASSES['w']}]",
    r"\D": f"[^{_CLASSES['d']}]",
    r"\W": f"[^{_CLASSES['w']}]",
}
_TOKEN = re.compile(
    r"""
      (?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})
    | (?P<property>\\p\{(?P<name>\w+)\})
    | (?P<unicode>\\u[0-9a-fA-F]{4})
    | (?P<escape>\\.)
    | (?P<group>\((?:\?(?:[:=!]|<[=!]))?)
    | (?P<end>\$(?:\{\d+,?\d*\})?)
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class PatternTimeout(Exception):
    """A value kept the matcher busy for longer than `MATCH_TIMEOUT_S`: it was made to do so."""


Matcher = Callable[[str], bool]


def translate(pattern: str) -> str:
    """Rewrite a model's pattern for the `regex` package; the meaning is the one AWS's dialects give it.

    Rewritten are `\\d` and `\\w` (ASCII only), `.` (no line ends at all), `$` (the very end), `\\z`, Java's
    POSIX classes, and surrogate pairs. A `^` in the middle, which could never match and stands in one EC2
    pattern by mistake, is dropped.
    """
    out: list[str] = []
    in_class = False
    may_start = True  # whether a `^` here says "start" rather than being a misprint
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup or ""
        text = token.group()
        if kind == "name":
            kind = "property"
        if in_class:
            out.append(_in_class(kind, text, token))
            in_class = text != "]"
            continue
        if text == "^" and not may_start:
            continue
        out.append(_outside(kind, text, token))
        in_class = text == "["
        may_start = kind == "group" or text in {"|", "^"}
    return "".join(out)


def _in_class(kind: str, text: str, token: re.Match[str]) -> str:
    if kind == "pair":
        return _astral(text)
    if kind == "property":
        return _CLASSES.get(token["name"], text)
    if text in {r"\d", r"\w"}:
        return _CLASSES[text[1]]
    if text == "[" or kind == "group":
        return "".join("\\" + character for character in text)
    return text


def _outside(kind: str, text: str, token: re.Match[str]) -> str:
    if kind == "pair":
        return _astral(text)
    if kind == "property":
        return f"[{_CLASSES[token['name']]}]" if token["name"] in _CLASSES else text
    return _END if kind == "end" else _ALONE.get(text, text)


def _astral(pair: str) -> str:
    high, low = int(pair[2:6], 16), int(pair[8:12], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Matcher:
    """A function that says whether a whole string matches the model's pattern.

    Strings longer than the caller's length bound must not reach it. Raises `regex.error` for a pattern
    that cannot be run at all (a test asks that there is none), `PatternTimeout` as described there.
    """
    compiled: Any = regex.compile(translate(pattern), regex.VERSION0)
    fullmatch = compiled.fullmatch

    def matches(text: str) -> bool:
        try:
            return fullmatch(text, timeout=MATCH_TIMEOUT_S) is not None
        except TimeoutError:
            raise PatternTimeout(pattern) from None

    # A match under a time limit costs five times one without, and clients ask for the same names all day.
    remembered = lru_cache(maxsize=REMEMBERED)(matches)
    return lambda text: remembered(text) if len(text) <= REMEMBERED_LENGTH else matches(text)
