"""From a plan to pieces: its combination, further parts, what is left for the day; a need's accounts."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from berth.orders.pieces.of_plan import mix_of, parts_to_add
from berth.orders.pieces.wording import day_lines, many
from berth.planner.best.combination import Combination, Mix, Piece
from berth.planner.cost import cost_of
from berth.planner.need import Need
from berth.planner.need_accounts import NeedAccount
from berth.planner.need_file import NeedError, read_need
from berth.planner.offers import Offer
from berth.planner.plan import Choice, Plan
from berth.terms.money import Money
from berth.terms.outcomes import BerthError
from berth.terms.ways import Way

from .fake_aws import ACCOUNT, START
from .test_piece_rules import block

NEED = """
name = "cluster"
duration = "4d"
target = "instances"
regions = ["us-east-1"]

[[parts]]
name = "nodes"
type = "p5.48xlarge"
count = 2

[[parts]]
name = "store"
type = "p5.48xlarge"
count = 1
reserve = true

[[parts]]
name = "head"
type = "c7g.2xlarge"
reserve = false
"""


def need(more: str = "") -> Need:
    """Nodes and a store that are held ahead, and a head."""
    return read_need(NEED + more, "need.toml", START)


def piece(offer: Offer) -> Piece:
    """The offer as a piece of a combination."""
    windows = tuple(part.window for part in offer.segments)
    assert offer.fee is not None
    return Piece(
        None, offer.way, offer.instance_type, offer.region, offer.segments[0].zone_id, offer.offering_id,
        windows, windows, offer.count, offer.count, offer.fee,
    )  # fmt: skip


def plan(wanted: Need, *choices: Offer, mixed: tuple[Piece, ...] = ()) -> Plan:
    """A plan with these choices and this combination."""
    nothing = Decimal(0)
    total = Money(sum((one.cost.amount for one in mixed), start=nothing), "USD")
    mix = Mix(mixed, total, (block().paid_window,), nothing, None, None) if mixed else None
    return Plan(
        need=wanted, made_at=START, account=ACCOUNT, rehearsal=None, answers=(),
        choices=tuple(Choice(n, o, cost_of(o, None, None, None), (), ()) for n, o in enumerate(choices, 1)),
        rejected=(), pay_as_you_go=(), verdicts=(), incomplete=False,
        combination=Combination("p5.48xlarge", mix, None) if mix else None,
    )  # fmt: skip


def test_the_combination_is_its_offers_and_the_hours_of_the_day() -> None:
    """What has an offer is bought; what is paid by the hour is told, and so is the head."""
    wanted = replace(need(), beside=need().beside[1:])
    one, two = block(), block(1, count=2)
    hours = replace(piece(block(2)), offering_id=None, way=Way.ON_DEMAND, zone_id=None)
    made = mix_of(plan(wanted, one, two, mixed=(piece(one), piece(two), hours)))
    assert made.offers == (one, two)
    assert made.on_the_day == (hours,)
    assert made.beside[0].startswith("head: 1 x c7g.2xlarge, on-demand, zone of the block, use1-az4")
    assert "it may be refused then" in day_lines(made.on_the_day)[0]
    alone = mix_of(plan(wanted, one, mixed=(piece(one), hours)))
    assert (alone.offers, many(1)) == ((one,), "1 piece")


def test_parts_that_are_held_ahead_are_pieces_too() -> None:
    """Of a part its first choice in the zone of the planned part; elsewhere it says so."""
    wanted, nodes = need(), block(count=2)
    assert [part.name for part in parts_to_add(plan(wanted, nodes))] == ["store"]
    store = wanted.alone(wanted.beside[0])
    far, near = block(1, zone="use1-az6"), block(2)
    made = mix_of(plan(wanted, nodes), [plan(store, far, near)])
    assert (made.offers, made.cares) == ((nodes, near), ())
    made = mix_of(plan(wanted, nodes), [plan(store, far)])
    assert (made.offers, made.cares) == ((nodes, far), ("store is in use1-az6, not in use1-az4",))


def test_a_part_that_the_combination_holds_is_not_added() -> None:
    """Only what it left out is planned and bought by itself: nothing is bought for a part twice."""
    one, two = block(), block(1, count=2)
    made = plan(need(), one, two, mixed=(piece(one), piece(two)))
    assert parts_to_add(made) == ()
    assert made.combination is not None
    left = replace(made, combination=replace(made.combination, left_out=("store",)))
    assert [part.name for part in parts_to_add(left)] == ["store"]


def test_what_is_one_purchase_is_bought_as_one() -> None:
    """Without a combination, or with nothing that can be bought ahead, it says what to do instead."""
    wanted = replace(need(), beside=())
    with pytest.raises(BerthError, match="has no combination") as caught:
        mix_of(plan(wanted, block()))
    assert caught.value.next_step == "berth buy cluster#1"
    with pytest.raises(BerthError, match="nothing that can be bought ahead"):
        mix_of(plan(wanted))
    with pytest.raises(BerthError, match="does not hold the offer"):
        mix_of(plan(wanted, mixed=(piece(block()), piece(block(1)))))


ACCOUNTS = '[[accounts]]\nid = "1111-2222-3333"\n\n[[accounts]]\nid = "444455556666"\nprofile = "gpu-b"\n'


ROLE = "arn:aws:iam::444455556666:role/team/buyer"


def test_an_account_may_be_named_by_its_role() -> None:
    """The role's ARN says the account; profile and external id may stand beside it."""
    text = (
        '[[accounts]]\nid = "1111-2222-3333"\n\n'
        f'[[accounts]]\nrole = "{ROLE}"\nprofile = "hub"\nexternal_id = "cluster-7"\n'
    )
    wanted = need(text)
    assert wanted.accounts[1] == NeedAccount("444455556666", "hub", ROLE, "cluster-7")
    assert Need.from_json(wanted.to_json()).accounts == wanted.accounts
    older = {"id": "444455556666", "profile": "hub"}
    assert NeedAccount.from_json(older) == NeedAccount("444455556666", "hub")
    assert NeedAccount("444455556666", "hub").to_json() == older


