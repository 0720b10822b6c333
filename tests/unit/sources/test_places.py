"""A word for each kind of no, every cell of a throttled sweep, Local Zones apart, published prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, cast

import pytest

from berth.aws.session import Door
from berth.cli.plan_ends import end
from berth.planner.need import Need
from berth.planner.offers import PlaceOutcome, Query
from berth.planner.plan import Plan
from berth.planner.wording import plan_text
from berth.sources.capacity_blocks import LIMIT_WAIT_S, TOO_FAST_OR_NO_QUOTA, RegionSearch
from berth.sources.keeping import Kept
from berth.sources.listings import is_ultraserver, listing
from berth.sources.offline import plan_offline
from berth.sources.spot import spot_rates
from berth.sources.spot_scores import spot_scores
from berth.sources.survey import Listener, survey
from berth.sources.sweep import Progress, age_note
from berth.sources.training_plans import search_offers
from berth.sources.zone_types import without_local_zones
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target, Way

from .conftest import NOW, FakeClock, FakeService, refused, zones
from .test_capacity_blocks import ask, offering, on_sale, query
from .test_survey import FakeDoor, need


def words(plan: Plan) -> str:
    """The plan's text without its line breaks."""
    return " ".join(plan_text(plan, "AWS").split())


def test_four_regions_with_four_kinds_of_no_get_four_words() -> None:
    """Field fault 48: nothing, not allowed, not sold, throttled are four words; the plan is incomplete."""
    regions = ("us-east-1", "us-west-2", "eu-north-1", "sa-east-1")
    not_sold = refused("InvalidParameterValue", "The instance type is not supported for Capacity Blocks.")
    noes = {
        "us-west-2": refused("AuthFailure"),
        "eu-north-1": not_sold,
        "sa-east-1": refused("RequestLimitExceeded"),
    }

    def search(region: str) -> Mapping[str, Any]:
        if region in noes:
            raise noes[region]
        return {"CapacityBlockOfferings": []}

    plan = survey(cast(Door, FakeDoor(search, regions)), need(regions=regions), lambda answer, so_far: None)
    said = words(plan)
    for word in (
        "us-east-1 none on sale",
        "us-west-2 not allowed",
        "eu-north-1 not sold here",
        "sa-east-1 throttled",
    ):
        assert word in said
    assert "INCOMPLETE, 2 of 4" in said
    with pytest.raises(BerthError) as ended:
        end(plan)
    assert ended.value.exit_code is ExitCode.INCOMPLETE


def test_an_unknown_error_is_told_with_its_code() -> None:
    """Field fault 45: what nobody has seen before is "failed" with its code, never "none"."""

    def search(region: str) -> Mapping[str, Any]:
        raise refused("SomethingQuiteNew", "see the manual")

    plan = survey(cast(Door, FakeDoor(search)), need(), lambda answer, so_far: None)
    assert {a.outcome for a in plan.answers} == {PlaceOutcome.FAILED}
    assert "us-east-1 failed (SomethingQuiteNew: see the manual)" in words(plan)


class Hearing(Listener):
    """Keeps what a survey tells."""

    def __init__(self) -> None:
        self.begun: tuple[int, float] = (0, 0.0)
        self.lines: list[Progress] = []

    def begins(self, questions: int, seconds: float) -> None:
        """How much there is to do."""
        self.begun = questions, seconds

    def progress(self, made: Progress) -> None:
        """How far it is."""
        self.lines.append(made)


class SerialRegions:
    """Searches of which every third is refused as too fast; counts how many of one Region run at once."""

    def __init__(self) -> None:
        self.most_at_once = 0
        self.asked: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._numbers = count(1)
        self._lock = Lock()

    def __call__(self, region: str) -> Mapping[str, Any]:
        """One search."""
        with self._lock:
            self._running[region] += 1
            self.asked[region] += 1
            self.most_at_once = max(self.most_at_once, self._running[region])
            number = next(self._numbers)
        try:
            if number % 3 == 0:
                raise refused(TOO_FAST_OR_NO_QUOTA, "Your existing service limits are not sufficient")
            return {"CapacityBlockOfferings": [offering(number)]}
        finally:
            with self._lock:
                self._running[region] -= 1


