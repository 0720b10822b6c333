"""`berth plan` for instances and `berth ls`, against a started yard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from berth.aws.guards import PAID
from berth.planner.plan import Plan
from berth.terms.outcomes import ExitCode
from berth.yard.testing.process import YardProcess

from .conftest import UNTHROTTLED, Typed, words

NEED = Path(__file__).parents[2] / "examples" / "capacity-block" / "need.toml"
FIXED = ("--start", "2026-12-02T11:30Z")
START = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """One yard for the tests of this file, its clock at 1 December 2026, 09:00Z, with things held in it."""
    with YardProcess(tmp_path_factory.mktemp("y"), throttle_scale=UNTHROTTLED) as yard:
        yield yard


@pytest.fixture(scope="module")
def held(here: YardProcess) -> dict[str, str]:
    """The blocks in it, by state; those of us-east-1 are tagged as somebody's."""
    earlier = START - timedelta(days=2)
    seeded = {
        "scheduled": here.seed.block(state="scheduled", start=START, count=2, tags={"owner": "ada"}),
        "team": here.seed.block(state="scheduled", start=START, tags={"team": "a"}),
        "active": here.seed.block(state="active", region="us-west-2", start=earlier, duration="72h"),
        "payment-failed": here.seed.block(state="payment-failed", region="us-east-2", start=START),
    }
    here.seed.plan(name="inference", state="Active", start=earlier, duration="72h")
    return {name: block["capacity_reservation_id"] for name, block in seeded.items()}


def test_a_block_for_a_day_in_80_columns(here: YardProcess, typed: Typed) -> None:
    """1 x p5.48xlarge for 24 h at 47.757: 1,146.17; live on-demand and Spot beside it; what to do next."""
    code, out, err = typed(here, "plan", NEED, *FIXED)
    assert (code, err) == (ExitCode.DONE, "")
    for said in (
        "BEST block-1#1 capacity block $1,146.17 up front, no refund, no cancel",
        "pays from 20 h 50 min of use: 86.8 % of the 24 h paid, 88.6 % of the 23 h 30 min you can use",
        "Wed 2 11:30-Thu 3 11:30 23:30 1,146.17 6.097",
        "55.04/h on-demand, live, the rehearsal's Price List",
        "BUY berth buy block-1#1 --max 1146.17",
    ):
        assert said in words(out)
    assert max(map(len, out.splitlines())) <= 80


def test_the_offer_is_one_that_can_be_bought(here: YardProcess, typed: Typed) -> None:
    """Zone id that needs no opt-in, platform, the question that found it, a whole id."""
    code, out, _ = typed(here, "plan", NEED, *FIXED, "--json", "--platform", "Ubuntu Pro")
    plan = Plan.from_json(json.loads(out))
    assert code == ExitCode.DONE
    assert plan.best is not None
    offer = plan.best.offer
    assert offer.segments[0].zone_type == "availability-zone"
    assert (offer.segments[0].zone_id or "").startswith("use1-az")
    assert (offer.platform, offer.query.duration_hours, len(offer.offering_id or "")) == (
        "Ubuntu Pro",
        24,
        20,
    )
    assert plan.best.cost.surcharge is not None
    assert str(plan.best.cost.total) == "1,154.23 USD", "1,146.17 and 24 x 0.336"


def test_a_block_that_saves_nothing_says_so(here: YardProcess, typed: Typed) -> None:
    """2 x p5en for 5 days: 15,157.92 against 15,127.74, in three Regions at once."""
    code, out, err = typed(
        here, "plan", NEED, "--type", "p5en.48xlarge", "--count", "2", "--duration", "5d", "--name", "p5en",
        "--region", "us-east-2", "--region", "us-west-2", "--region", "us-east-1",
    )  # fmt: skip
    assert code == ExitCode.DONE
    assert "IT SAVES NOTHING: 63.158/h against 63.296/h on demand" in words(out)
    assert "it costs $30.18 MORE than on-demand" in words(out)
    assert "3 of 3 places asked" in words(out)
    assert err.count("asked us-") == 3


