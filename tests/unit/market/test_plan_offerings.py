"""Searching for training plans: AWS's rules, and its worked example."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, Quotas
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.market.plan_offerings import PlanOffering, search_plan_offerings
from berth.yard.market.plan_query import PlanQuery

FLEET = load_fleet((Path(__file__).parents[1] / "fleet" / "small.toml").read_text(), "small.toml")
NOW = datetime(2026, 12, 1, 19, 8, 27, 704_000, tzinfo=UTC)
TRN1 = PlanQuery("ml.trn1.32xlarge", 1, 24, (Target.ENDPOINT,))
DAY = timedelta(days=1)


def half_past_eleven(day: int) -> datetime:
    """11:30 UTC of a day of December 2026."""
    return datetime(2026, 12, 1, 11, 30, tzinfo=UTC) + (day - 1) * DAY


class Desk:
    """A fleet with nothing sold yet, and one searcher."""

    def __init__(self, fleet: Fleet = FLEET, now: datetime = NOW) -> None:
        self.fleet, self.now = fleet, now
        self.calendars = FleetCalendars(fleet, now)

    def search(self, query: PlanQuery, region: str = "us-east-1") -> tuple[PlanOffering, ...]:
        """The offerings for `query`."""
        return search_plan_offerings(
            query, region=region, now=self.now, fleet=self.fleet, calendars=self.calendars
        )

    def refusal(self, query: PlanQuery, region: str = "us-east-1") -> ServiceError:
        """The error that the search answers with."""
        with pytest.raises(ServiceError) as caught:
            self.search(query, region)
        return caught.value


def shapes(offers: tuple[PlanOffering, ...]) -> list[tuple[str, tuple[int, int]]]:
    """(start, (hours, minutes)) of each."""
    return [(offer.window.start.strftime("%d %H:%M"), offer.hours_and_minutes) for offer in offers]


def test_the_worked_example_of_aws() -> None:
    """Asked for 15 h at 19:08: 15 h 51 min and 39 h 51 min from 19:39, then a day from 11:30."""
    offers = Desk().search(replace(TRN1, duration_hours=15, start_after=NOW))
    assert shapes(offers) == [("01 19:39", (15, 51)), ("01 19:39", (39, 51)), ("02 11:30", (24, 0))]
    assert {offer.window.end.strftime("%H:%M") for offer in offers} == {"11:30"}


def test_the_fee_counts_minutes_and_is_rounded_once() -> None:
    """Rate x count x hours and minutes, half up to the cent, of the total."""
    fees = [str(offer.fee) for offer in Desk().search(replace(TRN1, count=2))]
    assert fees == ["317.00 USD", "797.00 USD", "480.00 USD"]


@pytest.mark.parametrize(("hours", "days"), [(1, 1), (24, 1), (25, 2), (168, 7), (17 * 24, 17), (4368, 182)])
def test_a_duration_is_rounded_up_to_whole_days(hours: int, days: int) -> None:
    """Any whole number of days from 1 to 182 can be had, 17 too."""
    offers = Desk().search(replace(TRN1, duration_hours=hours, start_after=NOW + DAY))
    assert {offer.window.duration for offer in offers} == {days * DAY}


def test_starts_are_up_to_56_days_ahead() -> None:
    """The last start is the 56th 11:30 UTC from now, also for the longest plan."""
    ahead = half_past_eleven(1) + 56 * DAY
    for hours in (24, 4368):
        offers = Desk().search(replace(TRN1, duration_hours=hours, start_after=ahead))
        assert [offer.window.start for offer in offers] == [ahead]
    assert Desk().search(replace(TRN1, start_after=ahead + timedelta(minutes=1))) == ()


def test_an_immediate_start_at_half_past_eleven_is_offered_once() -> None:
    """At 11:00 sharp the immediate day and the scheduled day are the same window."""
    offers = Desk(now=half_past_eleven(1) - timedelta(minutes=30)).search(TRN1)
    assert shapes(offers) == [("01 11:30", (24, 0)), ("02 11:30", (24, 0)), ("03 11:30", (24, 0))]


def test_nothing_is_offered_that_is_over_before_it_can_be_used() -> None:
    """An immediate plan of under an hour is left out; so is one longer than 182 days."""
    offers = Desk(now=datetime(2026, 12, 1, 10, 15, tzinfo=UTC)).search(TRN1)
    assert shapes(offers)[0] == ("01 10:45", (24, 45))
    longest = Desk().search(replace(TRN1, duration_hours=4368))
    assert max(offer.window.duration for offer in longest) == 182 * DAY


def test_nothing_starts_within_half_an_hour() -> None:
    """At 11:00 the 11:30 of the day can be had, a minute later the next one is the first."""
    eleven = datetime(2026, 12, 1, 11, 0, tzinfo=UTC)
    query = replace(TRN1, start_after=half_past_eleven(1))
    assert shapes(Desk(now=eleven).search(query))[0] == ("01 11:30", (24, 0))
    assert shapes(Desk(now=eleven + timedelta(seconds=1)).search(query))[0] == ("01 11:31", (23, 59))


def test_what_cannot_be_paid_in_time_is_not_shown() -> None:
    """The fee must be there 5 minutes before the start, and paying takes as long as the fleet says."""
    for minutes, first in ((25, "01 19:39"), (26, "02 11:30")):
        slow = replace(FLEET, payment_delay=timedelta(minutes=minutes))
        assert shapes(Desk(slow).search(TRN1))[0][0] == first
    week = replace(FLEET, payment_delay=timedelta(days=7))
    assert shapes(Desk(week).search(TRN1))[0] == ("09 11:30", (24, 0))


def test_a_start_asked_for_later_brings_no_immediate_offer() -> None:
    """StartTimeAfter and EndTimeBefore bound every offer."""
    query = replace(TRN1, start_after=half_past_eleven(4), end_before=half_past_eleven(6))
    assert shapes(Desk().search(query)) == [("04 11:30", (24, 0)), ("05 11:30", (24, 0))]
    assert Desk().search(replace(query, duration_hours=72)) == ()


def test_a_full_pool_is_not_offered() -> None:
    """Only windows with enough hosts throughout come up, and the freer zone is named."""
    desk = Desk()
    whole = Window(half_past_eleven(1), half_past_eleven(4))
    desk.calendars.commit("use1-az1/trn1.32xlarge", None, whole, 8)
    offers = desk.search(TRN1)
    assert {offer.zone_id for offer in offers} == {"use1-az2"}
    desk.calendars.commit("use1-az2/trn1.32xlarge", None, whole, 4)
    offers = desk.search(TRN1)
    assert shapes(offers)[0] == ("04 11:30", (24, 0))
    assert {offer.zone_id for offer in offers} == {"use1-az1"}
    assert desk.search(replace(TRN1, count=16)) == ()


def test_a_gap_is_long_enough_or_not_offered() -> None:
    """A commitment in the middle of a window excludes it, to the half hour."""
    desk = Desk(now=datetime(2026, 12, 1, 12, 0, tzinfo=UTC))
    for key, hosts in (("use1-az1/trn1.32xlarge", 8), ("use1-az2/trn1.32xlarge", 4)):
        start = half_past_eleven(3) + timedelta(hours=5)
        desk.calendars.commit(key, None, Window(start, start + timedelta(minutes=1)), hosts)
    query = replace(TRN1, duration_hours=48, start_after=half_past_eleven(2) - timedelta(hours=1))
    assert shapes(desk.search(query))[0] == ("04 11:30", (48, 0))


def test_the_faces_cap_binds() -> None:
    """SageMaker may have 4 of the p5 hosts, however many are free."""
    desk = Desk()
    p5 = PlanQuery("ml.p5.48xlarge", 4, 24, (Target.ENDPOINT,))
    first = desk.search(p5)[0]
    desk.calendars.commit(first.terms.pool_key, "sagemaker", first.window, 1)
    assert first.window not in {offer.window for offer in desk.search(p5)}
    assert first.window in {offer.window for offer in desk.search(replace(p5, count=2))}
    assert desk.search(replace(p5, count=8)) == ()


def test_a_price_of_the_region_goes_before_a_general_one() -> None:
    """p5 costs 30 in Stockholm and 47.757 elsewhere; both are labelled as rehearsal prices."""
    p5 = PlanQuery("ml.p5.48xlarge", 1, 24, (Target.TRAINING_JOB,), start_after=half_past_eleven(3))
    assert str(Desk().search(p5, "eu-north-1")[0].fee) == "720.00 USD"
    offer = Desk().search(p5)[0]
    assert (str(offer.fee), offer.rate.label) == ("1,146.17 USD", "rehearsal price")


def test_what_has_no_price_yet_is_not_offered() -> None:
    """Before the first price list nothing is for sale: unknown is not free."""
    assert Desk(now=datetime(2025, 12, 1, tzinfo=UTC)).search(TRN1) == ()


def test_the_price_is_that_of_the_issue_minute() -> None:
    """A list that starts at midnight holds for a search that counts from midnight on."""
    eve = datetime(2026, 10, 6, 23, 58, 59, tzinfo=UTC)
    later = replace(TRN1, start_after=datetime(2026, 10, 9, tzinfo=UTC))
    assert str(Desk(now=eve).search(later)[0].fee) == "228.77 USD"
    assert str(Desk(now=eve + timedelta(seconds=2)).search(later)[0].fee) == "240.00 USD"


def test_a_rehearsed_price_change_moves_the_fee() -> None:
    """The factor of a rehearsed price change is in the fee that is shown."""
    desk = Desk()
    dearer = search_plan_offerings(
        TRN1, region="us-east-1", now=NOW, fleet=FLEET, calendars=desk.calendars, rate_factor=Decimal("1.1")
    )
    assert dearer[2].fee.amount == Decimal("264.00")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"instance_type": None}, "InstanceType is required."),
        ({"count": None}, "InstanceCount is required."),
        ({"duration_hours": None}, "DurationHours is required."),
        ({"targets": ()}, "TargetResources must name at least one target."),
        ({"count": 3}, "InstanceCount must be one of 1, 2, 4, 8, 16, 32, 64, not 3."),
        ({"count": 65}, "InstanceCount must be one of 1, 2, 4, 8, 16, 32, 64, not 65."),
        ({"count": 0}, "InstanceCount must be one of 1, 2, 4, 8, 16, 32, 64, not 0."),
        ({"duration_hours": 183 * 24}, "DurationHours must be from 1 to 4368 (1 to 182 days), not 4392."),
        ({"duration_hours": 87_600}, "DurationHours must be from 1 to 4368 (1 to 182 days), not 87600."),
        ({"start_after": NOW - timedelta(hours=1)}, "StartTimeAfter must be in the future."),
        (
            {"end_before": NOW + timedelta(hours=23)},
            "EndTimeBefore must be at least 24 hours after the start time.",
        ),
        (
            {"instance_type": "ml.p5.48xlarge", "targets": (Target.HYPERPOD_CLUSTER,)},
            "Invalid instance type ml.p5.48xlarge for target resource hyperpod-cluster.",
        ),
        (
            {"instance_type": "ml.p4d.24xlarge"},
            "Invalid instance type ml.p4d.24xlarge for target resource endpoint.",
        ),
    ],
)
def test_a_bad_search_says_what_would_be_right(changes: dict[str, object], expected: str) -> None:
    """Bad counts, lengths, times, types and targets are ValidationException, each with its own words."""
    error = Desk().refusal(replace(TRN1, **changes))  # type: ignore[arg-type]
    assert (error.code, error.message) == ("ValidationException", expected)


def test_a_type_is_sold_by_region() -> None:
    """trn1 is not sold in Stockholm by this fleet, in AWS's words."""
    assert Desk().refusal(TRN1, "eu-north-1").message == (
        "Invalid instance type ml.trn1.32xlarge for target resource endpoint."
    )


