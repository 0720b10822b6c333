"""A plan as comma-separated values, one row an offer or a rate: for spreadsheets. `berth plan --csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from berth.planner.cost import OfferCost, PayAsYouGo
from berth.planner.offers import Offer, hours_of
from berth.planner.plan import Plan
from berth.terms.instants import iso
from berth.terms.money import Money

COLUMNS = (
    "number", "fits", "way", "region", "zones", "instance_type", "count", "start", "end", "paid_hours",
    "usable_hours", "fee", "total", "currency", "per_usable_instance_hour", "per_usable_accelerator_hour",
    "offering_id", "source", "seen", "reasons_against",
)  # fmt: skip
"""What is not known is an empty cell, never a zero. Instants are UTC, money is in `currency`."""


def csv_text(plan: Plan) -> str:
    """The header and the rows, with line ends as RFC 4180 has them."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="")
    writer.writeheader()
    for row in _rows(plan):
        writer.writerow({name: _safe(value) for name, value in row.items()})
    return text.getvalue()


def _rows(plan: Plan) -> Iterator[dict[str, str]]:
    for choice in plan.choices:
        yield {"number": str(choice.number), "fits": "yes", **_offer(choice.offer), **_cost(choice.cost)}
    for rejected in plan.rejected:
        against = "; ".join(rejected.reasons)
        yield {"fits": "no", **_offer(rejected.offer), "reasons_against": against}
    for line in plan.pay_as_you_go:
        yield _rate(line)


def _offer(offer: Offer) -> dict[str, str]:
    window = offer.paid_window
    return {
        "way": offer.way.value,
        "region": offer.region,
        "zones": " ".join(offer.zones),
        "instance_type": offer.instance_type,
        "count": str(offer.count),
        "start": iso(window.start),
        "end": iso(window.end),
        "paid_hours": f"{offer.paid_hours.normalize():f}",
        "usable_hours": f"{hours_of(offer.usable_time).normalize():f}",
        "fee": _amount(offer.fee),
        "currency": offer.fee.currency if offer.fee else "",
        "offering_id": offer.offering_id or "",
        "source": "live",
        "seen": iso(offer.seen_at),
    }


def _cost(cost: OfferCost) -> dict[str, str]:
    return {
        "total": _amount(cost.total),
        "per_usable_instance_hour": _amount(cost.per_usable_hour),
        "per_usable_accelerator_hour": _amount(cost.per_accelerator_hour),
    }


def _rate(line: PayAsYouGo) -> dict[str, str]:
    rate = line.rate
    return {
        "way": rate.way.value,
        "region": rate.region,
        "zones": rate.zone_id or "",
        "instance_type": rate.instance_type,
        "count": str(line.count),
        "usable_hours": f"{hours_of(line.span).normalize():f}",
        "total": _amount(line.total),
        "currency": line.total.currency if line.total else "",
        "per_usable_instance_hour": _amount(rate.hourly),
        "per_usable_accelerator_hour": _amount(line.per_accelerator_hour),
        "source": ", ".join(filter(None, ("live" if rate.live else rate.source, rate.agreed))),
        "seen": rate.as_of.isoformat() if rate.as_of else "",
    }


def _amount(money: Money | None) -> str:
    return "" if money is None else f"{money.amount:f}"


def _safe(value: str) -> str:
    """What a spreadsheet would take for a formula is made a text: ids and names come from outside."""
    return f"'{value}" if value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value
