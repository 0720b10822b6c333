"""What each Region shows, and what the journal knows, made into one list. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from berth.inventory.holdings import Endpoint, Holding, Known, Shown
from berth.planner.owned import Owned
from berth.terms.instants import iso

SCHEMA = "berth.ls/1"
RECENT = timedelta(days=30)
"""Orders that ended longer ago than this are shown only when all are asked for."""


@dataclass(frozen=True, slots=True)
class RegionAnswer:
    """What one Region shows. `gone` are ids that were asked one by one and are not found; `troubles` says
    what was not read, empty when the Region answered in full."""

    region: str
    owned: tuple[Owned, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    gone: frozenset[str] = frozenset()
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """What the account holds at `at`, by Region. `unread` names the Regions that did not answer in full, each
    with its trouble; `hidden` counts old orders that are left out; `journal` says why the journal could not
    be read, '' where it was."""

    at: datetime
    account: str
    rehearsal: str | None
    regions: tuple[str, ...]
    holdings: tuple[Holding, ...]
    endpoints: tuple[Endpoint, ...]
    unread: tuple[tuple[str, str], ...]
    hidden: int
    journal: str = ""

    def regions_with_something(self) -> tuple[str, ...]:
        """The Regions in which something is held or runs, in order."""
        return tuple(sorted({h.region for h in self.holdings} | {e.region for e in self.endpoints}))

    def to_json(self) -> dict[str, Any]:
        """The document described in docs/reference/json.md."""
        return {
            "schema": SCHEMA,
            "at": iso(self.at),
            "account": self.account,
            "rehearsal": self.rehearsal,
            "regions": list(self.regions),
            "incomplete": bool(self.unread or self.journal),
            "unread": [{"region": region, "trouble": trouble} for region, trouble in self.unread],
            "reservations": [holding.to_json(self.at) for holding in self.holdings],
            "endpoints": [endpoint.to_json() for endpoint in self.endpoints],
            "hidden": self.hidden,
            "journal": self.journal or None,
        }


def join(
    answers: Sequence[RegionAnswer],
    known: Sequence[Known],
    now: datetime,
    *,
    account: str,
    rehearsal: str | None = None,
    everything: bool = False,
) -> Inventory:
    """One list. `everything` keeps orders that ended long ago and are no longer reported."""
    by_region = {answer.region: answer for answer in answers}
    by_id = {(k.region, k.id): k for k in known}
    found = [
        Holding(Shown.LISTED, owned, by_id.get((owned.region, owned.id)))
        for answer in answers
        for owned in answer.owned
    ]
    listed = {(h.region, h.id) for h in found}
    rest = [_unlisted(k, by_region.get(k.region), now) for k in known if (k.region, k.id) not in listed]
    shown = [h for h in rest if everything or h.shown is not Shown.ENDED or _recent(h, now)]
    return Inventory(
        at=now,
        account=account,
        rehearsal=rehearsal,
        regions=tuple(sorted(by_region)),
        holdings=tuple(sorted((*found, *shown), key=_place_and_time)),
        endpoints=tuple(sorted((e for a in answers for e in a.endpoints), key=lambda e: (e.region, e.name))),
        unread=tuple(sorted((a.region, "; ".join(a.troubles)) for a in answers if a.troubles)),
        hidden=len(rest) - len(shown),
    )


def _unlisted(known: Known, answer: RegionAnswer | None, now: datetime) -> Holding:
    """An order of ours that its Region does not list. "Not found" for a past one is a normal answer."""
    if answer is None or (answer.troubles and known.id not in answer.gone):
        return Holding(Shown.NOT_KNOWN, None, known)
    shown = Shown.ENDED if now >= known.window.end else Shown.NOT_SHOWN
    return Holding(shown, None, known)


def _recent(holding: Holding, now: datetime) -> bool:
    return holding.end is None or now - holding.end <= RECENT


def _place_and_time(holding: Holding) -> tuple[object, ...]:
    start = holding.start
    return (holding.region, start is None, start.timestamp() if start else 0.0, holding.way.value, holding.id)
