"""Clocks: nights of change, leap day, year's end, a laptop asleep, machines whose clocks are wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from berth.orders.order import OrderState
from berth.planner.need import Need
from berth.planner.need_file import need_from_flags
from berth.terms.instants import parse_instant
from berth.terms.outcomes import ExitCode
from berth.terms.ways import Way
from berth.yard.faults import FaultKind

from .exactly_once.books import sales
from .exactly_once.cases import BLOCK, NEED, PLAN, endpoints, instances
from .exactly_once.settling import bought, settle
from .exactly_once.thorough import all_in_ci
from .exactly_once.troubles import Script, Trouble
from .exactly_once.verbs import WORK, Wish, buy, clean, plan_for
from .exactly_once.world import Weather, World, world

MINUTES = timedelta(minutes=1)
NIGHTS = {
    "Berlin, an hour is lost": datetime(2027, 3, 27, 22, tzinfo=UTC),
    "Berlin, an hour comes twice": datetime(2027, 10, 30, 22, tzinfo=UTC),
    "New York, an hour is lost": datetime(2027, 3, 14, 3, tzinfo=UTC),
    "New York, an hour comes twice": datetime(2026, 11, 1, 2, tzinfo=UTC),
    "the day before a leap day": datetime(2028, 2, 28, 21, tzinfo=UTC),
    "leap day": datetime(2028, 2, 29, 9, tzinfo=UTC),
    "the year's end": datetime(2026, 12, 31, 20, tzinfo=UTC),
}
WAYS = {"training plan": PLAN, "block": BLOCK}


def through(made: World, wish: Wish) -> None:
    """Plan, buy with the answer lost, settle, work in it, clear up; one sale, and the window as approved."""
    settle(made, NEED, verb=plan_for(wish))
    made.run(buy, NEED, Script({12: Trouble.LOST_REPLY}))
    made.calm()
    settle(made, NEED)
    assert bought(made, NEED)
    (order,) = made.journal(made.machines[0]).orders(made.account, NEED)
    assert order.seen is not None
    start, end = parse_instant(str(order.seen["start"])), parse_instant(str(order.seen["end"]))
    if not order.offer.starts_at_once:
        assert (start, end) == (order.offer.paid_window.start, order.offer.paid_window.end)
    made.time.advance(max(timedelta(0), start + 7 * MINUTES - made.time.now))
    settle(made, NEED, verb=WORK[wish.way])
    assert endpoints(made) + instances(made) == 1
    settle(made, NEED, verb=clean)
    made.calm()
    assert made.check() == 1


@pytest.mark.parametrize("night", NIGHTS)
@pytest.mark.parametrize("way", WAYS)
def test_through_a_night_in_which_the_calendar_or_the_clock_changes(way: str, night: str) -> None:
    """A reservation over it is bought once, opens when approved, and is accounted for to the cent."""
    with world(3, Weather(start=NIGHTS[night])) as made:
        through(made, WAYS[way])


@pytest.mark.parametrize(
    ("zone", "date", "hours"),
    [
        ("Europe/Berlin", "2027-03-28", 47),
        ("Europe/Berlin", "2027-10-31", 49),
        ("America/New_York", "2027-03-14", 47),
        ("America/New_York", "2027-11-07", 49),
        ("Europe/Berlin", "2028-02-29", 48),
        ("America/New_York", "2026-12-31", 48),
    ],
)
def test_a_need_in_local_dates_spans_two_days_as_they_are_lived(zone: str, date: str, hours: int) -> None:
    """From midnight to midnight local time, whatever the clock does in between."""
    day = datetime.fromisoformat(date)
    need = local_need(zone, f"{date} 00:00", f"{day + timedelta(days=2):%Y-%m-%d} 00:00", day)
    assert need.earliest_start is not None
    assert need.latest_end is not None
    assert need.latest_end - need.earliest_start == timedelta(hours=hours)


def local_need(zone: str, earliest: str, latest: str, day: datetime) -> Need:
    """A need whose bounds are written in local time."""
    flags: dict[str, str | list[str]] = {
        "name": "night", "instance_type": "p5.48xlarge", "count": "1", "duration": "24h",
        "target": "instances", "regions": ["us-east-1"], "time_zone": zone, "earliest_start": earliest,
        "latest_end": latest,
    }  # fmt: skip
    return need_from_flags(flags, day.replace(tzinfo=UTC) - timedelta(days=20))


@pytest.mark.parametrize("way", WAYS)
def test_a_laptop_that_sleeps_a_day_anywhere_in_a_purchase(way: str) -> None:
    """Between intent and call, between call and read-back, and at every other effect: once or not at all."""
    with world(1) as made:
        settle(made, NEED, verb=plan_for(in_ten_days(WAYS[way], made)))
        made.run(buy, NEED)
        points = len([line for line in made.trace if " p2 " in line and line.split(" ")[2].isdigit()])
    assert points > 20
    for number in all_in_ci(range(1, points + 1)):
        with world(number) as made:
            settle(made, NEED, verb=plan_for(in_ten_days(WAYS[way], made)))
            made.run(buy, NEED, Script({number: Trouble.ASLEEP}))
            made.advance(seconds=1)
            settle(made, NEED)
            made.calm()
            settle(made, NEED)
            made.check()
            assert len(sales(made.yard)) <= 1


def in_ten_days(wish: Wish, made: World) -> Wish:
    """The same for a window that a day's sleep does not reach."""
    return Wish(wish.name, wish.way, after=made.time.now + timedelta(days=10))


@pytest.mark.parametrize("off_s", [-290, 290])
@pytest.mark.parametrize("way", WAYS)
def test_a_clock_that_is_nearly_five_minutes_off(way: str, off_s: int) -> None:
    """Everything works as with a right clock, also where the answer of the paid call is lost."""
    with world(3, Weather(off=(timedelta(seconds=off_s),))) as made:
        through(made, WAYS[way])


def test_a_clock_that_is_further_off_than_aws_takes() -> None:
    """SageMaker refuses the signature: nothing is bought, and it is said that nothing was spent."""
    with world(3, Weather(off=(timedelta(minutes=6),))) as made:
        ended = made.run(plan_for(PLAN), NEED)
        assert ended.code not in (None, ExitCode.DONE)
        assert "nothing was spent" in ended.said
        assert not sales(made.yard)


@pytest.mark.parametrize("way", WAYS)
def test_six_minutes_are_six_minutes_for_machines_that_do_not_agree(way: str) -> None:
    """Of two machines on one journal one is five minutes behind and the other five ahead: a look of each, a
    minute apart, proves nothing, since both go by AWS's clock."""
    off = (timedelta(seconds=-290), timedelta(seconds=290))
    with world(5, Weather(off=off)) as made:
        settle(made, NEED, verb=plan_for(WAYS[way]))
        made.yard.arm(FaultKind.LAG, "*", None, "5")
        behind, ahead = made.machines
        paid = 12 if WAYS[way].way is Way.TRAINING_PLAN else 15
        ended = made.run(buy, NEED, Script({paid: Trouble.LOST_REPLY}), behind)
        assert ended.code is ExitCode.OUTCOME_UNKNOWN
        made.advance(minutes=1)
        ended = made.run(buy, NEED, machine=ahead)
        assert ended.code is ExitCode.OUTCOME_UNKNOWN, ended.said
        (order,) = made.journal(ahead).orders(made.account, NEED)
        assert order.state is OrderState.UNKNOWN
        made.advance(minutes=5)
        settle(made, NEED, ahead)
        made.calm()
        assert made.check() == 1
        assert len(sales(made.yard)) == 1
