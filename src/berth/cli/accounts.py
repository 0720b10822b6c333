"""Other accounts beside the caller's: a counter each, with keys of its own and the same journal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from berth.cli.desks import Counter
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.aws.roles import RoleToAssume
    from berth.aws.session import Door
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
        door = door_of(at.door, named)
        at.output.talk(f"also: {door.identity.account_shown}, {door.identity.role}")
        at.others[named.id] = Counter(at.output, door, at.journal, shared=at.shared)
    return at.others[named.id]


def door_of(door: Door, named: NeedAccount) -> Door:
    """The way to a named account: with its profile's keys, else the caller's, in its role where it has one.

    Raises BerthError: credentials where they do not work, no role can be assumed, or it is another account's.
    """
    from berth.aws.roles import RoleToAssume

    there = _opened(door, named, RoleToAssume(named.role, named.external_id) if named.role else None)
    if there.identity.account != named.id:
        whose = f"profile {named.profile} is" if named.profile else "the caller's own keys are"
        raise BerthError(
            ExitCode.CREDENTIALS,
            f"{whose} of account {there.identity.account}, the need says {named.id}",
            "correct [[accounts]] in the need (profile, or role), or the profile",
        )
    return there


def source_of(door: Door, named: NeedAccount) -> Door:
    """The way of whoever assumes the account's role: its profile's, else the caller's. Raises BerthError."""
    return door if named.profile is None else _opened(door, named, None)


def _opened(door: Door, named: NeedAccount, role: RoleToAssume | None) -> Door:
    from berth.aws.session import open_door
    from berth.terms.clock import SystemClock

    profile, regions = named.profile or door.profile, door.regions
    return open_door(profile=profile, regions=regions, environ=os.environ, clock=SystemClock(), role=role)


def accounts_of(at: Counter, need: Need) -> tuple[Counter, ...]:
    """The counters in which pieces of the need may be bought, as the need orders them.

    The caller's alone where it names none. Raises BerthError.
    """
    return tuple(opened(at, one) for one in need.accounts) or (at,)
