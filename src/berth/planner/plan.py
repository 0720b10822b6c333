"""The plan: chosen offers, what each costs and why, and a verdict on every way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from berth.planner.best.combination import Combination, Mix
from berth.planner.cost import HourlyRate, OfferCost, PayAsYouGo
from berth.planner.currencies import Currencies, currencies_of
from berth.planner.framework.advice import Step, must_be_promised
from berth.planner.hourly_quotas import HourlyQuota
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer
from berth.planner.owned import OwnedChoice
from berth.planner.verdicts import WayVerdict
from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money

SCHEMA = "berth.plan/1"


@dataclass(frozen=True, slots=True)
class Choice:
    """One offer that fits, numbered from 1 in order of preference.

    `reasons` say why it fits and is preferred; `cares` what can go wrong or is easily overlooked.
    """

    number: int
    offer: Offer
    cost: OfferCost
    reasons: tuple[str, ...]
    cares: tuple[str, ...]

    @property
    def fee(self) -> Money | None:
        """What the offer costs in total; None when no price was named: it cannot be bought."""
        return self.offer.fee

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "number": self.number,
            "offer": self.offer.to_json(),
            "cost": self.cost.to_json(),
            "reasons": list(self.reasons),
            "cares": list(self.cares),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Choice:
        """The choice that `to_json` wrote."""
        return cls(
            int(value["number"]),
            Offer.from_json(value["offer"]),
            OfferCost.from_json(value["cost"]),
            tuple(value["reasons"]),
            tuple(value["cares"]),
        )


@dataclass(frozen=True, slots=True)
class Rejected:
    """An offer that was seen and does not fit, with every reason against it.

    `cost` is what it costs all the same: it may be a piece of a combination. None: an older document.
    """

    offer: Offer
    reasons: tuple[str, ...]
    cost: OfferCost | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "offer": self.offer.to_json(),
            "reasons": list(self.reasons),
            "cost": self.cost.to_json() if self.cost else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Rejected:
        """The rejected offer that `to_json` wrote."""
        cost = value.get("cost")
        return cls(
            Offer.from_json(value["offer"]),
            tuple(value["reasons"]),
            OfferCost.from_json(cost) if cost else None,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A need, what every place answered, the choices, and a verdict on every way.

    `account` is the account that asked, None when nobody was asked. `rehearsal` is the URL of the yard that
    answered, None for AWS: a plan of one world must never be bought in the other. `incomplete` says that at
    least one place did not answer in full, so that a better offer may exist. `owned` is what the account has
    of the need's type, what covers the need first; `unread` says, place by place, what could not be read of
    it: there may be more. `notes` are sentences beside the offers: what was not asked, and why.
    `steps` say which way to try first, and what after it. `combination` is the best mix of several offers,
    None where it was not looked for or is no better than the first choice. `quotas` bound the ways that are
    paid by the hour, of all parts; `rates` are hourly rates of the types of the parts beside, and
    `blocks_held` counts the instances of all Capacity Blocks that the account has: what a combination is
    made with.
    """

    need: Need
    made_at: datetime
    account: str | None
    rehearsal: str | None
    answers: tuple[PlaceAnswer, ...]
    choices: tuple[Choice, ...]
    rejected: tuple[Rejected, ...]
    pay_as_you_go: tuple[PayAsYouGo, ...]
    verdicts: tuple[WayVerdict, ...]
    incomplete: bool
    owned: tuple[OwnedChoice, ...] = ()
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    combination: Combination | None = None
    quotas: tuple[HourlyQuota, ...] = ()
    rates: tuple[HourlyRate, ...] = ()
    blocks_held: int = 0

    @property
    def best(self) -> Choice | None:
        """The first choice, or None when nothing fits whose price is known: what is unknown never leads."""
        return self.choices[0] if self.choices and self.choices[0].cost.fee is not None else None

    @property
    def mix(self) -> Mix | None:
        """The combination that is told: cheaper than the first choice, or the only answer; None: none is."""
        return self.combination.best if self.combination else None

    @property
    def mix_leads(self) -> bool:
        """Whether the mix stands before the first choice.

        Not where a refusal on the day hurts and a piece of it is promised by nobody: then a choice that is
        promised comes first, and the cheaper mix stands beside it.
        """
        if self.mix is None:
            return False
        promised = all(piece.promised for piece in self.mix.pieces)
        return self.best is None or promised or not must_be_promised(self.need)

    @property
    def mix_fee(self) -> Money | None:
        """What all purchases of the mix take together; None without one, where a fee is not known, or where
        only a part of an offer's instances is meant, whose fee nobody has named.
        """
        if self.mix is None:
            return None
        seen = [*(c.offer for c in self.choices), *(r.offer for r in self.rejected)]
        fees = {(offer.region, offer.offering_id): offer.fee for offer in seen}
        bought = [piece for piece in self.mix.pieces if piece.promised]
        found = [fees.get((piece.region, piece.offering_id)) for piece in bought if piece.count == piece.of]
        known = [fee for fee in found if fee is not None]
        if not known or len(known) < len(bought) or len({fee.currency for fee in known}) > 1:
            return None
        return Money(sum((fee.amount for fee in known), Decimal(0)), known[0].currency)

    @property
    def reuse(self) -> OwnedChoice | None:
        """What the account owns already and the need can be run in, at no new cost; None when nothing is."""
        return self.owned[0] if self.owned and self.owned[0].covers else None

    @property
    def currencies(self) -> Currencies:
        """The currencies of what fits, or where nothing does of what was seen; the one that leads first."""
        fitting = currencies_of(choice.cost.total for choice in self.choices)
        if fitting.offers:
            return fitting
        return currencies_of(r.cost.total for r in self.rejected if r.cost is not None)

    def choice(self, number: int) -> Choice | None:
        """Choice `number` (from 1), or None when there is none."""
        return next((c for c in self.choices if c.number == number), None)

    def to_json(self) -> dict[str, Any]:
        """The document described in docs/reference/json.md."""
        return {
            "schema": SCHEMA,
            "made_at": iso(self.made_at),
            "account": self.account,
            "rehearsal": self.rehearsal,
            "incomplete": self.incomplete,
            "need": self.need.to_json(),
            "choices": [c.to_json() for c in self.choices],
            "pay_as_you_go": [p.to_json() for p in self.pay_as_you_go],
            "verdicts": [v.to_json() for v in self.verdicts],
            "rejected": [r.to_json() for r in self.rejected],
            "places": [a.to_json() for a in self.answers],
            "owned": [o.to_json() for o in self.owned],
            "unread": list(self.unread),
            "notes": list(self.notes),
            "steps": [step.to_json() for step in self.steps],
            "combination": self.combination.to_json() if self.combination else None,
            "quotas": [quota.to_json() for quota in self.quotas],
            "rates_beside": [rate.to_json() for rate in self.rates],
            "blocks_held": self.blocks_held,
            "currencies": [{"currency": c, "offers": n} for c, n in self.currencies.offers],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """The plan that `to_json` wrote. Raises ValueError for another schema."""
        if value.get("schema") != SCHEMA:
            raise ValueError(f"not a {SCHEMA} document: schema is {value.get('schema')!r}")
        return cls(
            need=Need.from_json(value["need"]),
            made_at=parse_instant(value["made_at"]),
            account=value["account"],
            rehearsal=value["rehearsal"],
            answers=tuple(PlaceAnswer.from_json(a) for a in value["places"]),
            choices=tuple(Choice.from_json(c) for c in value["choices"]),
            rejected=tuple(Rejected.from_json(r) for r in value["rejected"]),
            pay_as_you_go=tuple(PayAsYouGo.from_json(p) for p in value["pay_as_you_go"]),
            verdicts=tuple(WayVerdict.from_json(v) for v in value["verdicts"]),
            incomplete=bool(value["incomplete"]),
            # Absent from documents of the first release.
            owned=tuple(OwnedChoice.from_json(o) for o in value.get("owned", ())),
            unread=tuple(value.get("unread", ())),
            notes=tuple(value.get("notes", ())),
            steps=tuple(Step.from_json(s) for s in value.get("steps", ())),
            combination=Combination.from_json(value["combination"]) if value.get("combination") else None,
            quotas=tuple(HourlyQuota.from_json(q) for q in value.get("quotas", ())),
            rates=tuple(HourlyRate.from_json(r) for r in value.get("rates_beside", ())),
            blocks_held=int(value.get("blocks_held", 0)),
        )
