"""`berth run`: plan, buy, wait, deploy or launch in a row. Run again it goes on where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.buy import SAYS, buy_choice, tell_how
from berth.cli.buy_pieces import Asked, buy_pieces
from berth.cli.clean import clean_order
from berth.cli.deploy import bought, deploy_order
from berth.cli.desks import Counter, counter
from berth.cli.launch import launch_order
from berth.cli.named import whole_named
from berth.cli.needs import TypedNeed, typed_need
from berth.cli.options import (
    BuyerProfile,
    Json,
    Max,
    NeedPath,
    Profile,
    Proof,
    Tags,
    Yes,
    read_amount,
    waiting,
)
from berth.cli.output import Output
from berth.cli.pieces import Documents, each_piece, settled_pieces
from berth.cli.spending import SAME, read_proofs, tagged, take_proofs
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from berth.orders.order import Order
    from berth.orders.pieces.whole import Whole
    from berth.orders.seen import SeenReservation
    from berth.planner.need import Need
    from berth.planner.plan import Plan
    from berth.terms.money import Money

    Tell = Callable[[dict[str, Any]], None]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run")(run)


def run(
    need: NeedPath,
    *,
    yes: Yes = False,
    most: Max = None,
    wait: Annotated[bool, waiting("for the window, instead of ending until it opens")] = False,
    choice: Annotated[int, typer.Option("--choice", min=1, help="Which choice of the plan to buy.")] = 1,
    best: Annotated[
        bool, typer.Option("--best", help="Buy the plan's best combination: several pieces, one order.")
    ] = False,
    unconfirmed: Annotated[
        bool, typer.Option("--unconfirmed", help="With --best: also where no search confirms their sum.")
    ] = False,
    tag: Tags = None,
    proof: Proof = None,
    profile: Profile = None,
    buyer_profile: BuyerProfile = None,
    as_json: Json = False,
) -> int:
    """Do all of it for NEED: plan, buy once, wait, deploy or launch. Run again, it goes on where it was."""
    from berth.orders.guard import check_permission

    output = Output(as_json=as_json)
    typed = typed_need(need, {})
    draft = typed.draft()
    cap = read_amount(most)
    with counter(output, profile=profile, regions=draft.regions, about=draft.name) as at:
        at.door.check_account(draft.account)
        at.pay_with(buyer_profile)
        whole = whole_named(at, draft.name)
        if whole is not None:
            return go_on_whole(at, whole, draft, wait=wait)
        order = latest(at, draft.name, wait=wait) or marked(at, draft)
        if order is None:
            check_permission(yes=yes, cap=cap, can_ask=output.can_ask())
            take_proofs(at, read_proofs(proof))  # only to buy: run again later, its 15 minutes are over
            if best:
                asked = Asked(cap, yes=yes, unconfirmed=unconfirmed, with_proof=SAME)
                whole = plan_and_buy_best(at, typed, asked, wait, tag)
                return go_on_whole(at, whole, draft, wait=wait)
            order = plan_and_buy(at, typed, choice, cap=cap, yes=yes, wait=wait, tags=tag)
        return go_on(at, order, draft, wait=wait)


def latest(at: Counter, need: str, *, wait: bool) -> Order | None:
    """The order to go on with: the need's latest that stands, settled; None when there is none.

    Raises BerthError (outcome unknown) when looking does not settle it.
    """
    from berth.cli.standing import settled
    from berth.orders.guard import latest_standing
    from berth.orders.order import OrderState
    from berth.orders.reconcile import UNSETTLED

    orders = at.journal.orders(at.account, need)
    if not orders:
        return None
    before = latest_standing(orders)
    order = settled(at, before, wait=wait)
    if before.state in UNSETTLED and order.state is OrderState.BOUGHT:
        at.output.talk(f"order {order.key}: {SAYS['found']}")
    return None if order.state in {OrderState.REFUSED, OrderState.FAILED} else order


def marked(at: Counter, need: Need) -> Order | None:
    """The first order of the need, if AWS shows a block with its mark and this journal knows no order of it.

    A colleague's run has bought it, or a person has marked a block that was owned already.
    """
    from berth.orders.adoption import find_marked_block
    from berth.orders.order import OrderKey

    if need.target is not Target.INSTANCES or at.journal.orders(at.account, need.name):
        return None
    key = OrderKey(at.account, need.name, 1)
    for region in at.door.regions:
        found = find_marked_block(
            at.desk_of(Way.CAPACITY_BLOCK, region), key, region, {"need": need.to_json()}
        )
        if found is not None:
            tell_how(at, found)
            return found.order
    return None


def plan_and_buy(
    at: Counter,
    typed: TypedNeed,
    choice: int,
    *,
    cap: Money | None,
    yes: bool,
    wait: bool,
    tags: list[str] | None = None,
) -> Order:
    """Plan the need, show the plan, and buy one choice of it. Raises BerthError."""
    from dataclasses import replace

    from berth.cli.plan import plan_need
    from berth.cli.plan_ends import why_nothing
    from berth.planner.wording import plan_text

    need: Need = replace(typed.read(at.door.clock.now()), regions=at.door.regions)
    made = plan_need(at.output, at.door, need)
    at.output.talk(plan_text(made, at.door.identity.header()))
    _check_owned(at, made)
    if made.best is None:
        raise why_nothing(made)
    purchase = buy_choice(at, tagged(made, tags), choice, cap=cap, yes=yes, wait=wait, with_proof=SAME)
    tell_how(at, purchase)
    return purchase.order


def plan_and_buy_best(
    at: Counter, typed: TypedNeed, asked: Asked, wait: bool, tags: list[str] | None
) -> Whole:
    """Plan the need, show the plan, and buy its best combination. Raises BerthError."""
    from dataclasses import replace

    from berth.cli.plan import plan_need
    from berth.planner.wording import plan_text

    need: Need = replace(typed.read(at.door.clock.now()), regions=at.door.regions)
    made = plan_need(at.output, at.door, need)
    at.output.talk(plan_text(made, at.door.identity.header()))
    _check_owned(at, made)
    return buy_pieces(at, tagged(made, tags), asked, wait=wait).whole


def go_on_whole(at: Counter, whole: Whole, need: Need, *, wait: bool) -> int:
    """Each piece that is bought, as far as it can go now. Raises BerthError where one is missing.

    What is missing is bought by whoever decides about money: `berth buy`, not this verb run again.
    """
    from berth.orders.order import OrderState
    from berth.orders.pieces.whole import spending_of
    from berth.orders.pieces.wording import state_of

    whole, orders = settled_pieces(at, whole, wait=wait)
    told = Documents(at, "berth.run-pieces/1", str(whole.key))
    code = each_piece(at, whole, lambda there, order: go_on(there, order, need, wait=wait, tell=told.add))
    told.tell()
    state, known = state_of(whole, orders), [orders[p.number] for p in whole.live if p.number in orders]
    if any(order.state is not OrderState.BOUGHT for order in known) or len(known) < len(whole.live):
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"order {whole.key} is not whole: {state}",
            f"berth buy {whole.key}#best buys what is missing, and nothing twice",
            spending_of(whole.key, list(orders.values())),
        )
    return code


def _check_owned(at: Counter, made: Plan) -> None:
    """Nothing is bought unasked while the account owns what covers the need (field fault 10)."""
    from berth.orders.names import ORDER_TAG
    from berth.orders.order import OrderKey

    key = OrderKey(at.account, made.need.name, 1)
    if made.reuse is None or made.reuse.owned.tag(ORDER_TAG) == key.mark:
        return
    how = "berth puts nothing into it, since it did not buy it: use it with AWS's own tools"
    if made.reuse.owned.way is Way.CAPACITY_BLOCK:
        how = f"to run in it, mark it with the tag {ORDER_TAG}={key.mark} and run again"
    raise BerthError(
        ExitCode.DECISION_NEEDED,
        f"{made.reuse.owned.id} is owned already and covers the need at no new cost; nothing was bought:"
        f" {how}",
        f"berth buy {made.need.handle(1)} buys all the same",
    )


def go_on(at: Counter, order: Order, need: Need, *, wait: bool, tell: Tell | None = None) -> int:
    """From a bought order to what runs in it, or to the time to wait for; the exit code.

    `tell` hears the document (None: it is the command's answer).
    """
    from berth.orders.order import OrderState
    from berth.orders.purchase import failed
    from berth.orders.seen import Stage
    from berth.orders.shops.shop import NOUNS
    from berth.orders.wording import reservation_window
    from berth.planner.offers import reclaim_before_end

    order, seen = bought(at, order, wait=wait)
    if order.state is OrderState.FAILED:
        raise failed(order)
    start, end = reservation_window(order, seen)
    now = at.door.clock.now()
    if now >= end - reclaim_before_end(order.offer.target) or (seen and seen.stage is Stage.OVER):
        at.output.talk("the window is over, or AWS is taking the instances back: clearing up")
        return clean_order(at, order, wait=wait, tell=tell)
    if seen is None or seen.stage is not Stage.OPEN:
        state = seen.state if seen else "not shown yet"
        text = f"waiting until {iso(start)}: the {NOUNS[order.offer.way]} is {state}"
        return _end(at, order, seen, "waiting", text, tell=tell)
    if order.offer.way is Way.CAPACITY_BLOCK:
        return _launch(at, order, seen, need, wait=wait, tell=tell)
    if need.deployment is None:
        text = f"the window is open until {iso(end)}; the need deploys nothing"
        return _end(at, order, seen, "open", text, tell=tell)
    endpoint = deploy_order(at, order, seen, need.deployment)
    status = {"name": endpoint, "status": "InService"}
    text = f"endpoint {endpoint} is in service"
    return _end(at, order, seen, "serving", text, endpoint=status, tell=tell)


def _launch(
    at: Counter, order: Order, seen: SeenReservation, need: Need, *, wait: bool, tell: Tell | None
) -> int:
    from berth.workloads.launch import described

    if need.launch is None:
        end = iso(seen.end or order.window.end)
        text = f"the window is open until {end}; the need launches nothing"
        return _end(at, order, seen, "open", text, tell=tell)
    running = launch_order(at, order, seen, need.launch, wait=wait)
    lines = [f"instance {one.id} in {one.block}: {one.state}" for one in running.instances]
    return _end(at, order, seen, "running", "\n".join(lines), instances=described(running), tell=tell)


def _end(
    at: Counter,
    order: Order,
    seen: SeenReservation | None,
    stage: str,
    text: str,
    *,
    endpoint: Mapping[str, Any] | None = None,
    instances: Sequence[Mapping[str, Any]] = (),
    tell: Tell | None = None,
) -> int:
    """Say how far the run has come. `stage` is waiting, open, serving or running."""
    from berth.orders.wording import next_step, order_json

    document = order_json(order, seen, endpoint=endpoint, instances=instances)
    (tell or at.output.document)({**document, "schema": "berth.run/1", "stage": stage})
    at.output.answer(text)
    status = str(endpoint["status"]) if endpoint else None
    step = next_step(order, seen, at.door.clock.now(), endpoint=status, running=len(instances))
    again = "; run the same command again then" if stage == "waiting" else ""
    at.output.talk(f"next: {step}{again}")
    return ExitCode.DONE
