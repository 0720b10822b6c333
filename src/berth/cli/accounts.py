"""Other accounts beside the caller's: a counter each, with keys of its own and the same journal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from berth.cli.desks import Counter
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.pieces.whole import Agreement
    from berth.planner.need import Need
    from berth.planner.need_accounts import NeedAccount


def beside(at: Counter, account: str, agreement: Agreement) -> Counter:
    """The counter for pieces of `account`: `at` itself where that is its own.

    Raises BerthError (credentials): the need names no profile for that account, or its keys do not work.
    """
    if account == at.account:
        return at
    from berth.planner.need import Need

    need = agreement.context.get("need")
    named = Need.from_json(need).accounts if need else ()
    found = next((one for one in named if one.id == account), None)
    if found is None:
        raise BerthError(
            ExitCode.CREDENTIALS,
            f"a piece is in account {account}, and the need names no profile for it",
            f"run the command with keys of account {account} for the piece by itself",
        )
    return opened(at, found)


def opened(at: Counter, named: NeedAccount) -> Counter:
    """The counter of a named account, opened at the first asking. Raises BerthError (credentials)."""
    if named.id == at.account:
        return at
    if named.id not in at.others:
        from berth.aws.session import open_door
        from berth.terms.clock import SystemClock

        door = open_door(
            profile=named.profile, regions=at.door.regions, environ=os.environ, clock=SystemClock()
        )
        if door.identity.account != named.id:
            raise BerthError(
                ExitCode.CREDENTIALS,
                f"profile {named.profile} is of account {door.identity.account}, the need says {named.id}",
                "correct [[accounts]] in the need, or the profile",
            )
        at.output.talk(f"also: {door.identity.account_shown}, {door.identity.role}")
        at.others[named.id] = Counter(at.output, door, at.journal, shared=at.shared)
    return at.others[named.id]


def accounts_of(at: Counter, need: Need) -> tuple[Counter, ...]:
    """The counters in which pieces of the need may be bought, as the need orders them.

    The caller's alone where it names none. Raises BerthError.
    """
    return tuple(opened(at, one) for one in need.accounts) or (at,)
