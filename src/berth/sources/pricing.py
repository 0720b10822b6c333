"""AWS's Price List: GetProducts, read into products with an hourly price. Catalogue prices, not quotes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from berth.aws.refusals import Refusal
from berth.sources.reading import every_page, joined, money
from berth.terms.money import Money
from berth.terms.text import plain

HOME = "us-east-1"
"""The Price List has endpoints in three Regions only (botocore's endpoints); each knows all prices."""
SOURCE = "AWS Price List"
_HOURLY = {"hrs", "hours", "hour"}
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Product:
    """One row: its attributes, and each distinct hourly on-demand price above zero."""

    attributes: Mapping[str, str]
    hourly: tuple[Money, ...]
    published: date | None

    @property
    def region(self) -> str:
        """The Region that it prices, '' where it names none."""
        return self.attributes.get("regionCode", "")

    @property
    def market(self) -> str:
        """`OnDemand`, `CapacityBlock` or another market; rows without one are on demand."""
        return self.attributes.get("marketoption", "OnDemand")


@dataclass(frozen=True, slots=True)
class Found:
    """What the Price List answered; `trouble` says what stood in the way, '' when nothing did."""

    products: tuple[Product, ...]
    trouble: str = ""

    def why(self, here: list[Product]) -> str:
        """Why a price is not taken from it, when `here` are the rows that might have held one."""
        if self.trouble:
            return f"Price List: {self.trouble}"
        return "the Price List's price is no plausible one" if here else "the Price List has no such row"


def products(pricing: Any, service: str, **attributes: str) -> Found:
    """The products of a service with these attributes. Raises nothing."""
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in attributes.items()]
    rows, stopped = _rows(pricing, ServiceCode=service, Filters=filters, MaxResults=_PAGE)
    found, unread = [], 0
    for row in rows:
        try:
            found.append(_product(json.loads(row)))
        except (ValueError, TypeError, AttributeError):
            unread += 1
    troubles = (str(stopped) if stopped else "", f"{unread} rows could not be read" if unread else "")
    return Found(tuple(found), plain(joined(troubles), 200))


def _rows(pricing: Any, **request: Any) -> tuple[list[str], Refusal | None]:
    """The rows of all pages. Each is a JSON text, which `every_page` would drop as no mapping."""
    kept: list[str] = []

    def call(**page: Any) -> Mapping[str, Any]:
        answer = pricing.get_products(**page)
        kept.extend(row for row in answer.get("PriceList") or () if isinstance(row, str))
        return {**answer, "PriceList": []}

    _, stopped = every_page(call, "PriceList", **request)
    return kept, stopped


def one_price(found: list[Product]) -> Product | None:
    """The product, if all that were found agree on one price; None: none, or several, so not known."""
    priced = [product for product in found if len(product.hourly) == 1]
    distinct = {product.hourly[0] for product in priced}
    return priced[0] if len(distinct) == 1 and len(priced) == len([p for p in found if p.hourly]) else None


def _product(row: Mapping[str, Any]) -> Product:
    attributes = row["product"]["attributes"] if "product" in row else {}
    return Product(
        attributes={str(name): str(value) for name, value in attributes.items()},
        hourly=tuple(dict.fromkeys(_hourly(row))),
        published=_day(row.get("publicationDate")),
    )


def _hourly(row: Mapping[str, Any]) -> Iterator[Money]:
    for term in (row.get("terms") or {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            if str(dimension.get("unit", "")).casefold() not in _HOURLY:
                continue
            for currency, amount in dimension.get("pricePerUnit", {}).items():
                price = money(amount, currency)
                if price is not None and price.amount > 0:
                    yield price


def _day(value: object) -> date | None:
    try:
        return datetime.fromisoformat(str(value)).date()
    except ValueError:
        return None