def test_seventeen_days_ask_nobody(here: YardProcess, typed: Typed) -> None:
    """Refused with the nearest lengths, exit 10, and not one search reaches the service."""
    before = len(here.log_of("DescribeCapacityBlockOfferings"))
    code, out, err = typed(here, "plan", NEED, "--duration", "17d")
    assert code == ExitCode.NO_CAPACITY
    assert "nearest 14 days or 21 days" in words(out)
    assert "capacity-block: sold for 1 to 14 days" in words(err)
    assert len(here.log_of("DescribeCapacityBlockOfferings")) == before


def test_some_regions_refuse_and_nothing_is_called_sold_out(here: YardProcess, typed: Typed) -> None:
    """Field fault 48: one of two Regions gives no answer: offers are shown, exit 14, the Region is named."""
    here.fault("malformed-body", "DescribeCapacityBlockOfferings", times=1)
    code, out, err = typed(here, "plan", NEED, *FIXED, "--region", "us-east-1", "--region", "us-west-2")
    assert code == ExitCode.INCOMPLETE
    assert "INCOMPLETE, 1 of 2 regions searched: us-" in words(out)
    assert "BEST block-1#1" in words(out)
    assert err.splitlines()[-1] == "nothing was spent"


def test_prices_that_are_not_told_are_labelled(here: YardProcess, typed: Typed) -> None:
    """Neither the Price List nor Spot answers: the dated tables stand in and advise nothing, exit 0."""
    here.fault("malformed-body", "GetProducts", times=None)
    here.fault("malformed-body", "DescribeSpotPriceHistory", times=None)
    try:
        code, out, _ = typed(here, "plan", NEED, *FIXED)
    finally:
        here.clear_faults()
    assert code == ExitCode.DONE
    assert "55.04/h on-demand, seen 2026-09-25 (2 months old)" in words(out)
    assert re.search(r"/h spot, seen 2026-\d\d-\d\d \(\d+ months old\)", words(out))
    assert "Spot, " not in out, "an old price is no ground for advice"


@pytest.mark.parametrize("member", ["UpfrontFee", "AvailabilityZone", "EndDate", "InstanceType", "ZoneType"])
def test_missing_members_crash_nothing(here: YardProcess, typed: Typed, member: str) -> None:
    """Field fault 40: a plan comes out, and no unknown price leads it."""
    here.fault("absent-members", "DescribeCapacityBlockOfferings", times=1, amount=member)
    try:
        code, out, err = typed(here, "plan", NEED, *FIXED, "--json")
    finally:
        here.clear_faults()
    assert code in {ExitCode.DONE, ExitCode.NO_CAPACITY, ExitCode.INCOMPLETE}, err
    totals = [choice.cost.total is None for choice in Plan.from_json(json.loads(out)).choices]
    assert totals == sorted(totals)


def team(tmp_path: Path, name: str) -> Path:
    """The need of a team."""
    file = tmp_path / "need.toml"
    file.write_text(NEED.read_text() + f'start = 2026-12-02T11:30:00Z\n[tags]\nteam = "{name}"\n')
    return file


def test_what_is_owned_is_used_first_unless_it_is_another_teams(
    here: YardProcess, held: dict[str, str], typed: Typed, tmp_path: Path
) -> None:
    """Field fault 10, against the service: a scheduled block tagged team=a, asked by team a and by team b."""
    code, out, _ = typed(here, "plan", team(tmp_path, "a"))
    assert code == ExitCode.DONE
    assert f"USE {held['team']} capacity block that you own already $0.00 more" in words(out)
    code, out, _ = typed(here, "plan", team(tmp_path, "b"))
    assert code == ExitCode.DONE
    assert f"OWN {held['team']}, capacity-block, scheduled" in words(out)
    assert "tagged team=a, not counted" in words(out)
    assert "BUY berth buy block-1#1" in words(out)


