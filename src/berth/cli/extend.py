"""`berth extend`: give what an order bought a later end, paid once however often it is run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import Counter, counter, tell_spending
from berth.cli.named import order_named
from berth.cli.options import BuyerProfile, Json, Max, Name, Profile, Proof, Yes, read_amount, waiting
from berth.cli.output import Output
from berth.cli.spending import SAME, asked_for, read_proofs, take_proofs
from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.extensions.extending import Extended, Till
    from berth.orders.extensions.offers import ExtensionOffer
    from berth.orders.extensions.shops import ExtensionShop
    from berth.orders.extensions.wish import Wish
    from berth.orders.order import Order
    from berth.terms.money import Money

By = Annotated[
    str | None,
    typer.Option("--by", metavar="SPAN", help="How much longer: 7d, or 7d..14d, the cheapest of these."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="To this end or later: 2027-03-11T11:30Z.")
]
Rule = Annotated[
    str | None, typer.Option("--rule", metavar="TEXT", help="'extend 7d, look ahead 2d', for a timer.")
]
Within = Annotated[
    str | None,
    typer.Option("--within", metavar="SPAN", help="Only when the end is so near; else do nothing."),
]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("extend")(extend)


def extend(
    name: Name,
    *,
    by: By = None,
    until: Until = None,
    rule: Rule = None,
    within: Within = None,
    yes: Yes = False,
    most: Max = None,
    wait: Annotated[bool, waiting("until its payment is settled")] = False,
    proof: Proof = None,
    profile: Profile = None,
    buyer_profile: BuyerProfile = None,
    as_json: Json = False,
) -> int:
    """Buy a later end for what an order bought, exactly once. Asks first, or needs --yes --max AMOUNT."""
    from berth.orders.guard import check_permission

    output = Output(as_json=as_json)
    wish = _wish(by, until, rule, within)
    cap = read_amount(most)
    check_permission(yes=yes, cap=cap, can_ask=output.can_ask())
    proofs = read_proofs(proof)
    with counter(output, profile=profile, need=name.partition("/")[0]) as at:
        at.pay_with(buyer_profile)
        take_proofs(at, proofs)
        again = _again(by, until, rule, within, most=most, yes=yes)
        done = extended(at, name, wish, cap=cap, yes=yes, again=again)
        if wait and done.extension is not None:
            done = _until_paid(at, done)
        say_extended(at, done)
    return ExitCode.DONE


def extended(
    at: Counter, name: str, wish: Wish, *, cap: Money | None, yes: bool, again: str = ""
) -> Extended:
    """Extend what the order of that name bought, or find that the wish is met. Raises BerthError.

    `again` as in `order_named`: what is typed for one piece of several.
    """
    order = order_named(at, name, again)
    doubts = (one.spending(str(order.key)) for one in order.extensions if one.in_doubt)
    tell_spending(next(doubts, NOTHING_SPENT))  # what was paid for the order itself is not this verb's
    return _extend(at, order, wish, cap=cap, yes=yes)


def shop_of(at: Counter, order: Order) -> ExtensionShop:
    """How the order's reservation is extended. The order has one."""
    from berth.orders.extensions.shops import BlockExtensions, PlanExtensions
    from berth.terms.ways import Way

    arn, region = order.reservation_arn, order.offer.region
    assert arn is not None
    if order.offer.way is Way.CAPACITY_BLOCK:
        return BlockExtensions(at.door.reader("ec2", region), arn.rpartition("/")[2], region)
    return PlanExtensions(at.door.reader("sagemaker", region), arn, region)


def settled_extensions(at: Counter, order: Order, *, wait: bool) -> Order:
    """The order after one look (`wait`: looking until it is known) for what became of its extensions.

    AWS is asked only where there is an extension whose outcome or payment is open. Raises BerthError (outcome
    unknown) while one is in doubt; waiting ends, too, where looking cannot settle it.
    """
    from berth.orders.extensions.settling import doubt, is_open, is_past_looks, settle_all, settled_late
    from berth.watch.waiting import wait_for

    if order.reservation_arn is None or not any(is_open(one) for one in order.extensions):
        return order
    desk, shop, last = at.desk(order.offer), shop_of(at, order), [order]

    def look() -> Order:
        began = at.door.clock.now()
        seen = settle_all(desk, last[0], shop.history(), began)
        last[0] = replace(last[0], extensions=settled_late(desk, last[0], seen))
        return last[0]

    def known(seen: Order) -> bool:
        return all(is_past_looks(desk, one) for one in seen.extensions if one.in_doubt)

    limit = None if wait else 0.0
    order = wait_for(
        look,
        known,
        at.door.clock,
        standing=lambda seen: at.output.talk(at.standing_clock("6m")),
        limit_s=limit,
    )
    for one in order.extensions:
        if one.in_doubt:
            tell_spending(one.spending(str(order.key)))
            raise doubt(desk, order, one, shop)
    return order


