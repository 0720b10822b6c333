"""Reading a TOML file that a person wrote: every complaint names the line, the key, and what would be right.

Used for need files and fleet files alike. `tomllib` keeps no positions, so the lines of keys are found by a
scan of the same text; the values always come from `tomllib`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, TypeVar

from berth.terms.durations import parse_duration
from berth.terms.instants import parse_instant

T = TypeVar("T")
Path = tuple[str | int, ...]
MAX_BYTES = 4_000_000

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_SYNTAX_LINE = re.compile(r"\(at line (\d+), column (\d+)\)")


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing wrong: `line` counts from 1 (0 = unknown), `key` is dotted, `message` says what is right."""

    line: int
    key: str
    message: str


class SettingsError(ValueError):
    """A file that cannot be used; `complaints` holds everything found wrong, not only the first."""

    def __init__(self, source: str, complaints: Iterable[Complaint]) -> None:
        self.source = source
        self.complaints = tuple(sorted(complaints, key=lambda c: c.line))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One printable line a complaint: `need.toml:4: count: must be from 1 to 64, not 65`."""
        return [
            f"{self.source}:{c.line or '?'}: {c.key + ': ' if c.key else ''}{c.message}"
            for c in self.complaints
        ]


def _split_key(text: str) -> tuple[str, ...]:
    parts = re.findall(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""", text)
    return tuple(part.strip("\"'") for part in parts)


class _LineScan:
    """Finds the line of each key. Multi-line strings and arrays are skipped by their delimiters."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._table: Path = ()
        self._counts: dict[Path, int] = {}
        self._closing = ""  # delimiter that ends the multi-line value we are inside of
        self._depth = 0
        for number, line in enumerate(text.splitlines(), start=1):
            self._read(number, line)

    def _read(self, number: int, line: str) -> None:
        if self._closing:
            if self._closing in line:
                self._closing = ""
            return
        if self._depth > 0:
            self._depth += self._brackets(line)
            return
        header = _HEADER.match(line)
        if header:
            self._enter(number, header.group(1) == "[[", _split_key(header.group(2)))
            return
        key = _KEY.match(line)
        if key:
            self.lines.setdefault((*self._table, *_split_key(key.group(1))), number)
            self._value(line[key.end() :])

    def _enter(self, number: int, is_array: bool, names: tuple[str, ...]) -> None:
        path: Path = ()
        for name in names[:-1]:
            path = (*path, name)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        path = (*path, names[-1])
        if is_array:
            self._counts[path] = self._counts.get(path, 0) + 1
            self.lines.setdefault(path, number)
            path = (*path, self._counts[path] - 1)
        self._table = path
        self.lines.setdefault(path, number)

    def _value(self, rest: str) -> None:
        for quote in ('"""', "'''"):
            if rest.lstrip().startswith(quote):
                if rest.count(quote) < 2:
                    self._closing = quote
                return
        self._depth = max(0, self._brackets(rest))

    @staticmethod
    def _brackets(line: str) -> int:
        bare = re.sub(r""""(?:\\.|[^"\\])*"|'[^']*'|#.*""", "", line)
        return bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")


