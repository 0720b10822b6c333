"""A plan's mix: quotas of what is paid by the hour, blocks that are owned, parts that are held beside."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.planner.best.of_plan import with_combination
from berth.planner.best.quota_needs import QuotaNeed
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.hourly_quotas import HourlyQuota, quotas_asked, vcpus_of, with_held
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.planner.owned import Owned, OwnedAnswer
from berth.planner.part import Part, TypeCount
from berth.planner.plan import Plan
from berth.planner.surcharge import OsRate
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way

from .test_combination import BLOCKS, DAY, MONDAY, NOW, TYPE, a_block, a_need

REGION = "us-east-2"
CODE = "L-417A185B"
RATE = HourlyRate(Way.ON_DEMAND, REGION, "on-demand", Money(Decimal("63.296")), instance_type=TYPE)
SPOT = HourlyRate(
    Way.SPOT, REGION, "spot", Money(Decimal("20")), instance_type=TYPE, zone_id="use2-az1"
)  # fmt: skip
QUOTA = HourlyQuota(Way.ON_DEMAND, REGION, TYPE, "ec2", CODE, "Running On-Demand P instances", "vCPU", 192)
READ = replace(QUOTA, value=1536, used=0, trouble="")


EVAL = Part("eval", (TypeCount("p4d.24xlarge", 1, 1),), Target.INSTANCES)


def planned(need: Need, *offers: Offer, quotas: tuple[HourlyQuota, ...] = (), **more: Any) -> Plan:
    """The plan of what one place answered, with what is said of quotas, of owned blocks and of fees."""
    answer = PlaceAnswer(Way.CAPACITY_BLOCK, REGION, PlaceOutcome.OFFERS, NOW, "", offers)
    rates = more.pop("rates", [RATE])
    return with_combination(make_plan(need, [answer], rates, NOW, quotas=quotas, **more))


def total(plan: Plan) -> Decimal | None:
    """What the best combination costs; None without one."""
    mix = plan.mix
    return None if mix is None else mix.total.amount


def held(way: Way, kind: str, count: int, free: int | None) -> OwnedAnswer:
    """A reservation that the account has."""
    one = Owned(
        way, REGION, "cr-1", None, "active", kind, count, free, MONDAY - 2 * DAY, MONDAY - DAY, ("use2-az1",)
    )
    return OwnedAnswer(way, REGION, (one,))


# -- what a quota leaves -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "used", "left"),
    [(1536, 0, 8), (1536, 192, 7), (1536, None, 8), (100, 0, 0), (192, 400, 0), (None, None, None)],
)
def test_what_a_quota_leaves(value: int | None, used: int | None, left: int | None) -> None:
    """Whole instances of what is not in use; not known where the quota is not."""
    assert replace(QUOTA, value=value, used=used).instances == left


@pytest.mark.parametrize(
    ("name", "vcpus"),
    [("p5en.48xlarge", 192), ("m7i.4xlarge", 16), ("c7g.xlarge", 4), ("r6i.large", 2),
     ("m7i.metal-24xl", None), ("u7i-12tb.224xlarge", None), ("m1.xlarge", None)],
)  # fmt: skip
def test_vcpus_of_a_type(name: str, vcpus: int | None) -> None:
    """From the table, or by the rule of the standard families' sizes; else not known."""
    assert vcpus_of(name) == vcpus


def test_every_part_and_way_asks_its_quota() -> None:
    """A head of another class has a quota of its own; an endpoint's is by type, its code not published."""
    head = Part("head", (TypeCount("m7i.4xlarge", 1, 1),), Target.INSTANCES, reserve=False)
    asked = quotas_asked(a_need(beside=(head,)), {Way.ON_DEMAND, Way.SPOT, Way.CAPACITY_BLOCK}, REGION)
    assert [(q.way, q.code, q.each) for q in asked] == [
        (Way.ON_DEMAND, CODE, 192), (Way.SPOT, "L-7212CCBC", 192),
        (Way.ON_DEMAND, "L-1216C47A", 16), (Way.SPOT, "L-34B43A08", 16),
    ]  # fmt: skip
    (served,) = quotas_asked(
        a_need(target=Target.ENDPOINT, instance_type="ml.p5.48xlarge"), {Way.SAGEMAKER_ON_DEMAND}, REGION
    )
    assert (served.code, served.name, served.each) == (None, "ml.p5.48xlarge for endpoint usage", 1)


def test_what_a_reservation_holds_idle_takes_of_the_quota() -> None:
    """Two of three instances of an ODCR are idle; another class takes nothing; unknown stays unknown."""
    (odcr,) = held(Way.ODCR, TYPE, 3, 2).owned
    assert [q.used for q in with_held([READ], [odcr])] == [384]
    assert [q.used for q in with_held([READ], [replace(odcr, instance_type="m7i.4xlarge")])] == [0]
    assert [q.used for q in with_held([READ], [replace(odcr, free=None)])] == [None]


