"""`berth ls`: what AWS shows joined with what the journal knows, in 80 columns."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.inventory.holdings import Endpoint, Holding, Known, Shown
from berth.inventory.join import Inventory, RegionAnswer, join
from berth.inventory.wording import inventory_text
from berth.planner.owned import Owned
from berth.terms.money import Money
from berth.terms.ways import Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
START = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)
ID = "cr-0123456789abcdef0"
FEE = Money(Decimal("3322.37"))


def owned(**changes: Any) -> Owned:
    """A block of four for a day, which starts in two and a half hours."""
    base = Owned(
        Way.CAPACITY_BLOCK, "us-east-1", ID, None, "scheduled", "p5.48xlarge", 4, 0, START, START + DAY,
        ("use1-az4",), tags=(),
    )  # fmt: skip
    return replace(base, **changes)


def known(**changes: Any) -> Known:
    """The same, as the journal knows it."""
    base = Known(
        "eval", Way.CAPACITY_BLOCK, "us-east-1", ID, FEE, Window(START, START + DAY), "p5.48xlarge", 4,
        ("use1-az4",), "instances", Money(Decimal(0)),
    )  # fmt: skip
    return replace(base, **changes)


def inventory(
    *answers: RegionAnswer, journal: tuple[Known, ...] = (), now: datetime = NOW, **more: Any
) -> Inventory:
    """What is held."""
    return join(answers, journal, now, account="111122223333", **more)


def shows(*found: Owned, region: str = "us-east-1", **more: Any) -> RegionAnswer:
    """A Region that lists these."""
    return RegionAnswer(region, found, **more)


PICTURE = """\
 WHAT     ID                    STATE           TIME                        IDLE
us-east-1
 block    cr-0123456789abcdef0  scheduled       opens in 2 h 30 min     0.00 USD
          4 x p5.48xlarge; use1-az4; 2026-12-01 11:30 to 2026-12-02 11:30Z;
          order eval
us-west-2
 odcr     cr-0123456789abcdef1  active          no end                   unknown
          3 x p4d.24xlarge; usw2-az1; 2026-11-29 11:30 to no known end;
          Name=ci-runners
 plan     inference-1           Active          usable for 2 d 2 h       unknown
          2 x ml.p5.48xlarge; usw2-az2; 2026-11-30 09:00 to 2026-12-03 11:30Z; 1
          free, 60.40 USD/h idle now; team=a
 endpoint digits-7k2m           InService       since 2026-11-30 10:00Z
          1 instance on inference-1
NOT KNOWN  sa-east-1: EndpointConnectionError: could not connect
2 of 3 Regions answered in full"""


def test_the_picture() -> None:
    """A block of ours, somebody's reservation and plan, an endpoint, and a Region that did not answer."""
    odcr = owned(
        way=Way.ODCR, region="us-west-2", id=ID[:-1] + "1", state="active",
        instance_type="p4d.24xlarge", count=3, free=3, start=START - 2 * DAY, end=None,
        zones=("usw2-az1",), tags=(("Name", "ci-runners"),),
    )  # fmt: skip
    plan = owned(
        way=Way.TRAINING_PLAN, region="us-west-2", id="inference-1", state="Active",
        instance_type="ml.p5.48xlarge", count=2, free=1, start=NOW - DAY, end=START + 2 * DAY,
        zones=("usw2-az2",), targets=("endpoint",), fee=Money(Decimal("9000")), tags=(("team", "a"),),
    )  # fmt: skip
    endpoint = Endpoint(
        "us-west-2", "digits-7k2m", "InService", NOW - timedelta(hours=23), 1, ("arn:x/inference-1",), False
    )
    found = inventory(
        shows(owned()), shows(odcr, plan, region="us-west-2", endpoints=(endpoint,)),
        shows(region="sa-east-1", troubles=("EndpointConnectionError: could not connect",)),
        journal=(known(),),
    )  # fmt: skip
    assert inventory_text(found) == PICTURE
    document = found.to_json()
    assert (document["schema"], document["incomplete"]) == ("berth.ls/1", True)
    assert [r["order"] for r in document["reservations"]] == ["eval", None, None]
    assert document["reservations"][2]["idle_an_hour"] == {"amount": "60.40", "currency": "USD"}


def only(found: Inventory) -> Holding:
    """The one reservation."""
    (holding,) = found.holdings
    return holding


def test_a_past_order_that_aws_no_longer_shows_has_ended() -> None:
    """Field fault 24: a normal answer, told from our own record."""
    later = START + 2 * DAY
    holding = only(inventory(shows(gone=frozenset({ID})), journal=(known(),), now=later))
    assert holding.shown is Shown.ENDED
    text = inventory_text(inventory(shows(gone=frozenset({ID})), journal=(known(),), now=later))
    assert "ended (no longer reported)" in text
    assert "4 x p5.48xlarge; use1-az4" in text


def test_an_order_that_is_not_over_and_not_shown_still_counts_down() -> None:
    """Field fault 39: an empty list for a block that is scheduled: "opens in 2 h 30 min", no crash."""
    holding = only(inventory(shows(), journal=(known(),)))
    assert (holding.shown, holding.state) == (Shown.NOT_SHOWN, "not shown by AWS")
    assert holding.countdown(NOW) == "opens in 2 h 30 min"


