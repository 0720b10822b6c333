"""What the journal knows of an account, also for a verb that has to go on where it cannot be read."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from berth.cli.desks import ANEW, journal_trouble
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from datetime import datetime

    from berth.aws.session import Door
    from berth.inventory.holdings import Known
    from berth.inventory.leaving import Armed, Doubt, Remembered
    from berth.orders.approvals import ApprovalRequest
    from berth.orders.journal import Journal
    from berth.orders.journal_file import Place
    from berth.orders.order import Order
    from berth.storage.database import Database
    from berth.terms.money import Money


def remembered(door: Door, *, must_exist: bool = True) -> Remembered:
    """What the journal tells of the door's account, or why it tells nothing. Never raises for the journal.

    One that is not there is a trouble too, and is not made: its orders may be in another folder, or lost.
    Unless it `must_exist`, it is taken for that of somebody who has bought nothing so far.
    """
    from berth.inventory.leaving import Remembered
    from berth.orders.journal import Journal, journal_place

    account, now = door.identity.account, door.clock.now()
    try:
        with journal_trouble():
            place = journal_place(os.environ)
        with journal_trouble(place):
            if not must_exist and not place.exists():
                return Remembered()
        with journal_trouble(place), closing(_opened(place)) as db:
            journal = Journal(db, door.identity.realm)
            return Remembered(
                known=known_orders(journal, account, now),
                doubts=_doubts(journal, account),
                armed=_armed(journal, account, now),
                unused=_unused(journal, account, now),
                coming=_coming(journal, account),
            )
    except BerthError as problem:
        return Remembered(trouble=problem.message, hint=problem.next_step or "")
    except (ValueError, LookupError, TypeError) as problem:  # rows that are damaged, and none of SQLite's
        why = f"the journal {place} cannot be used: a row of it cannot be read ({problem})"
        return Remembered(trouble=why, hint=ANEW)


def _opened(place: Place) -> Database:
    """The journal to read, brought up to date where an older program made it. Raises BerthError where there
    is none."""
    from berth.orders.journal_file import is_current

    if place.exists():
        db, version = place.to_read()
        if is_current(version):
            return db
        db.close()
        if version:
            return place.to_write()
    raise BerthError(
        ExitCode.INCOMPLETE,
        f"there is no journal {place}",
        "BERTH_HOME or BERTH_JOURNAL may name another one; berth rebuild makes a lost one anew from AWS",
    )


def known_orders(journal: Journal, account: str, now: datetime) -> tuple[Known, ...]:
    """The reservations of the account's orders, as the journal has them."""
    from berth.orders.order import OrderState

    orders = (o for o in journal.orders(account) if o.state is OrderState.BOUGHT)
    return tuple(known for known in (_known(journal, order, now) for order in orders) if known is not None)


def _known(journal: Journal, order: Order, now: datetime) -> Known | None:
    from berth.inventory.holdings import Known
    from berth.terms.ways import Way
    from berth.workloads.report import make_report

    if order.reservation_arn is None:
        return None
    offer = order.offer
    events, launches = journal.events(order.key), journal.launches(order.key)
    report = make_report(order, events, now, launches)
    is_plan = offer.way is Way.TRAINING_PLAN
    return Known(
        order=str(order.key),
        way=offer.way,
        region=offer.region,
        id=order.plan_name if is_plan else order.reservation_arn.rpartition("/")[2],
        fee=report.paid,
        window=order.window,
        instance_type=offer.instance_type,
        count=offer.count,
        zones=offer.zones,
        target=offer.target,
        idle=report.idle_money,
    )


def _doubts(journal: Journal, account: str) -> tuple[Doubt, ...]:
    """Orders and extensions in doubt. Nobody is asked about them here: `berth show` settles them."""
    from berth.inventory.leaving import Doubt
    from berth.orders.reconcile import UNSETTLED

    orders = journal.orders(account)
    doubts = [Doubt(str(one.key), one.state.value, one.spending) for one in orders if one.state in UNSETTLED]
    longer = [
        Doubt(str(order.key), f"{one.state.value} to be extended", one.spending(str(order.key)))
        for order in orders
        for one in order.extensions
        if one.in_doubt
    ]
    return (*doubts, *longer)


def _armed(journal: Journal, account: str, now: datetime) -> tuple[Armed, ...]:
    """Purchases and extensions that were asked approval for and not made; what is made is armed no longer."""
    from berth.inventory.leaving import Armed
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.whole import WholeState

    ledger = journal.ledger()
    wholes = WholeBook(journal).wholes(account)
    whole = {one.key for one in wholes if one.state is WholeState.BOUGHT}
    found = []
    for request in ledger.requests():
        made = request.key in whole or _is_made(journal.order(request.key), request)
        if request.key.account == account and now < request.expires_at and not made:
            given = bool(ledger.given(request))
            found.append(Armed(str(request.key), request.amount, request.expires_at, given))
    return tuple(found)


def _is_made(order: Order | None, request: ApprovalRequest) -> bool:
    """Whether what the request asks for has been bought: the order, or its extension to that end."""
    from berth.orders.extensions.extension import ExtensionState
    from berth.orders.order import OrderState
    from berth.terms.instants import iso

    if order is None or order.state is not OrderState.BOUGHT:
        return False
    if request.what.get("kind") != "extension":
        return True
    ends = {iso(one.window.end) for one in order.extensions if one.state is ExtensionState.BOUGHT}
    return request.what.get("end") in ends


def _unused(journal: Journal, account: str, now: datetime) -> dict[tuple[str, str], Money]:
    """What is unused of each order's fee, by its segments."""
    from berth.orders.seen import SeenReservation
    from berth.orders.wording import reservation_id
    from berth.workloads.clean import still_paid

    found = {}
    for order in journal.orders(account):
        seen = SeenReservation.from_json(order.seen) if order.seen else None
        paid, name = still_paid(order, seen, now), reservation_id(order)
        if paid is not None and name is not None:
            found[(order.offer.region, name)] = paid.unused
    return found


def _coming(journal: Journal, account: str) -> dict[tuple[str, str], str]:
    """Extensions that are bought and not paid yet: their money is as good as gone, and no end shows them."""
    from berth.orders.extensions.extension import ExtensionState
    from berth.orders.wording import reservation_id
    from berth.terms.instants import iso

    found = {}
    for order in journal.orders(account):
        bought = [one for one in order.extensions if one.state is ExtensionState.BOUGHT]
        name = reservation_id(order)
        if name is not None and bought and bought[-1] not in order.extended:
            last = bought[-1]
            words = f"extended until {iso(last.window.end)} for {last.fee}, {last.payment or 'being paid'}"
            found[(order.offer.region, name)] = words
    return found
