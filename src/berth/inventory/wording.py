"""The list of what is held as text of 80 columns: two lines a reservation, whole ids."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime

from berth.inventory.holdings import Endpoint, Holding
from berth.inventory.join import Inventory
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Way

WIDTH = 80
_WHAT = {Way.CAPACITY_BLOCK: "block", Way.TRAINING_PLAN: "plan", Way.ODCR: "odcr"}
_UNSEEN = "its orders that AWS does not show, their fees and what went by idle"
_ID, _STATE, _TIME = 22, 16, 22


def inventory_text(inventory: Inventory) -> str:
    """All that is held, Region by Region; then what could not be read, and what is left out."""
    lines: list[str] = []
    if inventory.holdings or inventory.endpoints:
        lines.append(_row("WHAT", "ID", "STATE", "TIME", "IDLE"))
    for region in inventory.regions_with_something():
        lines.append(plain(region, 40))
        for holding in (h for h in inventory.holdings if h.region == region):
            lines += _holding(holding, inventory.at)
        for endpoint in (e for e in inventory.endpoints if e.region == region):
            lines += _endpoint(endpoint)
    return "\n".join([*lines, *_closing(inventory)])


def _closing(inventory: Inventory) -> list[str]:
    unread = {region for region, _ in inventory.unread}
    lines = [_wrap(f"NOT KNOWN  {region}: {trouble}", 11) for region, trouble in inventory.unread]
    if inventory.journal:
        lines.append(_wrap(f"NOT KNOWN  {inventory.journal}. Not seen without it: {_UNSEEN}", 11))
    answered = len(inventory.regions) - len(unread)
    total = len(inventory.regions)
    told = f"{answered} of {total} {'Region' if total == 1 else 'Regions'} answered in full"
    if not inventory.holdings and not inventory.endpoints:
        told += "; nothing is held" if not unread else "; nothing is held in those"
    if inventory.hidden:
        noun = "order" if inventory.hidden == 1 else "orders"
        told += f"; {inventory.hidden} {noun} that ended over 30 days ago: --all"
    return [*lines, _wrap(told, 0)]


def _holding(holding: Holding, now: datetime) -> list[str]:
    what = _WHAT.get(holding.way, holding.way.value)
    first = _row(what, holding.id, holding.state, holding.countdown(now), _amount(holding.idle()))
    count = "?" if holding.count is None else str(holding.count)
    parts = [
        f"{count} x {holding.instance_type or 'unknown type'}",
        ", ".join(holding.zones) or "zone unknown",
        _span(holding),
        *_now(holding, now),
        holding.who,
    ]
    return [*first.splitlines(), _wrap(" " * 10 + "; ".join(plain(p, 200) for p in parts), 10)]


def _now(holding: Holding, now: datetime) -> list[str]:
    """How many places stand empty, and what that costs an hour."""
    owned = holding.owned
    if owned is None or holding.is_over or not holding.countdown(now).startswith("usable"):
        return []
    free = "?" if owned.free is None else str(owned.free)
    hourly = holding.idle_an_hour(now)
    return [f"{free} free" + (f", {hourly}/h idle now" if hourly is not None and hourly.amount > 0 else "")]


def _endpoint(endpoint: Endpoint) -> list[str]:
    since = f"since {endpoint.created:%Y-%m-%d %H:%M}Z" if endpoint.created else "since unknown"
    first = _row("endpoint", endpoint.name, endpoint.state, since, "")
    number = "?" if endpoint.instances is None else str(endpoint.instances)
    count = f"{number} {'instance' if endpoint.instances == 1 else 'instances'}"
    on = ", ".join(plain(arn.rpartition("/")[2], 80) for arn in endpoint.reservations)
    runs = f"on {on}" if on else ""
    if endpoint.on_demand:
        runs = f"{runs} and on demand" if runs else "on demand, paid by the second"
    if endpoint.on_demand is None and not runs:
        runs = "on what is not known"
    return [*first.splitlines(), _wrap(f"{'':<10}{count} {runs}", 10)]


def _span(holding: Holding) -> str:
    start, end = holding.start, holding.end
    return f"{_stamp(start) if start else '?'} to {_stamp(end) + 'Z' if end else 'no known end'}"


def _stamp(instant: datetime) -> str:
    utc = instant.astimezone(UTC)
    return f"{utc:%Y-%m-%d %H:%M}"


def _amount(money: Money | None) -> str:
    return "unknown" if money is None else f"{money.amount:,.2f} {money.currency}"


def _row(what: str, name: str, state: str, time: str, idle: str) -> str:
    """One line of columns; a name or state that does not fit moves what follows to the next line."""
    head = f" {what:<9}{plain(name, 69)}"
    tail = f"{plain(state, 30) + ' ':<{_STATE}}{time:<{_TIME}}"
    left = f"{head:<{10 + _ID}}{tail.rstrip()}"
    if len(head) < 10 + _ID and len(left) + bool(idle) + len(idle) <= WIDTH:
        return f"{left}{idle.rjust(WIDTH - len(left))}".rstrip()
    return f"{head}\n{(' ' * 10 + tail).ljust(WIDTH - len(idle))}{idle}".rstrip()


def _wrap(text: str, hang: int) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent="", subsequent_indent=" " * hang,
        break_on_hyphens=False, break_long_words=False, drop_whitespace=True,
    )  # fmt: skip
