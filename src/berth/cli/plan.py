"""`berth plan`: what can be had for a need, what it really costs, and why. Never spends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli import need_options as options
from berth.cli.desks import journal_trouble
from berth.cli.guide import guide
from berth.cli.needs import TypedNeed, typed_need
from berth.cli.options import Json, NeedFile, Profile
from berth.cli.output import Output
from berth.cli.plan_ends import end, why_nothing
from berth.cli.plan_faces import Faces, read_faces
from berth.cli.who import enter
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.aws.session import Door
    from berth.planner.need import Need
    from berth.planner.plan import Plan

Text = str | None


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("plan")(plan)


def plan(
    need: NeedFile = None,
    *,
    name: options.Name = None,
    types: options.Types = None,
    accelerators: options.Accelerators = None,
    count: options.Count = None,
    count_wanted: options.CountWanted = None,
    duration: options.Duration = None,
    goal: options.Goal = None,
    target: options.Target = None,
    region: options.Regions = None,
    zone_id: options.ZoneIds = None,
    subnet_zone: options.SubnetZones = None,
    same_zone: options.SameZone = None,
    only_way: options.OnlyWays = None,
    not_way: options.NotWays = None,
    start: options.Start = None,
    earliest: options.Earliest = None,
    latest: options.Latest = None,
    gap_at_most: options.GapAtMost = None,
    interruptible: options.Interruptible = None,
    checkpoint_every: options.CheckpointEvery = None,
    retryable: options.Retryable = None,
    startup: options.Startup = None,
    budget: options.Budget = None,
    account: options.Account = None,
    utilisation: options.Utilisation = None,
    platform: options.Platform = None,
    time_zone: options.TimeZone = None,
    part: options.PartName = None,
    zones: Annotated[
        str, typer.Option("--zones", help="`regional` leaves out what is on sale in Local Zones.")
    ] = "all",
    wait_until: Annotated[
        Text, typer.Option("--wait-until", metavar="DATE", help="Ask again until something fits, or DATE.")
    ] = None,
    max_total: Annotated[
        Text, typer.Option("--max-total", metavar="AMOUNT", help="With --wait-until: the most in all.")
    ] = None,
    notify: Annotated[
        list[str] | None,
        typer.Option("--notify", metavar="URL", help="With --wait-until: whom to tell, once; repeatable."),
    ] = None,
    guided: Annotated[
        bool, typer.Option("--guide", help="Be asked, question by question; writes the need file.")
    ] = False,
    ways: Annotated[bool, typer.Option("--ways", help="Show every way's rules, sources and terms.")] = False,
    offers: Annotated[
        bool, typer.Option("--offers", help="Show every offer seen, with its whole id.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what is proven about the best combination.")
    ] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Show the six ways side by side.")] = False,
    rows: Annotated[bool, typer.Option("--csv", help="Answer with rows for a spreadsheet instead.")] = False,
    plot: Annotated[
        Text, typer.Option("--plot", metavar="FILE", help="Draw cost over use: a .svg or .png file.")
    ] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Compare what can be had for NEED, at what cost, and why. Spends nothing."""
    output = Output(as_json=as_json)
    if guided:
        return guide(output, need)
    faces = read_faces(ways=ways, offers=offers, compare=compare, rows=rows, plot=plot, as_json=as_json)
    faces = replace(faces, explain=explain, profile=profile)
    typed = typed_need(
        need,
        {
            "name": name, "type": types, "accelerators": accelerators, "count": count,
            "count_wanted": count_wanted, "duration": duration, "goal": goal, "target": target,
            "regions": region, "zone_ids": zone_id, "subnet_zones": subnet_zone,
            "same_zone": options.yes_no(same_zone), "ways": only_way, "not_ways": not_way, "start": start,
            "earliest_start": earliest, "latest_end": latest, "gap_at_most": gap_at_most,
            "interruptible": options.yes_no(interruptible), "checkpoint_every": checkpoint_every,
            "retryable": options.yes_no(retryable), "startup": startup, "budget": budget,
            "account": account, "utilisation": utilisation, "time_zone": time_zone, "platform": platform,
        },
        part,
    )  # fmt: skip
    asking = Asking(profile, local_zones=_local_zones(zones), faces=faces)
    if wait_until is not None:
        return _wait(output, typed, asking, (wait_until, max_total or "", tuple(notify or ())))
    if max_total or notify:
        raise BerthError(ExitCode.USAGE, "--max-total and --notify are for --wait-until", "berth plan --help")
    try:
        door, opened = opened_for(output, typed, profile=profile)
    except BerthError as problem:
        from berth.cli.plan_offline import answer_offline

        raise answer_offline(output, typed, problem, faces) from None
    made = plan_need(output, door, opened, local_zones=asking.local_zones)
    _show(output, door, faces, made)
    return end(made)


@dataclass(frozen=True, slots=True)
class Asking:
    """How places are asked, and what is shown: `local_zones` False leaves those out."""

    profile: str | None
    local_zones: bool
    faces: Faces


def _show(output: Output, door: Door, faces: Faces, made: Plan) -> None:
    """Answer with the plan, under who asked and whether that one may buy."""
    from berth.cli.may_buy import may_buy, payer_line

    answer = may_buy(door, made)
    lines = [door.identity.header(), payer_line(answer, door.identity.role)]
    said = answer.say.value if answer is not None else None
    faces.show(output, "\n".join(filter(None, lines)), made, may_buy=said)


def _local_zones(zones: str) -> bool:
    if zones not in {"all", "regional"}:
        raise BerthError(ExitCode.USAGE, f"--zones {zones}: there are all and regional", "berth plan --help")
    return zones == "all"


def _wait(
    output: Output, typed: TypedNeed, asking: Asking, typed_wish: tuple[str, str, tuple[str, ...]]
) -> int:
    """Ask again until something fits, and end with its plan."""
    from berth.cli.plan_wait import Wish, hopeless, not_found, wait_for_offer

    wish = Wish(*typed_wish)
    door, waited = wait_for_offer(
        output, typed, wish,
        profile=asking.profile, local_zones=asking.local_zones, remember=remember_plan,
    )  # fmt: skip
    if waited is None:
        return ExitCode.DONE
    _show(output, door, asking.faces, waited.plan)
    if waited.nothing:
        raise why_nothing(waited.plan) if hopeless(waited.plan) else not_found(waited, wish)
    return ExitCode.DONE


def opened_for(output: Output, typed: TypedNeed, *, profile: str | None) -> tuple[Door, Need]:
    """Read the need and open the door.

    The need is checked in full before anything is sent, and once more against the clock of the world that
    was reached. Raises BerthError or SettingsError.
    """
    draft = typed.draft()
    door = enter(output, profile=profile, regions=draft.regions, quiet=True)
    return door, replace(typed.read(door.clock.now()), regions=door.regions)


def plan_need(output: Output, door: Door, need: Need, *, local_zones: bool = True) -> Plan:
    """Ask every place about `need` and remember the plan, so that `berth buy NAME#1` finds it."""
    from berth.cli.asking import planned

    made = planned(output, door, need, local_zones=local_zones)
    remember_plan(door, need, made)
    return made


def remember_plan(door: Door, need: Need, made: Plan) -> None:
    """Write the plan into the journal. Raises BerthError."""
    import os
    from contextlib import closing

    from berth.orders.journal import journal_place, open_journal

    with journal_trouble():
        place = journal_place(os.environ)
    with journal_trouble(place), closing(open_journal(place, door.identity.realm)) as journal:
        journal.remember_plan(door.identity.account, need.name, made.to_json(), made.made_at)
