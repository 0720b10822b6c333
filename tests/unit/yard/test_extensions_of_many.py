"""A property: whatever is extended, paid or not, no host is promised twice and memory equals the rows."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.instants import from_micros
from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.faults import Fault, FaultKind

from .test_extensions import BUY, Desk

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("seed"), st.integers(1, 6), st.integers(1, 4)),
        st.tuples(st.just("extend"), st.integers(0, 3), st.sampled_from([24, 48, 72])),
        st.tuples(st.just("unpaid"), st.integers(0, 3), st.sampled_from([24, 48])),
        st.tuples(st.just("wait"), st.integers(0, 30), st.integers(0, 59)),
        st.tuples(st.just("reopen"), st.just(0), st.just(0)),
    ),
    max_size=14,
)


def check(desk: Desk) -> None:
    """At every half hour: the calendar is what the rows say, and never more than there are hosts."""
    for pool in desk.yard.fleet.pools.values():
        rows = desk.rows("SELECT * FROM bookings WHERE pool = ?", pool.key)
        for half_hours in range(0, 12 * 48, 13):
            start = desk.yard.clock.now() + timedelta(minutes=30 * half_hours)
            window = Window(start, start + timedelta(microseconds=1))
            held = sum(
                row["count"]
                for row in rows
                if window.overlaps(Window(from_micros(row["start_us"]), from_micros(row["end_us"])))
            )
            assert desk.yard.calendars.pool(pool.key).committed_max(window) >= held
            assert held <= pool.shares.reservable
    for row in desk.rows("SELECT * FROM capacity_reservations WHERE status IN ('scheduled', 'active')"):
        paid = desk.rows(
            "SELECT max(end_us) AS end_us FROM extensions"
            " WHERE parent_arn = ? AND status = 'payment-succeeded'",
            row["arn"],
        )
        assert paid[0]["end_us"] in (None, row["end_us"])
    billed = desk.rows("SELECT count(*) AS n FROM ledger WHERE kind = 'capacity-block-extension'")
    succeeded = desk.rows("SELECT count(*) AS n FROM extensions WHERE status = 'payment-succeeded'")
    assert billed[0]["n"] == succeeded[0]["n"]


def play(desk: Desk, blocks: list[str], step: tuple[str, int, int]) -> None:
    """One step."""
    kind, first, second = step
    if kind == "seed":
        end = (desk.yard.clock.now() + timedelta(days=second)).replace(hour=11, minute=30)
        with suppress(ValueError):
            blocks.append(desk.seed(end, count=first, start=desk.yard.clock.now() - timedelta(hours=1)))
    elif kind == "wait":
        desk.advance(hours=first, minutes=second)
    elif blocks:
        if kind == "unpaid":
            desk.yard.faults.arm(Fault(1, FaultKind.PAYMENT_FAILURE, BUY, None, 1))
        with suppress(ServiceError, IndexError):
            desk.extend(blocks[first % len(blocks)], second)
        desk.yard.faults.clear()


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_no_host_is_promised_twice_by_extensions(steps: list[tuple[str, int, int]]) -> None:
    """Blocks of every size, extensions paid and not, time passing, the yard closed and opened again."""
    with tempfile.TemporaryDirectory(prefix="yard-") as folder:
        desk = Desk(Path(folder) / "y")
        try:
            blocks: list[str] = []
            for number, step in enumerate(steps):
                if step[0] == "reopen":
                    desk.close()
                    desk = Desk(Path(folder) / "y", seed=number)
                else:
                    play(desk, blocks, step)
                check(desk)
        finally:
            desk.close()
