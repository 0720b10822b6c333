"""The guard: everything that must hold before money may leave. Pure; raises what a person must be told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from berth.orders.order import IN_DOUBT, Approval, Order, OrderState
from berth.planner.framework.limits import BLOCK_COUNT_MAX, PLAN_COUNTS
from berth.planner.offers import Offer
from berth.planner.plan import Choice, Plan
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Way

OFFER_LIFE = timedelta(minutes=2)
"""How old an offer may be when it is paid for. AWS does not say how long an offering id stays valid."""
PAYMENT_DEADLINE = timedelta(minutes=5)
"""Payment must complete this long before the start (guide, "reserve capacity with training plans", 2026)."""


def check_permission(*, yes: bool, cap: Money | None, can_ask: bool) -> None:
    """Whether the command may pay at all: a person who can be asked, or `--yes` with `--max AMOUNT`."""
    if yes and cap is None:
        raise BerthError(
            ExitCode.USAGE,
            "--yes decides without a question, so it needs the most that may be paid",
            "add --max AMOUNT, such as --max 250.00",
        )
    if not yes and not can_ask:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            "buying has to be confirmed and there is no terminal to ask on; nothing was bought",
            "add --yes --max AMOUNT to decide beforehand",
        )


def check_world(plan: Plan, *, account: str, rehearsal: str | None) -> None:
    """Whether the plan was made in this world and account, and the account is the one that the need pins."""
    if plan.rehearsal != rehearsal:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"the plan was made in {_world(plan.rehearsal)}, this is {_world(rehearsal)}",
            f"berth plan the need {plan.need.name} again here",
        )
    pinned = plan.need.account
    if pinned is not None and pinned != account:
        raise BerthError(
            ExitCode.CREDENTIALS,
            f"the need {plan.need.name} is pinned to account {pinned}, these credentials are of {account}",
            "use the credentials or --profile of the pinned account",
        )
    if plan.account is not None and plan.account != account:
        raise BerthError(
            ExitCode.CREDENTIALS,
            f"the plan was made for account {plan.account}, these credentials are of {account}",
            f"berth plan the need {plan.need.name} again with these credentials",
        )


def chosen(plan: Plan, number: int) -> Choice:
    """The choice of that number, if it is one that can be bought."""
    choice = plan.choice(number)
    if choice is None:
        has = f"1 to {len(plan.choices)}" if plan.choices else "none"
        raise BerthError(
            ExitCode.BAD_REQUEST, f"the plan of {plan.need.name} has no choice {number}; it has {has}"
        )
    if choice.offer.offering_id is None or choice.cost.fee is None:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"{plan.need.handle(number)} ({choice.offer.way}) cannot be bought, or its price is not known",
        )
    return choice


def check_target(plan: Plan, offer: Offer) -> None:
    """Whether the offer serves what will run: the target is fixed at purchase (field fault 16)."""
    if plan.need.target.value not in offer.targets:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"the offer serves {', '.join(offer.targets) or 'no target'}, the need runs {plan.need.target}",
        )


def check_count(offer: Offer) -> None:
    """Whether AWS sells so many at once: a block holds 64, a plan comes in powers of two (field fault 57)."""
    plan = offer.way is Way.TRAINING_PLAN
    if offer.count in PLAN_COUNTS if plan else 1 <= offer.count <= BLOCK_COUNT_MAX:
        return
    sold = "1, 2, 4, 8, 16, 32 or 64" if plan else f"1 to {BLOCK_COUNT_MAX}"
    raise BerthError(
        ExitCode.BAD_REQUEST, f"{offer.count} instances at once are not sold as {offer.way}: {sold} are"
    )


def check_money(fee: Money | None, approval: Approval) -> Money:
    """The fee, if it is known and within every bound. Currencies are never compared with one another."""
    if fee is None:
        raise BerthError(ExitCode.DECISION_NEEDED, "the offer names no fee, so it cannot be weighed")
    if fee.amount <= 0:
        raise BerthError(ExitCode.DECISION_NEEDED, f"a fee of {fee} is no price; it counts as unknown")
    for bound, name in ((approval.cap, "--max"), (approval.budget, "the need's budget")):
        if bound is None:
            continue
        if bound.currency != fee.currency:
            raise BerthError(
                ExitCode.DECISION_NEEDED, f"the fee is {fee} and {name} is {bound}: these cannot be compared"
            )
        if fee > bound:
            raise BerthError(
                ExitCode.DECISION_NEEDED,
                f"the fee is {fee}, {name} allows {bound}",
                f"raise {name} to {fee} to have it, or berth plan for something cheaper",
            )
    return fee


def check_time(offer: Offer, now: datetime) -> None:
    """Whether the offer is fresh, and its payment can clear before its start."""
    age = now - offer.seen_at
    if age > OFFER_LIFE:
        raise BerthError(
            ExitCode.DECISION_NEEDED, f"the offer was seen at {iso(offer.seen_at)}: too old to pay for"
        )
    start = offer.paid_window.start
    if start - now < PAYMENT_DEADLINE:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"the offer starts at {iso(start)}, and payment must clear 5 minutes before",
        )


def sequence_to_buy(orders: Sequence[Order], *, again: bool, asked: int | None = None) -> int:
    """Which order of a need a purchase is for: an existing one to go on with, or the next.

    A later sequence exists only when somebody asks (`again`, or `asked` by number), or when the latest
    reservation is known to have failed and no earlier one stands: a need that has what it asked for, and asks
    for no more, buys no more. While the latest is in doubt, it is the only one. `again` asks for a second
    beside the first and for no more: typed twice, as after a crash, it must not buy a third. Raises
    BerthError otherwise.
    """
    if not orders:
        _check_asked(asked, 1)
        return 1
    latest = orders[-1]
    number = latest.key.sequence
    if asked is not None and asked < number and latest.state not in IN_DOUBT:
        return asked
    standing = latest_standing(orders)
    if standing is not latest and asked is None and not again:
        return standing.key.sequence  # one more came to nothing: who does not ask for it must not buy it
    if latest.state in IN_DOUBT or latest.state in {OrderState.REFUSED, OrderState.DISPUTED}:
        _check_asked(asked, number)
        return number
    if again and asked is None:
        _check_again(orders)
    more = again or asked not in {None, number} or latest.state is OrderState.FAILED
    if not more or asked == number:
        return number
    _check_asked(asked, number + 1)
    return number + 1


def latest_standing(orders: Sequence[Order]) -> Order:
    """The order that a need's name alone means: the latest that is not known to have come to nothing.

    Where all of them came to nothing it is the latest. `orders` holds one at least, the latest last.
    """
    came_to_nothing = {OrderState.REFUSED, OrderState.FAILED}
    return next((order for order in reversed(orders) if order.state not in came_to_nothing), orders[-1])


def same_purchase(order: Order, offer: Offer) -> bool:
    """Whether the order is for this very offer, as far as place, time and kind go."""
    held = order.offer
    same_start = held.starts_at_once or held.paid_window.start == offer.paid_window.start
    return (
        held.region == offer.region
        and held.instance_type == offer.instance_type
        and held.count == offer.count
        and held.zones == offer.zones
        and held.paid_window.end == offer.paid_window.end
        and same_start
    )


def _check_asked(asked: int | None, number: int) -> None:
    if asked is not None and asked != number:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"order {asked} of the need cannot be bought now; the one to buy is {number}",
        )


def _check_again(orders: Sequence[Order]) -> None:
    standing = [order for order in orders if order.state is not OrderState.FAILED]
    if len(standing) < 2 or orders[-1].state is OrderState.FAILED:
        return
    latest = orders[-1]
    raise BerthError(
        ExitCode.DECISION_NEEDED,
        f"order {latest.key} is {latest.state} already, beside the first: --again asks for a second one only,"
        " so that typing it twice buys once",
        f"berth buy {latest.key.need}/{latest.key.sequence + 1}#1 buys one more",
    )


def _world(rehearsal: str | None) -> str:
    return "AWS" if rehearsal is None else f"the rehearsal at {rehearsal}"
