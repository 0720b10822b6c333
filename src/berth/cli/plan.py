"""`berth plan`: what can be had for a need, what it really costs, and why. Never spends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import journal_trouble
from berth.cli.needs import TypedNeed, typed_need
from berth.cli.options import Json, NeedFile, Profile
from berth.cli.output import Output
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
    name: Annotated[Text, typer.Option("--name", help="Name of the need.")] = None,
    instance_type: Annotated[Text, typer.Option("--type", help="Instance type: ml.trn1.32xlarge.")] = None,
    count: Annotated[Text, typer.Option("--count", help="Instances: 1, 2, 4 ... 64.")] = None,
    duration: Annotated[Text, typer.Option("--duration", help="Time to hold and pay: 24h, 7d.")] = None,
    target: Annotated[Text, typer.Option("--target", help="What runs: endpoint, training-job ...")] = None,
    region: Annotated[list[str] | None, typer.Option("--region", help="Region; may be repeated.")] = None,
    zone_id: Annotated[list[str] | None, typer.Option("--zone-id", help="Zone id; may be repeated.")] = None,
    start: Annotated[Text, typer.Option("--start", help="Fixed start: 2026-12-02T11:30Z.")] = None,
    earliest: Annotated[Text, typer.Option("--from", help="Earliest start: an instant or a day.")] = None,
    latest: Annotated[Text, typer.Option("--until", help="Latest end; a day counts whole.")] = None,
    budget: Annotated[Text, typer.Option("--budget", help="Most that may be paid: 500.")] = None,
    account: Annotated[Text, typer.Option("--account", help="Pin the account.")] = None,
    utilisation: Annotated[Text, typer.Option("--utilisation", help="Share of the time in use: 0.6.")] = None,
    platform: Annotated[Text, typer.Option("--platform", help="Of instances: Linux/UNIX ...")] = None,
    time_zone: Annotated[
        Text, typer.Option("--time-zone", help="Zone of local times: Europe/Berlin.")
    ] = None,
    ways: Annotated[bool, typer.Option("--ways", help="Show every way's rules, sources and terms.")] = False,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Compare what can be had for NEED: offers, list prices, true cost, reasons. Spends nothing."""
    output = Output(as_json=as_json)
    typed = typed_need(
        need,
        {
            "name": name, "instance_type": instance_type, "count": count, "duration": duration,
            "target": target, "regions": region, "zone_ids": zone_id, "start": start,
            "earliest_start": earliest, "latest_end": latest, "budget": budget, "account": account,
            "utilisation": utilisation, "time_zone": time_zone, "platform": platform,
        },
    )  # fmt: skip
    door, made = plan_typed(output, typed, profile=profile)
    output.document(made.to_json())
    if as_json:
        output.talk(door.identity.header())
    output.answer(_text(door, made, ways=ways))
    return _end(made)


def plan_typed(output: Output, typed: TypedNeed, *, profile: str | None) -> tuple[Door, Plan]:
    """Read the need, open the door, ask every place, and remember the plan for `berth buy`.

    The need is checked in full before anything is sent, and once more against the clock of the world that
    was reached. Raises BerthError or SettingsError.
    """
    draft = typed.draft()
    door = enter(output, profile=profile, regions=draft.regions, quiet=True)
    need = replace(typed.read(door.clock.now()), regions=door.regions)
    made = plan_need(output, door, need)
    return door, made


def plan_need(output: Output, door: Door, need: Need, *, local_zones: bool = True) -> Plan:
    """Ask every place about `need` and remember the plan, so that `berth buy NAME#1` finds it."""
    import os
    from contextlib import closing

    from berth.cli.asking import ask_places
    from berth.orders.journal import journal_place, open_journal

    made = ask_places(output, door, need, local_zones=local_zones)
    with journal_trouble():
        place = journal_place(os.environ)
    with journal_trouble(place), closing(open_journal(place, door.identity.realm)) as journal:
        journal.remember_plan(door.identity.account, need.name, made.to_json(), made.made_at)
    return made


def _text(door: Door, made: Plan, *, ways: bool) -> str:
    from berth.planner.wording import plan_text, terms_text

    text = plan_text(made, door.identity.header())
    return f"{text}\n\n{terms_text(made.verdicts)}" if ways else text


def _end(made: Plan) -> int:
    """The exit code: done, or a failure that says which kind."""
    if made.best or made.reuse:
        return _end_of_choice(made)
    raise why_nothing(made)


def why_nothing(made: Plan) -> BerthError:
    """Why the plan has nothing that can be bought, with the exit code for that reason."""
    from berth.planner.choose import doubtful_regions, places_asked, unanswered

    if made.choices:
        return BerthError(
            ExitCode.INCOMPLETE,
            "what fits is on sale, and no price of it is known: unknown never leads and is never bought",
            "ask again",
        )
    if not made.answers:
        return _nothing_to_ask(made)
    if not unanswered(made):
        return BerthError(
            ExitCode.NO_CAPACITY,
            "every place answered, and nothing that fits is on sale",
            "widen the need: other Regions, a later end, another start, a higher budget",
        )
    mistyped = doubtful_regions(made)
    if mistyped and {a.region for a in made.answers} == {a.region for a in unanswered(made)}:
        return BerthError(ExitCode.BAD_REQUEST, "\n".join(mistyped), "write Regions like us-east-1")
    code = _one_refusal(made)
    if code is not None:
        return BerthError(code, "no place answered the question", "the table above says why, place by place")
    asked, places = places_asked(made)
    return BerthError(
        ExitCode.INCOMPLETE,
        f"{asked} of {places} places searched: whether something fits elsewhere is not known",
        "the line INCOMPLETE above says which; ask again",
    )


def _end_of_choice(made: Plan) -> int:
    from berth.planner.choose import unanswered

    if not made.incomplete:
        return ExitCode.DONE
    if unanswered(made):
        raise BerthError(
            ExitCode.INCOMPLETE,
            "not every place answered in full, so a better offer may exist",
            "the line INCOMPLETE above says which; ask again",
        )
    raise BerthError(
        ExitCode.INCOMPLETE,
        "what the account owns could not be read everywhere, so this may be owned already",
        "the line OWN above says where; ask again, or look there before you buy",
    )


def _one_refusal(made: Plan) -> ExitCode | None:
    """The exit code of the one reason for which every place refused; None when they differ."""
    from berth.planner.choose import only_outcome
    from berth.planner.offers import PlaceOutcome

    by_outcome = {
        PlaceOutcome.NO_QUOTA: ExitCode.QUOTA,
        PlaceOutcome.THROTTLED: ExitCode.THROTTLED,
        PlaceOutcome.NOT_ALLOWED: ExitCode.CREDENTIALS,
    }
    outcome = only_outcome(made)
    return by_outcome.get(outcome) if outcome is not None else None


def _nothing_to_ask(made: Plan) -> BerthError:
    """No way that can be bought ahead fits the need: why, and what is left."""
    from berth.terms.ways import Target, Way

    way = Way.CAPACITY_BLOCK if made.need.target is Target.INSTANCES else Way.TRAINING_PLAN
    why = next(v.why_not for v in made.verdicts if v.way is way)
    left = [v.way.value for v in made.verdicts if v.fits]
    return BerthError(
        ExitCode.NO_CAPACITY,
        f"nothing can be bought ahead for this need: {way.value}: {why}",
        f"what is left: {', '.join(left)}" if left else "change the need",
    )
