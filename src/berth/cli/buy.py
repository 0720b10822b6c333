"""`berth buy`: buy one choice of a plan, once. Besides `extend` and `run` the only verb that spends."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import Counter, counter
from berth.cli.options import BuyerProfile, Json, Max, Profile, Proof, Tags, Yes, read_amount, waiting
from berth.cli.output import Output
from berth.cli.spending import asked_for, buying, check_early, read_proofs, tagged, take_proofs
from berth.cli.standing import until_known, until_paid
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.desk import Desk
    from berth.orders.order import Approval, Order, OrderKey
    from berth.orders.purchase import Purchase
    from berth.planner.plan import Choice, Plan
    from berth.terms.money import Money

_HANDLE = re.compile(r"(?P<need>[^#/\s]+)(?:/(?P<sequence>[1-9]\d{0,5}))?#(?P<number>[1-9]\d{0,3}|best)")
SAYS = {
    "bought": "bought",
    "found": "found in AWS: it was bought by an earlier call, and is not bought again",
    "elsewhere": "already bought, not from this journal: AWS shows it with this order's mark."
    " Nothing was spent now",
    "already": "bought already; nothing was spent now",
}


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("buy")(buy)


def buy(
    handle: Annotated[
        str, typer.Argument(metavar="NAME#1", help="Choice 1 of the plan NAME; NAME#best: its combination.")
    ],
    *,
    yes: Yes = False,
    most: Max = None,
    again: Annotated[bool, typer.Option("--again", help="One more, beside what is bought already.")] = False,
    wait: Annotated[bool, waiting("until the payment is settled, and what is in doubt is known")] = False,
    tag: Tags = None,
    proof: Proof = None,
    accept_other: Annotated[
        bool,
        typer.Option("--accept-other", help="NAME#best: a missing piece may be the next best that fits."),
    ] = False,
    unconfirmed: Annotated[
        bool,
        typer.Option("--unconfirmed", help="NAME#best: also where no search confirms the sum of pieces."),
    ] = False,
    profile: Profile = None,
    buyer_profile: BuyerProfile = None,
    as_json: Json = False,
) -> int:
    """Buy one choice of a plan, or its mix, exactly once. Asks first, or needs --yes --max AMOUNT."""
    from berth.orders.guard import check_permission

    output = Output(as_json=as_json)
    mix = read_best_handle(handle)
    need, asked, number = (*mix, 0) if mix else read_handle(handle)
    cap = read_amount(most)
    check_permission(yes=yes, cap=cap, can_ask=output.can_ask())
    proofs = read_proofs(proof)
    with counter(output, profile=profile, need=need) as at:
        at.pay_with(buyer_profile)
        take_proofs(at, proofs)
        plan = tagged(recalled(at, need), tag)
        if mix:
            from berth.cli.buy_pieces import Asked, buy_pieces, say_pieces

            said = Asked(
                cap, yes=yes, again=again, sequence=asked, accept_other=accept_other, unconfirmed=unconfirmed
            )
            say_pieces(at, buy_pieces(at, plan, said, wait=wait), wait=wait)
            return ExitCode.DONE
        purchase = buy_choice(at, plan, number, cap=cap, yes=yes, again=again, asked=asked, wait=wait)
        if wait:
            purchase = replace(purchase, seen=until_paid(at, purchase.order))
        say(at, purchase)
    return ExitCode.DONE


def buy_choice(
    at: Counter,
    plan: Plan,
    number: int,
    *,
    cap: Money | None,
    yes: bool,
    again: bool = False,
    asked: int | None = None,
    wait: bool = False,
    with_proof: str = "",
) -> Purchase:
    """Check, confirm and buy. Raises BerthError; see `berth.orders.purchase.buy`.

    `with_proof` says what is run once somebody has approved ('': `berth buy` of this choice).
    """
    from berth.orders.purchase import buy as purchase
    from berth.orders.spending_gate import NotApproved

    choice, key = what_to_buy(at, plan, number, again=again, asked=asked)
    _check_same(at.journal.order(key), choice)
    approval = approval_of(plan, choice, cap)
    desk = replace(at.desk(choice.offer), gate=at.gate)
    with_proof = with_proof or buying(f"{key}#{number}")

    def agree(wanted: Approval) -> Approval:
        check_early(at, desk, key, wanted, with_proof)
        return wanted if yes else _confirm(at, desk, wanted)

    def once() -> Purchase:
        try:
            return purchase(desk, lambda: at.buyer(desk, choice.offer), key, approval, agree)
        except NotApproved as missing:
            raise asked_for(at, missing, with_proof) from None

    return until_known(at, once) if wait else once()


def what_to_buy(
    at: Counter, plan: Plan, number: int, *, again: bool = False, asked: int | None = None
) -> tuple[Choice, OrderKey]:
    """The choice of that number, if it may be bought here at all, and the order that it would be."""
    from berth.orders.guard import check_count, check_target, check_world, chosen, sequence_to_buy
    from berth.orders.order import OrderKey
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.of_plan import check_single

    rehearsal = at.door.identity.rehearsal
    check_world(plan, account=at.account, rehearsal=rehearsal.url if rehearsal else None)
    choice = chosen(plan, number)
    check_target(plan, choice.offer)
    check_count(choice.offer)
    name, orders = plan.need.name, at.journal.orders(at.account, plan.need.name)
    wholes = WholeBook(at.journal).wholes(at.account, name)
    sequence = check_single(name, orders, wholes, again=again, asked=asked)
    if sequence is None:
        single = [order for order in orders if not order.key.piece]
        sequence = sequence_to_buy(single, again=again, asked=asked)
    return choice, OrderKey(at.account, name, sequence)


def read_handle(text: str) -> tuple[str, int | None, int]:
    """`eval#1` -> ("eval", None, 1); `eval/2#1` -> ("eval", 2, 1). Raises BerthError (usage)."""
    found = _HANDLE.fullmatch(text)
    if found is None or found["number"] == "best":
        name = text.partition("#")[0] or "eval"
        raise BerthError(
            ExitCode.USAGE,
            f"{text!r} names no choice of a plan; write it like eval#1, or eval#best",
            f"berth buy {name}#1 is the first choice of the plan that was shown last",
        )
    sequence = found["sequence"]
    return found["need"], int(sequence) if sequence else None, int(found["number"])


def read_best_handle(text: str) -> tuple[str, int | None] | None:
    """`eval#best` -> ("eval", None), `eval/2#best` -> ("eval", 2); None for a choice."""
    found = _HANDLE.fullmatch(text)
    if found is None or found["number"] != "best":
        return None
    return found["need"], int(found["sequence"]) if found["sequence"] else None


def recalled(at: Counter, need: str) -> Plan:
    """The plan that was shown last for the need. Raises BerthError (bad request) when none was."""
    from berth.planner.plan import Plan

    document = at.journal.recall_plan(at.account, need)
    if document is None:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"no plan of {need} is remembered for account {at.account} here",
            "berth plan the need first",
        )
    return Plan.from_json(document)


def say(at: Counter, purchase: Purchase) -> None:
    """Tell what was bought and what comes next."""
    from berth.orders.wording import next_step, order_json, order_lines

    now = at.door.clock.now()
    tell_how(at, purchase)
    at.output.document(order_json(purchase.order, purchase.seen))
    at.output.answer("\n".join(order_lines(purchase.order, purchase.seen, now)))
    at.output.answer(f"next     {next_step(purchase.order, purchase.seen, now)}")


def tell_how(at: Counter, purchase: Purchase) -> None:
    """Say whether it was bought now, found, or known already."""
    at.output.talk(f"order {purchase.order.key}: {SAYS[purchase.how]}")


def approval_of(plan: Plan, choice: Choice, cap: Money | None = None) -> Approval:
    """What is agreed to: the choice's offer, within the cap and the need's budget."""
    from berth.orders.order import Approval

    context = {"need": plan.need.to_json(), "cost": choice.cost.to_json()}
    return Approval(choice.offer, cap, plan.need.budget, context)


def _confirm(at: Counter, desk: Desk, approval: Approval) -> Approval:
    """Show the offer as it is now, and ask; what was shown is what is approved."""
    from berth.orders.guard import check_money
    from berth.orders.purchase import fresh_offer
    from berth.orders.wording import offer_lines

    offer, _ = fresh_offer(desk, approval.offer)
    fee = check_money(offer.fee, approval)
    at.output.talk("\n".join(offer_lines(offer, fee, desk.shop.unseen)))
    at.output.talk(f"  account  {at.door.identity.account_shown}, {at.door.identity.role}")
    if not at.output.ask(f"Buy it for {fee}?"):
        raise BerthError(ExitCode.DECISION_NEEDED, "not confirmed: nothing was bought")
    return replace(approval, offer=offer)


def _check_same(order: Order | None, choice: Choice) -> None:
    from berth.orders.guard import same_purchase
    from berth.orders.order import OrderState
    from berth.terms.instants import iso

    if order is None or order.state is not OrderState.BOUGHT or same_purchase(order, choice.offer):
        return
    window = order.window
    raise BerthError(
        ExitCode.DECISION_NEEDED,
        f"order {order.key} is bought already, for another window: {iso(window.start)} to {iso(window.end)}",
        f"berth show {order.key}, or --again to buy one more",
        order.spending,
    )
