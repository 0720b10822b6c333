"""`berth leave`: what is still paid, armed or running, before somebody goes. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.ls import inventory_of
from berth.cli.options import Json, Profile
from berth.cli.output import Output
from berth.cli.remembered import remembered
from berth.cli.who import enter
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.inventory.leaving import Leaving


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("leave")(leave)


def leave(
    *,
    region: Annotated[list[str] | None, typer.Option("--region", help="Only there; may be repeated.")] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Say what is still paid, running, in doubt or waited for. Looks in all Regions. Spends nothing."""
    from berth.inventory.leaving import leaving
    from berth.inventory.leaving_text import leaving_text
    from berth.sources.leaving import look_further

    output = Output(as_json=as_json)
    door = enter(output, profile=profile, regions=region or ())
    journal = remembered(door)
    inventory, unlisted = inventory_of(output, door, journal.known, region or (), everything=False)
    left = leaving(inventory, look_further(door, inventory.regions), journal)
    output.document(left.to_json())
    output.answer(leaving_text(left))
    return _end(output, left, unlisted, journal.hint)


_SAID = {
    ExitCode.OUTCOME_UNKNOWN: ("the outcome of an order is in doubt", "berth show the orders named above"),
    ExitCode.SOMETHING_LEFT: ("something runs, is billed or is waited for", "end what is named above"),
    ExitCode.INCOMPLETE: (
        "not every place answered; there may be more",
        "the lines NOT KNOWN say why; ask again",
    ),
}
_NO_JOURNAL = "the journal could not be read, so intents are not seen: an order may be in doubt"


def _end(output: Output, left: Leaving, unlisted: str, hint: str) -> int:
    code = left.exit_code
    if unlisted and code in {ExitCode.DONE, ExitCode.CLEANED_STILL_PAID}:
        raise BerthError(
            ExitCode.INCOMPLETE,
            f"the account's Regions are not known ({unlisted})",
            "name them with --region",
        )
    if code is ExitCode.CLEANED_STILL_PAID:
        output.talk("nothing runs; what is paid stays paid until its end, and cannot be given back")
    if code in {ExitCode.DONE, ExitCode.CLEANED_STILL_PAID}:
        return code
    raise BerthError(code, *_said(left, hint))


def _said(left: Leaving, hint: str) -> tuple[str, str]:
    """What ends the command, and what to do."""
    message, step = _SAID[left.exit_code]
    if not left.journal:
        return message, step
    if left.exit_code is not ExitCode.INCOMPLETE:
        return f"{message}; {_NO_JOURNAL}", f"{step}; then: {hint}" if hint else step
    return "\n".join([_NO_JOURNAL, *([message] if left.unread else [])]), hint or step
