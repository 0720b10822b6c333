"""Searching for Capacity Blocks: AWS's rules, its samples, and a search that tries everything."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendar import day_at, day_start
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, pools_for
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.fleet.pools import EC2, SAGEMAKER
from berth.yard.fleet.zones import ZoneKind
from berth.yard.market.block_offerings import BlockOffering, search_block_offerings
from berth.yard.market.block_query import BlockQuery
from berth.yard.market.block_rules import DURATIONS_HOURS, payment_deadline, pays_at

FLEET = load_fleet((Path(__file__).parents[1] / "yard" / "blocks.toml").read_text(), "blocks.toml")
NOW = datetime(2026, 12, 1, 15, 42, 27, tzinfo=UTC)
P5 = BlockQuery(("p5.48xlarge",), 1, 24)
DAY = timedelta(days=1)
LOCAL = "use1-atl2-az1"


def half_past_eleven(day: int) -> datetime:
    """11:30 UTC of a day of December 2026."""
    return datetime(2026, 12, 1, 11, 30, tzinfo=UTC) + (day - 1) * DAY


class Desk:
    """A fleet with nothing sold yet, and one searcher."""

    def __init__(self, fleet: Fleet = FLEET, now: datetime = NOW) -> None:
        self.fleet, self.now = fleet, now
        self.calendars = FleetCalendars(fleet, now)

    def search(
        self, query: BlockQuery, region: str = "us-east-1", opted_in: frozenset[str] = frozenset()
    ) -> tuple[BlockOffering, ...]:
        """The offerings for `query`."""
        return search_block_offerings(
            query, region=region, now=self.now, fleet=self.fleet, calendars=self.calendars, opted_in=opted_in
        )

    def refusal(self, query: BlockQuery, region: str = "us-east-1") -> ServiceError:
        """The error that the search answers with."""
        with pytest.raises(ServiceError) as caught:
            self.search(query, region)
        return caught.value


def shapes(offers: tuple[BlockOffering, ...]) -> list[tuple[str, tuple[int, int]]]:
    """(start, (hours, minutes)) of each."""
    return [(offer.window.start.strftime("%d %H:%M"), offer.hours_and_minutes) for offer in offers]


def test_a_start_at_once_brings_a_shorter_and_a_longer_block() -> None:
    """Asked for 24 h at 15:42, as in AWS's sample: 19 h 17 min and 43 h 17 min, then whole days."""
    offers = Desk().search(P5)
    assert shapes(offers) == [
        ("01 16:13", (19, 17)), ("01 16:13", (43, 17)), ("02 11:30", (24, 0)), ("03 11:30", (24, 0)),
        ("04 11:30", (24, 0)), ("05 11:30", (24, 0)),
    ]  # fmt: skip
    assert {offer.window.end.strftime("%H:%M") for offer in offers} == {"11:30"}


def test_the_other_sample_with_its_fees() -> None:
    """trn2 at 35.7608: 8 h 37 min for 308.14, 24 h for 858.26, 32 h 37 min for 1,166.40."""
    fleet = load_fleet(
        (Path(__file__).parents[1] / "yard" / "blocks.toml").read_text().replace("47.757", "35.7608"), "x"
    )
    desk = Desk(fleet, datetime(2026, 12, 1, 2, 23, tzinfo=UTC))
    fees = {offer.hours_and_minutes: str(offer.fee) for offer in desk.search(P5)}
    assert fees == {(8, 37): "308.14 USD", (24, 0): "858.26 USD", (32, 37): "1,166.40 USD"}


@pytest.mark.parametrize(
    ("day", "count", "fee"),
    [("2026-12-01", 1, "1,146.17 USD"), ("2026-09-01", 1, "830.59 USD"), ("2026-09-01", 4, "3,322.37 USD")],
)
def test_the_fee_is_the_whole_rounded_once_at_the_days_price(day: str, count: int, fee: str) -> None:
    """Total first, then one rounding, half up: four of them are not four times one."""
    desk = Desk(now=datetime.fromisoformat(f"{day}T09:00:00+00:00"))
    offer = desk.search(replace(P5, count=count, start_after=desk.now + DAY))[0]
    assert str(offer.fee) == fee


