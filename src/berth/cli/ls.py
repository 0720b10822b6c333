"""`berth ls`: every block, training plan, reservation and endpoint of the account, in all Regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import Counter, counter
from berth.cli.options import Json, Profile
from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.inventory.holdings import Known
    from berth.inventory.join import Inventory, RegionAnswer
    from berth.orders.order import Order


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("ls")(ls)


def ls(
    *,
    region: Annotated[list[str] | None, typer.Option("--region", help="Only there; may be repeated.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also orders that ended over 30 days ago.")
    ] = False,
    orders: Annotated[
        bool, typer.Option("--orders", help="The journal's orders instead: state, fee, who. Asks no Region.")
    ] = False,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """List what the account holds in all Regions, whoever bought it. Spends nothing, needs no quota."""
    output = Output(as_json=as_json)
    if orders:
        return _orders(output, profile, region or ())
    with counter(output, profile=profile, regions=region or ()) as at:
        made, unlisted = inventory_of(at, region or (), everything=everything)
    from berth.inventory.wording import inventory_text

    output.document(made.to_json())
    output.answer(inventory_text(made))
    return _end(made, unlisted)


def _orders(output: Output, profile: str | None, regions: Sequence[str]) -> int:
    """Every order of the account, those that bought nothing too."""
    from berth.orders.order_list import list_json, list_lines

    with counter(output, profile=profile, regions=regions) as at:
        listed = [
            order for order in at.journal.orders(at.account) if not regions or order.offer.region in regions
        ]
        who = at.journal.authors(at.account)
        output.document(list_json(at.account, listed, who))
        output.answer("\n".join(list_lines(listed, who)))
    return ExitCode.DONE


def inventory_of(at: Counter, typed: Sequence[str], *, everything: bool) -> tuple[Inventory, str]:
    """What is held, and why the Regions themselves are not known ('' when they are)."""
    from berth.inventory.join import join
    from berth.sources.holdings import enabled_regions, look_everywhere

    known = known_orders(at)
    regions, unlisted = tuple(dict.fromkeys(typed)), ""
    if not regions:
        enabled, unlisted = enabled_regions(at.door.reader("ec2", at.door.regions[0]))
        regions = tuple(sorted({*enabled, *at.door.regions, *(k.region for k in known)}))
    else:
        known = tuple(k for k in known if k.region in regions)
    answers = look_everywhere(at.door, regions, known, _teller(at.output, len(regions)))
    identity = at.door.identity
    return join(
        answers, known, at.door.clock.now(), account=identity.account,
        rehearsal=identity.rehearsal.url if identity.rehearsal else None, everything=everything,
    ), unlisted  # fmt: skip


def known_orders(at: Counter) -> tuple[Known, ...]:
    """The reservations of the account's orders, as the journal has them."""
    from berth.orders.order import OrderState

    orders = (o for o in at.journal.orders(at.account) if o.state is OrderState.BOUGHT)
    return tuple(known for known in (_known(at, order) for order in orders) if known is not None)


def _known(at: Counter, order: Order) -> Known | None:
    from berth.inventory.holdings import Known
    from berth.terms.ways import Way
    from berth.workloads.report import make_report

    if order.reservation_arn is None:
        return None
    offer = order.offer
    events, launches = at.journal.events(order.key), at.journal.launches(order.key)
    report = make_report(order, events, at.door.clock.now(), launches)
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


def _teller(output: Output, regions: int) -> Callable[[RegionAnswer], None]:
    def tell(answer: RegionAnswer) -> None:
        if regions > 1 and answer.troubles:
            output.talk(f"{answer.region}: {answer.troubles[0]}")

    return tell


def _end(made: Inventory, unlisted: str) -> int:
    """Done, or incomplete where a Region did not answer in full."""
    if unlisted:
        raise BerthError(
            ExitCode.INCOMPLETE,
            f"the account's Regions are not known ({unlisted}); looked in {', '.join(made.regions)}",
            "name the Regions with --region",
        )
    if made.unread:
        names = ", ".join(region for region, _ in made.unread)
        raise BerthError(
            ExitCode.INCOMPLETE,
            f"not every Region answered in full: {names}; there may be more than is listed",
            "the lines NOT KNOWN above say why; ask again",
        )
    return ExitCode.DONE