def test_a_throttled_sweep_fills_every_cell() -> None:
    """Field fault 49: 14 Regions x 6 durations, every third call refused: 84 cells, each Region serial."""
    regions = tuple(f"region-{n}" for n in range(14))
    search, hearing = SerialRegions(), Hearing()
    wanted = Need(
        "sweep", "p5.48xlarge", 1, timedelta(days=1), Target.INSTANCES, regions, longest=timedelta(days=6)
    )
    plan = survey(cast(Door, FakeDoor(search, regions)), wanted, hearing)
    assert hearing.begun[0] == 84
    assert Counter(a.outcome for a in plan.answers) == {PlaceOutcome.OFFERS: 84}
    assert search.most_at_once == 1
    assert sum(search.asked.values()) <= 84 * 2
    assert [line.done for line in hearing.lines] == list(range(1, 85))
    assert hearing.lines[-1].line == "asked 84 of 84"


def test_quotas_are_told_apart_by_family() -> None:
    """P5 answered, Trn1 has no quota: that is no quota, and not "too fast"; P5 goes on."""
    clock = FakeClock()

    def search(InstanceType: str, **_: Any) -> Mapping[str, Any]:  # noqa: N803 - AWS's word
        if InstanceType == "trn1.32xlarge":
            raise refused(TOO_FAST_OR_NO_QUOTA, "not sufficient")
        return {"CapacityBlockOfferings": [offering()]}

    ec2 = FakeService(describe_capacity_block_offerings=search, describe_availability_zones=zones)
    region = RegionSearch.at("us-east-1", ec2, clock)
    asked = [
        query(),
        query(instance_type="trn1.32xlarge"),
        query(48),
        query(48, instance_type="trn1.32xlarge"),
    ]
    outcomes = [region.ask(one).outcome for one in asked]
    assert outcomes == [PlaceOutcome.OFFERS, PlaceOutcome.NO_QUOTA] * 2
    assert clock.sleeps == [LIMIT_WAIT_S]


# -- not sold here -------------------------------------------------------------------------------------------
def listed(*zone_ids: str) -> Any:
    """DescribeInstanceTypeOfferings that names these zones."""
    rows = [{"InstanceType": "p5.48xlarge", "Location": zone} for zone in zone_ids]
    return lambda **_: {"InstanceTypeOfferings": rows}


def asked_of(region: str, offerings: Any) -> tuple[PlaceOutcome, str]:
    """What an empty search of a Region with that listing comes to."""
    ec2 = FakeService(describe_capacity_block_offerings=on_sale(), describe_instance_type_offerings=offerings)
    answer = RegionSearch.at(region, ec2, FakeClock()).ask(query(region=region))
    return answer.outcome, answer.detail


def test_none_on_sale_and_not_sold_here_are_told_apart() -> None:
    """A Region whose zones list the type has none now; one where none does will not have any tomorrow."""
    assert asked_of("eu-west-3", listed("euw3-az1")) == (PlaceOutcome.NONE_ON_SALE, "")
    outcome, detail = asked_of("eu-west-3", listed())
    assert (outcome, detail) == (PlaceOutcome.NOT_SOLD_HERE, "no zone here lists p5.48xlarge")


def test_a_local_zone_may_sell_what_no_zone_lists() -> None:
    """us-east-1 has Local Zones with blocks, and those not opted in to list nothing."""
    assert asked_of("us-east-1", listed())[0] is PlaceOutcome.NONE_ON_SALE
    assert asked_of("xx-new-1", listed())[0] is PlaceOutcome.NONE_ON_SALE, "an unknown Region proves nothing"


