"""What is particular about buying Capacity Blocks: a tag is the mark, and a look reads everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.orders.adoption import find_marked_block, offer_of
from berth.orders.block_descriptions import described_block
from berth.orders.order import OrderKey, OrderState
from berth.orders.purchase import How
from berth.orders.seen import STAGES, Stage
from berth.orders.shops.capacity_blocks import looks_alike
from berth.orders.sighting import trace_of
from berth.planner.need import Need
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target

KEY = OrderKey("111122223333", "eval", 1)
NEED = Need(
    name="eval", instance_type="p5.48xlarge", count=1, duration=timedelta(hours=24), target=Target.INSTANCES,
    regions=("us-east-1",), tags=(("team", "a"),),
)  # fmt: skip


@pytest.fixture
def world(make_world: Callable[..., Any]) -> Any:
    """A buyer of Capacity Blocks."""
    return make_world("blocks")


def test_the_mark_the_fee_and_the_need_go_along(world: Any) -> None:
    """Tags of the one paid call: our order, the attempt, what is paid, and the need's own."""
    order = world.buy(need=NEED.to_json()).order
    tags = world.aws.tags_of(world.aws.ledger[0][0])
    assert tags["berth:order"] == "111122223333/eval/1"
    assert tags["berth:intent"] == order.attempt.intent_id
    assert tags["berth:fee"] == "228.77 USD"
    assert tags["team"] == "a"
    assert order.offer.platform == "Linux/UNIX"


def test_what_cannot_be_seen_is_said_before_paying(world: Any) -> None:
    """Another machine's intent is invisible: the person is told so before the call, not after."""
    said: list[str] = []
    real = world.aws.purchase_capacity_block

    def pay(**request: Any) -> Any:
        said.extend(world.talk)
        return real(**request)

    world.aws.purchase_capacity_block = pay
    world.buy()
    assert any("another machine" in line and "cannot be seen" in line for line in said)


def test_marks_are_read_again_right_before_the_call(world: Any, make_world: Callable[..., Any]) -> None:
    """A colleague buys while we search: the last look finds it, and nothing is paid twice."""
    other = make_world("blocks")
    other.aws = world.aws
    search = world.aws.search

    def meanwhile(query: Any) -> Any:
        world.aws.search = search
        other.buy()
        return search(query)

    world.aws.search = meanwhile
    assert world.buy().how is How.ELSEWHERE
    assert len(world.aws.ledger) == 1


def test_an_adopted_block_keeps_its_own_window_and_fee(world: Any, make_world: Callable[..., Any]) -> None:
    """What a colleague bought may be another window than the one on sale now: AWS's word stands."""
    world.aws.fee = Decimal("199.99")
    world.approved = world.aws.offer()
    world.buy()
    made = world.aws.blocks[world.aws.ledger[0][0]]
    made["StartDate"] -= timedelta(days=1)
    made["EndDate"] -= timedelta(days=1)
    other = make_world("blocks")
    other.aws = world.aws
    order = other.buy().order
    assert order.offer.paid_window.start == made["StartDate"]
    assert str(order.attempt.fee) == "199.99 USD"


def test_a_run_finds_the_marked_block_without_an_offer(world: Any, make_world: Callable[..., Any]) -> None:
    """Sold out meanwhile: the colleague's order is made from what AWS shows of the block."""
    world.buy()
    other = make_world("blocks")
    other.aws = world.aws
    world.aws.on_sale = False
    found = find_marked_block(other.desk(), KEY, "us-east-1", {"need": NEED.to_json()})
    assert found is not None
    assert found.how is How.ELSEWHERE
    assert found.order.offer.count == 1
    assert find_marked_block(other.desk(), OrderKey(KEY.account, "other", 1), "us-east-1", {}) is None


def test_a_block_without_a_known_fee_makes_no_order(world: Any) -> None:
    """Money that nobody knows is not made up."""
    world.buy()
    block = world.aws.blocks[world.aws.ledger[0][0]]
    seen = described_block({**block, "Tags": block["Tags"][:2]})
    assert seen is not None
    assert offer_of(seen.seen, "us-east-1", world.clock.now()) is None