def _as_written(value: object) -> str:
    """A value as its file writes it: text in quotes, so that `not "1"` shows what is wrong with it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


class _Missing:
    """Marks that a key has no default: it must be there."""


REQUIRED: Any = _Missing()


class Section:
    """One table of a file. Readers take a key, check it, and note a complaint instead of raising.

    A reader returns its default (or a harmless stand-in for a missing required key) after a complaint;
    `finish` raises when there was any, so a value read is only used once the whole file was found good.
    """

    def __init__(self, file: _File, values: Mapping[str, Any], path: Path) -> None:
        self._file = file
        self._values = values
        self._path = path
        self._read: set[str] = set()
        self._asked: set[str] = set()

    # -- what is there ---------------------------------------------------------------------------------
    def has(self, key: str) -> bool:
        """Whether the key is written in the file. Asking is no reading; the key is a known one then."""
        self._asked.add(key)
        return key in self._values

    def keys(self) -> tuple[str, ...]:
        """The keys written in this table, in order. Asking does not count as reading."""
        return tuple(self._values)

    def line(self, key: str | None = None) -> int:
        """Line of `key`, or of the table itself for None; 0 when unknown."""
        path: Path = (*self._path, key) if key is not None else self._path
        while path:
            if path in self._file.lines:
                return self._file.lines[path]
            path = path[:-1]
        return 0 if self._path else 1

    def complain(self, key: str | None, message: str) -> None:
        """Note that something is wrong at `key` (None: at the table)."""
        path = (*self._path, key) if key is not None else self._path
        dotted = ".".join(str(p + 1) if isinstance(p, int) else p for p in path)
        self._file.complaints.append(Complaint(self.line(key), dotted, message))

    # -- readers ---------------------------------------------------------------------------------------
    def raw(self, key: str, default: Any = REQUIRED) -> Any:
        """The value as TOML gives it (floats as Decimal)."""
        self._read.add(key)
        if key in self._values:
            return self._values[key]
        if default is REQUIRED:
            self.complain(None, f"{key} is missing")
            return None
        return default

    def _typed(self, key: str, default: T, stand_in: T, convert: Callable[[Any], T]) -> T:
        value = self.raw(key, default)
        if key not in self._values:
            return stand_in if value is None and default is REQUIRED else default
        try:
            return convert(value)
        except (ValueError, TypeError) as problem:
            self.complain(key, str(problem))
            return stand_in

    def text(self, key: str, default: str = REQUIRED, *, pattern: str | None = None, hint: str = "") -> str:
        """A string, whole-matching `pattern` when given; `hint` says what would be right."""

        def convert(value: Any) -> str:
            if not isinstance(value, str):
                raise ValueError(f"must be text in quotes, not {value!r}")
            if pattern is not None and not re.fullmatch(pattern, value):
                raise ValueError(f"{value!r} is not valid{': ' + hint if hint else ''}")
            return value

        return self._typed(key, default, "", convert)

    def choice(self, key: str, allowed: Iterable[str], default: str = REQUIRED) -> str:
        """One of the words `allowed`."""
        words = tuple(allowed)

        def convert(value: Any) -> str:
            if value not in words:
                raise ValueError(f"{value!r} is not one of {', '.join(words)}")
            return str(value)

        return self._typed(key, default, words[0], convert)

    def integer(self, key: str, default: int = REQUIRED, *, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""

        def convert(value: Any) -> int:
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"must be a whole number from {low} to {high}, not {_as_written(value)}")
            return value

        return self._typed(key, default, low, convert)

    def decimal(self, key: str, default: Decimal = REQUIRED, *, low: Decimal = Decimal(0)) -> Decimal:
        """A number not under `low`, exact."""

        def convert(value: Any) -> Decimal:
            if isinstance(value, bool) or not isinstance(value, int | Decimal):
                raise ValueError(f"must be a number, not {value!r}")
            number = Decimal(value)
            if not number.is_finite() or number < low:
                raise ValueError(f"must be at least {low}, not {value}")
            return number

        return self._typed(key, default, low, convert)

    def flag(self, key: str, default: bool = REQUIRED) -> bool:
        """true or false."""

        def convert(value: Any) -> bool:
            if not isinstance(value, bool):
                raise ValueError(f"must be true or false, not {value!r}")
            return value

        return self._typed(key, default, False, convert)

    def duration(self, key: str, default: timedelta = REQUIRED) -> timedelta:
        """A span of time like "24h" or "15h30m"."""

        def convert(value: Any) -> timedelta:
            if not isinstance(value, str):
                raise ValueError(f'must be a duration in quotes like "24h", not {value!r}')
            return parse_duration(value)

        return self._typed(key, default, timedelta(hours=1), convert)

    def instant(self, key: str, default: datetime = REQUIRED, *, zone: tzinfo | None = None) -> datetime:
        """An instant (TOML date-time, or text); without a zone it is read in `zone`, or refused when None."""

        def convert(value: Any) -> datetime:
            if not isinstance(value, str | datetime):
                raise ValueError(f"must be an instant like 2026-12-02T11:30Z, not {value}")
            return parse_instant(value if isinstance(value, str) else value.isoformat(), zone)

        return self._typed(key, default, parse_instant("2000-01-01T00:00Z"), convert)

    def texts(
        self, key: str, default: tuple[str, ...] = REQUIRED, *, pattern: str | None = None
    ) -> tuple[str, ...]:
        """A list of strings."""

        def convert(value: Any) -> tuple[str, ...]:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise ValueError(f'must be a list like ["a", "b"], not {value!r}')
            for item in value:
                if pattern is not None and not re.fullmatch(pattern, item):
                    raise ValueError(f"{item!r} is not valid here")
            return tuple(value)

        return self._typed(key, default, (), convert)

    def table(self, key: str, *, required: bool = False) -> Section | None:
        """The sub-table `[key]`, or None when it is not there."""
        value = self.raw(key, REQUIRED if required else None)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.complain(key, f"must be a table [{key}]")
            return None
        return self._file.section(value, (*self._path, key))

    def tables(self, key: str) -> list[Section]:
        """The array of tables `[[key]]`, empty when there is none."""
        value = self.raw(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.complain(key, f"must be tables [[{key}]]")
            return []
        return [self._file.section(item, (*self._path, key, n)) for n, item in enumerate(value)]

    def finish(self) -> None:
        """Complain of keys that nobody read, in every table; raise SettingsError if anything was wrong."""
        self._file.finish()

    def _unread(self) -> None:
        for key in self._values:
            if key not in self._read:
                names = sorted(self._read | self._asked)
                known = ", ".join(names) or "nothing"
                near = difflib.get_close_matches(key, names, 1, 0.7)
                meant = f" (did you mean {near[0]}?)" if near else ""
                self.complain(key, f"unknown key{meant}; known here: {known}")


class _File:
    def __init__(self, source: str, lines: dict[Path, int]) -> None:
        self.source = source
        self.lines = lines
        self.complaints: list[Complaint] = []
        self.sections: list[Section] = []

    def section(self, values: Mapping[str, Any], path: Path) -> Section:
        made = Section(self, values, path)
        self.sections.append(made)
        return made

    def finish(self) -> None:
        for section in self.sections:
            section._unread()
        if self.complaints:
            raise SettingsError(self.source, self.complaints)


def read_settings(text: str, source: str) -> Section:
    """The top table of a TOML text. `source` is the file's name, for messages.

    Raises SettingsError at once for text that is not TOML or is larger than 4 MB.
    """
    if len(text.encode()) > MAX_BYTES:
        raise SettingsError(source, [Complaint(0, "", f"larger than {MAX_BYTES} bytes")])
    try:
        values = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as problem:
        found = _SYNTAX_LINE.search(str(problem))
        message = _SYNTAX_LINE.sub("", str(problem)).strip() or "nested too deeply"
        raise SettingsError(
            source, [Complaint(int(found.group(1)) if found else 0, "", f"not TOML: {message}")]
        ) from None
    return _File(source, _LineScan(text).lines).section(values, ())
