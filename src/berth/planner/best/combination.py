"""The best combination as a value of the plan: pieces, totals, what is proven, other answers, changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from berth.planner.best.quota_needs import QuotaNeed
from berth.planner.framework.limits import BLOCK_COUNT_MAX
from berth.planner.offers import money_from_json, money_json
from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money
from berth.terms.ways import Way
from berth.terms.window import Window


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing to buy, or one way to pay by the hour beside it.

    `number` is the plan's choice of that offer, None where the offer does not fit alone. `offering_id`
    None: there is nothing to buy, it is paid by the hour and may be refused on the day. `count` of the `of`
    instances of the offer are meant. `paid` are the windows that are paid, `usable` those in which work can
    run. `cost` is its share of the fee with the operating system's fee, or the hours; rounded to the cent
    by itself, so that pieces may differ from the total by cents.
    """

    number: int | None
    way: Way
    instance_type: str
    region: str
    zone_id: str | None
    offering_id: str | None
    paid: tuple[Window, ...]
    usable: tuple[Window, ...]
    count: int
    of: int
    cost: Money

    @property
    def promised(self) -> bool:
        """Whether it is bought ahead."""
        return self.offering_id is not None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "number": self.number,
            "way": self.way.value,
            "instance_type": self.instance_type,
            "region": self.region,
            "zone_id": self.zone_id,
            "offering_id": self.offering_id,
            "paid": _windows_json(self.paid),
            "usable": _windows_json(self.usable),
            "count": self.count,
            "of": self.of,
            "cost": money_json(self.cost),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Piece:
        """The piece that `to_json` wrote."""
        return cls(
            value["number"],
            Way(value["way"]),
            value["instance_type"],
            value["region"],
            value["zone_id"],
            value["offering_id"],
            _windows(value["paid"]),
            _windows(value["usable"]),
            int(value["count"]),
            int(value["of"]),
            _money(value["cost"]),
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is proven about it: see `answer.Proof`. `seen` counts the offers that were looked at."""

    seen: int
    optimal: bool
    bound: Money
    gap: Decimal
    scenes: int
    left_out: int
    nodes: int
    whole: bool

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "seen": self.seen,
            "optimal": self.optimal,
            "bound": money_json(self.bound),
            "gap": str(self.gap),
            "scenes": self.scenes,
            "left_out": self.left_out,
            "nodes": self.nodes,
            "linear_whole": self.whole,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Evidence:
        """The evidence that `to_json` wrote."""
        return cls(
            int(value["seen"]),
            bool(value["optimal"]),
            _money(value["bound"]),
            Decimal(value["gap"]),
            int(value["scenes"]),
            int(value["left_out"]),
            int(value["nodes"]),
            bool(value["linear_whole"]),
        )


def _together(one: Piece, other: Piece) -> bool:
    """Whether both may be the same instances: of one type, in one zone, or in zones that are not known."""
    if (one.instance_type, one.region) != (other.instance_type, other.region):
        return False
    return one.zone_id == other.zone_id or None in (one.zone_id, other.zone_id)


@dataclass(frozen=True, slots=True)
class Mix:
    """Pieces that together cover the need, and what they come to.

    `total` is rounded once. `running` are the windows in which the work runs. `instance_hours` are those that
    had to be covered, `accelerator_hours` the same in accelerators (None: not known how many there are), and
    `per_accelerator_hour` is the total over them.
    """

    pieces: tuple[Piece, ...]
    total: Money
    running: tuple[Window, ...]
    instance_hours: Decimal
    accelerator_hours: Decimal | None
    per_accelerator_hour: Money | None

    @property
    def beyond_one_search(self) -> int:
        """The most instances of one type and zone at once that the purchases hold, where no search can be
        asked for as many (a block holds 64); else 0. Nothing then confirms that all of them are there.
        """
        blocks = [p for p in self.pieces if p.way is Way.CAPACITY_BLOCK and p.promised]
        sums = [
            sum(o.count for o in blocks if _together(o, p) and any(w.contains(start) for w in o.paid))
            for p in blocks
            for start in (window.start for window in p.paid)
        ]
        most = max(sums, default=0)
        return most if most > BLOCK_COUNT_MAX else 0

    @property
    def usable(self) -> timedelta:
        """How long the work runs."""
        return sum((w.duration for w in self.running), timedelta())

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "pieces": [p.to_json() for p in self.pieces],
            "total": money_json(self.total),
            "running": _windows_json(self.running),
            "instance_hours": str(self.instance_hours),
            "accelerator_hours": None if self.accelerator_hours is None else str(self.accelerator_hours),
            "per_usable_accelerator_hour": money_json(self.per_accelerator_hour),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Mix:
        """The mix that `to_json` wrote."""
        accelerators = value["accelerator_hours"]
        return cls(
            tuple(Piece.from_json(p) for p in value["pieces"]),
            _money(value["total"]),
            _windows(value["running"]),
            Decimal(value["instance_hours"]),
            None if accelerators is None else Decimal(accelerators),
            money_from_json(value["per_usable_accelerator_hour"]),
        )


@dataclass(frozen=True, slots=True)
class OtherMix:
    """The best of those that differ in `kind` (see `others.Kind`; `way` for `without-way`), and what it
    trades.

    Positive is more than the best: `dearer`, `later` (the end), `places`, `pieces`, instance-hours that are
    `unpromised`, instance-hours of the `wanted` counts.
    """

    kind: str
    way: Way | None
    mix: Mix
    dearer: Money
    later: timedelta
    places: int
    pieces: int
    unpromised: Decimal
    wanted: Decimal

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind,
            "way": self.way.value if self.way else None,
            "mix": self.mix.to_json(),
            "dearer": money_json(self.dearer),
            "later_s": int(self.later.total_seconds()),
            "places": self.places,
            "pieces": self.pieces,
            "unpromised_instance_hours": str(self.unpromised),
            "wanted_instance_hours": str(self.wanted),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OtherMix:
        """The other mix that `to_json` wrote."""
        return cls(
            value["kind"],
            Way(value["way"]) if value["way"] else None,
            Mix.from_json(value["mix"]),
            _money(value["dearer"]),
            timedelta(seconds=value["later_s"]),
            int(value["places"]),
            int(value["pieces"]),
            Decimal(value["unpromised_instance_hours"]),
            Decimal(value["wanted_instance_hours"]),
        )


@dataclass(frozen=True, slots=True)
class NeededChange:
    """A change of the need with which something fits: its `kind` (see `changes.Kind`), the `value` that the
    need would say, in the words of a need file, and what fits then.
    """

    kind: str
    value: str
    mix: Mix

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"kind": self.kind, "value": self.value, "mix": self.mix.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NeededChange:
        """The change that `to_json` wrote."""
        return cls(value["kind"], value["value"], Mix.from_json(value["mix"]))


@dataclass(frozen=True, slots=True)
class IfQuota:
    """A mix that costs less, if the quotas of what is paid by the hour allow what it `needs`: they were not
    read, or are known to allow less.
    """

    mix: Mix
    needs: tuple[QuotaNeed, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"mix": self.mix.to_json(), "needs": [need.to_json() for need in self.needs]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> IfQuota:
        """What `to_json` wrote."""
        return cls(Mix.from_json(value["mix"]), tuple(QuotaNeed.from_json(n) for n in value["needs"]))


@dataclass(frozen=True, slots=True)
class Combination:
    """The best combination of what was seen for one acceptable type.

    `best` None: nothing fits, and `changes` says what would have to change. `settled`: that nothing fits is
    proven. `refused` says of each offer or rate that was not compared why. `left_out` names parts of the
    need for which nothing was seen, so that they are not in it. `trouble` says why there is no combination
    at all: the optimiser is not installed. `if_quota` is a mix that would cost less if quotas allowed it;
    `quotas` what the best takes of those that bound its hours. `by_the_hour` is what nothing but hours would
    cost where that is less than the best: then the best is of what is promised.
    """

    instance_type: str
    best: Mix | None
    evidence: Evidence | None
    others: tuple[OtherMix, ...] = ()
    changes: tuple[NeededChange, ...] = ()
    settled: bool = True
    refused: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    trouble: str = ""
    if_quota: IfQuota | None = None
    quotas: tuple[QuotaNeed, ...] = ()
    by_the_hour: Money | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "instance_type": self.instance_type,
            "best": self.best.to_json() if self.best else None,
            "evidence": self.evidence.to_json() if self.evidence else None,
            "others": [o.to_json() for o in self.others],
            "changes": [c.to_json() for c in self.changes],
            "settled": self.settled,
            "refused": [{"id": name, "reason": reason} for name, reason in self.refused],
            "left_out": list(self.left_out),
            "trouble": self.trouble,
            "if_quota": self.if_quota.to_json() if self.if_quota else None,
            "quotas": [q.to_json() for q in self.quotas],
            "by_the_hour": money_json(self.by_the_hour),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Combination:
        """The combination that `to_json` wrote. Raises KeyError or ValueError for anything else."""
        return cls(
            value["instance_type"],
            Mix.from_json(value["best"]) if value["best"] else None,
            Evidence.from_json(value["evidence"]) if value["evidence"] else None,
            tuple(OtherMix.from_json(o) for o in value["others"]),
            tuple(NeededChange.from_json(c) for c in value["changes"]),
            bool(value["settled"]),
            tuple((r["id"], r["reason"]) for r in value["refused"]),
            tuple(value["left_out"]),
            value["trouble"],
            IfQuota.from_json(value["if_quota"]) if value.get("if_quota") else None,
            tuple(QuotaNeed.from_json(q) for q in value.get("quotas", ())),
            money_from_json(value.get("by_the_hour")),
        )


def _windows_json(windows: tuple[Window, ...]) -> list[dict[str, str]]:
    return [{"start": iso(w.start), "end": iso(w.end)} for w in windows]


def _windows(values: list[Mapping[str, str]]) -> tuple[Window, ...]:
    return tuple(Window(parse_instant(v["start"]), parse_instant(v["end"])) for v in values)


def _money(value: Mapping[str, str]) -> Money:
    money = money_from_json(value)
    if money is None:
        raise ValueError("an amount is missing")
    return money
