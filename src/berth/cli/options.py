"""Options that several verbs share, declared once so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
