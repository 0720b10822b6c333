"""In which account each piece is bought, where a need names several. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from berth.planner.framework.limits import BLOCK_INSTANCES_MAX
from berth.planner.offers import Offer
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Way


@dataclass(frozen=True, slots=True)
class Room:
    """An account and how many instances its blocks hold already. None: not known, so nothing is put there."""

    account: str
    blocks: int | None

    @property
    def left(self) -> int:
        """How many more its blocks may hold together."""
        return 0 if self.blocks is None else max(BLOCK_INSTANCES_MAX - self.blocks, 0)


def assigned(
    offers: Sequence[Offer], rooms: Sequence[Room], refuses: Callable[[str, Offer], str]
) -> tuple[tuple[str, Offer], ...]:
    """Each offer with an account: the largest first, each into the first account that has room for it.

    `refuses` says why an account cannot have an offer (its quota), '' when it can. Raises BerthError (quota)
    with every reason where an offer fits nowhere.
    """
    left = {room.account: room.left for room in rooms}
    made: list[tuple[str, Offer]] = []
    for offer in sorted(offers, key=lambda one: (-one.count, one.paid_window.start, one.zones)):
        against = []
        for room in rooms:
            why = _no_room(room, left[room.account], offer) or refuses(room.account, offer)
            if not why:
                left[room.account] -= offer.count if offer.way is Way.CAPACITY_BLOCK else 0
                made.append((room.account, offer))
                break
            against.append(f"  account {room.account}: {why}")
        else:
            head = f"no account has room for {offer.count} x {offer.instance_type}; nothing was bought"
            raise BerthError(
                ExitCode.QUOTA, "\n".join([head, *against]), "name one more account, or ask AWS for more"
            )
    return tuple(made)


def _no_room(room: Room, left: int, offer: Offer) -> str:
    if offer.way is not Way.CAPACITY_BLOCK or offer.count <= left:
        return ""
    if room.blocks is None:
        return "how many instances its blocks hold could not be read"
    return f"its blocks may hold {left} more instances ({BLOCK_INSTANCES_MAX} in all)"
