"""The second choice beside the first, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from berth.planner.choose import make_plan
from berth.planner.need import Need, Subnet
from berth.planner.offers import Offer
from berth.planner.offers_text import offers_text


@pytest.fixture
def told(a_need: Callable[..., Need], an_answer: Any, now: datetime) -> Callable[..., str]:
    """`told(first, second)`: the reason that the plan gives for its second choice."""

    def made(*offers: Offer) -> str:
        need = a_need(start=None, regions=("us-east-1", "us-west-2"))
        answers = [an_answer(offer, region=offer.region) for offer in offers]
        plan = make_plan(need, answers, (), now)
        assert len(plan.choices) == 2
        assert "next best" not in plan.choices[0].reasons[0]
        return plan.choices[1].reasons[0]

    return made


def test_what_one_gives_up_with_the_second(told: Callable[..., str], an_offer: Any, start: datetime) -> None:
    """Another place, a later start, a longer time, more money; each only where it differs."""
    first = an_offer("100")
    west = replace(an_offer("100", zone="usw2-az1"), region="us-west-2", offering_id="b")
    assert (
        told(first, west)
        == "next best to #1: in another Region, us-west-2, at the same time, for the same money"
    )
    later = an_offer("130.50", starts=start + timedelta(hours=24), zone="use1-az4", offering_id="c")
    assert told(first, later) == "next best to #1: in another zone, 24 h later, for 30.50 USD more"
    longer = an_offer("450", days=3, offering_id="d")
    assert (
        told(first, longer)
        == "next best to #1: in the same zone, at the same time, 2 d longer, for 350.00 USD more"
    )


def test_offers_say_which_need_a_subnet(
    a_need: Callable[..., Need], an_answer: Any, an_offer: Any, now: datetime
) -> None:
    """`--offers` marks those outside of the zones that have one, and gives reasons for the best two."""
    need = a_need(subnets=(Subnet("use1-az6"),))
    offers = an_offer("100"), an_offer("100", zone="use1-az4", offering_id="b")
    text = offers_text(make_plan(need, [an_answer(*offers)], (), now))
    assert text.count("needs a subnet") == 1
    assert text.index("use1-az4") < text.index("needs a subnet")
    assert text.count("  why") == 2