# -- in the mix --------------------------------------------------------------------------------------------
def test_hours_within_the_quota_that_was_read_are_in_the_mix() -> None:
    """Two blocks and half an hour on demand beat the one offer, and what they take is said."""
    made = planned(a_need(), *BLOCKS, quotas=(READ,))
    assert total(made) == Decimal("8703.30")
    text = " ".join(plan_text(made, "header").split())
    assert "takes on-demand 384 vCPU in us-east-2 (L-417A185B is 1,536, 0 in use now)" in text
    unknown = planned(a_need(), *BLOCKS, quotas=(replace(READ, used=None),))
    assert "is 1,536, what runs now is not known)" in " ".join(plan_text(unknown, "header").split())


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        (replace(QUOTA, trouble="not read"), "L-417A185B, not read"),
        (replace(READ, value=0), "L-417A185B is 0, 0 in use now"),
        (replace(READ, used=1344), "L-417A185B is 1,536, 1,344 in use now"),
    ],
)
def test_hours_that_no_known_quota_allows_are_a_separate_answer(quota: HourlyQuota, said: str) -> None:
    """They are never counted on: the mix stands apart, under what the quota would have to allow."""
    made = planned(a_need(), *BLOCKS, quotas=(quota,))
    assert made.mix is None
    assert made.combination is not None
    assert made.combination.if_quota is not None
    text = plan_text(made, "header")
    told = (
        f"IF if your quota allows on-demand 384 vCPU in us-east-2 ({said}): 2 purchases, the rest on-demand,"
    )
    assert told in " ".join(text.split())
    assert "$8,703.30 in all" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    document = json.loads(json.dumps(made.to_json()))
    assert Plan.from_json(document) == made


def test_spot_is_only_in_what_may_be_interrupted() -> None:
    """With a Spot quota that was read: in the mix of what survives two minutes' notice, else never."""
    spot = replace(READ, way=Way.SPOT, code="L-7212CCBC")
    dear = replace(SPOT, hourly=Money(Decimal(100)))
    survives = planned(a_need(interruptible=True), *BLOCKS, quotas=(spot,), rates=[dear])
    assert total(survives) == Decimal("8740.00")
    assert planned(a_need(interruptible=False), *BLOCKS, quotas=(spot,), rates=[dear]).combination is None


def test_hours_alone_lead_nothing() -> None:
    """Spot for all of it would cost a third: that is told beside a mix with a promise, and leads nothing."""
    spot = replace(READ, way=Way.SPOT, code="L-7212CCBC")
    made = planned(a_need(interruptible=True), BLOCKS[2], quotas=(spot,), rates=[SPOT])
    assert made.combination is None
    gap = a_need(interruptible=True, gap_at_most=timedelta(minutes=30))
    told = planned(gap, *BLOCKS, quotas=(spot,), rates=[SPOT])
    assert total(told) == Decimal("8640.00")
    assert told.combination is not None
    assert told.combination.by_the_hour == Money(Decimal("2840.00"))
    assert "by the hour alone it would cost $2,840.00" in plan_text(told, "header")


def test_types_of_one_quota_share_it() -> None:
    """A head of the same class takes what the nodes can then not have."""
    head = Part("head", (TypeCount("p5.48xlarge", 1, 1),), Target.INSTANCES, reserve=False)
    rate = replace(RATE, instance_type="p5.48xlarge", hourly=Money(Decimal("55.04")))
    both = (READ, replace(READ, instance_type="p5.48xlarge"))
    enough = planned(a_need(beside=(head,)), *BLOCKS, quotas=both, rates=[RATE, rate])
    assert total(enough) == Decimal("8703.30") + Decimal("55.04") * Decimal("71.5")
    tight = tuple(replace(q, value=384) for q in both)
    less = planned(a_need(beside=(head,)), *BLOCKS, quotas=tight, rates=[RATE, rate])
    assert less.combination is not None
    assert less.combination.if_quota is not None
    (needs,) = less.combination.if_quota.needs
    assert (needs.needed, needs.value) == (576, 384)


def test_it_is_never_dearer_than_on_demand_alone_or_any_choice() -> None:
    """With on-demand in it: what leads costs no more than a choice, and what hours alone cost is said."""
    for hourly in ("20", "40", "63.296", "120"):
        made = planned(
            a_need(), *BLOCKS, quotas=(READ,), rates=[replace(RATE, hourly=Money(Decimal(hourly)))]
        )
        alone = made.combination.by_the_hour if made.combination else None
        hours_alone = Decimal(hourly) * 2 * Decimal("71.5")
        first = made.choices[0].cost.total
        assert first is not None
        if made.mix is not None:
            assert made.mix.total <= first
            assert made.mix.total.amount <= hours_alone or alone == Money(hours_alone)


