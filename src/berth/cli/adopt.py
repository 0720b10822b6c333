"""`berth adopt`: take over what was bought elsewhere, so that launch, deploy, show and clean work on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.desks import Counter, counter, tell_spending
from berth.cli.needs import typed_need
from berth.cli.options import Json, Profile, read_amount
from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Way

if TYPE_CHECKING:
    from berth.orders.elsewhere import Held, Reference
    from berth.orders.order import Order, OrderKey
    from berth.planner.need import Need
    from berth.terms.money import Money


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("adopt")(adopt)


def adopt(
    named: Annotated[
        str, typer.Argument(metavar="WHAT", help="cr-..., a training plan's name, or an ARN of either.")
    ],
    *,
    as_need: Annotated[
        str, typer.Option("--as", metavar="NEED", help="Name of the order, or a need file (.toml).")
    ],
    region: Annotated[str | None, typer.Option("--region", help="Where it is (an ARN says it).")] = None,
    paid: Annotated[
        str | None,
        typer.Option("--paid", metavar="AMOUNT", help="What was paid, where AWS does not show it."),
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Also if it carries another's mark.")
    ] = False,
    no_tag: Annotated[
        bool, typer.Option("--no-tag", help="Do not mark it: this journal alone knows.")
    ] = False,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Make WHAT, bought elsewhere, an order here. It is shown, checked and tagged; nothing is paid."""
    from berth.orders.elsewhere import look, reference

    output = Output(as_json=as_json)
    ref, amount = reference(named), _paid(paid)
    need = _need(as_need)
    name = need.name if need is not None else as_need
    regions = [one for one in (ref.region or region,) if one] or list(need.regions if need else ())
    with counter(output, profile=profile, regions=regions, about=name.partition("/")[0]) as at:
        key = _key(at, name)
        place = at.door.regions[0]
        held = look(ref, place, at.door.reader(_service_of(ref.way), place))
        order = _taken(at, ref, held, key, tag=not no_tag)
        if order is None:
            held = _checked(at, held, key, need, amount, whoever=take_over)
            order = _adopted(at, held, key, need, tag=not no_tag)
        return _show(at, order, held)


def _service_of(way: Way) -> str:
    return "ec2" if way is Way.CAPACITY_BLOCK else "sagemaker"


def _paid(typed: str | None) -> Money | None:
    try:
        return read_amount(typed)
    except BerthError as problem:
        raise BerthError(problem.exit_code, problem.message.replace("--max", "--paid")) from None


def _need(typed: str) -> Need | None:
    """The need of a file; None where only a name was given."""
    if not typed.endswith(".toml"):
        return None
    return typed_need(Path(typed), {}).draft()


def _key(at: Counter, name: str) -> OrderKey:
    """The order that it becomes. Raises BerthError for what is no name of an order."""
    import re

    from berth.orders.order import OrderKey, split_order_name
    from berth.planner.need import NAME_PATTERN

    try:
        need, sequence, piece = split_order_name(name)
    except ValueError as problem:
        raise BerthError(ExitCode.BAD_REQUEST, str(problem)) from None
    if not re.fullmatch(NAME_PATTERN, need):
        raise BerthError(
            ExitCode.BAD_REQUEST, f"--as: {need!r} is no name: lower-case letters, digits and -, at most 40"
        )
    return OrderKey(at.account, need, sequence or 1, piece)


def _taken(at: Counter, ref: Reference, held: Held, key: OrderKey, *, tag: bool) -> Order | None:
    """The order, where it is adopted already. Raises BerthError: by another order, or the name is taken."""
    from berth.orders.elsewhere import holder_of
    from berth.orders.names import ORDER_TAG

    owner = holder_of(held, at.journal.orders(at.account))
    if owner is not None and owner.key == key:
        lacking = tag and held.tags is not None and ORDER_TAG not in held.tags
        if lacking:  # a run that ended between the journal's write and the mark
            _mark(at, held, key, tag=True)
        changed = "its mark was put now" if lacking else "nothing was changed"
        at.output.talk(f"order {key}: adopted already; {changed}")
        return owner
    if owner is not None:
        raise BerthError(
            ExitCode.BAD_REQUEST, f"{held.seen.name} is order {owner.key} already", f"berth show {owner.key}"
        )
    other = at.journal.order(key)
    if other is not None:
        following = max(order.key.sequence for order in at.journal.orders(at.account, key.need)) + 1
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"order {key} exists and is {other.state}, of something else",
            f"berth adopt {ref.id} --as {key.need}/{following}",
            other.spending,
        )
    return None


def _checked(
    at: Counter, held: Held, key: OrderKey, need: Need | None, paid: Money | None, *, whoever: bool
) -> Held:
    """What may be adopted, with its fee."""
    from berth.orders.elsewhere import check, with_fee
    from berth.orders.seen import Stage

    at.door.check_account(need.account if need else None)
    check(held, key, at.door.clock.now(), dict(need.tags) if need else {}, whoever=whoever)
    if held.seen.stage is Stage.UNKNOWN:
        at.warn(f"its state is {held.seen.state!r}, which this program does not know")
    return with_fee(held, paid)


def _adopted(at: Counter, held: Held, key: OrderKey, need: Need | None, *, tag: bool) -> Order:
    from berth.orders.elsewhere import offer_for
    from berth.orders.order import Approval
    from berth.orders.purchase import take_over
    from berth.orders.sighting import Sighting

    offer = offer_for(held, at.door.clock.now())
    desk = at.desk(offer)
    context: dict[str, Any] = {"need": replace(need, regions=(held.region,)).to_json()} if need else {}
    found = take_over(desk, key, Approval(offer, context=context), Sighting(held.seen, True, True))
    at.output.talk(f"order {key}: adopted, bought elsewhere; nothing was spent now")
    _mark(at, held, key, tag=tag)
    return found.order


def _mark(at: Counter, held: Held, key: OrderKey, *, tag: bool) -> None:
    """After the journal's write, in which one of several adopters wins: the mark names that one."""
    from berth.orders.elsewhere import put_mark

    if tag:
        put_mark(held, key, at.door.launcher(held.region, service=_service_of(held.way)))
    else:
        at.warn("it carries no mark: another journal does not see that it is taken")


def _show(at: Counter, order: Order, held: Held) -> int:
    from berth.orders.seen import SeenReservation
    from berth.orders.wording import next_step, order_json, order_lines

    tell_spending(order.spending)
    now = at.door.clock.now()
    seen = SeenReservation.from_json(order.seen) if order.seen else held.seen
    at.output.document({**order_json(order, seen), "schema": "berth.adopt/1"})
    lines = [*order_lines(order, seen, now), "", f"next     {next_step(order, seen, now)}"]
    at.output.answer("\n".join(lines))
    return ExitCode.DONE
