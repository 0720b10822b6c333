"""What is left as text of 80 columns, each thing with how to end it. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from berth.inventory.holdings import Endpoint
from berth.inventory.leaving import Armed, Leaving, OpenRequest, RunningInstance, StillPaid
from berth.terms.instants import iso
from berth.terms.text import plain

WIDTH = 80
UNSEEN = "an order in doubt, an approval that waits, what extensions cost"
"""What the journal alone tells."""


def leaving_text(left: Leaving) -> str:
    """The whole list: what is in doubt, what runs, what is paid, what is waited for, what was not read."""
    blocks = [
        ("In doubt", [f"order {one.order} is {one.state}: {one.spending.line()}" for one in left.doubts]),
        ("Armed", [_armed(one) for one in left.armed]),
        ("Running", [*map(_instance, left.instances), *map(_endpoint, left.endpoints)]),
        ("Still paid", [_paid(one, left) for one in left.paid]),
        ("Waited for", list(map(_request, left.requests))),
        ("NOT KNOWN", [*_journal(left), *(f"{region}: {trouble}" for region, trouble in left.unread)]),
    ]
    lines = [line for title, said in blocks if said for line in _block(title, said)]
    return "\n".join([*lines, _closing(left)])


def _block(title: str, said: list[str]) -> Iterator[str]:
    yield title
    for one in said:
        yield from textwrap.wrap(
            f"  {plain(one, 1000)}", WIDTH, subsequent_indent="    ", break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip


def _armed(one: Armed) -> str:
    how = "approved: whoever may pay can buy it" if one.given else "approval is asked for"
    return f"order {one.order} for {one.amount}, {how}, until {iso(one.until)}"


def _instance(one: RunningInstance) -> str:
    kind = one.instance_type or "type not shown"
    where = f"in {one.block}" if one.block else f"on demand, {_rate(one)}"
    return f"{one.region} instance {one.id} ({kind}, {one.state}) {where}: berth clean {one.order}"


def _rate(one: RunningInstance) -> str:
    return f"{one.hourly}/h by the list" if one.hourly is not None else "price not known"


def _endpoint(one: Endpoint) -> str:
    if one.on_demand:
        runs = "billed on demand, price not known"
    elif one.on_demand is None and not one.reservations:
        runs = "on what is not known"
    else:
        runs = "on " + ", ".join(arn.rpartition("/")[2] for arn in one.reservations)
    end = "berth clean its order, or its owner deletes it"
    return f"{one.region} endpoint {one.name} ({one.state}) {runs}: {end}"


def _paid(one: StillPaid, left: Leaving) -> str:
    holding = one.holding
    until = f"paid until {iso(one.until)}" if one.until else "no known end"
    if one.by_the_hour:
        end = f"until {iso(one.until)}" if one.until else "until somebody cancels it"
        where = f"--region {holding.region} --capacity-reservation-id {holding.id}"
        cancel = f"aws ec2 cancel-capacity-reservation {where}"
        named = f"{holding.region} {holding.id} ({holding.state}), {holding.who}"
        return f"{named}: billed by the hour {end}: {cancel}"
    unused = (
        f"{one.unused} unused" if one.unused is not None else "how much of its fee is unused is not known"
    )
    if one.unused is not None and holding.is_fee_by_tag:
        unused += " of its first fee: what extending it cost is on no tag"
    coming = f"; {one.coming}" if one.coming else ""
    return f"{holding.region} {holding.id} ({holding.state}), {holding.who}: {until}, {unused}{coming}"


def _request(one: OpenRequest) -> str:
    wish = f"{one.desired:g}" if one.desired is not None else "a value not shown"
    return f"{one.region} quota {one.code} ({one.name}): {wish} asked for, {one.status}"


def _journal(left: Leaving) -> list[str]:
    """What is not seen without the journal; nothing where it was read."""
    return [f"{left.journal}. Not seen without it: {UNSEEN}"] if left.journal else []


def _closing(left: Leaving) -> str:
    places = f"{len(left.regions)} {'Region' if len(left.regions) == 1 else 'Regions'}"
    seen = "looked at" if not left.journal else "looked at, the journal not"
    if left.doubts or left.runs or left.paid:
        running = len(left.instances) + len(left.endpoints)
        counts = (
            f"{len(left.doubts)} in doubt, {len(left.armed)} armed, {running} running,"
            f" {len(left.paid)} still paid, {len(left.requests)} waited for; {places} {seen}"
        )
        return textwrap.fill(counts, WIDTH)
    whole = "nothing is left" if not left.unread and not left.journal else "nothing is left that was seen"
    return f"{whole}; {places} {seen}"