# -- inside ----------------------------------------------------------------------------------------------
def _wish(by: str | None, until: str | None, rule: str | None, within: str | None) -> Wish:
    from berth.orders.extensions.wish import read_wish
    from berth.terms.instants import parse_instant

    try:
        end = None if until is None else parse_instant(until)
    except ValueError as problem:
        raise BerthError(ExitCode.USAGE, f"--until: {problem}", "such as --until 2027-03-11T11:30Z") from None
    try:
        return read_wish(by, end, rule, within)
    except ValueError as problem:
        raise BerthError(ExitCode.USAGE, str(problem), "such as --by 7d") from None


def _again(
    by: str | None, until: str | None, rule: str | None, within: str | None, *, most: str | None, yes: bool
) -> str:
    """What was typed, for another order's name in the place of `{}`."""
    typed = {"--by": by, "--until": until, "--rule": rule, "--within": within, "--max": most}
    words = [word for option, value in typed.items() if value is not None for word in (option, value)]
    said = shlex.join([*words, *(["--yes"] if yes else [])]).replace("{", "{{").replace("}", "}}")
    return f"berth extend {{}} {said}"


def _extend(at: Counter, order: Order, wish: Wish, *, cap: Money | None, yes: bool) -> Extended:
    from berth.orders.extensions.extending import extend as act
    from berth.orders.spending_gate import NotApproved

    desk = replace(at.desk(order.offer), gate=at.gate)
    till = _till(at, order, yes=yes)
    try:
        return act(desk, till, order, wish, cap)
    except NotApproved as missing:
        raise asked_for(at, missing, SAME) from None


def _till(at: Counter, order: Order, *, yes: bool) -> Till:
    from berth.orders.extensions.extending import Till
    from berth.orders.extensions.wording import offer_lines

    def agree(offer: ExtensionOffer) -> None:
        at.output.talk("\n".join(offer_lines(order, offer)))
        at.output.talk(f"  account  {at.door.identity.account_shown}, {at.door.identity.role}")
        if not yes and not at.output.ask(f"Buy it for {offer.fee}?"):
            raise BerthError(ExitCode.DECISION_NEEDED, "not confirmed: nothing was bought")

    desk = replace(at.desk(order.offer), gate=at.gate)
    return Till(shop_of(at, order), lambda: at.buyer(desk, order.offer), agree)


def _until_paid(at: Counter, done: Extended) -> Extended:
    """Look until the payment of the extension is settled. Raises BerthError when it failed."""
    from berth.orders.extensions.extension import ExtensionState
    from berth.orders.extensions.settling import is_open, settle_all
    from berth.orders.extensions.wish import minute
    from berth.watch.waiting import wait_for

    desk, shop = at.desk(done.order.offer), shop_of(at, done.order)
    order = order_named(at, str(done.order.key))
    last = [order]

    def look() -> Order:
        began = at.door.clock.now()
        last[0] = replace(last[0], extensions=settle_all(desk, last[0], shop.history(), began))
        return last[0]

    order = wait_for(
        look, lambda seen: not any(is_open(one) for one in seen.extensions), at.door.clock,
        standing=lambda seen: at.output.talk(at.standing_clock("5m")),
    )  # fmt: skip
    latest = order.extensions[-1]
    if latest.state is ExtensionState.FAILED:
        tell_spending(latest.spending(str(order.key)))
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"the payment of the extension to {minute(latest.window.end)} failed: the reservation ends at"
            f" {minute(latest.window.start)}",
            "run the same command again to buy it anew",
            latest.spending(str(order.key)),
        )
    return replace(done, order=order, extension=latest)


def say_extended(at: Counter, done: Extended) -> None:
    """Tell how it ended and what comes next."""
    from berth.orders.extensions.wording import extended_json, extension_lines

    at.output.document(extended_json(done))
    says, _, later = done.says.partition("; ")
    lines = [f"order    {done.order.key}: {says}", *([f"         {later}"] if later else [])]
    if done.extension is not None:
        lines += extension_lines([done.extension])
    if not done.bought_now:
        lines.append("money    nothing was spent now")
    at.output.answer("\n".join(lines))
    at.output.answer(f"next     berth show {done.order.key}")