def test_the_price_is_that_of_the_search_not_of_the_start() -> None:
    """The day before a new list the old price is offered for windows long after it."""
    desk = Desk(now=datetime(2026, 10, 6, 23, 58, 30, tzinfo=UTC))
    assert {offer.terms.usd_per_hour for offer in desk.search(P5)} == {Decimal("34.608")}
    desk.now += timedelta(minutes=1)
    assert {offer.terms.usd_per_hour for offer in desk.search(P5)} == {Decimal("47.757")}


def test_the_38_durations_and_no_other() -> None:
    """1 to 14 days by the day, then weeks to 26; 17 days are none, in the words that clients look for."""
    assert len(DURATIONS_HOURS) == 38
    desk = Desk()
    for hours in DURATIONS_HOURS:
        offers = desk.search(replace(P5, duration_hours=hours, start_after=NOW + DAY))
        assert {offer.window.duration for offer in offers} == {timedelta(hours=hours)}
    for hours in (-24, 0, 1, 23, 25, 17 * 24, 15 * 24, 20 * 24, 183 * 24, 4368 + 168):
        refused = desk.refusal(replace(P5, duration_hours=hours))
        assert refused.code == "InvalidParameterValue"
        assert "duration is not valid" in refused.message


def test_starts_are_half_an_hour_to_eight_weeks_ahead() -> None:
    """The last start is the 56th 11:30 UTC, also of the longest block."""
    last = half_past_eleven(1) + 56 * DAY
    for hours in (24, 4368):
        offers = Desk().search(replace(P5, duration_hours=hours, start_after=last))
        assert {offer.window.start for offer in offers} == {last}
    assert Desk().search(replace(P5, start_after=last + timedelta(minutes=1))) == ()


def test_the_start_range_bounds_starts_and_the_end_range_ends() -> None:
    """A start at the bound counts, an end at the bound counts, a second less does not."""
    query = replace(P5, start_after=half_past_eleven(4), end_before=half_past_eleven(6))
    assert set(shapes(Desk().search(query))) == {("04 11:30", (24, 0)), ("05 11:30", (24, 0))}
    assert Desk().search(replace(query, duration_hours=72)) == ()
    tight = replace(query, end_before=half_past_eleven(6) - timedelta(seconds=1))
    assert {start for start, _ in shapes(Desk().search(tight))} == {"04 11:30"}


def test_what_aws_refuses_is_refused_in_its_words() -> None:
    """Past start, end before start, unknown or unsold type, bad counts, missing pair."""
    desk = Desk()
    hour = timedelta(hours=1)
    for query, code, words in (
        (replace(P5, start_after=NOW - hour), "InvalidParameterValue", "start date is not valid"),
        (replace(P5, end_before=NOW - hour), "InvalidParameterValue", "end date is not valid"),
        (replace(P5, start_after=NOW + DAY, end_before=NOW + hour), "InvalidParameterValue", "end date"),
        (
            replace(P5, types=("m5.large",)), "InvalidParameterValue",
            "The instance type 'm5.large' is not supported for Capacity Blocks in 'us-east-1'. Specify ",
        ),
        (replace(P5, types=("trn1.32xlarge",)), "InvalidParameterValue", "not supported for Capacity Blocks"),
        (replace(P5, types=("p5.48xlarge", "m5.large")), "InvalidParameterValue", "'m5.large'"),
        (replace(P5, count=0), "InvalidParameterValue", "count is not valid"),
        (replace(P5, count=65), "InvalidParameterValue", "count is not valid"),
        (replace(P5, count=None), "MissingParameter", "InstanceCount"),
        (replace(P5, types=()), "MissingParameter", "InstanceType"),
        (replace(P5, types=("p4d.24xlarge",)), "CapacityBlockDescribeLimitExceeded", "service limits"),
    ):  # fmt: skip
        refused = desk.refusal(query)
        assert refused.code == code, query
        assert words in refused.message, query
    assert desk.search(replace(P5, start_after=NOW - timedelta(seconds=59))) != ()


