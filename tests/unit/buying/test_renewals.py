"""Ways to go on after a reservation's end: pure rules over values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.orders.extensions.offers import ExtensionOffer
from berth.orders.order import Order, OrderKey, OrderState
from berth.orders.renewals.renewal import (
    PIECE,
    Means,
    Renewal,
    WayOn,
    by_a_new_one,
    by_extending,
    follower,
    next_need,
    next_sequence,
    ranked,
)
from berth.orders.renewals.wording import command, renewal_json, renewal_text
from berth.planner.need import Need
from berth.planner.offers import Offer, Query, Segment
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

DAY = timedelta(days=1)
START = datetime(2027, 3, 1, 11, 30, tzinfo=UTC)
END = START + 14 * DAY
NOW = END - 10 * DAY
FORTNIGHT = 14 * DAY


def usd(amount: int | str) -> Money:
    """Dollars."""
    return Money(Decimal(amount))


def an_offer(start: datetime = START, zone: str = "usw2-az1", days: int = 14, fee: int | None = 100) -> Offer:
    """A block of one machine."""
    window = Window(start, start + days * DAY)
    query = Query(Way.CAPACITY_BLOCK, "us-west-2", "p6-b200.48xlarge", 1, 24 * days, Target.INSTANCES)
    return Offer(
        way=Way.CAPACITY_BLOCK, region="us-west-2", offering_id="cb-1",
        segments=(Segment(window, zone, None, "p6-b200.48xlarge", 1),), count=1,
        instance_type="p6-b200.48xlarge", fee=None if fee is None else usd(fee), targets=("instances",),
        seen_at=NOW, query=query,
    )  # fmt: skip


def an_order(sequence: int = 1, state: OrderState = OrderState.BOUGHT, **offer: Any) -> Order:
    """An order of the pool."""
    made = an_offer(**offer)
    return Order(
        key=OrderKey("111122223333", "pool", sequence), state=state, reservation_name=f"pool-{sequence}",
        offer=made, cap=None, context={}, reservation_arn="arn:aws:ec2:::capacity-reservation/cr-1",
        seen=None,        created_at=NOW, changed_at=NOW, attempts=(), looks=(),
    )  # fmt: skip


def a_way(means: Means = Means.NEW, **changes: Any) -> WayOn:
    """A way on."""
    base = WayOn(means, Window(END, END + FORTNIGHT), ("usw2-az1",), usd(100), number=1)
    return replace(base, **changes)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({}, {"gap": DAY, "fee": usd(50)}),
        ({}, {"same_zone": False, "fee": usd(50)}),
        ({"fee": usd(99)}, {}),
        ({"gap": DAY}, {"against": ("no",)}),
        ({"gap": DAY}, {"fee": None}),
        ({"means": Means.EXTEND}, {}),
        ({}, {"window": Window(END - DAY, END + 13 * DAY)}),
        ({"fee": usd(99)}, {"means": Means.EXTEND}),
    ],
)
def test_what_comes_first(better: dict[str, Any], worse: dict[str, Any]) -> None:
    """No gap, then the same zone, the lower fee, the later end, extending; never what is barred."""
    first, second = a_way(**better), a_way(**worse)
    assert ranked([second, first]) == (first, second)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.builds(
            WayOn,
            means=st.sampled_from(Means),
            window=st.just(Window(END, END + FORTNIGHT)),
            zones=st.just(("usw2-az1",)),
            fee=st.one_of(st.none(), st.integers(0, 9).map(usd)),
            gap=st.sampled_from([timedelta(0), DAY]),
            same_zone=st.booleans(),
            against=st.sampled_from([(), ("no",)]),
        ),
        max_size=6,
    )
)
def test_what_is_proposed_can_be_bought(ways: list[WayOn]) -> None:
    """A known fee over zero, nothing against it, and no gap where some way has none; else nothing."""
    order = an_order()
    best = Renewal(order, END, FORTNIGHT, 2, ranked(ways)).best
    can = [way for way in ways if way.can_be_bought]
    assert (best is None) is (not can)
    if best is not None:
        assert best in can
        assert best.gap == min(way.gap for way in can)


def test_extensions_begin_at_the_end() -> None:
    """One that begins elsewhere, such as behind an extension that was just bought, is no way on."""
    offers = [ExtensionOffer("e", Window(at, at + FORTNIGHT), usd(7), NOW) for at in (END, END + DAY)]
    (way,) = by_extending(an_order(), offers, END)
    assert (way.window.start, way.fee, way.without, way.zones) == (END, usd(7), timedelta(0), ("usw2-az1",))


@pytest.mark.parametrize(
    ("start", "gap", "twice", "without"),
    [
        (END, 0, 0, 1800),
        (END - DAY, 0, 86_400, 0),
        (END + DAY, 86_400, 0, 88_200),
    ],
)
def test_a_new_one_beside_the_end(start: datetime, gap: int, twice: int, without: int) -> None:
    """Time between, time paid twice, and time without machines: AWS takes the old ones 30 minutes early."""

    choice = SimpleNamespace(offer=an_offer(start, "usw2-az2"), fee=usd(9), number=4)
    plan: Any = SimpleNamespace(choices=[choice])
    (way,) = by_a_new_one(an_order(), plan, END)
    assert (way.gap, way.twice, way.without) == tuple(timedelta(seconds=n) for n in (gap, twice, without))
    assert (way.same_zone, way.number, way.fee) == (False, 4, usd(9))


def test_a_later_order_goes_on_from_it() -> None:
    """Bought or in doubt, about where this one ends; not one that was refused, or of another time."""
    first = an_order()
    for state in (OrderState.BOUGHT, OrderState.BUYING, OrderState.UNKNOWN):
        after = an_order(2, state, start=END)
        assert follower(first, [first, after], END) is after
    for other in (
        an_order(2, OrderState.REFUSED, start=END),
        an_order(2, start=END + 30 * DAY),
        an_order(2, start=START),
    ):  # fmt: skip
        assert follower(first, [first, other], END) is None
    assert next_sequence([first]) == 2
    assert next_sequence([first, an_order(2, OrderState.REFUSED)]) == 2
    assert next_sequence([first, an_order(2)]) == 3


def test_the_new_one_is_what_the_need_was() -> None:
    """Its tags, places and budget; the order's type and count; a day around the end, never in the past."""
    need = Need(
        "pool", "p5.48xlarge", 3, FORTNIGHT, Target.INSTANCES, ("us-west-2",), start=START,
        tags=(("team", "ci"),), longest=30 * DAY,
    )  # fmt: skip
    order = replace(an_order(), context={"need": need.to_json()})
    wanted = next_need(order, END, 7 * DAY, NOW)
    assert (wanted.tags, wanted.instance_type, wanted.count) == (need.tags, "p6-b200.48xlarge", 1)
    assert (wanted.start, wanted.duration, wanted.is_range) == (None, 7 * DAY, False)
    assert (wanted.earliest_start, wanted.latest_end) == (END - DAY, END + 8 * DAY)
    late = next_need(an_order(), END, 7 * DAY, END - timedelta(hours=2))
    assert late.earliest_start == END - timedelta(hours=2)
    assert (late.name, late.target, late.regions) == ("pool", Target.INSTANCES, ("us-west-2",))