def test_the_order_in_which_answers_and_quotas_come_changes_nothing() -> None:
    """Byte for byte the same document, the separate answer with it."""
    eval_block = a_block(0, 3, 1, "1500.00", instance_type="p4d.24xlarge")
    quotas = (READ, replace(QUOTA, instance_type="p4d.24xlarge"))
    need = a_need(beside=(EVAL,))
    one = planned(need, *BLOCKS, eval_block, quotas=quotas)
    other = planned(need, eval_block, *reversed(BLOCKS), quotas=tuple(reversed(quotas)))
    assert one.combination is not None
    assert json.dumps(one.combination.to_json()) == json.dumps(
        other.combination and other.combination.to_json()
    )
    assert one.quotas == other.quotas


# -- blocks that are owned, fees of platforms --------------------------------------------------------------
def test_blocks_that_are_owned_count_against_all_blocks() -> None:
    """253 are held: two blocks of two at different times are three too many; one of two is not."""
    need = a_need(gap_at_most=timedelta(minutes=30))
    free = planned(need, *BLOCKS)
    assert total(free) == Decimal("8640.00")
    owned = [held(Way.CAPACITY_BLOCK, "p5.48xlarge", 253, 253)]
    full = planned(need, *BLOCKS, owned=owned)
    assert full.blocks_held == 253
    assert full.mix is None


def test_pieces_of_a_platform_with_a_fee_have_a_known_total() -> None:
    """RHEL costs an hourly fee on top: offers that do not fit alone carry it into the mix too."""
    rhel = "Red Hat Enterprise Linux"
    blocks = tuple(replace(block, query=replace(block.query, platform=rhel)) for block in BLOCKS)
    need = a_need(platform=rhel, gap_at_most=timedelta(minutes=30))
    fee = OsRate(REGION, rhel, Money(Decimal("2.00")), "a test", TYPE)
    made = planned(need, *blocks, os_rates=[fee])
    assert total(made) == Decimal("8640.00") + 2 * 72 * Decimal("2.00")
    assert planned(need, *blocks).mix is None


# -- parts that are held beside ----------------------------------------------------------------------------
def test_a_part_that_is_held_beside_is_in_the_mix_in_the_same_zone() -> None:
    """The cheaper block for it lies in another zone; the total is of both parts, each row says its type."""
    near = a_block(0, 3, 1, "1500.00", instance_type="p4d.24xlarge")
    far = a_block(0, 3, 1, "1000.00", instance_type="p4d.24xlarge", zone="use2-az2", offering_id="cb-far")
    made = planned(a_need(beside=(EVAL,)), BLOCKS[2], near, far)
    assert total(made) == Decimal("11000.00")
    assert made.mix is not None
    assert {piece.zone_id for piece in made.mix.pieces} == {"use2-az1"}
    assert [r.reasons for r in made.rejected] == [("is for the part eval",)] * 2
    text = plan_text(made, "header")
    assert "cb-0-3-1  p4d.24xlarge" in text
    assert "eval: 1 x p4d.24xlarge (8 A100), held with the others by p5en-1207#best" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_parts_that_only_two_zones_hold_are_told_as_a_change() -> None:
    """Nothing holds both in one zone: allowing several would."""
    far = a_block(0, 3, 1, "1000.00", instance_type="p4d.24xlarge", zone="use2-az2", offering_id="cb-far")
    made = planned(a_need(beside=(EVAL,)), BLOCKS[2], far)
    assert made.combination is not None
    assert made.combination.best is None
    first = made.combination.changes[0]
    assert (first.kind, first.value) == ("zones", "several zones of one Region")


def test_a_part_of_which_nothing_was_seen_is_named() -> None:
    """The mix of the others is told all the same, and says what it is without."""
    made = planned(a_need(beside=(EVAL,)), *BLOCKS, quotas=(READ,))
    assert made.combination is not None
    assert made.combination.left_out == ("eval",)
    assert total(made) == Decimal("8703.30")


def test_a_quota_need_says_what_is_known() -> None:
    """Code, value and use, each only where it is known."""
    need = QuotaNeed(
        Way.SAGEMAKER_ON_DEMAND, REGION, None, "ml.x for endpoint usage", "instance", 2, None, None, ""
    )
    assert need.sentence == (
        'sagemaker-on-demand 2 instances in us-east-2 (quota "ml.x for endpoint usage", not read)'
    )
    assert not need.allowed
    assert replace(need, value=2).allowed
    assert not replace(need, value=2, used=1).allowed