def test_a_listing_that_cannot_be_read_is_no_absence() -> None:
    """The refusal is said; the Region stays "none on sale"."""

    def no(**_: Any) -> Mapping[str, Any]:
        raise refused("UnauthorizedOperation")

    outcome, detail = asked_of("eu-west-3", no)
    assert outcome is PlaceOutcome.NONE_ON_SALE
    assert detail == "whether the type exists here at all is not known (UnauthorizedOperation)"


def test_a_listing_is_asked_once_a_type_and_only_when_nothing_was_found(clock: FakeClock) -> None:
    """What finds something costs no second call."""
    ec2 = FakeService(describe_capacity_block_offerings=on_sale(), describe_instance_type_offerings=listed())
    region = RegionSearch.at("eu-west-3", ec2, clock)
    for days in (1, 2, 3):
        region.ask(query(24 * days, region="eu-west-3"))
    assert len(ec2.calls("describe_instance_type_offerings")) == 1
    assert ask(clock, on_sale(offering())).outcome is PlaceOutcome.OFFERS
    assert listing(FakeService(), "eu-west-3", "p5.48xlarge").absent is False


# -- UltraServers --------------------------------------------------------------------------------------------
def test_an_ultraserver_is_asked_for_whole(clock: FakeClock) -> None:
    """By its own parameters, in both services, and read back under its own name."""
    whole = offering(
        InstanceType="p6e-gb200.36xlarge",
        InstanceCount=18,
        UltraserverType="u-p6e-gb200x72",
        UltraserverCount=1,
    )
    ec2 = FakeService(describe_capacity_block_offerings=on_sale(whole), describe_availability_zones=zones)
    region = RegionSearch.at("us-east-1", ec2, clock)
    (offer,) = region.ask(query(instance_type="u-p6e-gb200x72")).offers
    (sent,) = ec2.calls("describe_capacity_block_offerings")
    assert (sent["UltraserverType"], sent["UltraserverCount"]) == ("u-p6e-gb200x72", 1)
    assert "InstanceType" not in sent
    assert (offer.instance_type, offer.count) == ("u-p6e-gb200x72", 1)
    sagemaker = FakeService(search_training_plan_offerings=lambda **_: {"TrainingPlanOfferings": []})
    search_offers(
        Query(Way.TRAINING_PLAN, "us-east-1", "ml.u-p6e-gb200x72", 1, 24, Target.TRAINING_JOB), sagemaker
    )
    assert sagemaker.calls("search_training_plan_offerings")[0]["UltraServerType"] == "ml.u-p6e-gb200x72"
    assert not is_ultraserver("p5.48xlarge")


# -- Local Zones apart ---------------------------------------------------------------------------------------
def test_local_zones_can_be_left_out(clock: FakeClock) -> None:
    """Field fault 43: `--zones regional` hides them and says how many; nothing left is none on sale."""
    local = offering(2, AvailabilityZone="us-east-1-atl-2a", ZoneType="local-zone")
    both = without_local_zones(ask(clock, on_sale(offering(), local)))
    assert [offer.offering_id for offer in both.offers] == ["cb-00000000000000001"]
    assert both.detail == "1 in Local Zones left out"
    alone = without_local_zones(ask(clock, on_sale(local)))
    assert (alone.outcome, alone.offers) == (PlaceOutcome.NONE_ON_SALE, ())
    untouched = ask(clock, on_sale(offering()))
    assert without_local_zones(untouched) is untouched


# -- Spot scores, published prices, nobody to ask ------------------------------------------------------------
def test_spot_scores_are_asked_for_ten_regions_at_a_time() -> None:
    """The best are told, with the rule that makes them low for one type."""
    scores = lambda RegionNames, **_: {  # noqa: E731, N803 - AWS's word
        "SpotPlacementScores": [
            {"Region": region, "Score": n % 9 + 1} for n, region in enumerate(RegionNames)
        ]
    }
    ec2 = FakeService(get_spot_placement_scores=scores)
    said = spot_scores(ec2, ["p5.48xlarge"], 2, [f"r{n}" for n in range(12)], at_yard=False)
    assert len(ec2.calls("get_spot_placement_scores")) == 2
    assert said.startswith(
        "Spot placement score, of 10, for now, fewer than 3 types score low by rule: r8 9, r7 8"
    )


