"""`berth buy NAME#best`: the pieces of a plan's best combination as one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from berth.cli.desks import Counter
from berth.cli.spending import asked_for, buying
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.order import OrderKey
    from berth.orders.pieces.buying import Bought, Wanted
    from berth.orders.pieces.of_plan import Mix
    from berth.orders.pieces.scarcity import Ranked
    from berth.orders.pieces.survey import Seat, Survey
    from berth.orders.pieces.whole import Agreement, Piece
    from berth.orders.spending_gate import NotApproved
    from berth.planner.need import Need
    from berth.planner.offers import Offer
    from berth.planner.plan import Plan
    from berth.terms.money import Money


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed: the most for all pieces together, and how. `with_proof` says what is run once somebody
    has approved ('': `berth buy NAME#best`)."""

    cap: Money | None
    yes: bool = False
    again: bool = False
    sequence: int | None = None
    accept_other: bool = False
    unconfirmed: bool = False
    with_proof: str = ""


def buy_pieces(at: Counter, plan: Plan, asked: Asked, *, wait: bool = False) -> Bought:
    """Check, confirm and buy what of the combination is missing. Raises BerthError."""
    from berth.cli.standing import until_known
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.buying import buy_whole
    from berth.orders.spending_gate import NotApproved

    _check_here(at, plan)
    wanted, mix = wanted_of(at, plan, asked)
    desk = replace(at.desk(mix.offers[0]), gate=at.gate)

    def agree(queue: Sequence[Ranked], found: Survey, total: Money) -> None:
        show_pieces(at, mix, queue, found, total)
        _decide(at, asked, found, queue)

    def once() -> Bought:
        try:
            return buy_whole(WholeBook(at.journal), desk, seats, wanted, agree)
        except NotApproved as missing:
            raise asked_for(at, missing, asked.with_proof or buying(f"{wanted.key}#best")) from None

    def seats(piece: Piece) -> Seat:
        return seat(at, piece, wanted.agreement)

    return until_known(at, once) if wait else once()


def why_not_allowed(at: Counter, plan: Plan, asked: Asked) -> tuple[OrderKey, NotApproved | None]:
    """The order that the pieces would be, and the approval that it lacks (None: none). Buys nothing.

    Raises BerthError where a rule is in the way, or a piece cannot be had.
    """
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.buying import propose
    from berth.orders.spending_gate import NotApproved, check_whole

    _check_here(at, plan)
    wanted, mix = wanted_of(at, plan, asked)
    desk = replace(at.desk(mix.offers[0]), gate=at.gate)
    proposal = propose(WholeBook(at.journal), desk, lambda piece: seat(at, piece, wanted.agreement), wanted)
    try:
        if proposal is not None:
            check_whole(at.journal.ledger(), proposal, at.door.clock.now())
    except NotApproved as missing:
        return wanted.key, missing
    return wanted.key, None


def seat(at: Counter, piece: Piece, agreement: Agreement) -> Seat:
    """The desk of a piece, and the door that pays for it: those of the piece's account."""
    from berth.cli.accounts import beside
    from berth.orders.pieces.survey import Seat

    there = beside(at, piece.key.account, agreement)
    desk = replace(there.desk(piece.offer), gate=there.gate)
    return Seat(desk, lambda: there.buyer(desk, piece.offer))


def wanted_of(at: Counter, plan: Plan, asked: Asked) -> tuple[Wanted, Mix]:
    """The order that the combination is, or the one that it goes on with, and what there is to buy.

    Once anything of an order may be paid its pieces are what the journal has, whatever was planned since.
    """
    from berth.orders.order import OrderKey
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.buying import Wanted
    from berth.orders.pieces.of_plan import Mix, mix_of, sequence_of_whole
    from berth.orders.pieces.whole import Agreement, is_begun, numbered

    name, book = plan.need.name, WholeBook(at.journal)
    orders, wholes = at.journal.orders(at.account, name), book.wholes(at.account, name)
    sequence = sequence_of_whole(orders, wholes, again=asked.again, asked=asked.sequence)
    key = OrderKey(at.account, name, sequence)
    known = book.whole(key)
    if known is not None and is_begun(book.orders(known).values()):
        pieces, mix = known.pieces, Mix(tuple(piece.offer for piece in known.live))
    else:
        mix = mix_of(plan, parts_of(at, plan))
        pieces = numbered(key, spread(at, plan.need, mix))
    agreement = Agreement(asked.cap, plan.need.budget, {"need": plan.need.to_json()})
    return Wanted(key, pieces, agreement, accept_other=asked.accept_other), mix


