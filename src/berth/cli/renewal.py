"""`berth renewal`: how to go on when an order's reservation ends. It compares, proposes, and never spends."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import Counter, counter, tell_spending
from berth.cli.extend import settled_extensions, shop_of
from berth.cli.named import order_named
from berth.cli.options import Json, Name, Profile
from berth.cli.output import Output
from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.extensions.offers import ExtensionOffer
    from berth.orders.order import Order, OrderKey
    from berth.orders.renewals.renewal import Renewal, WayOn
    from berth.orders.spending_gate import Proposal
    from berth.planner.plan import Plan

By = Annotated[
    str | None,
    typer.Option("--by", metavar="SPAN", help="How much longer: 14d (default: as long as the order was)."),
]
Within = Annotated[
    str | None,
    typer.Option("--within", metavar="SPAN", help="Only when the end is so near; else ask nothing."),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("renewal")(renewal)


def renewal(
    name: Name, *, by: By = None, within: Within = None, profile: Profile = None, as_json: Json = False
) -> int:
    """Compare extending what an order bought with buying anew. Proposes one, spends nothing."""
    from berth.cli.standing import settled
    from berth.orders.renewals.wording import renewal_json, renewal_text

    output = Output(as_json=as_json)
    length, ahead = _span("--by", by), _span("--within", within)
    with counter(output, profile=profile, need=name.partition("/")[0]) as at:
        again = " ".join(["berth renewal {}", *(["--by", by] if by else [])])
        order = settled_extensions(at, settled(at, order_named(at, name, again), wait=False), wait=False)
        tell_spending(NOTHING_SPENT)  # what was paid before is not this verb's
        until, says = _standing(at, order, ahead)
        if says is not None:
            output.document(renewal_json(None, order=str(order.key), says=says))
            said, _, later = says.partition("; ")
            more = f"\n         {later}" if later else ""
            output.answer(f"order    {order.key}: {said}{more}\nmoney    nothing was spent")
            return ExitCode.DONE
        made = _renewal(at, order, until, length or order.offer.paid_time)
        output.document(renewal_json(made, order=str(order.key), says="to be renewed"))
        output.answer(renewal_text(made, at.door.clock.now()))
        return _end(output, made)


# -- inside ----------------------------------------------------------------------------------------------
def _span(option: str, text: str | None) -> timedelta | None:
    from berth.terms.durations import parse_duration

    try:
        return None if text is None else parse_duration(text)
    except ValueError as problem:
        raise BerthError(ExitCode.USAGE, f"{option}: {problem}") from None


def _standing(at: Counter, order: Order, ahead: timedelta | None) -> tuple[datetime, str | None]:
    """The end with everything that is bought, and why nothing is to be done now (None: something is)."""
    from berth.orders.extensions.extending import check_order, look_at
    from berth.orders.extensions.wish import minute
    from berth.orders.renewals.renewal import follower

    check_order(order)
    until = look_at(at.desk(order.offer), shop_of(at, order), order).at.until
    after = follower(order, at.journal.orders(at.account, order.key.need), until)
    if after is not None and not order.key.piece:
        return until, f"order {after.key} goes on from it, until {minute(after.window.end)}"
    begins = None if ahead is None else until - ahead
    if begins is not None and at.door.clock.now() < begins:
        return until, f"ends at {minute(until)}; looked at again from {minute(begins)} on"
    return until, None


def _renewal(at: Counter, order: Order, until: datetime, length: timedelta) -> Renewal:
    """Ask for both ways, hold them against the rules, rank them; the plan of the new one is remembered."""
    from berth.cli.plan import plan_need
    from berth.orders.order import OrderKey
    from berth.orders.renewals.renewal import (
        PIECE,
        Renewal,
        by_a_new_one,
        by_extending,
        next_need,
        next_sequence,
        ranked,
    )

    longer, unknown = _extensions(at, order, until, length)
    sequence = next_sequence(at.journal.orders(at.account, order.key.need))
    key = OrderKey(at.account, order.key.need, sequence)
    if order.key.piece:
        ways = by_extending(order, longer, until)
        judged = [_judged(at, order, None, way) for way in ways]
        return Renewal(order, until, length, sequence, ranked(judged), unknown, notes=(PIECE,))
    wanted = next_need(order, until, length, at.door.clock.now())
    plan = plan_need(at.output, at.door, replace(wanted, regions=at.door.regions))
    ways = (*by_extending(order, longer, until), *by_a_new_one(order, plan, until))
    judged = [_judged(at, order, (plan, key), way) for way in ways]
    if plan.incomplete:
        unknown = (*unknown, "not every place answered in full: a better offer may exist; ask again")
    others = tuple(one for one in plan.owned if one.others and one.owned.id not in _own_ids(at, order))
    return Renewal(order, until, length, sequence, ranked(judged), unknown, others)


def _own_ids(at: Counter, order: Order) -> set[str]:
    from berth.orders.wording import reservation_id

    orders = at.journal.orders(at.account, order.key.need)
    return {one for one in map(reservation_id, orders) if one is not None}


def _extensions(
    at: Counter, order: Order, until: datetime, length: timedelta
) -> tuple[tuple[ExtensionOffer, ...], tuple[str, ...]]:
    """The extensions on sale, or a sentence on why that is not known. None are sold of another length."""
    from berth.aws.refusals import Refusal
    from berth.orders.extensions.wish import EARLIEST, LATEST
    from berth.orders.renewals.renewal import UNANSWERED
    from berth.planner.ladder import on_ladder

    now = at.door.clock.now()
    if not on_ladder(length) or not until - EARLIEST <= now <= until - LATEST:
        return (), ()
    found = shop_of(at, order).search(length, now)
    if isinstance(found, Refusal):
        return (), (f"{UNANSWERED}: {found}",)
    return found, ()


def _judged(at: Counter, order: Order, new: tuple[Plan, OrderKey] | None, way: WayOn) -> WayOn:
    """The way with what the rules of spending say. `new` is the plan, and the order that it would be."""
    from berth.orders.spending_gate import NotApproved, check_spending

    if way.fee is None:
        return way
    try:
        proposal = _proposal(at, order, new, way)
        check_spending(at.gate, at.journal.ledger(), proposal, at.door.clock.now())
    except NotApproved as missing:
        return replace(way, approval=f"{missing.reason}: somebody else must agree before it is bought")
    except BerthError as refused:
        return replace(way, against=tuple(line.strip() for line in refused.message.splitlines()[1:]))
    return way


def _proposal(at: Counter, order: Order, new: tuple[Plan, OrderKey] | None, way: WayOn) -> Proposal:
    """What the rules would be asked, were the way bought."""
    from berth.cli.buy import approval_of
    from berth.orders.extensions.extending import propose
    from berth.orders.extensions.offers import ExtensionOffer
    from berth.orders.renewals.renewal import Means
    from berth.orders.spending_gate import proposal_of

    if way.means is Means.EXTEND:
        return propose(order, ExtensionOffer("", way.window, way.fee, at.door.clock.now()))
    assert new is not None
    plan, key = new
    choice = plan.choice(way.number or 0)
    assert choice is not None
    return proposal_of(key, approval_of(plan, choice))


def _end(output: Output, made: Renewal) -> int:
    """Say what buys the best way; or fail with the reason why nothing can be proposed."""
    from berth.orders.renewals.wording import command

    if made.best is not None:
        output.answer(f"next    {command(made, made.best)}")
        if made.unknown:
            raise _not_all_known(made)
        return ExitCode.DONE
    if made.unknown:
        raise _not_all_known(made)
    if any(way.against for way in made.ways):
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            "the rules of spending allow none of these",
            "another length with --by, or have the rules changed by whoever keeps them",
        )
    if made.ways:
        raise BerthError(ExitCode.DECISION_NEEDED, "no price of what is on sale is known", "ask again")
    raise BerthError(
        ExitCode.NO_CAPACITY,
        "neither an extension nor a new reservation is on sale that goes on from it",
        "another length with --by, other Regions in the need, or again later",
    )


def _not_all_known(made: Renewal) -> BerthError:
    return BerthError(
        ExitCode.INCOMPLETE,
        "not all is known that could be better; the lines UNKNOWN say why",
        "the same command again, later",
    )
