"""What is still paid, armed or running when somebody wants to go. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from berth.inventory.holdings import Endpoint, Holding, Known, Shown
from berth.inventory.join import Inventory
from berth.planner.offers import money_json
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.outcomes import ExitCode, Spending
from berth.terms.ways import Way

SCHEMA = "berth.leave/1"


@dataclass(frozen=True, slots=True)
class RunningInstance:
    """One instance with an order's mark that is not terminated. None: EC2 did not show it. `block` is the
    reservation that pays for it; without one it is billed by the second, at `hourly` (None: price not known).
    """

    region: str
    id: str
    state: str
    order: str
    instance_type: str | None
    block: str | None
    hourly: Money | None = None


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request to raise a quota that AWS has not decided."""

    region: str
    service: str
    code: str
    name: str
    desired: float | None
    status: str


@dataclass(frozen=True, slots=True)
class MoreOfRegion:
    """What one Region shows beside its reservations and endpoints; `troubles` is what was not read."""

    region: str
    instances: tuple[RunningInstance, ...] = ()
    requests: tuple[OpenRequest, ...] = ()
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """An order whose outcome is not known, or whose paid call may be under way."""

    order: str
    state: str
    spending: Spending


@dataclass(frozen=True, slots=True)
class Armed:
    """A purchase that somebody asked approval for, and that has not been made. `given`: it was approved, so
    whoever may pay can make it until `until`."""

    order: str
    amount: Money
    until: datetime
    given: bool


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the journal tells of an account. `unused` is what is unused of an order's fee by its segments, by
    Region and id; `coming` tells in the same way of an extension that is bought and whose payment AWS has not
    taken, so that its end is not the reservation's yet. `trouble` says why the journal could not be read,
    with `hint` of what to do ('' for none): then all else is empty, which says nothing."""

    known: tuple[Known, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    armed: tuple[Armed, ...] = ()
    unused: Mapping[tuple[str, str], Money] = field(default_factory=dict)
    coming: Mapping[tuple[str, str], str] = field(default_factory=dict)
    trouble: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class StillPaid:
    """A reservation that is paid and not over. `until` None: no end, or not shown. `unused` is the share of
    the fee of the time to come; None where the fee is not known, or there is none (billed by the hour).
    `coming` is a sentence on an extension that is being paid, '' for none."""

    holding: Holding
    until: datetime | None
    unused: Money | None
    coming: str = ""

    @property
    def by_the_hour(self) -> bool:
        """Whether it is billed until somebody cancels it, and not paid up front."""
        return self.holding.way is Way.ODCR


@dataclass(frozen=True, slots=True)
class Leaving:
    """All that is left at `at`. `unread` names what was not read, by Region; `journal` says why the journal
    was not ('' when it was): then orders in doubt and approvals that wait are not known."""

    at: datetime
    account: str
    rehearsal: str | None
    regions: tuple[str, ...]
    paid: tuple[StillPaid, ...]
    endpoints: tuple[Endpoint, ...]
    instances: tuple[RunningInstance, ...]
    requests: tuple[OpenRequest, ...]
    doubts: tuple[Doubt, ...]
    armed: tuple[Armed, ...]
    unread: tuple[tuple[str, str], ...]
    journal: str = ""

    @property
    def runs(self) -> bool:
        """Whether something runs or waits that somebody could end."""
        by_the_hour = any(one.by_the_hour for one in self.paid)
        return bool(self.endpoints or self.instances or self.requests or self.armed or by_the_hour)

    @property
    def exit_code(self) -> ExitCode:
        """Done only where nothing is left and everything answered; else the first that holds, in this order:
        an outcome in doubt, something that runs or waits, something not read, only paid reservations."""
        if self.doubts:
            return ExitCode.OUTCOME_UNKNOWN
        if self.runs:
            return ExitCode.SOMETHING_LEFT
        if self.unread or self.journal:
            return ExitCode.INCOMPLETE
        return ExitCode.CLEANED_STILL_PAID if self.paid else ExitCode.DONE

    def to_json(self) -> dict[str, Any]:
        """The document described in docs/reference/json.md."""
        return {
            "schema": SCHEMA,
            "at": iso(self.at),
            "account": self.account,
            "rehearsal": self.rehearsal,
            "exit_code": int(self.exit_code),
            "regions": list(self.regions),
            "unread": [{"region": region, "trouble": trouble} for region, trouble in self.unread],
            "journal": self.journal or None,
            "paid": [_paid_json(one, self.at) for one in self.paid],
            "endpoints": [one.to_json() for one in self.endpoints],
            "instances": [_instance_json(one) for one in self.instances],
            "armed": [
                {
                    "order": one.order,
                    "amount": money_json(one.amount),
                    "until": iso(one.until),
                    "given": one.given,
                }
                for one in self.armed
            ],
            "quota_requests": [_request_json(one) for one in self.requests],
            "doubts": [
                {"order": one.order, "state": one.state, "line": one.spending.line()} for one in self.doubts
            ],
        }


def leaving(inventory: Inventory, more: Sequence[MoreOfRegion], journal: Remembered) -> Leaving:
    """Put together what AWS and the journal know. What is unused of a fee that the journal does not know
    follows from the window."""
    troubles: dict[str, list[str]] = {region: [trouble] for region, trouble in inventory.unread}
    for one in more:
        if one.troubles:
            said = troubles.setdefault(one.region, [])
            said += [trouble for trouble in one.troubles if not any(trouble in known for known in said)]
    return Leaving(
        at=inventory.at,
        account=inventory.account,
        rehearsal=inventory.rehearsal,
        regions=inventory.regions,
        paid=tuple(_still_paid(holding, inventory.at, journal) for holding in _left(inventory)),
        endpoints=inventory.endpoints,
        instances=tuple(instance for one in more for instance in one.instances),
        requests=tuple(request for one in more for request in one.requests),
        doubts=journal.doubts,
        armed=journal.armed,
        unread=tuple((region, "; ".join(dict.fromkeys(said))) for region, said in sorted(troubles.items())),
        journal=journal.trouble,
    )


def _left(inventory: Inventory) -> list[Holding]:
    return [holding for holding in inventory.holdings if _is_left(holding, inventory.at)]


def _is_left(holding: Holding, now: datetime) -> bool:
    """Whether it may still be paid: what is not shown, or not known, counts until its end."""
    return not holding.is_over and (holding.end is None or now < holding.end)


def _still_paid(holding: Holding, now: datetime, journal: Remembered) -> StillPaid:
    name = (holding.region, holding.id)
    known = journal.unused.get(name)
    unused = known if known is not None else _share(holding, now)
    return StillPaid(holding, holding.end, unused, journal.coming.get(name, ""))


def _share(holding: Holding, now: datetime) -> Money | None:
    fee, start, end = holding.fee, holding.start, holding.end
    if fee is None or start is None or end is None or start >= end or holding.way is Way.ODCR:
        return None
    left = int((end - max(now, start)).total_seconds())
    whole = int((end - start).total_seconds())
    return Money(fee.amount * Decimal(left) / Decimal(whole), fee.currency).rounded()


def _paid_json(one: StillPaid, now: datetime) -> dict[str, Any]:
    return {
        **one.holding.to_json(now),
        "paid_until": iso(one.until) if one.until else None,
        "unused": money_json(one.unused),
        "by_the_hour": one.by_the_hour,
        "extension": one.coming or None,
        "not_shown": one.holding.shown is not Shown.LISTED,
    }


def _instance_json(one: RunningInstance) -> dict[str, Any]:
    return {
        "region": one.region, "id": one.id, "state": one.state, "order": one.order,
        "instance_type": one.instance_type, "block": one.block, "hourly": money_json(one.hourly),
    }  # fmt: skip


def _request_json(one: OpenRequest) -> dict[str, Any]:
    return {
        "region": one.region, "service": one.service, "code": one.code, "name": one.name,
        "desired": one.desired, "status": one.status,
    }  # fmt: skip
