"""A renewal in words and as JSON. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from berth.orders.extensions.wish import minute
from berth.orders.renewals.renewal import Means, Renewal, WayOn
from berth.orders.wording import called
from berth.planner.offers import money_json
from berth.planner.owned import Owned
from berth.terms.durations import spoken
from berth.terms.instants import iso

SCHEMA = "berth.renewal/1"
WIDTH = 80
MOST_ROWS = 6


def command(renewal: Renewal, way: WayOn) -> str:
    """What buys the way, once however often it is run. `--max` is the fee that was shown."""
    assert way.fee is not None
    key = renewal.order.key
    most = f"--max {way.fee.amount:.2f}"
    if way.means is Means.EXTEND:
        return f"berth extend {key} --until {minute(way.window.end)} {most}"
    return f"berth buy {key.need}/{renewal.sequence}#{way.number} {most}"


def renewal_json(renewal: Renewal | None, *, order: str, says: str) -> dict[str, Any]:
    """The document of schema `berth.renewal/1` (docs/reference/json.md). `renewal` None: there is nothing to
    be done now, and `says` tells why."""
    ways = renewal.ways if renewal is not None else ()
    best = renewal.best if renewal is not None else None
    return {
        "schema": SCHEMA,
        "order": order,
        "says": says,
        "until": iso(renewal.until) if renewal is not None else None,
        "ways": [_way_json(way) for way in ways],
        "proposed": None if renewal is None or best is None else command(renewal, best),
        "unknown": list(renewal.unknown) if renewal is not None else [],
        "others": [one.to_json() for one in renewal.others] if renewal is not None else [],
        "notes": list(renewal.notes) if renewal is not None else [],
    }


def _way_json(way: WayOn) -> dict[str, Any]:
    return {
        "means": way.means.value,
        "start": iso(way.window.start),
        "end": iso(way.window.end),
        "zones": list(way.zones),
        "same_zone": way.same_zone,
        "fee": money_json(way.fee),
        "gap_s": int(way.gap.total_seconds()),
        "paid_twice_s": int(way.twice.total_seconds()),
        "without_machines_s": int(way.without.total_seconds()),
        "choice": way.number,
        "against": list(way.against),
        "approval": way.approval or None,
    }


def renewal_text(renewal: Renewal, now: datetime) -> str:
    """The comparison for people, at most 80 columns wide."""
    order = renewal.order
    left = spoken(renewal.until - now) if renewal.until > now else "over"
    what = f"{order.offer.count} x {order.offer.instance_type}, {', '.join(order.offer.zones)}"
    lines = [
        *_para("Renew", f"{order.key}: {called(order)}, {what}"),
        f"        ends {minute(renewal.until)}, in {left}; wanted: {spoken(renewal.length)} more",
        "",
        *_table(renewal),
        *_proposal(renewal),
        *(line for one in renewal.others for line in _para("OTHERS", _other(one.owned, one.others))),
        *(line for said in renewal.unknown for line in _para("UNKNOWN", said)),
        *(line for said in renewal.notes for line in _para("NOTE", said)),
    ]
    return "\n".join(lines)


def _table(renewal: Renewal) -> Iterator[str]:
    yield f"   {'HOW':<7}{'ZONE ID':<15}{'FROM':<19}{'UNTIL':<14}{'GAP':<8}{'FEE':>14}"
    means = {way.means for way in renewal.ways}
    for number, way in enumerate(renewal.ways[:MOST_ROWS], start=1):
        fee = f"{way.fee.amount:,.2f} {way.fee.currency}" if way.fee else "unknown"
        gap = spoken(way.gap) if way.gap else "none"
        mark = str(number) if way.can_be_bought else "-"
        row = (
            f"{mark:<3}{way.means:<7}{_zone(way):<15}{way.window.start:%Y-%m-%d %H:%MZ}  "
            f"{way.window.end:%m-%d %H:%MZ}  {gap}"
        )
        if len(row) + 1 + len(fee) <= WIDTH:
            yield row + fee.rjust(WIDTH - len(row))
        else:  # a large sum has a line of its own
            yield from (row, fee.rjust(WIDTH))
    if len(renewal.ways) > MOST_ROWS:
        yield f"   and {len(renewal.ways) - MOST_ROWS} more, in --json"
    longer = "no extension of that length is on sale now"
    if not renewal.knows_extensions:
        longer = "not known: see UNKNOWN"
    if Means.EXTEND not in means:
        yield f"-  {Means.EXTEND:<7}{longer}"
    if Means.NEW not in means and not renewal.notes:
        yield f"-  {Means.NEW:<7}nothing new about then is on sale now"


def _zone(way: WayOn) -> str:
    more = f" +{len(way.zones) - 1}" if len(way.zones) > 1 else ""
    return f"{way.zones[0]}{more}" if way.zones else "unknown"


def _proposal(renewal: Renewal) -> Iterator[str]:
    best = renewal.best
    against = dict.fromkeys(said for way in renewal.ways for said in way.against)
    for said in against:
        yield from _para("AGAINST", said)
    if best is None:
        return
    for first, said in zip(("BEST", *[""] * 9), _why(renewal, best), strict=False):
        yield from _para(first, said)
    if best.approval:
        yield from _para("ASK", best.approval)


def _why(renewal: Renewal, way: WayOn) -> Iterator[str]:
    what = "extend: the same machines, " if way.means is Means.EXTEND else "a new reservation, "
    yield what + (f"a gap of {spoken(way.gap)}" if way.gap else "without a gap")
    if way.means is Means.NEW:
        yield (
            "in the same zone" if way.same_zone else "in another zone than now: what is bound to a zone moves"
        )
        if way.without:
            yield f"{spoken(way.without)} without machines: AWS takes the old ones before their end"
        if way.twice:
            yield f"both are paid for {spoken(way.twice)}"
    yield from _compared(renewal, way)


def _compared(renewal: Renewal, way: WayOn) -> Iterator[str]:
    """How the fee stands to that of the best of the other kind."""
    other = next((one for one in renewal.ways if one.means is not way.means and one.can_be_bought), None)
    if other is None or other.fee is None or way.fee is None or other.fee.currency != way.fee.currency:
        return
    name = "extending" if other.means is Means.EXTEND else "a new reservation"
    if other.fee == way.fee:
        yield f"{name} costs the same"
    elif other.fee > way.fee:
        yield f"{name} costs {other.fee - way.fee} more"
    else:
        yield f"{name} costs {way.fee - other.fee} less"


def _other(owned: Owned, whose: str) -> str:
    until = f", until {minute(owned.end)}" if owned.end else ""
    return (
        f"{owned.id}, {owned.count or '?'} x {owned.instance_type or '?'}, {', '.join(owned.zones) or '?'},"
        f" {owned.state}{until}: {whose}; not touched"
    )


def _para(first: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=f"{first:<8}", subsequent_indent=" " * 8, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
