"""A plan tells a combination where it says more than its choices do."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

from berth.planner.best.of_plan import with_combination
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.planner.part import TypeCount
from berth.planner.plan import Plan
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Way

from .test_combination import BLOCKS, NOW, OD, TYPE, a_block, a_need

RATE = HourlyRate(Way.ON_DEMAND, "us-east-2", "on-demand", Money(Decimal("63.296")), instance_type=TYPE)


def a_plan(need: Need, *offers: Offer, limits: dict[Any, int] | None = None) -> Plan:
    """The plan of what one place answered, with its combination."""
    answer = PlaceAnswer(Way.CAPACITY_BLOCK, "us-east-2", PlaceOutcome.OFFERS, NOW, "", offers)
    return with_combination(make_plan(need, [answer], [RATE], NOW), limits)


def test_a_cheaper_mix_leads_and_the_first_choice_stands_beside_it() -> None:
    """Two blocks with half an hour on demand between them cost 797 dollars less than the one that fits."""
    made = a_plan(a_need(retryable=True), *BLOCKS, limits={OD: 8})
    assert made.best is not None
    assert made.combination is not None
    assert made.combination.best is not None
    assert made.combination.best.total == Money(Decimal("8703.30"))
    text = plan_text(made, "header")
    assert "BEST   p5en-1207#best  2 purchases, the rest on-demand  $8,703.30 in all\n" in text
    assert text.index("BEST ") < text.index("ALONE  p5en-1207#1  capacity block  $9,500.00 up front")
    assert "\nBUY    berth buy p5en-1207#best --max 8640.00       asks once, buys each once\n" in text
    assert "\n       berth buy p5en-1207#1 --max 9500.00       that one alone\n" in text
    assert text.count("BEST ") == 1
    assert max(map(len, text.splitlines())) <= 80


def test_what_nobody_promises_does_not_lead_where_a_refusal_hurts() -> None:
    """The start is fixed: the one block leads; the cheaper mix with half an hour on demand stands below."""
    text = plan_text(a_plan(a_need(), *BLOCKS, limits={OD: 8}), "header")
    assert "\nBEST   p5en-1207#1  capacity block  $9,500.00 up front" in text
    assert "\nMIX    p5en-1207#best  2 purchases, the rest on-demand  $8,703.30 in all\n" in text
    assert text.index("BEST ") < text.index("WINDOW UTC") < text.index("MIX ")
    assert text.index("berth buy p5en-1207#1 ") < text.index("berth buy p5en-1207#best ")
    assert "what is paid by the hour may be refused on the day" in text
    assert "ALONE" not in text


def test_nothing_is_told_where_the_first_choice_is_the_best() -> None:
    """Without a known quota nothing fills the hole between the two blocks."""
    assert a_plan(a_need(), *BLOCKS).combination is None


def test_what_fits_in_two_zones_only_is_told_as_a_change() -> None:
    """No offer fits alone; two in different zones do together, if that is allowed."""
    made = a_plan(a_need(count=3), BLOCKS[2], a_block(0, 3, 1, "4700.00", zone="use2-az2"))
    assert made.best is None
    assert made.combination is not None
    first = made.combination.changes[0]
    assert (first.kind, first.value) == ("zones", "several zones of one Region")


def test_where_nothing_fits_the_smallest_change_is_told() -> None:
    """The block starts a day late: the start that would do is told as a need would say it."""
    made = a_plan(a_need(), a_block(1, 3, 2, "9000.00"))
    text = " ".join(plan_text(made, "header").split())
    assert "if a start at 2026-12-08T11:30:00Z: $9,000.00 in 1 piece" in text


def test_a_mix_is_in_the_currency_that_leads() -> None:
    """Another type's two blocks in CNY are no answer because CNY stands first in the alphabet."""
    far = (
        a_block(0, 2, 2, "10.00", instance_type="p5e.48xlarge", offering_id="cb-a"),
        a_block(1, 2, 2, "10.00", instance_type="p5e.48xlarge", offering_id="cb-b", zone="use2-az2"),
    )
    far = tuple(replace(offer, fee=Money(Decimal(9000), "CNY")) for offer in far)
    need = a_need(retryable=True, same_zone=False, alternatives=(TypeCount("p5e.48xlarge", 2, 2),))
    made = a_plan(need, *BLOCKS, *far, limits={OD: 8})
    assert made.currencies.leads == "USD"
    assert made.mix is not None
    assert made.mix.total == Money(Decimal("8703.30"))
    alone = a_plan(need, *far)
    assert alone.mix is not None
    assert alone.mix.total == Money(Decimal(18000), "CNY")


def test_of_mixes_that_cost_the_same_none_in_a_local_zone_leads() -> None:
    """Atlanta's zone needs an opt-in; in the alphabet it stands before the Region's own."""
    offers = tuple(
        replace(a_block(start, days, 2, fee, zone=zone, offering_id=f"cb-{zone}-{days}"), region="us-east-1")
        for zone in ("use1-atl2-az1", "use1-az1")
        for start, days, fee in ((0, 2, "5000.00"), (2, 1, "2500.00"))
    )
    answer = PlaceAnswer(Way.CAPACITY_BLOCK, "us-east-1", PlaceOutcome.OFFERS, NOW, "", offers)
    rate = replace(RATE, region="us-east-1")
    made = with_combination(
        make_plan(a_need(retryable=True, regions=("us-east-1",)), [answer], [rate], NOW),
        {(Way.ON_DEMAND, "us-east-1", TYPE): 8},
    )
    assert made.mix is not None
    assert {piece.zone_id for piece in made.mix.pieces if piece.promised} == {"use1-az1"}


def test_the_document_comes_back_with_its_combination() -> None:
    """As JSON and back; and a document that an older version wrote has none."""
    made = a_plan(a_need(), *BLOCKS, limits={OD: 8})
    document = json.loads(json.dumps(made.to_json()))
    assert Plan.from_json(document) == made
    del document["combination"]
    assert Plan.from_json(document).combination is None