def spread(at: Counter, need: Need, mix: Mix) -> tuple[tuple[str, Offer], ...]:
    """Each offer with the account that it is bought in: the caller's, or those that the need names.

    Raises BerthError where no account has room, or one cannot be opened.
    """
    from berth.cli.accounts import accounts_of
    from berth.orders.pieces.rooms import Room, assigned

    counters = {there.account: there for there in accounts_of(at, need)}
    if tuple(counters) == (at.account,):
        return tuple((at.account, offer) for offer in mix.offers)
    rooms = [Room(account, _held(there)) for account, there in counters.items()]
    return assigned(mix.offers, rooms, lambda account, offer: _refuses(counters[account], offer))


def _held(there: Counter) -> int | None:
    """Instances of all blocks of an account, in the Regions that were opened; None where one did not say."""
    from berth.planner.owned import blocks_owned
    from berth.sources.owned import owned_reservations

    answers = [owned_reservations(there.door.reader("ec2", region), region) for region in there.door.regions]
    for answer in answers:
        if answer.trouble:
            there.warn(f"account {there.account}, {answer.region}: {answer.trouble}")
    return None if any(answer.trouble for answer in answers) else blocks_owned(answers)


def _refuses(there: Counter, offer: Offer) -> str:
    """Why the account's own search does not show the offer; '' when it does."""
    from berth.orders.purchase import fresh_offer

    try:
        fresh_offer(there.desk(offer), offer)
    except BerthError as problem:
        return problem.message.splitlines()[0]
    return ""


def say_pieces(at: Counter, bought: Bought, *, wait: bool = False) -> None:
    """Tell how each piece stands, and what comes next."""
    from berth.cli.accounts import beside
    from berth.cli.standing import until_paid
    from berth.orders.pieces.wording import whole_json, whole_lines

    orders = dict(bought.orders)
    if wait:
        for number, order in orders.items():
            until_paid(beside(at, order.key.account, bought.whole.agreement), order)
            orders[number] = at.journal.order(order.key) or order
    paid = ", ".join(f"{bought.whole.key.need}/{bought.whole.key.sequence}.{n}" for n in bought.now)
    at.output.talk(f"order {bought.whole.key}: {paid or 'nothing'} bought now; it is whole")
    at.output.document(whole_json(bought.whole, orders))
    at.output.answer("\n".join(whole_lines(bought.whole, orders, at.door.clock.now())))


def parts_of(at: Counter, plan: Plan) -> tuple[Plan, ...]:
    """The plans of further parts that the combination does not hold. Raises BerthError for one without."""
    from berth.orders.pieces.of_plan import parts_to_add
    from berth.planner.plan import Plan

    found = []
    for part in parts_to_add(plan):
        document = at.journal.recall_plan(at.account, plan.need.alone(part).name)
        if document is None:
            raise BerthError(
                ExitCode.BAD_REQUEST,
                f"the part {part.name} of {plan.need.name} is held ahead too, and was not planned",
                f"berth plan FILE --part {part.name}, then buy all parts",
            )
        found.append(Plan.from_json(document))
        _check_here(at, found[-1])
    return tuple(found)


def _check_here(at: Counter, plan: Plan) -> None:
    from berth.orders.guard import check_world

    rehearsal = at.door.identity.rehearsal
    check_world(plan, account=at.account, rehearsal=rehearsal.url if rehearsal else None)


def show_pieces(at: Counter, mix: Mix, queue: Sequence[Ranked], found: Survey, total: Money) -> None:
    """Show all pieces as they are now, in the order of buying, and what is left for the day."""
    from berth.orders.pieces.whole import total_of
    from berth.orders.pieces.wording import day_lines, question_lines

    missing = total_of([ranked.piece for ranked in queue])
    cares = (*mix.cares, *found.unconfirmed)
    at.output.talk("\n".join([*question_lines(queue, total, missing, cares), *day_lines(mix.on_the_day)]))
    for sentence in mix.beside:
        at.output.talk(f"  on the day {sentence}")


def _decide(at: Counter, asked: Asked, found: Survey, queue: Sequence[Ranked]) -> None:
    """Ask once for all pieces. Raises BerthError for a no, and where `--yes` says nothing of a doubt."""
    from berth.orders.pieces.whole import total_of
    from berth.orders.pieces.wording import many

    if asked.yes and found.unconfirmed and not asked.unconfirmed:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"{found.unconfirmed[0]}; so the first may be paid and the next be gone: nothing was bought",
            "--unconfirmed takes that risk",
        )
    if asked.yes:
        return
    at.output.talk(f"  account  {at.door.identity.account_shown}, {at.door.identity.role}")
    if not at.output.ask(f"Buy {many(len(queue))} for {total_of([one.piece for one in queue])}?"):
        raise BerthError(ExitCode.DECISION_NEEDED, "not confirmed: nothing was bought")
