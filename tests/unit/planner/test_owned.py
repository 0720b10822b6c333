"""What is owned already: it is used before anything is bought, unless it is somebody else's."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.planner.choose import make_plan
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.owned import Owned, OwnedAnswer, owned_choices, places_free
from berth.planner.plan import Plan
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2027, 3, 20, 9, tzinfo=UTC)
START = datetime(2027, 4, 1, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def need(**changes: Any) -> Need:
    """One B200 machine on 1 April, for team a."""
    base = Need(
        "eval",
        "p6-b200.48xlarge",
        1,
        DAY,
        Target.INSTANCES,
        ("us-east-1",),
        start=START,
        tags=(("team", "a"),),
    )
    return replace(base, **changes)


def owned(**changes: Any) -> Owned:
    """A scheduled block of that type and day, tagged for team a."""
    base = Owned(
        way=Way.CAPACITY_BLOCK, region="us-east-1", id="cr-0123456789abcdef1", arn=None, state="scheduled",
        instance_type="p6-b200.48xlarge", count=1, free=0, start=START, end=START + DAY, zones=("use1-az1",),
        platform="Linux/UNIX", tags=(("team", "a"),),
    )  # fmt: skip
    return replace(base, **changes)


def answer(*found: Owned, trouble: str = "") -> OwnedAnswer:
    """What the Region says."""
    return OwnedAnswer(Way.CAPACITY_BLOCK, "us-east-1", found, trouble)


def on_sale() -> PlaceAnswer:
    """One block on sale for the same day."""
    part = Segment(Window(START, START + DAY), "use1-az1", "us-east-1a", "p6-b200.48xlarge", 1)
    query = Query(
        Way.CAPACITY_BLOCK, "us-east-1", "p6-b200.48xlarge", 1, 24, Target.INSTANCES, platform="Linux/UNIX"
    )
    offer = Offer(
        Way.CAPACITY_BLOCK, "us-east-1", "cb-1", (part,), 1, "p6-b200.48xlarge", Money(Decimal("2727.98")),
        ("instances",), NOW, query,
    )  # fmt: skip
    return PlaceAnswer(Way.CAPACITY_BLOCK, "us-east-1", PlaceOutcome.OFFERS, NOW, "", (offer,), query)


def planned(wanted: Need, *answers: OwnedAnswer) -> Plan:
    """The plan with one block on sale."""
    return make_plan(wanted, [on_sale()], (), NOW, owned=answers)


def test_what_is_owned_and_covers_comes_first_at_no_new_cost() -> None:
    """Field fault 10: team a uses its own block; what could be bought stands second and has no BUY line."""
    plan = planned(need(), answer(owned()))
    assert plan.reuse is not None
    assert plan.reuse.owned.id == "cr-0123456789abcdef1"
    text = plan_text(plan, "AWS")
    assert "USE    cr-0123456789abcdef1  capacity block that you own already  $0.00 more" in text
    assert "ELSE   eval#1  capacity block  $2,727.98 up front" in text
    assert "BUY" not in text.replace("BUYS", "")


def test_what_another_team_owns_is_shown_and_not_counted() -> None:
    """Field fault 10: the same block, asked for by team b: shown, and a purchase is proposed."""
    plan = planned(need(tags=(("team", "b"),)), answer(owned()))
    assert plan.reuse is None
    text = " ".join(plan_text(plan, "AWS").split())
    assert "OWN cr-0123456789abcdef1, capacity-block, scheduled, 1 x p6-b200.48xlarge" in text
    assert "tagged team=a, not counted" in text
    assert "BUY berth buy eval#1" in text


MARKS = [
    ((("team", "a"),), (), "tagged team=a"),
    ((("owner", "ada"),), (("team", "b"),), "tagged owner=ada"),
    ((("berth:order", "111122223333/other/1"),), (), "bought for order other"),
    ((("berth:order", "111122223333/other/2"),), (), "bought for order other/2"),
    ((("berth:order", "111122223333/eval/1"),), (), ""),
    ((("Name", "x"), ("cost-centre", "7")), (), ""),
    ((("cost-centre", "7"),), (("cost-centre", "8"),), "tagged cost-centre=7"),
    (None, (("team", "b"),), ""),
    ((), (("team", "b"),), ""),
]


@pytest.mark.parametrize(("tags", "ours", "others"), MARKS)
def test_whose_it_is_is_read_from_tags(tags: Any, ours: Any, others: str) -> None:
    """Our own tags, usual words for owners, and the mark of another order; no tag says nothing."""
    (choice,) = owned_choices([answer(owned(tags=tags))], need(tags=ours), NOW)
    assert choice.others == others


TWO_ZONES = "lies in use1-az3 and use1-az4: all of it must be in one zone"
SHORT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"count": 2}, {"count": 3}, "3 wanted, 2 reserved"),
    ({"zones": ("use1-az3",)}, {"zone_ids": ("use1-az1",)}, "is in use1-az3, wanted is use1-az1"),
    ({"zones": ("use1-az3", "use1-az4")}, {"same_zone": True}, TWO_ZONES),
    ({"platform": "SUSE Linux"}, {}, "is for platform SUSE Linux, wanted is Linux/UNIX"),
    ({}, {"duration": 2 * DAY}, "leaves 24 h of the 2 d wanted"),
    ({"start": START + DAY, "end": START + 2 * DAY}, {}, "starts 24 h after the fixed start"),
    ({"end": None}, {}, "its end is not known"),
    ({"count": None}, {}, "how many of its instances are free is not known"),
]


@pytest.mark.parametrize(("has", "wanted", "why"), SHORT, ids=[s[2][:24] for s in SHORT])
def test_what_is_missing_is_said_in_a_sentence(has: dict[str, Any], wanted: dict[str, Any], why: str) -> None:
    """Field fault 32: zone, count, platform, time, one sentence each; in part is no cover."""
    (choice,) = owned_choices([answer(owned(**has))], need(**wanted), NOW)
    assert why in choice.against
    assert not choice.covers


def test_two_findings_are_told_both() -> None:
    """Field fault 32: block in 2c with two, asked are three in 2a."""
    (choice,) = owned_choices(
        [answer(owned(zones=("use2-az3",), count=2))], need(zone_ids=("use2-az1",), count=3), NOW
    )
    assert choice.against == ("is in use2-az3, wanted is use2-az1", "3 wanted, 2 reserved")


def test_inside_the_reclaim_window_no_place_is_free() -> None:
    """Field fault 21: 25 minutes before the end AWS still counts 4."""
    block = owned(state="active", count=4, free=4)
    assert places_free(block, START + timedelta(hours=1)) == 4
    assert places_free(block, START + DAY - timedelta(minutes=25)) == 0
    assert places_free(owned(count=4, free=0), START - timedelta(hours=2)) == 4, "before the start all are"


@pytest.mark.parametrize("state", ["expired", "failed", "payment-failed", "unavailable", "moon-phase"])
def test_what_is_over_or_of_an_unknown_state_is_not_counted(state: str) -> None:
    """Neither as cover nor towards the limit over all blocks."""
    plan = planned(need(count=8), answer(owned(state=state, count=250)))
    assert plan.owned == ()
    assert next(v.fits for v in plan.verdicts if v.way is Way.CAPACITY_BLOCK)


def test_owning_250_blocks_of_instances_leaves_room_for_six() -> None:
    """Field fault 37: 8 more are refused locally, whatever is on sale, and the reason is there."""
    plan = planned(need(count=8), answer(owned(count=250, tags=(("team", "b"),))))
    assert plan.choices == ()
    assert "256 over all blocks of an account: 250 owned, 8 more wanted" in plan_text(plan, "AWS")
    refused = planned(need(), answer(owned(count=256, tags=(("team", "b"),))))
    assert "capacity-block does not fit the need" in refused.rejected[0].reasons


def test_what_could_not_be_read_is_not_called_nothing() -> None:
    """The plan is incomplete, and says that there may be more."""
    plan = planned(need(), answer(trouble="UnauthorizedOperation: no"))
    assert plan.incomplete
    assert plan.unread == ("us-east-1 capacity-block: UnauthorizedOperation: no",)
    assert "There may be more: look before you buy" in " ".join(plan_text(plan, "AWS").split())


def test_owned_capacity_survives_json() -> None:
    """What the journal keeps."""
    plan = planned(need(), answer(owned(fee=Money(Decimal("1.5"))), owned(id="cr-2", tags=None, end=None)))
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