def test_a_score_that_is_not_there_says_why() -> None:
    """A yard that does not serve it, a refusal, an empty answer: three sentences, none of them a score."""
    none = FakeService()
    assert "not asked here: this yard does not serve" in spot_scores(
        none, ["p5.48xlarge"], 1, ["r1"], at_yard=True
    )
    assert "not known (InvalidAction" in spot_scores(none, ["p5.48xlarge"], 1, ["r1"], at_yard=False)
    empty = FakeService(get_spot_placement_scores=lambda **_: {"ResponseMetadata": {"RequestId": "r"}})
    assert spot_scores(empty, ["p5.48xlarge"], 1, ["r1"], at_yard=False).endswith(
        "none was told for these Regions"
    )


def test_a_published_price_that_differs_is_told_once() -> None:
    """The plan's text has it beside the offer (`planner/costs/published.py`); no note says it again."""
    door = FakeDoor(lambda region: {"CapacityBlockOfferings": [offering(UpfrontFee="1375.40")]})
    plan = survey(cast(Door, door), need(), Listener())
    assert plan.best is not None
    assert not any("published" in note for note in plan.notes)
    assert " ".join(plan_text(plan, "").split()).count("published 47.757/h") == 1


def test_without_a_login_there_are_verdicts_and_list_prices() -> None:
    """Every place is "not asked", every price has its age, and nothing can be bought."""
    plan = plan_offline(need(regions=("us-east-1",)), NOW)
    assert {a.outcome for a in plan.answers} == {PlaceOutcome.NOT_ASKED}
    assert plan.account is None
    assert plan.choices == ()
    assert not any(line.rate.live for line in plan.pay_as_you_go)
    assert "capacity-block list price, p5.48xlarge in us-east-1: 47.757/h" in words(plan)


def test_spot_falls_back_to_what_was_seen_when_nobody_answers() -> None:
    """A refusal leaves the price of the table with age and reason, not live; an empty answer leaves none."""
    rates = spot_rates(FakeService(), "p5.48xlarge", "Linux/UNIX", "us-east-1", NOW)
    assert rates
    assert all(rate.hourly and rate.as_of and not rate.live for rate in rates)
    assert all("InvalidAction" in rate.note for rate in rates)
    empty = FakeService(describe_spot_price_history=lambda **_: {"SpotPriceHistory": []})
    (unknown,) = spot_rates(empty, "p5.48xlarge", "Linux/UNIX", "us-east-1", NOW)
    assert unknown.hourly is None


def test_where_nothing_is_on_sale_ones_own_hours_are_told(tmp_path: Path) -> None:
    """By one's own asks alone: here two, so quieter hours are unknown; without a history nothing is said."""
    door = FakeDoor(lambda region: {"CapacityBlockOfferings": []})
    kept = Kept(tmp_path / "h.sqlite", "aws", "1", clock=FakeClock(), warn=lambda text: None)
    nobody = survey(cast(Door, door), need(), Listener())
    assert not any("quieter" in note for note in nobody.notes)
    plan = survey(cast(Door, door), need(), Listener(), memory=kept)
    assert any(note.startswith("quieter hours: unknown.") for note in plan.notes)
    kept.close()


def test_old_answers_are_told_with_their_age() -> None:
    """A sweep of a quarter of an hour: its first answer is that old when the plan is made."""
    first = replace(ask(FakeClock(), on_sale(offering())), seen_at=NOW)
    last = replace(first, region="us-west-2", seen_at=NOW + timedelta(minutes=15))
    missing = replace(first, region="sa-east-1", outcome=PlaceOutcome.NOT_ASKED, offers=())
    said = age_note([last, first, missing], NOW + timedelta(minutes=16))
    assert said == "the oldest answer (us-east-1) is 16 min old; berth buy asks again before it pays"
    assert age_note([last], NOW + timedelta(minutes=16)) == ""
    assert age_note([missing], NOW + timedelta(days=1)) == ""
