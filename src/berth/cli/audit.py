"""`berth audit`: the journal's history, every event of every order. Asks nobody and writes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import journal_trouble
from berth.cli.options import Json
from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from datetime import datetime


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("audit")(audit)


def audit(
    *,
    since: Annotated[
        str | None, typer.Option("--since", metavar="T", help="At or after: 2026-12-01T09:00Z.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Export the journal's history: when, which order, what, who. Needs no keys and no network."""
    from berth.orders.audit import SCHEMA, read_audit
    from berth.orders.journal import journal_place
    from berth.terms.instants import iso

    output = Output(as_json=as_json)
    first = _instant(since)
    with journal_trouble():
        place = journal_place(os.environ)
    with journal_trouble(place):
        entries = read_audit(place, first)
    output.document(
        {
            "schema": SCHEMA,
            "journal": str(place),
            "since": None if first is None else iso(first),
            "events": [entry.to_json() for entry in entries],
        }
    )
    if entries:
        output.answer("\n".join(entry.line() for entry in entries))
    else:
        output.talk(f"no events in {place}" if place.exists() else f"no events: there is no journal {place}")
    return ExitCode.DONE


def _instant(text: str | None) -> datetime | None:
    from berth.terms.instants import parse_instant

    try:
        return None if text is None else parse_instant(text)
    except ValueError as problem:
        raise BerthError(ExitCode.USAGE, f"--since: {problem}") from None
