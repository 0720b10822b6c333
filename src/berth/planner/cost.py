"""True cost: totals, the price of a usable hour, and from how many hours on a reservation pays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from math import ceil
from typing import Any

from berth.planner.offers import Offer, hours_of, money_from_json, money_json
from berth.planner.surcharge import OsRate, Surcharge, surcharge_for
from berth.terms.money import Money
from berth.terms.ways import Way

# A price under this share of what the same hardware lists for on demand is a row of another kind (an
# operating system surcharge, a placeholder), not a bargain. AWS itself claims at most 75 % off (blog of
# 2026-05-07).
IMPLAUSIBLE_SHARE = Decimal("0.10")
_CURRENCY = re.compile("[A-Z]{3}")  # ISO 4217
_RATE_STEP = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class HourlyRate:
    """What one instance hour costs by a way that is paid as one goes.

    `hourly` is None where no price is known. `component` is what is priced (`hosting`, `training`,
    `on-demand`, `spot`). `as_of` and `source` say when and where the price was seen (None and '' when there
    is none); `live` is False for the shipped tables. `region_assumed`: the source named no Region. `zone_id`
    is set where a price is one zone's own (Spot); None: the whole Region's. `instance_type` is the type as
    the need names it; '' for the type that the need likes best. `agreed` says by what the price is one's own
    (a Savings Plan, a percentage), '' where it is the list's; `listed` is then the list price, None where
    none is known.
    """

    way: Way
    region: str
    component: str
    hourly: Money | None
    as_of: date | None = None
    source: str = ""
    note: str = ""
    region_assumed: bool = False
    live: bool = False
    zone_id: str | None = None
    instance_type: str = ""
    agreed: str = ""
    listed: Money | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "region": self.region,
            "component": self.component,
            "hourly": money_json(self.hourly),
            "as_of": self.as_of.isoformat() if self.as_of else None,
            "source": self.source,
            "note": self.note,
            "region_assumed": self.region_assumed,
            "live": self.live,
            "zone_id": self.zone_id,
            "instance_type": self.instance_type,
            "agreed": self.agreed,
            "listed": money_json(self.listed),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HourlyRate:
        """The rate that `to_json` wrote."""
        return cls(
            Way(value["way"]),
            value["region"],
            value["component"],
            money_from_json(value["hourly"]),
            date.fromisoformat(value["as_of"]) if value["as_of"] else None,
            value["source"],
            value["note"],
            bool(value["region_assumed"]),
            bool(value["live"]),
            value.get("zone_id"),
            value.get("instance_type", ""),
            value.get("agreed", ""),
            money_from_json(value.get("listed")),
        )


# A rate of one's own may be as small as one likes; time in Python has an end.
_MOST_MINUTES = 10**12


@dataclass(frozen=True, slots=True)
class BreakEven:
    """From how much use on an offer costs less than on-demand.

    `after` is the time of use from which it does, rounded up to the minute, 10^12 minutes at most; `share`
    that time as a share of the usable time (over 1: never within the offer), `share_of_paid` of the paid
    time. `rate` is the on-demand rate compared with. `at_full_use` is what on-demand would cost for all of
    the usable time.
    """

    after: timedelta
    share: Decimal
    rate: HourlyRate
    at_full_use: Money
    share_of_paid: Decimal | None = None

    @property
    def ever_pays(self) -> bool:
        """Whether using all of the usable time is enough."""
        return self.share <= 1

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "after_s": int(self.after.total_seconds()),
            "share_of_usable": f"{self.share:.4f}",
            "share_of_paid": None if self.share_of_paid is None else f"{self.share_of_paid:.4f}",
            "rate": self.rate.to_json(),
            "on_demand_at_full_use": money_json(self.at_full_use),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BreakEven:
        """The break-even that `to_json` wrote."""
        full = money_from_json(value["on_demand_at_full_use"])
        assert full is not None
        of_paid = value.get("share_of_paid")
        return cls(
            timedelta(seconds=value["after_s"]),
            Decimal(value["share_of_usable"]),
            HourlyRate.from_json(value["rate"]),
            full,
            None if of_paid is None else Decimal(of_paid),
        )


@dataclass(frozen=True, slots=True)
class OfferCost:
    """What an offer really costs.

    `fee` is what is paid at the purchase, None where it is missing, zero or implausible; `surcharge` the
    operating system's line, None where there is none. `total` is both, rounded once; None where either is not
    known, and `doubt` then says why. `per_usable_hour` is per instance, `per_accelerator_hour` per
    accelerator, both over the usable time; None where the total or the number of accelerators is not known.
    `break_even` is None without a known on-demand rate in one currency.
    """

    total: Money | None
    paid: timedelta
    usable: timedelta
    per_usable_hour: Money | None
    per_accelerator_hour: Money | None
    break_even: BreakEven | None
    doubt: str = ""
    fee: Money | None = None
    surcharge: Surcharge | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON. Rates are rounded to a thousandth of the currency unit."""
        return {
            "total": money_json(self.total),
            "paid_s": int(self.paid.total_seconds()),
            "usable_s": int(self.usable.total_seconds()),
            "per_usable_instance_hour": money_json(self.per_usable_hour),
            "per_usable_accelerator_hour": money_json(self.per_accelerator_hour),
            "break_even": self.break_even.to_json() if self.break_even else None,
            "doubt": self.doubt,
            "fee": money_json(self.fee),
            "surcharge": self.surcharge.to_json() if self.surcharge else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OfferCost:
        """The cost that `to_json` wrote."""
        return cls(
            money_from_json(value["total"]),
            timedelta(seconds=value["paid_s"]),
            timedelta(seconds=value["usable_s"]),
            money_from_json(value["per_usable_instance_hour"]),
            money_from_json(value["per_usable_accelerator_hour"]),
            BreakEven.from_json(value["break_even"]) if value["break_even"] else None,
            value["doubt"],
            money_from_json(value["fee"] if "fee" in value else value["total"]),
            Surcharge.from_json(value["surcharge"]) if value.get("surcharge") else None,
        )


@dataclass(frozen=True, slots=True)
class PayAsYouGo:
    """What a way without reservation would cost for `span`, were it to be had. `total` None: not known.

    Where the need's count changes over time, `count` is its peak, and `total` is of what runs by then.
    """

    rate: HourlyRate
    count: int
    span: timedelta
    total: Money | None
    per_accelerator_hour: Money | None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "rate": self.rate.to_json(),
            "count": self.count,
            "span_s": int(self.span.total_seconds()),
            "total": money_json(self.total),
            "per_accelerator_hour": money_json(self.per_accelerator_hour),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PayAsYouGo:
        """The line that `to_json` wrote."""
        return cls(
            HourlyRate.from_json(value["rate"]),
            int(value["count"]),
            timedelta(seconds=value["span_s"]),
            money_from_json(value["total"]),
            money_from_json(value["per_accelerator_hour"]),
        )


def cost_of(
    offer: Offer,
    accelerators: int | None,
    rate: HourlyRate | None,
    floor: Money | None,
    os_rate: OsRate | None = None,
) -> OfferCost:
    """What `offer` costs.

    `accelerators` are per instance (None: not known). `rate` is the on-demand rate to compare with (None: not
    known). `floor` is the least plausible price of one instance hour (None: only zero is implausible).
    `os_rate` is the operating system fee of the offer's platform (None: not known, where there is one).
    """
    doubt = _doubt(offer, floor)
    fee = None if doubt else offer.fee
    surcharge = surcharge_for(offer.platform, os_rate, offer.count, offer.paid_time)
    total = _total(fee, surcharge)
    if fee is not None and total is None:
        doubt = f"the operating system fee of {offer.platform} is not known"
    usable = offer.usable_time
    return OfferCost(
        total=total,
        paid=offer.paid_time,
        usable=usable,
        per_usable_hour=_per_hour(total, hours_of(usable) * offer.count),
        per_accelerator_hour=_per_hour(total, hours_of(usable) * offer.count * (accelerators or 0)),
        break_even=break_even_of(total, offer, rate),
        doubt=doubt,
        fee=fee,
        surcharge=surcharge,
    )


def _total(fee: Money | None, surcharge: Surcharge | None) -> Money | None:
    if fee is None or surcharge is None:
        return fee
    if surcharge.total is None or surcharge.total.currency != fee.currency:
        return None
    return (fee + surcharge.total).rounded()


def pay_as_you_go(
    rate: HourlyRate,
    count: int,
    span: timedelta,
    accelerators: int | None,
    running: timedelta | None = None,
) -> PayAsYouGo:
    """What `count` instances cost for `span` at `rate`; one rounding, of the total.

    `running` is the time that all instances run together (None: all of them, for all of `span`).
    """
    hours = hours_of(span * count if running is None else running)
    total = (rate.hourly * hours).rounded() if rate.hourly else None
    per_accelerator = _per_hour(total, hours * (accelerators or 0))
    return PayAsYouGo(rate, count, span, total, per_accelerator)


def known_or_none(hourly: Money | None, floor: Money | None) -> Money | None:
    """`hourly` if it can be a price: not zero, not negative, and not under `floor` in the same currency."""
    if hourly is None or hourly.amount <= 0:
        return None
    if floor is not None and floor.currency == hourly.currency and hourly < floor:
        return None
    return hourly


def floor_from(hourly: Money | None) -> Money | None:
    """The least plausible hourly price of hardware that lists for `hourly`; None when that is not known."""
    return None if hourly is None or hourly.amount <= 0 else hourly * IMPLAUSIBLE_SHARE


def _doubt(offer: Offer, floor: Money | None) -> str:
    if offer.fee is None:
        return "the service named no price"
    if offer.fee.amount <= 0:
        return f"the service named a price of {offer.fee}"
    if not _CURRENCY.fullmatch(offer.fee.currency):
        return f"the service named a price in {offer.fee.currency}, which is no currency"
    paid_hours = offer.paid_hours * offer.count
    hourly = Money(offer.fee.amount / paid_hours, offer.fee.currency) if paid_hours else None
    if hourly is not None and known_or_none(hourly, floor) is None:
        return f"{_step(hourly)}/h is implausibly low (the hardware lists for at least ten times that)"
    return ""


def break_even_of(total: Money | None, offer: Offer, rate: HourlyRate | None) -> BreakEven | None:
    """From how much use on `total` for the offer's windows costs less than on-demand at `rate`; None where
    either is not known, or in another currency."""
    if total is None or rate is None or rate.hourly is None or rate.hourly.currency != total.currency:
        return None
    usable, count = offer.usable_time, offer.count
    if not usable or rate.hourly.amount <= 0:
        return None
    hours = total.amount / (rate.hourly.amount * count)
    # As a fraction: rounded to any number of digits, a whole minute could count as the next.
    minutes = ceil(Fraction(total.amount) * 60 / (Fraction(rate.hourly.amount) * count))
    return BreakEven(
        after=timedelta(minutes=min(minutes, _MOST_MINUTES)),
        share=_share(hours, usable),
        rate=rate,
        at_full_use=(rate.hourly * (hours_of(usable) * count)).rounded(),
        share_of_paid=_share(hours, offer.paid_time),
    )


def _share(hours: Decimal, span: timedelta) -> Decimal:
    return (hours / hours_of(span)).quantize(Decimal("0.0001"), rounding=ROUND_HALF_UP)


def _per_hour(total: Money | None, hours: Decimal) -> Money | None:
    if total is None or hours <= 0:
        return None
    return _step(Money(total.amount / hours, total.currency))


def _step(money: Money) -> Money:
    return Money(money.amount.quantize(_RATE_STEP, rounding=ROUND_HALF_UP), money.currency)