def test_two_blocks_with_one_mark_are_told(world: Any, make_world: Callable[..., Any]) -> None:
    """Two machines that raced: both blocks are named, since both are paid for; ours is adopted."""
    order = world.buy().order
    world.aws.sell(world.approved, {"berth:order": KEY.mark, "berth:intent": "theirs"})
    other = make_world("blocks")
    other.aws = world.aws
    adopted = other.buy().order
    assert any("2 blocks carry the mark" in line for line in other.warnings)
    assert adopted.reservation_arn == order.reservation_arn


def test_an_old_block_of_the_need_is_not_this_purchase(world: Any) -> None:
    """Before, elsewhere, otherwise, or somebody's by its mark: none of these is a look-alike."""
    world.aws.fault = "500 before"
    with pytest.raises(BerthError):
        world.buy()
    trace = trace_of(world.order())
    block_id = world.aws.sell(world.approved, {})
    alike = world.aws.blocks[block_id]
    changes: dict[str, Any] = {
        "CreateDate": alike["CreateDate"] - timedelta(minutes=2),
        "AvailabilityZoneId": "use1-az1",
        "InstanceType": "p5e.48xlarge",
        "EndDate": alike["EndDate"] + timedelta(days=1),
        "StartDate": alike["StartDate"] - timedelta(days=1),
        "Tags": [*alike["Tags"], {"Key": "berth:order", "Value": "111122223333/other/1"}],
    }
    assert is_alike(alike, trace)
    for member, value in changes.items():
        assert not is_alike({**alike, member: value}, trace), member
    size = {"Key": alike["Tags"][0]["Key"], "Value": "2"}
    assert not is_alike({**alike, "Tags": [size]}, trace)
    assert described_block({**alike, "ReservationType": "default"}) is None


OPTIONAL = ["InstanceType", "AvailabilityZoneId", "StartDate", "EndDate", "CreateDate", "Tags", "State"]


@pytest.mark.parametrize("member", OPTIONAL)
def test_what_is_not_shown_rules_nothing_out(world: Any, member: str) -> None:
    """A member that AWS leaves out must not make a possible purchase of ours invisible."""
    world.aws.fault = "500 before"
    with pytest.raises(BerthError):
        world.buy()
    alike = dict(world.aws.blocks[world.aws.sell(world.approved, {})])
    del alike[member]
    assert is_alike(alike, trace_of(world.order()))


def is_alike(answer: dict[str, Any], trace: Any) -> bool:
    """Whether a description may be what the order bought."""
    block = described_block(answer)
    return block is not None and looks_alike(block, trace)


@pytest.mark.parametrize(
    ("mark", "state", "code"),
    [("111122223333/eval/1", OrderState.BOUGHT, None), ("somebody", OrderState.UNKNOWN, 40)],
)
def test_a_person_judges_a_look_alike_with_one_tag(
    world: Any, mark: str, state: OrderState, code: int | None
) -> None:
    """Marked as ours it is adopted; marked as another's it is none any more, and looking goes on."""
    world.aws.fault = "500 before"
    with pytest.raises(BerthError):
        world.buy()
    block_id = world.aws.sell(world.approved, {})
    with pytest.raises(BerthError):
        world.buy()
    assert world.order().state is OrderState.DISPUTED
    world.aws.blocks[block_id]["Tags"].append({"Key": "berth:order", "Value": mark})
    if code is None:
        assert world.buy().how is How.FOUND
    else:
        with pytest.raises(BerthError) as caught:
            world.buy()
        assert caught.value.exit_code == code
    assert world.order().state is state
    assert len(world.aws.ledger) == 1


def test_a_bare_answer_and_an_unknown_member_are_fine(world: Any) -> None:
    """Optional members missing, one unheard of: bought, and the next run pays nothing (field fault 2)."""

    def bare(answer: dict[str, Any]) -> dict[str, Any]:
        kept = ("CapacityReservationId", "Tags")
        return {key: answer[key] for key in kept} | {"PlacementFuture": {"Of": 1}}

    world.aws.change_answer = bare
    bought = world.buy()
    assert bought.how is How.BOUGHT
    assert bought.order.reservation_arn.startswith("cr-")
    assert world.warnings
    assert world.buy().how is How.ALREADY
    assert len(world.aws.ledger) == 1


