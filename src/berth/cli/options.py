"""Options that several verbs share, declared once so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.terms.money import Money

Profile = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="Named profile of the AWS configuration.")
]
BuyerProfile = Annotated[
    str | None,
    typer.Option("--buyer-profile", metavar="NAME", help="Profile of the paid call alone; same account."),
]
Proof = Annotated[
    str | None, typer.Option("--proof", metavar="FILE", help="Approver's proof; - reads stdin.")
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="KEY=VALUE", help="Tag of what is bought, over the need's; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; talk goes to stderr.")]
NeedPath = Annotated[Path, typer.Argument(metavar="NEED", help="Need file (TOML).", show_default=False)]
NeedIfAny = Annotated[
    Path | None, typer.Argument(metavar="NEED", help="Need file (TOML).", show_default=False)
]
NeedFile = Annotated[
    Path | None,
    typer.Argument(metavar="NEED", help="Need file (TOML); flags override it.", show_default=False),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Order: eval, eval/2 for the second, eval/1.2 for a piece.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; needs --max.")]
Max = Annotated[
    str | None, typer.Option("--max", metavar="AMOUNT", help="The most that may be paid: 250.00, in USD.")
]


def waiting(what: str) -> Any:
    """The option `--wait` of a verb that waits for `what` instead of ending."""
    return typer.Option("--wait", help=f"Wait {what}.")


def read_amount(text: str | None) -> Money | None:
    """An amount typed on the command line. Raises BerthError (usage)."""
    from berth.terms.money import Money

    if text is None:
        return None
    try:
        money = Money.parse(text)
    except ValueError as problem:
        raise BerthError(ExitCode.USAGE, f"--max: {problem}") from None
    if money.amount <= 0:
        raise BerthError(ExitCode.USAGE, f"--max: {money} allows nothing; write an amount over zero")
    return money