def test_what_is_owned_and_cannot_be_read_is_not_called_nothing(here: YardProcess, typed: Typed) -> None:
    """The plan is there and incomplete: this may be owned already."""
    here.fault("malformed-body", "DescribeCapacityReservations", times=1)
    code, out, err = typed(here, "plan", NEED, *FIXED)
    assert code == ExitCode.INCOMPLETE
    assert "OWN not known: us-east-1 capacity-block" in words(out)
    assert "this may be owned already" in err


# -- berth ls --------------------------------------------------------------------------------------------
def test_everything_held_is_listed_in_all_regions(
    here: YardProcess, held: dict[str, str], typed: Typed
) -> None:
    """Blocks and plans in three Regions, whoever bought them, with state and countdown; nothing is paid."""
    before = [call["operation"] for call in here.log]
    code, out, err = typed(here, "ls")
    assert code == ExitCode.DONE, err
    assert max(map(len, out.splitlines())) <= 80
    for state, time in (
        ("scheduled", "opens in 26 h 30 min"),
        ("active", "usable for 2 d 2 h"),
        ("payment-failed", "over"),
    ):
        assert f"block {held[state]} {state} {time} unknown" in words(out)
    assert "2 x p5.48xlarge" in out
    assert "owner=ada" in out
    assert "plan inference Active usable for 2 d 2 h" in words(out)
    regions = len(here.clients.ec2.describe_regions()["Regions"])
    assert out.splitlines()[-1] == f"{regions} of {regions} Regions answered in full"
    assert {call["operation"] for call in here.log[len(before) :]} & PAID == set()


def test_json_lists_the_same(here: YardProcess, held: dict[str, str], typed: Typed) -> None:
    """`berth.ls/1` on stdout and nothing else; size from the tag, money unknown and not zero."""
    code, out, _ = typed(here, "ls", "--region", "us-east-1", "--json")
    document = json.loads(out)
    assert (code, document["schema"], document["regions"]) == (ExitCode.DONE, "berth.ls/1", ["us-east-1"])
    (ada,) = (r for r in document["reservations"] if r["id"] == held["scheduled"])
    assert (ada["count"], ada["free"], ada["who"]) == (2, 2, "owner=ada")
    assert (ada["fee"], ada["idle"], ada["idle_an_hour"], ada["order"]) == (None, None, None, None)


def test_a_region_that_does_not_answer_says_so(here: YardProcess, held: dict[str, str], typed: Typed) -> None:
    """One damaged answer: the rest is listed, the Region is named, exit 14."""
    here.fault("malformed-body", "DescribeCapacityReservations", times=1)
    code, out, err = typed(here, "ls", "--region", "us-east-1", "--region", "us-west-2")
    assert code == ExitCode.INCOMPLETE
    assert "NOT KNOWN us-" in words(out)
    assert "1 of 2 Regions answered in full" in words(out)
    assert "there may be more than is listed" in err
    assert err.splitlines()[-1] == "nothing was spent"


def test_an_account_with_nothing(here: YardProcess, typed: Typed) -> None:
    """Needs no quota and no purchase."""
    code, out, _ = typed(here, "ls", "--region", "eu-north-1")
    assert (code, out) == (ExitCode.DONE, "1 of 1 Region answered in full; nothing is held\n")


def test_what_was_bought_here_is_listed_with_its_order_and_money(yard: YardProcess, typed: Typed) -> None:
    """Before the start nothing is idle; inside it is known; when AWS has forgotten it, it has ended."""
    assert typed(yard, "plan", NEED, *FIXED)[0] == ExitCode.DONE
    code, _, err = typed(yard, "buy", "block-1#1", "--yes", "--max", "1146.17")
    assert code == ExitCode.DONE, err
    yard.clock.advance(minutes=10)
    _, out, _ = typed(yard, "ls", "--region", "us-east-1")
    assert "scheduled opens in 26 h 20 min 0.00 USD" in words(out)
    assert "order block-1" in words(out)
    yard.clock.set(START + timedelta(hours=2))
    _, out, _ = typed(yard, "ls", "--region", "us-east-1")
    assert "active usable for 21 h 30 min 97.55 USD" in words(out)
    assert "1 free, 47.76 USD/h idle now" in words(out)