def test_what_has_no_price_is_not_for_sale() -> None:
    """Unknown is not free: an empty answer."""
    assert Desk().search(replace(P5, types=("p4de.24xlarge",))) == ()


def test_any_count_up_to_64_but_whole_ultraservers() -> None:
    """Counts that are not powers of two are offered too; units are sold whole."""
    desk = Desk()
    assert {offer.terms.count for count in (3, 7) for offer in desk.search(replace(P5, count=count))} == {
        3,
        7,
    }
    assert desk.search(replace(P5, count=64), region="us-west-2") != ()
    ultra = replace(P5, types=("p6e-gb200.36xlarge",))
    assert [bool(desk.search(replace(ultra, count=count))) for count in (1, 3, 4, 8, 12)] == [
        False, False, True, True, False,
    ]  # fmt: skip


def test_a_narrow_search_shows_every_zone_and_a_wide_one_every_window() -> None:
    """One window: both zones, the freer first. Six windows and more: one zone each."""
    desk = Desk()
    one = replace(P5, start_after=half_past_eleven(4), end_before=half_past_eleven(5))
    assert [offer.zone_id for offer in desk.search(one)] == ["use1-az1", "use1-az2"]
    assert {offer.zone_id for offer in desk.search(P5)} == {"use1-az1"}


def test_local_zones_are_shown_beside_the_others_when_opted_in_or_asked_for() -> None:
    """Without: no trace of them. With: their own offer for the same window."""
    desk = Desk()
    assert LOCAL not in {offer.zone_id for offer in desk.search(P5)}
    for offers in (desk.search(replace(P5, every_zone=True)), desk.search(P5, opted_in=frozenset({LOCAL}))):
        kinds = {(offer.zone_id, offer.zone_kind) for offer in offers}
        assert kinds == {("use1-az1", ZoneKind.AVAILABILITY_ZONE), (LOCAL, ZoneKind.LOCAL_ZONE)}
        assert offers[0].window == offers[1].window


def test_several_types_are_searched_together() -> None:
    """InstanceTypePreferences: each type has its offers; a type without quota has none."""
    types = ("p5.4xlarge", "p5.48xlarge", "p4d.24xlarge")
    offers = Desk().search(replace(P5, types=types))
    assert {offer.instance_type for offer in offers} == {"p5.4xlarge", "p5.48xlarge"}


def test_what_cannot_be_paid_in_time_is_not_shown() -> None:
    """The fee must be there 5 minutes before the start."""
    slow = replace(FLEET, payment_delay=timedelta(minutes=26))
    assert shapes(Desk(slow).search(P5))[0][0] == "02 11:30"


def test_payment_comes_between_its_bounds_and_never_after_the_deadline() -> None:
    """5 minutes by default; a spread draws evenly; 12 hours or 5 minutes before the start cap it."""
    soon, later = NOW + timedelta(minutes=30), NOW + 10 * DAY
    five, week = timedelta(minutes=5), timedelta(days=7)
    assert pays_at(NOW, later, five, None, 0.9) == NOW + five
    assert pays_at(NOW, later, five, timedelta(minutes=65), 0.5) == NOW + timedelta(minutes=35)
    assert pays_at(NOW, later, five, week, 0.999) == payment_deadline(NOW, later) == NOW + timedelta(hours=12)
    assert pays_at(NOW, soon, five, week, 0.999) == payment_deadline(NOW, soon) == soon - five


def test_a_search_writes_nothing() -> None:
    """Searching twice gives the same, and leaves every slot as it was."""
    desk = Desk()
    assert desk.search(P5) == desk.search(P5)
    forever = Window(half_past_eleven(1), half_past_eleven(200))
    assert all(desk.calendars.pool(key).committed_max(forever) == 0 for key in FLEET.pools)


