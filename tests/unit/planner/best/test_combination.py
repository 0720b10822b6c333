"""From a need and offers to the plan's combination, as a value, as JSON and as text."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.planner.best.combination import Combination, Piece
from berth.planner.best.combine import combine
from berth.planner.best.from_need import Seen, cases_of
from berth.planner.best.wording import combination_lines
from berth.planner.cost import HourlyRate, cost_of
from berth.planner.need import Need
from berth.planner.offers import Offer, Query, Segment
from berth.planner.part import Level, Part, TypeCount
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
MONDAY = datetime(2026, 12, 7, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)
TYPE = "p5en.48xlarge"
OD = (Way.ON_DEMAND, "us-east-2", TYPE)


def a_need(**changes: Any) -> Need:
    """Two p5en for three days from Monday, the start fixed."""
    base = Need(
        name="p5en-1207",
        instance_type=TYPE,
        count=2,
        duration=3 * DAY,
        target=Target.INSTANCES,
        regions=("us-east-2",),
        start=MONDAY,
    )
    return replace(base, **changes)


def a_block(start: float, days: float, count: int, fee: str, **changes: Any) -> Offer:
    """A block in use2-az1 from `start` days after Monday."""
    held = Window(MONDAY + start * DAY, MONDAY + (start + days) * DAY)
    zone = changes.pop("zone", "use2-az1")
    kind = changes.get("instance_type", TYPE)
    base = Offer(
        way=Way.CAPACITY_BLOCK,
        region="us-east-2",
        offering_id=f"cb-{start:g}-{days:g}-{count}",
        segments=(Segment(held, zone, None, kind, count),),
        count=count,
        instance_type=kind,
        fee=Money(Decimal(fee)),
        targets=("instances",),
        seen_at=NOW,
        query=Query(Way.CAPACITY_BLOCK, "us-east-2", kind, count, int(days * 24), Target.INSTANCES),
    )
    return replace(base, **changes)


def seen(*offers: Offer, limits: dict[Any, int] | None = None, **changes: Any) -> Seen:
    """Those offers, and on-demand at the list price, with a quota of 8 unless told otherwise."""
    priced = [(offer, cost_of(offer, 8, None, None)) for offer in offers]
    hourly = Money(Decimal("63.296"))
    rate = HourlyRate(Way.ON_DEMAND, "us-east-2", "on-demand", hourly, instance_type=TYPE)
    ways = frozenset({Way.CAPACITY_BLOCK, Way.ON_DEMAND})
    return Seen(priced, (rate,), ways, {OD: 8} if limits is None else limits, **changes)


BLOCKS = (a_block(0, 1, 2, "2880.00"), a_block(1, 2, 2, "5760.00"), a_block(0, 3, 2, "9500.00"))


def made(need: Need, what: Seen) -> Combination:
    """The combination; the offer of three days is choice 1."""
    found = combine(need, what, NOW, {("us-east-2", "cb-0-3-2"): 1})
    assert found is not None
    return found


def test_two_blocks_and_half_an_hour_on_demand_beat_one_block() -> None:
    """AWS takes the first block's instances half an hour before its end; on-demand fills that hole."""
    best = made(a_need(), seen(*BLOCKS)).best
    assert best is not None
    assert [(p.way, p.count) for p in best.pieces] == [
        (Way.CAPACITY_BLOCK, 2), (Way.ON_DEMAND, 2), (Way.CAPACITY_BLOCK, 2),
    ]  # fmt: skip
    assert best.total == Money(Decimal("8703.30"))  # 2,880 + 5,760 + 2 x 0.5 h x 63.296
    assert best.usable == 3 * DAY - timedelta(minutes=30)
    assert best.accelerator_hours == Decimal("1144.00")


def test_one_block_alone_is_told_beside_it_with_what_it_trades() -> None:
    """797 dollars dearer, two pieces fewer, nothing that may be refused."""
    found = made(a_need(), seen(*BLOCKS))
    (alone,) = [o for o in found.others if [p.number for p in o.mix.pieces] == [1]]
    assert (alone.dearer, alone.pieces, alone.unpromised) == (Money(Decimal("796.70")), -2, -1)


def test_on_demand_of_which_the_quota_is_not_known_fills_nothing() -> None:
    """Without a known limit the hole stays, and the block of three days is the best."""
    best = made(a_need(), seen(*BLOCKS, limits={})).best
    assert best is not None
    assert [p.number for p in best.pieces] == [1]