def test_accounts_are_read_and_written() -> None:
    """Digits with and without hyphens, a profile or the caller's keys; as JSON and back."""
    wanted = need(ACCOUNTS)
    assert [(one.id, one.profile) for one in wanted.accounts] == [
        ("111122223333", None),
        ("444455556666", "gpu-b"),
    ]
    assert Need.from_json(wanted.to_json()) == wanted
    older: dict[str, Any] = wanted.to_json()
    del older["accounts"]
    assert Need.from_json(older).accounts == ()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('[[accounts]]\nid = "12"\n', "twelve digits"),
        (ACCOUNTS + '[[accounts]]\nid = "444455556666"\n', "named twice"),
        ('[[accounts]]\nid = "444455556666"\nrole = "x"\n', "role"),
        (f'[[accounts]]\nid = "111122223333"\nrole = "{ROLE}"\n', "the role is of account 444455556666"),
        ('[[accounts]]\nid = "444455556666"\nexternal_id = "xyz"\n', "goes with a role"),
        (f'[[accounts]]\nrole = "{ROLE}"\nexternal_id = "x"\n', "2 to 1,224"),
        ('[[accounts]]\nrole = "arn:aws:sts::444455556666:assumed-role/a/b"\n', "like arn:aws:iam::"),
        (f'[[accounts]]\nrole = "{ROLE}"\n\n[[accounts]]\nid = "444455556666"\n', "named twice"),
    ],
)
def test_accounts_that_cannot_be_are_refused(more: str, says: str) -> None:
    """Each complaint says what would be right."""
    with pytest.raises(NeedError, match=says):
        need(more)


def test_a_pinned_account_comes_first() -> None:
    """The account that orders is the first that is filled."""
    with pytest.raises(NeedError, match="name that one first"):
        read_need('account = "999988887777"\n' + NEED + ACCOUNTS, "need.toml", START)