# -- against a search that tries everything ---------------------------------------------------------------
def naive(desk: Desk, query: BlockQuery, opted_in: frozenset[str]) -> list[tuple[Window, str]]:
    """(window, zone) of what should be found, by trying every window in every pool."""
    issued = desk.now.replace(second=0, microsecond=0)
    issued += timedelta(minutes=1) if desk.now > issued else timedelta(0)
    days = query.duration_hours // 24
    today, soon = day_at(issued), issued + timedelta(minutes=30)
    windows = {Window(day_start(today + n), day_start(today + n + days)) for n in range(1, 57)}
    for end in (days, days + 1):
        window = Window(soon, day_start(day_at(soon) + end))
        if timedelta(hours=1) <= window.duration <= 182 * DAY:
            windows.add(window)
    earliest = max(query.start_after or desk.now, desk.now)
    found: dict[tuple[Window, ZoneKind], list[tuple[int, str]]] = {}
    for window, pool in product(windows, pools_for(desk.fleet, "us-east-1", face=EC2, type=query.types[0])):
        kind = desk.fleet.zones[pool.zone_id].kind
        shown = kind is ZoneKind.AVAILABILITY_ZONE or query.every_zone or pool.zone_id in opted_in
        in_time = window.start >= max(earliest, soon) and window.end <= (query.end_before or window.end)
        free = pool.shares.reservable - desk.calendars.pool(pool.key).committed_max(window)
        if shown and in_time and query.count is not None and free >= query.count:
            found.setdefault((window, kind), []).append((-free, pool.zone_id))
    ranked = sorted(
        (rank, window, kind.value, zone)
        for (window, kind), zones in found.items()
        for rank, (_, zone) in enumerate(sorted(zones))
    )
    chosen = sorted(ranked[: desk.fleet.blocks.offerings_max], key=lambda one: (one[1], one[2], one[0]))
    return [(window, zone) for _, window, _, zone in chosen]


sales = st.tuples(
    st.sampled_from(["use1-az1/p5.48xlarge", "use1-az2/p5.48xlarge", f"{LOCAL}/p5.48xlarge"]),
    st.sampled_from([EC2, SAGEMAKER]),
    st.integers(-600, 90_000),  # minutes from now to the start
    st.integers(30, 40_000),  # minutes long
    st.integers(1, 5),
)


@settings(max_examples=150, deadline=None)
@given(
    sold=st.lists(sales, max_size=12),
    minute=st.integers(0, 1439),
    count=st.integers(1, 9),
    hours=st.sampled_from([24, 48, 168, 336, 504, 4368]),
    start=st.none() | st.integers(0, 80_000),
    length=st.none() | st.integers(1, 30_000),
    every=st.booleans(),
    opted=st.sampled_from([frozenset[str](), frozenset({LOCAL})]),
    most=st.sampled_from([1, 6, 40, 1000]),
)
def test_the_search_finds_what_trying_everything_finds(
    sold: list[tuple[str, str, int, int, int]], minute: int, count: int, hours: int, start: int | None,
    length: int | None, every: bool, opted: frozenset[str], most: int,
) -> None:  # fmt: skip
    """Any calendar, any query, any limit: the same windows in the same zones in the same order."""
    fleet = replace(FLEET, blocks=replace(FLEET.blocks, offerings_max=most))
    desk = Desk(fleet, datetime(2026, 12, 1, tzinfo=UTC) + timedelta(minutes=minute, seconds=minute % 3))
    for key, face, begins, long, hosts in sold:
        begin = desk.now + timedelta(minutes=begins)
        window = Window(begin, begin + timedelta(minutes=long))
        if desk.calendars.pool(key).base < window.end and desk.calendars.fits(
            fleet.pools[key], face, window, hosts
        ):
            desk.calendars.commit(key, face, window, hosts)
    after = None if start is None else desk.now + timedelta(minutes=start)
    before = None if length is None else (after or desk.now) + timedelta(minutes=length)
    query = BlockQuery(("p5.48xlarge",), count, hours, after, before, every)
    found = [(offer.window, offer.zone_id) for offer in desk.search(query, opted_in=opted)]
    assert found == naive(desk, query, opted)
