"""`berth rebuild`: a lost journal made anew from what AWS keeps. Reads everywhere, never pays."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import Counter, counter
from berth.cli.options import Json, Profile
from berth.cli.output import WIDTH, Output
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

if TYPE_CHECKING:
    from berth.orders.rebuild import Seen, Told
    from berth.orders.rebuild_pieces import Counted

SCHEMA = "berth.rebuild/1"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("rebuild")(rebuild)


def rebuild(
    *,
    region: Annotated[list[str] | None, typer.Option("--region", help="Only there; may be repeated.")] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Make a lost journal anew from the marks that AWS keeps. Reads in all Regions, pays nothing."""
    from berth.orders.rebuild import LOST, restore
    from berth.orders.rebuild_pieces import counted

    output = Output(as_json=as_json)
    with counter(output, profile=profile, regions=region or ()) as at:
        regions, unlisted = _regions(at, region or ())
        seen = _look(at, regions)
        found = [one for place in seen for one in place.found]
        told = restore(at.journal, at.account, found, at.door.clock.now)
        troubles = [f"{place.region}: {trouble}" for place in seen for trouble in place.troubles]
        wholes = counted(at.journal.orders(at.account), at.account)
        output.document(
            {
                "schema": SCHEMA,
                "account": at.account,
                "regions": list(regions),
                "complete": not troubles and not unlisted,
                "found": [one.to_json() for one in told],
                "wholes": [one.to_json() for one in wholes],
                "not_read": troubles,
                "lost": list(LOST),
            }
        )
        output.answer("\n".join(_lines(told, wholes, regions, troubles)))
    return _end(troubles, unlisted)


def _regions(at: Counter, typed: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Where to look, and why the account's Regions are not known ('' when they are)."""
    from berth.sources.holdings import enabled_regions

    if typed:
        return tuple(dict.fromkeys(typed)), ""
    enabled, unlisted = enabled_regions(at.door.reader("ec2", at.door.regions[0]))
    return tuple(sorted({*enabled, *at.door.regions})), unlisted


def _look(at: Counter, regions: Sequence[str]) -> tuple[Seen, ...]:
    """What every Region shows, all asked at once."""
    from berth.orders.rebuild import Seen, marked_in
    from berth.sources.asking import Lane, ask_all

    answers: dict[str, Seen] = {}

    def hear(answer: Seen) -> None:
        answers[answer.region] = answer

    def lane(region: str) -> Lane[Seen]:
        def ask(hand_over: Callable[[Seen], None]) -> None:
            clients = at.door.reader("ec2", region), at.door.reader("sagemaker", region)
            hand_over(marked_in(region, *clients, at.account))

        return ask

    ask_all([lane(region) for region in regions], hear)
    cut = "interrupted before it answered"
    return tuple(answers.get(region, Seen(region, (), (cut,))) for region in regions)


def _lines(
    told: Sequence[Told], wholes: Sequence[Counted], regions: Sequence[str], troubles: Sequence[str]
) -> list[str]:
    """What became of each, what could not be read, and what is gone for good."""
    from berth.orders.rebuild import LOST, Fate

    lines = []
    for one in told:
        called = f"order {one.order}" if one.order else "no order"
        lines.append(f"{one.fate.value:<9}{called}: {one.reservation}, {one.region}")
        lines += [f"         {line}" for line in (one.why, *one.extended)]
    lines += [f"pieces   {one.says}" for one in wholes]
    lines += [f"NOT READ {trouble}" for trouble in troubles]
    number = sum(one.fate is Fate.RESTORED for one in told)
    places = f"{len(regions)} {'Region' if len(regions) == 1 else 'Regions'}"
    lines += ["", f"{number} restored of {len(told)} with a mark or an order's name, in {places}"]
    if number:
        lines += ["AWS does not keep, so it is not restored:", *(f"  {what}" for what in LOST)]
    return [folded for line in lines for folded in _folded(plain(line, 400))]


def _folded(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * 9, break_on_hyphens=False) or [""]


def _end(troubles: Sequence[str], unlisted: str) -> int:
    if unlisted:
        raise BerthError(
            ExitCode.INCOMPLETE,
            f"the account's Regions are not known ({unlisted}), so there may be more than was found",
            "name the Regions with --region",
        )
    if troubles:
        raise BerthError(
            ExitCode.INCOMPLETE,
            "not everything could be read, so there may be more than was found; what was found is restored",
            "the lines NOT READ say why; run it again: it changes nothing that is restored",
        )
    return ExitCode.DONE
