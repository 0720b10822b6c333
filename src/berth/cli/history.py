"""`berth history`: what one's own asks saw of a type, by Region and hour of the day. Asks nobody."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.options import Json
from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.sources.history import HourSeen

SCHEMA = "berth.history/1"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("history")(history)


def history(
    instance_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="Instance type as it was asked for: p5.48xlarge.")
    ],
    *,
    region: Annotated[list[str] | None, typer.Option("--region", help="Region; may be repeated.")] = None,
    account: Annotated[str | None, typer.Option("--account", help="Of one account alone.")] = None,
    as_json: Json = False,
) -> int:
    """Show when one's own asks saw TYPE on sale, and at what price. Needs no keys and no network."""
    from berth.sources.quiet_hours import history_text, quieter

    output = Output(as_json=as_json)
    realm, seen = _read(instance_type)
    seen = [
        one
        for one in seen
        if (not region or one.region in region) and (account is None or one.account == account)
    ]
    output.document(
        {
            "schema": SCHEMA,
            "instance_type": instance_type,
            "realm": realm,
            "hours": [_json(one) for one in seen],
            "quieter": quieter(seen),
        }
    )
    if seen:
        output.answer(history_text(instance_type, realm, seen))
    else:
        output.talk(f"nothing was asked of {instance_type} in {realm} yet: berth plan keeps what it sees")
    return ExitCode.DONE


def _read(instance_type: str) -> tuple[str, list[HourSeen]]:
    """The realm of the declared world, and what was seen there. Raises BerthError."""
    from contextlib import closing

    from berth.aws.worlds import declared_yard
    from berth.sources.history import history_file, open_history
    from berth.sources.keeping import TROUBLES

    yard = declared_yard(os.environ)
    realm = yard.address if yard else "aws"
    file = history_file(os.environ)
    if not file.exists():
        return realm, []
    try:
        with closing(open_history(file, realm, "")) as kept:
            return realm, list(kept.by_hour(instance_type, every_account=True))
    except TROUBLES as problem:
        raise BerthError(
            ExitCode.INTERNAL_ERROR,
            f"the history {file} cannot be read: {problem}",
            "move it away: berth begins a new one",
        ) from None


def _json(one: HourSeen) -> dict[str, Any]:
    from berth.planner.offers import money_json
    from berth.terms.instants import iso

    return {
        "account": one.account,
        "way": one.way.value,
        "region": one.region,
        "hour_utc": one.hour,
        "asks": one.asks,
        "with_offers": one.with_offers,
        "not_answered": one.refused,
        "cheapest_hourly": money_json(one.cheapest),
        "first_at": iso(one.first_at),
        "last_at": iso(one.last_at),
    }