def test_how_it_is_told() -> None:
    """In 80 columns: both ways with fees, why, whose word is asked, and the command that buys it once."""
    extend = a_way(
        Means.EXTEND, number=None, approval="90.00 USD is above 30.00 USD: somebody else must agree"
    )
    new = a_way(fee=usd(105), same_zone=False, without=timedelta(minutes=30), zones=("usw2-az2",))
    made = Renewal(an_order(), END, FORTNIGHT, 2, ranked([new, extend]), ("us-east-1 did not answer",))
    text = renewal_text(made, NOW)
    assert max(map(len, text.splitlines())) <= 80
    for said in (
        "1  extend",
        "2  new",
        "without a gap",
        "costs 5.00 USD more",
        "ASK",
        "UNKNOWN us-east-1",
        "in 10 d",
    ):
        assert said in text
    dear = replace(
        made, ways=(replace(new, fee=Money(Decimal("12345678901.25"), "EUR"), gap=timedelta(hours=30)),)
    )
    text = renewal_text(dear, NOW)
    assert max(map(len, text.splitlines())) <= 80
    assert f"\n{'12,345,678,901.25 EUR':>80}\n" in text
    assert made.best is extend
    assert command(made, extend) == "berth extend pool --until 2027-03-29T11:30Z --max 100.00"
    assert command(made, new) == "berth buy pool/2#1 --max 105.00"
    told = renewal_json(made, order="pool", says="to be renewed")
    assert told["proposed"] == command(made, extend)
    assert [way["means"] for way in told["ways"]] == ["extend", "new"]
    barred = Renewal(an_order(), END, FORTNIGHT, 2, (a_way(against=("over the cap",)),))
    assert "AGAINST over the cap" in renewal_text(barred, NOW)
    assert renewal_json(barred, order="pool", says="")["proposed"] is None
    assert renewal_json(None, order="pool", says="not due")["ways"] == []
    piece = Renewal(an_order(), END, FORTNIGHT, 2, (extend,), notes=(PIECE,))
    assert "nothing new" not in renewal_text(piece, NOW)
    assert "NOTE    it is one piece" in renewal_text(piece, NOW)
