"""`berth ls`: every block, training plan, reservation and endpoint of the account, in all Regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import counter
from berth.cli.options import Json, Profile
from berth.cli.output import Output
from berth.cli.remembered import remembered
from berth.cli.who import enter
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.aws.session import Door
    from berth.inventory.holdings import Known
    from berth.inventory.join import Inventory, RegionAnswer


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
    from berth.inventory.wording import inventory_text

    door = enter(output, profile=profile, regions=region or ())
    journal = remembered(door, must_exist=False)
    made, unlisted = inventory_of(output, door, journal.known, region or (), everything=everything)
    made = replace(made, journal=journal.trouble)
    output.document(made.to_json())
    output.answer(inventory_text(made))
    return _end(made, unlisted, journal.hint)


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


def inventory_of(
    output: Output, door: Door, known: tuple[Known, ...], typed: Sequence[str], *, everything: bool
) -> tuple[Inventory, str]:
    """What is held, and why the Regions themselves are not known ('' when they are)."""
    from berth.inventory.join import join
    from berth.sources.holdings import enabled_regions, look_everywhere

    regions, unlisted = tuple(dict.fromkeys(typed)), ""
    if not regions:
        enabled, unlisted = enabled_regions(door.reader("ec2", door.regions[0]))
        regions = tuple(sorted({*enabled, *door.regions, *(k.region for k in known)}))
    else:
        known = tuple(k for k in known if k.region in regions)
    answers = look_everywhere(door, regions, known, _teller(output, len(regions)))
    identity = door.identity
    return join(
        answers, known, door.clock.now(), account=identity.account,
        rehearsal=identity.rehearsal.url if identity.rehearsal else None, everything=everything,
    ), unlisted  # fmt: skip


def _teller(output: Output, regions: int) -> Callable[[RegionAnswer], None]:
    def tell(answer: RegionAnswer) -> None:
        if regions > 1 and answer.troubles:
            output.talk(f"{answer.region}: {answer.troubles[0]}")

    return tell


def _end(made: Inventory, unlisted: str, hint: str) -> int:
    """Done, or incomplete where a Region did not answer in full or the journal could not be read."""
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
    if made.journal:
        raise BerthError(
            ExitCode.INCOMPLETE,
            "the journal could not be read: what AWS shows is listed, what only the journal knows is not",
            hint or None,
        )
    return ExitCode.DONE