def test_a_quota_of_nothing_makes_the_search_fail() -> None:
    """With a reserved-capacity quota of 0 the search itself answers ResourceLimitExceeded, as on AWS."""
    desk = Desk(replace(FLEET, quotas=Quotas(reserved_capacity={"*": 256, "ml.trn1.32xlarge": 0})))
    error = desk.refusal(TRN1)
    assert error.code == "ResourceLimitExceeded"
    assert "is 0 Instances, with current utilization of 0 Instances" in error.message


def test_ultraservers_come_whole_or_not_at_all() -> None:
    """Counts of an UltraServer type are multiples of its 18 instances."""
    query = PlanQuery("ml.p6e-gb200.36xlarge", 18, 24, (Target.TRAINING_JOB,))
    assert Desk().search(query)[0].count == 18
    assert Desk().refusal(replace(query, count=1)).message == "InstanceCount must be one of 18, 36, not 1."


def test_what_goes_through_the_account_manager_is_not_shown() -> None:
    """A type that is not self-service is known and answers with an empty list."""
    key = "use1-atl2-az1/p6e-gb200.36xlarge"
    fleet = replace(FLEET, pools={**FLEET.pools, key: replace(FLEET.pools[key], self_service=False)})
    assert Desk(fleet).search(PlanQuery("ml.p6e-gb200.36xlarge", 18, 24, (Target.TRAINING_JOB,))) == ()


def test_a_clock_that_moved_on_meanwhile_is_no_fault() -> None:
    """A search that began before the calendars rolled finds what still lies ahead of them, or nothing."""
    desk = Desk()
    for days, first in ((1, "02 11:30"), (3, "04 11:30"), (40, "10 11:30")):
        desk.calendars.roll_to(NOW + days * DAY)
        assert shapes(desk.search(TRN1))[0] == (first, (24, 0))
    desk.calendars.roll_to(NOW + 300 * DAY)
    assert desk.search(TRN1) == ()


def test_a_search_writes_nothing() -> None:
    """Searching twice gives the same, and leaves every slot as it was."""
    desk = Desk()
    assert desk.search(TRN1) == desk.search(TRN1)
    forever = Window(half_past_eleven(1), half_past_eleven(200))
    assert all(desk.calendars.pool(key).committed_max(forever) == 0 for key in FLEET.pools)
