"""GetProducts: the fleet's rates in the form of AWS's price list, filtered and by pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import Fleet
from berth.yard.services.operation import Call, reads
from berth.yard.services.paging import key_in, write_token
from berth.yard.services.pricing.catalogue import EC2_CODE, SAGEMAKER_CODE, Product, products
from berth.yard.store.transaction import Reading

FORMAT = "aws_v1"
PAGE_MAX = 100
# AWS's codes for an on-demand offer and for its hourly rate, as public copies of the price list show them.
ON_DEMAND_TERM = "JRTCKXETXF"
HOURLY_RATE = "6YS6EN2CT7"


@dataclass(frozen=True, slots=True, eq=False)
class _Once:
    """A fleet as a key: there is one in a process, and it never changes."""

    fleet: Fleet

    def __hash__(self) -> int:
        return id(self.fleet)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Once) and other.fleet is self.fleet


@lru_cache(maxsize=4)
def _listed(one: _Once) -> tuple[Product, ...]:
    return products(one.fleet)


@reads("pricing", "GetProducts")
def get_products(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Products of one service, each a JSON text, in the order of their SKUs; filters are ANDed."""
    params = call.params
    service, form = params["ServiceCode"], params.get("FormatVersion", FORMAT)
    if service not in (EC2_CODE, SAGEMAKER_CODE):
        raise ServiceError("NotFoundException", f"The service code {service} is not in this price list.")
    if form != FORMAT:
        raise ServiceError("InvalidParameterException", f"FormatVersion must be {FORMAT}.")
    filters = params.get("Filters", ())
    after = _after(call)
    size = params.get("MaxResults", PAGE_MAX)
    found = [
        product
        for product in _listed(_Once(yard.fleet))
        if product.service == service
        and product.sku > after
        and all(_passes(product, one) for one in filters)
    ]
    texts = [json.dumps(as_listed(product, yard.fleet.name)) for product in found[:size]]
    answer: dict[str, Any] = {"FormatVersion": FORMAT, "PriceList": texts}
    if len(found) > size:
        answer["NextToken"] = write_token(_scope(call), [found[size - 1].sku])
    return answer


def _scope(call: Call) -> str:
    asked = json.dumps([call.params["ServiceCode"], call.params.get("Filters", [])], sort_keys=True)
    return hashlib.blake2b(asked.encode(), digest_size=9).hexdigest()


def _after(call: Call) -> str:
    token = call.params.get("NextToken")
    if not token:
        return ""
    key = key_in(token, _scope(call), 1)
    if key is None or not isinstance(key[0], str):
        raise ServiceError("InvalidNextTokenException", "The pagination token is invalid.")
    return key[0]


def _passes(product: Product, wanted: Mapping[str, str]) -> bool:
    """One filter: TERM_MATCH and EQUALS want the value itself, the others what the model's docs say.

    Letter case counts; whether it does on AWS is not known.
    """
    field, value, kind = wanted["Field"], wanted["Value"], wanted["Type"]
    has = _value(product, field)
    if kind == "CONTAINS":
        return has is not None and value in has
    values = [one.strip() for one in value.split(",")]
    if kind == "ANY_OF":
        return has in values
    if kind == "NONE_OF":
        return has is not None and has not in values
    return has == value


def _value(product: Product, field: str) -> str | None:
    if field == "productFamily":
        return product.family
    return product.sku if field == "sku" else product.attributes.get(field)


def as_listed(product: Product, publication: str) -> dict[str, Any]:
    """The product as an entry of PriceList."""
    offer = f"{product.sku}.{ON_DEMAND_TERM}"
    code = f"{offer}.{HOURLY_RATE}"
    dimension = {
        "rateCode": code,
        "unit": "Hrs",
        "beginRange": "0",
        "endRange": "Inf",
        "appliesTo": [],
        "description": f"{_description(product)} ({product.label})",
        "pricePerUnit": {"USD": f"{product.usd_per_hour:.10f}"},
    }
    return {
        "product": {
            "sku": product.sku,
            "productFamily": product.family,
            "attributes": dict(product.attributes),
        },
        "serviceCode": product.service,
        "terms": {
            "OnDemand": {
                offer: {
                    "sku": product.sku,
                    "offerTermCode": ON_DEMAND_TERM,
                    "termAttributes": {},
                    "priceDimensions": {code: dimension},
                }
            }
        },
        "version": publication,
    }


def _description(product: Product) -> str:
    name, market = product.attributes["instanceType"], product.attributes.get("marketoption", "")
    system = product.attributes.get("operatingSystem", "Hosting")
    return f"${product.usd_per_hour} per {market or 'On Demand'} {system} {name} Instance Hour"
