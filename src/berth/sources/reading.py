"""Reading what a service answers: members that may be missing, of a wrong type, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from berth.aws.refusals import CALL_ERRORS, Kind, Refusal, refusal_of
from berth.planner.offers import Offer
from berth.terms.money import Money
from berth.terms.text import plain


def text(value: object, limit: int = 128) -> str | None:
    """Printable text, None for anything else and for ''."""
    return plain(value, limit) if isinstance(value, str) and value else None


def whole(value: object) -> int | None:
    """A whole number, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def instant(value: object) -> datetime | None:
    """An aware UTC instant, None for anything else; a naive one is UTC, as AWS means it."""
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def money(amount: object, currency: object) -> Money | None:
    """An amount of decimal text, None where it is missing or no number, or in no currency that is named:
    unknown, never zero and never dollars by guess."""
    named = text(currency, 8)
    if not named:
        return None
    try:
        return Money(Decimal(str(amount)), named)
    except (InvalidOperation, ValueError):
        return None


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a list; [] for anything else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def tags(value: object) -> tuple[tuple[str, str], ...]:
    """A list of `Key` and `Value`, in the order of keys."""
    pairs = ((text(tag.get("Key"), 128), tag.get("Value")) for tag in mappings(value))
    return tuple(sorted((key, plain(held or "", 256)) for key, held in pairs if key))


def every_page(
    call: Callable[..., Mapping[str, Any]], members: str, *, absent_is_empty: bool = False, **request: Any
) -> tuple[list[Mapping[str, Any]], Refusal | None]:
    """Every element of a paged answer, and what stopped the reading before its end (None: it is whole).

    A page may be empty while more follow. `absent_is_empty`: EC2 leaves an empty list out of an answer, which
    has a request id all the same; elsewhere an answer without its list is damaged.
    """
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    token: str | None = None
    while True:
        try:
            page = call(**request, **({"NextToken": token} if token else {}))
        except CALL_ERRORS as problem:
            return found, refusal_of(problem)
        listed = page.get(members)
        if not isinstance(listed, list) and not (absent_is_empty and _answered(page)):
            return found, Refusal(Kind.UNCLASSIFIED, "no list", f"an answer without {members}", False)
        found += mappings(listed)
        token = page.get("NextToken")
        if not token:
            return found, None
        if token in seen:
            return found, Refusal(Kind.UNCLASSIFIED, "endless", "a page that leads to itself", False)
        seen.add(token)


def _answered(page: Mapping[str, Any]) -> bool:
    told = page.get("ResponseMetadata")
    return isinstance(told, Mapping) and bool(told.get("RequestId"))


def joined(parts: Iterable[str]) -> str:
    """The sentences that are not empty, in one."""
    return "; ".join(part for part in parts if part)


def each_offer(
    found: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Offer]
) -> tuple[tuple[Offer, ...], str]:
    """What `read` makes of each offering, and a sentence about those that it could not read ('' for none).

    `read` raises KeyError, TypeError or ValueError for what is no offering.
    """
    offers, faults = [], []
    for raw in found:
        try:
            offers.append(read(raw))
        except (KeyError, TypeError, ValueError) as problem:
            faults.append(plain(problem, 100))
    if not faults:
        return tuple(offers), ""
    return tuple(offers), f"{len(faults)} of {len(found)} offers could not be read ({faults[0]})"