def test_an_ended_block_that_aws_forgot_stays_bought(world: Any) -> None:
    """NotFound for an old id is a normal answer: the order keeps what it knew (field fault 24)."""
    world.buy()
    world.aws.blocks.clear()
    world.aws.visible_at.clear()
    assert world.buy().how is How.ALREADY
    assert world.order().seen["instance_type"] == "p5.48xlarge"
    assert world.warnings == []


def test_a_block_that_aws_failed_is_not_called_unpaid(world: Any) -> None:
    """`failed` has no documented refund: the money line stays, and a person is told to ask."""
    world.buy()
    world.aws.blocks[world.aws.ledger[0][0]]["State"] = "failed"
    bought = world.buy()
    assert bought.seen.stage is Stage.LOST
    assert bought.order.spending.line() == "paid 228.77 USD, order eval"


def test_the_search_keeps_its_duration(world: Any) -> None:
    """An end closer than the asked duration is left as wide as the first question had it."""
    short = replace(world.approved, query=replace(world.approved.query, duration_hours=48))
    world.approved = short
    world.buy()
    narrowed = world.aws.searches[-1]
    assert narrowed.end_before == short.query.end_before
    assert narrowed.start_after == short.paid_window.start - timedelta(seconds=1)


def test_another_platform_is_another_offer(world: Any) -> None:
    """The platform is fixed at the purchase: an approval for one never buys another."""
    world.approved = replace(world.approved, query=replace(world.approved.query, platform="Ubuntu Pro"))
    real = world.aws.search
    world.aws.search = lambda query: real(replace(query, platform="Linux/UNIX"))
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED


WHOLE: dict[str, Any] = {
    "CapacityReservationId": "cr-0123456789abcdef0",
    "CapacityReservationArn": "arn:aws:ec2:us-east-1:111122223333:capacity-reservation/cr-0123456789abcdef0",
    "OwnerId": "111122223333", "AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az1",
    "InstanceType": "p5.48xlarge", "InstancePlatform": "Linux/UNIX", "Tenancy": "default",
    "TotalInstanceCount": 2, "AvailableInstanceCount": 1, "State": "active",
    "StartDate": datetime(2027, 3, 2, 11, 30, tzinfo=UTC),
    "EndDate": datetime(2027, 3, 3, 11, 30, tzinfo=UTC),
    "CreateDate": datetime(2027, 3, 1, tzinfo=UTC), "ReservationType": "capacity-block",
    "Tags": [{"Key": "berth:order", "Value": "111122223333/eval/1"}],
}  # fmt: skip
strange = st.sampled_from([None, "", "unavailable", 7, -1, 1.5, True, [], [None], [{"Key": 1}], {}, {"a": 1}])


@settings(deadline=None, max_examples=300)
@given(
    dropped=st.sets(st.sampled_from(sorted(WHOLE)), max_size=len(WHOLE)),
    changed=st.dictionaries(st.sampled_from(sorted(WHOLE)), strange, max_size=6),
    added=st.dictionaries(st.text(min_size=1, max_size=8), strange, max_size=2),
)
def test_no_description_breaks_the_reading(
    dropped: set[str], changed: dict[str, Any], added: dict[str, Any]
) -> None:
    """Every optional member may be missing, strange or new; unknown words survive (field fault 40)."""
    answer = {key: value for key, value in ({**WHOLE, **changed, **added}).items() if key not in dropped}
    block = described_block(answer)
    if block is None:
        return
    state = answer.get("State")
    assert block.seen.state == (state if isinstance(state, str) and state else "unknown")
    assert block.seen.stage is STAGES.get(block.seen.state, Stage.UNKNOWN)
    assert type(block.seen).from_json(block.seen.to_json()) == block.seen
