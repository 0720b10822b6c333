"""The options of `berth plan` that say the need: one for each key of a need file that is no table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Text = str | None
Texts = list[str] | None


def _text(flag: str, help_text: str) -> Any:
    return typer.Option(flag, help=help_text)


Name = Annotated[Text, _text("--name", "Name of the need.")]
Types = Annotated[Texts, _text("--type", "Type that would do: ml.trn1.32xlarge; may be repeated.")]
Accelerators = Annotated[Text, _text("--accelerators", "Instead of types: H200:16, or H200:16:80 for GiB.")]
Count = Annotated[Text, _text("--count", "Instances, the least that do: 2.")]
CountWanted = Annotated[Text, _text("--count-wanted", "Instances wanted at best: 4.")]
Duration = Annotated[Text, _text("--duration", "Time to hold and pay: 24h, 7d, or a range: 5d..9d.")]
Goal = Annotated[Text, _text("--goal", "Of a range: shortest, longest, cheapest-hour.")]
Target = Annotated[Text, _text("--target", "What runs: endpoint, training-job ...")]
Regions = Annotated[Texts, _text("--region", "Region; may be repeated.")]
ZoneIds = Annotated[Texts, _text("--zone-id", "Zone id; may be repeated.")]
SubnetZones = Annotated[Texts, _text("--subnet-zone", "Zone id that has a subnet; may be repeated.")]
SameZone = Annotated[
    bool | None,
    typer.Option("--same-zone/--several-zones", help="Whether all of it must be in one zone."),
]
OnlyWays = Annotated[Texts, _text("--only-way", "Way that may be used: capacity-block; may be repeated.")]
NotWays = Annotated[Texts, _text("--not-way", "Way that must not be used: on-demand; may be repeated.")]
Start = Annotated[Text, _text("--start", "Fixed start: 2026-12-02T11:30Z.")]
Earliest = Annotated[Text, _text("--from", "Earliest start: an instant or a day.")]
Latest = Annotated[Text, _text("--until", "Latest end; a day counts whole.")]
GapAtMost = Annotated[Text, _text("--gap-at-most", "Longest gap between parts of an offer: 1h, or 0h.")]
Interruptible = Annotated[
    bool | None,
    typer.Option("--interruptible/--not-interruptible", help="Whether it survives 2 minutes' notice."),
]
CheckpointEvery = Annotated[Text, _text("--checkpoint-every", "How much work an interruption loses: 1h.")]
Retryable = Annotated[
    bool | None, typer.Option("--retryable/--not-retryable", help="Whether it may be begun again.")
]
Startup = Annotated[Text, _text("--startup", "Paid time until a machine works: 20min.")]
Budget = Annotated[Text, _text("--budget", "Most that may be paid: 500.")]
Account = Annotated[Text, _text("--account", "Pin the account.")]
Utilisation = Annotated[Text, _text("--utilisation", "Share of the time in use: 0.6.")]
Platform = Annotated[Text, _text("--platform", "Of instances: Linux/UNIX ...")]
TimeZone = Annotated[Text, _text("--time-zone", "Zone of local times: Europe/Berlin.")]
PartName = Annotated[Text, _text("--part", "Plan this one of the need's [[parts]].")]


def yes_no(value: bool | None) -> str:
    """What a pair of flags said, as the need's reader takes it; '' for nothing."""
    return "" if value is None else ("yes" if value else "no")
