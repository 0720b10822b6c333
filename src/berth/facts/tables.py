"""Reading the dated tables that ship with the package."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import date
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a fact comes from and when it was seen.

    `as_of_quality` says how well the date is known: `exact`, `month`, `quarter` or `year` (the day then
    stands for the period), or `bracket` (between two known states). `source` is explained in data/README.md.
    """

    as_of: date
    as_of_quality: str
    source: str


def rows(name: str) -> list[dict[str, str]]:
    """All rows of the shipped table `name` (a file name under `data/`), as text; an empty cell is ''."""
    text = files("berth.facts").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def provenance(row: dict[str, str]) -> Provenance:
    """The provenance columns of a row."""
    return Provenance(date.fromisoformat(row["as_of"]), row["as_of_quality"], row["source"])