def test_a_gap_that_the_need_allows_is_left_open() -> None:
    """With a gap of half an hour allowed nobody needs to fill it."""
    need = a_need(gap_at_most=timedelta(minutes=30))
    best = made(need, seen(*BLOCKS, limits={})).best
    assert best is not None
    assert best.total == Money(Decimal("8640.00"))
    assert len(best.running) == 2


def test_the_operating_systems_fee_and_the_start_up_time_are_counted() -> None:
    """A start-up time shortens what can be used at every seam, and is forgiven at the need's own start."""
    need = a_need(startup=timedelta(minutes=15))
    (case,) = cases_of(need, seen(*BLOCKS), NOW)
    assert case.wish.start == MONDAY + timedelta(minutes=15)
    assert case.wish.end == MONDAY + 3 * DAY - timedelta(minutes=30)
    best = made(need, seen(*BLOCKS)).best
    assert best is not None
    assert best.total == Money(Decimal("8766.59"))  # 15 min of start and 45 min of work, twice: 126.592


def test_several_instances_that_work_together_stay_in_one_zone() -> None:
    """The cheaper second block lies in another zone; for an endpoint that would not matter."""
    far = a_block(1, 2, 2, "4000.00", zone="use2-az2")
    best = made(a_need(), seen(BLOCKS[0], far, BLOCKS[2])).best
    assert best is not None
    assert len({p.zone_id for p in best.pieces if p.promised}) == 1
    spread = made(a_need(same_zone=False), seen(BLOCKS[0], far, BLOCKS[2])).best
    assert spread is not None
    assert spread.total < best.total


def test_the_need_says_whether_one_zone_is_a_must() -> None:
    """One instance may move from zone to zone between two blocks, unless the need wants one zone."""
    wanted = a_need(count=1, profile=(), target=Target.INSTANCES)
    offers = (a_block(0, 1, 1, "1440.00"), a_block(1, 2, 1, "2880.00", zone="use2-az2"))
    free = made(wanted, seen(*offers, limits={OD: 1})).best
    assert free is not None
    assert {p.zone_id for p in free.pieces if p.promised} == {"use2-az1", "use2-az2"}
    tied = made(replace(wanted, same_zone=True), seen(*offers, limits={OD: 1})).best
    assert tied is not None
    assert len({p.zone_id for p in tied.pieces if p.promised}) == 1
    assert tied.total > free.total


def test_a_way_that_the_need_leaves_out_is_no_piece() -> None:
    """Between two blocks on-demand fills the half hour; left out, only blocks are held, beside a head."""
    assert any(p.way is Way.ON_DEMAND for p in _pieces(a_need()))
    tied = _pieces(a_need(ways=(Way.CAPACITY_BLOCK,)))
    assert {p.way for p in tied} == {Way.CAPACITY_BLOCK}
    head = Part("head", (TypeCount("m7i.4xlarge", 1, 1),), Target.INSTANCES, reserve=False)
    beside = _pieces(a_need(ways=(Way.CAPACITY_BLOCK,), beside=(head,)))
    assert {(p.instance_type, p.way) for p in beside} == {
        (TYPE, Way.CAPACITY_BLOCK), ("m7i.4xlarge", Way.ON_DEMAND),
    }  # fmt: skip


def _pieces(need: Need) -> tuple[Piece, ...]:
    hourly = Money(Decimal("1.00"))
    rate = HourlyRate(Way.ON_DEMAND, "us-east-2", "on-demand", hourly, instance_type="m7i.4xlarge")
    what = seen(*BLOCKS, limits={OD: 8, (Way.ON_DEMAND, "us-east-2", "m7i.4xlarge"): 5})
    best = made(need, replace(what, rates=(*what.rates, rate))).best
    assert best is not None
    return best.pieces


def test_a_profile_is_covered_level_by_level() -> None:
    """Two instances, four on the last day: the block of four is not needed for all of it."""
    need = a_need(count=4, profile=(Level(timedelta(0), 2), Level(2 * DAY, 4)))
    offers = (
        a_block(0, 3, 2, "9000.00"),
        a_block(2, 1, 2, "3000.00", zone="use2-az2"),
        a_block(0, 3, 4, "18000.00"),
    )
    best = made(replace(need, same_zone=False), seen(*offers, limits={})).best
    assert best is not None
    assert best.total == Money(Decimal("12000.00"))