def test_where_the_region_did_not_answer_nothing_is_known() -> None:
    """Neither ended nor there."""
    late = START + 2 * DAY
    for answers in ((), (shows(troubles=("throttled",)),)):
        assert only(inventory(*answers, journal=(known(),), now=late)).state == "not known"
    told = shows(troubles=("tags not read",), gone=frozenset({ID}))
    assert only(inventory(told, journal=(known(),), now=late)).shown is Shown.ENDED, (
        "asked by its id, and gone"
    )


@pytest.mark.parametrize("state", ["unavailable", "moon-phase", "cancelling", "assessing"])
def test_unknown_states_survive(state: str) -> None:
    """Shown as they come, neither over nor fine."""
    holding = only(inventory(shows(owned(state=state))))
    assert (holding.state, holding.is_over) == (state, False)
    assert state in inventory_text(inventory(shows(owned(state=state))))


COUNTDOWNS = [
    (START - timedelta(days=4, hours=2, minutes=10), "opens in 4 d 2 h"),
    (START - timedelta(minutes=10), "opens in 10 min"),
    (START + timedelta(hours=1), "usable for 22 h 30 min"),
    (START + DAY - timedelta(minutes=25), "ends in 25 min"),
    (START + DAY, "over"),
]


@pytest.mark.parametrize(("now", "said"), COUNTDOWNS)
def test_the_countdown_goes_to_the_usable_end(now: datetime, said: str) -> None:
    """Opens, usable until AWS takes the instances back, ends, over."""
    assert only(inventory(shows(owned(state="active")), now=now)).countdown(now) == said


def test_idle_money_is_the_fees_share_of_what_stands_empty() -> None:
    """3 of 4 free at 3,322.37 for 24 h: 103.82 an hour; unknown without a fee, nothing when all are used."""
    now = START + timedelta(hours=2)

    def an_hour(free: int | None, **changes: Any) -> Money | None:
        found = inventory(shows(owned(state="active", free=free, **changes)), journal=(known(),), now=now)
        return only(found).idle_an_hour(now)

    assert an_hour(3) == Money(Decimal("103.82"))
    assert an_hour(0) == Money(Decimal(0).quantize(Decimal("0.01")))
    assert an_hour(None) is None
    assert only(inventory(shows(owned(state="active", free=3)), now=now)).idle_an_hour(now) is None
    tagged = owned(state="active", free=4, tags=(("berth:fee", "3322.37 USD"),))
    assert only(inventory(shows(tagged), now=now)).idle_an_hour(now) == Money(Decimal("138.43"))
    assert only(inventory(shows(owned(tags=(("berth:fee", "lots"),))))).fee is None


WHO = [
    ((("berth:order", "111122223333/eval/1"),), "order eval, by its tag"),
    ((("berth:order", "111122223333/eval/2"),), "order eval/2, by its tag"),
    ((("berth:order", "odd"),), "order odd, by its tag"),
    ((("owner", "ada"), ("Name", "x")), "owner=ada"),
    ((), "not ordered by berth here"),
    (None, "not ordered by berth here"),
]


@pytest.mark.parametrize(("tags", "who"), WHO)
def test_who_ordered_it(tags: Any, who: str) -> None:
    """From the journal, else from the tags."""
    assert only(inventory(shows(owned(tags=tags)))).who == who
    assert only(inventory(shows(owned(tags=tags)), journal=(known(),))).who == "order eval"


def test_orders_of_long_ago_are_counted_and_shown_on_request() -> None:
    """A journal keeps every order for good; the list does not."""
    old = START + timedelta(days=40)
    found = inventory(shows(), journal=(known(),), now=old)
    assert (found.holdings, found.hidden) == ((), 1)
    assert "nothing is held; 1 order that ended over 30 days ago: --all" in " ".join(
        inventory_text(found).split()
    )
    assert only(inventory(shows(), journal=(known(),), now=old, everything=True)).shown is Shown.ENDED


def test_nothing_is_wider_than_80_columns_and_nothing_writes_to_the_terminal() -> None:
    """Long names, long states, hostile text."""
    plan = owned(
        way=Way.TRAINING_PLAN,
        id="a" * 63,
        state="payment-pending\x1b[2J",
        tags=(("team", "\x1b[31m" + "x" * 90),),
    )
    found = inventory(
        shows(plan, owned(state="payment-pending")), journal=(known(fee=Money(Decimal("1234567.89"))),)
    )
    text = inventory_text(found)
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if len(line) > 80 and " " in line.strip()] == []


@pytest.mark.parametrize("idle", ["0", "224.36", "1224.36", "208602.58"])
def test_columns_never_run_together(idle: str) -> None:
    """The longest countdown and a long state beside any amount: told apart, in 80 columns."""
    now = START + timedelta(minutes=20)
    waits = known(idle=Money(Decimal(idle)))
    shown = inventory(shows(owned(state="UpdateRollbackFailed")), journal=(waits,), now=now)
    text = inventory_text(shown)
    assert " UpdateRollbackFailed usable for 23 h 10 min " in text
    assert f" {Decimal(idle):,.2f} USD" in text
    assert max(map(len, text.splitlines())) <= 80