def test_a_head_is_paid_by_the_hour_beside_the_nodes() -> None:
    """The head's hours are in the total; a part without any price is named as left out."""
    head = Part("head", (TypeCount("m7i.4xlarge", 1, 1),), Target.INSTANCES, reserve=False)
    hourly = HourlyRate(
        Way.ON_DEMAND, "us-east-2", "on-demand", Money(Decimal("1.00")), instance_type="m7i.4xlarge"
    )
    what = seen(*BLOCKS, limits={OD: 8, (Way.ON_DEMAND, "us-east-2", "m7i.4xlarge"): 5})
    what = replace(what, rates=(*what.rates, hourly))
    best = made(a_need(beside=(head,)), what).best
    assert best is not None
    assert best.total == Money(Decimal("8774.80"))  # 71.5 h more
    unknown = made(a_need(beside=(head,)), seen(*BLOCKS))
    assert unknown.left_out == ("head",)


def test_of_two_types_the_cheaper_one_is_told() -> None:
    """Either would do; sums over types are not made."""
    other = a_block(0, 3, 2, "7000.00", instance_type="p5e.48xlarge")
    need = a_need(alternatives=(TypeCount("p5e.48xlarge", 2, 2),))
    assert made(need, seen(*BLOCKS, other)).instance_type == "p5e.48xlarge"


def test_when_nothing_fits_values_are_told_as_a_need_would_say_them() -> None:
    """One block, a day late: the start that would do is its paid start."""
    late = a_block(1, 3, 2, "9000.00")
    found = made(a_need(budget=Money(Decimal(10000))), seen(late, limits={}))
    assert found.best is None
    assert [(c.kind, c.value) for c in found.changes][:2] == [
        ("start", "2026-12-08T11:30:00Z"),
    ] or found.changes[0].value == "2026-12-08T11:30:00Z"


def test_the_same_things_seen_in_another_order_make_the_same_document() -> None:
    """Byte for byte."""
    one = json.dumps(made(a_need(), seen(*BLOCKS)).to_json())
    assert json.dumps(made(a_need(), seen(*reversed(BLOCKS))).to_json()) == one


@pytest.mark.parametrize("limits", [{OD: 8}, {}])
def test_a_combination_comes_back_from_json(limits: dict[Any, int]) -> None:
    """With pieces, evidence, others; and with changes."""
    for need in (a_need(), a_need(count=3)):
        found = made(need, seen(*BLOCKS, limits=limits))
        assert Combination.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_without_the_optimiser_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named; the caller ranks single offers."""
    monkeypatch.setitem(sys.modules, "highspy", None)
    found = made(a_need(), seen(*BLOCKS))
    assert (found.best, found.changes) == (None, ())
    assert "gpu-berth[optimiser]" in found.trouble
    assert "Single offers are ranked all the same" in " ".join(combination_lines(found, a_need()))


TEXT = """\
BEST   p5en-1207#best  2 purchases, the rest on-demand  $8,703.30 in all
  why  best of the 3 offers seen, for 71 h 30 min of use, 7.608/GPU-h: no
       combination of what was seen costs less; that is proven
"""


def test_the_text_fits_80_columns_and_says_what_it_must() -> None:
    """Total, pieces with whole ids, proof, what may be refused, others with what they trade."""
    found = made(a_need(), seen(*BLOCKS))
    lines = combination_lines(found, a_need(), explain=True)
    text = "\n".join(lines) + "\n"
    assert max(map(len, lines)) <= 80
    assert text.startswith(TEXT)
    whole = (
        "cb-0-1-2",
        "a  capacity-block",
        "may be refused on the day",
        "$796.70 dearer",
        "bound $8,703.30",
    )
    assert [told for told in whole if told not in text] == []


def test_a_piece_in_a_local_zone_says_what_it_takes() -> None:
    """An opt-in and a subnet, as a single offer there says."""
    local = tuple(replace(b, segments=tuple(replace(s, zone_id="use1-atl2-az1") for s in b.segments),
                          region="us-east-1") for b in BLOCKS[:2])  # fmt: skip
    rate = HourlyRate(
        Way.ON_DEMAND, "us-east-1", "on-demand", Money(Decimal("63.296")), instance_type=TYPE
    )  # fmt: skip
    what = replace(
        seen(*local, limits={(Way.ON_DEMAND, "us-east-1", TYPE): 8}), rates=(rate,)
    )  # fmt: skip
    found = made(a_need(regions=("us-east-1",)), what)
    text = " ".join(" ".join(combination_lines(found, a_need())).split())
    assert text.count("use1-atl2-az1 is a Local Zone: opt in to it and have a subnet there first") == 1
    elsewhere = " ".join(combination_lines(made(a_need(), seen(*BLOCKS)), a_need()))
    assert "Local Zone" not in elsewhere
