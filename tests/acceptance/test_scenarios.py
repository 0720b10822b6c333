"""Scenarios D1, D2, D3, D7 and D9 as plans against a started yard: what a reader must be able to see.

Whole stories of people who do this job. Here each is planned; the stories' purchases and launches have tests
of their own. One yard, its clock on the evening of 8 March 2027, sells what `scenario_fleet.py` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.aws.guards import PAID
from berth.terms.outcomes import ExitCode
from berth.yard.testing.process import YardProcess

from . import scenario_fleet as fleet
from .conftest import UNTHROTTLED

H200 = Path(__file__).parents[2] / "examples" / "needs" / "sixteen-h200.toml"
RENEWAL = datetime(2027, 3, 18, 11, 30, tzinfo=UTC)
B200 = {"region": "us-east-1", "instance_type": "p6-b200.48xlarge", "zone": "use1-az4", "fee": "38191.78"}
FORTNIGHT = timedelta(days=14)


@pytest.fixture(scope="module")
def march(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """The yard in which nobody owns anything."""
    with a_yard(tmp_path_factory) as yard:
        yield yard


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """A yard for the tests that put blocks into it."""
    with a_yard(tmp_path_factory) as yard:
        yield yard


def a_yard(folders: pytest.TempPathFactory) -> YardProcess:
    """A yard with the scenarios' fleet."""
    file = folders.mktemp("fleet") / "fleet.toml"
    file.write_text(fleet.FLEET)
    return YardProcess(folders.mktemp("y"), clock=fleet.CLOCK, fleet=file, throttle_scale=UNTHROTTLED)


@pytest.fixture
def plan(at_yard: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`plan(yard, NEED, flags)`: how the command ended. Whatever it says fits 80 columns and paid nothing."""
    berths: dict[str | None, Any] = {}
    yards: list[YardProcess] = []

    def call(yard: YardProcess, need: str | Path, *flags: str, account: str | None = None) -> Any:
        if account not in berths:
            berths[account] = at_yard(yard, account)
            yards.append(yard)
        file = need if isinstance(need, Path) else tmp_path / "need.toml"
        if isinstance(need, str):
            file.write_text(need)
        ended = berths[account]("plan", str(file), *flags)
        if "--json" not in flags:
            assert max(map(len, ended.out.splitlines()), default=0) <= 80
        return ended

    yield call
    for yard in yards:
        yard.clear_faults()
        assert {entry["operation"] for entry in yard.log} & PAID == set()


def sees(ended: Any, *said: str) -> None:
    """Each of them stands in the answer, whatever the line breaks."""
    text = " ".join(ended.out.split())
    assert [one for one in said if one not in text] == []


# -- D1: night start ---------------------------------------------------------------------------------------
def test_d1_a_night_start_that_nothing_but_a_block_promises(march: YardProcess, plan: Any) -> None:
    """72 hours from a fixed half past eleven in Lisbon; on-demand must not be counted on, nobody is awake.

    A reader sees: the block at exactly that time, that on-demand is no promise and not the advice, how much
    is usable and when AWS takes it back, that 60 hours of work fit, and what an interruption would lose.
    """
    ended = plan(march, fleet.NIGHT)
    assert ended.code == ExitCode.DONE, ended.err
    sees(
        ended,
        "start fixed Tue 2027-03-09 11:30Z (11:30 Lisbon)",
        "BEST night#1 capacity block $3,438.50 up front, no refund, no cancel",
        "why the start is fixed, and of the ways that can hold instances only a block promises it "
        "(on-demand may say no on the day)",
        "1 capacity-block use1-az6 Tue 9 11:30-Fri 12 11:30 71:30 3,438.50",
        "- on-demand us-east-1 on the day, no promise",
        "AWS takes the instance from 11:00Z, 30 min before the paid end.",
        "so an hour of use costs 57.251 an instance",
        "An interruption loses 1 h of work at most: $",
        "BUY berth buy night#1 --max 3438.50",
    )
    assert "on-demand: the start may move" not in ended.out, "no advice to try on-demand first"
    assert "TRY    1" not in ended.out, "the block is what is advised first"


# -- D2: rolling blocks ------------------------------------------------------------------------------------
def test_d2_the_next_fortnight_in_the_same_zone_under_a_cap(held: YardProcess, plan: Any) -> None:
    """Ten days ahead: the present block ends, another team's stands beside it, the cap is 45,000.

    A reader sees: a block that begins when the present one ends, in its zone, under the cap; both
    reservations of the account, the other team's named by its tag and not counted; the cap for the purchase.
    """
    own = held.seed.block(
        **B200, state="active", start=RENEWAL - FORTNIGHT, duration="336h", tags={"team": "ci"}
    )
    other = held.seed.block(
        **B200, state="scheduled", start=RENEWAL, duration="336h", tags={"team": "vision"}
    )
    ended = plan(held, fleet.RUNNERS)
    assert ended.code == ExitCode.DONE, ended.err
    sees(
        ended,
        f"OWN {own['capacity_reservation_id']}, capacity-block, active, 1 x p6-b200.48xlarge, use1-az4",
        "4 Mar 11:30-18 Mar 11:30: ends before the need begins",
        f"OWN {other['capacity_reservation_id']}, capacity-block, scheduled",
        "tagged team=vision, not counted",
        "at most $45,000.00",
        "BEST runners#1 capacity block $38,191.78 up front, no refund, no cancel",
        "1 capacity-block use1-az4 18 Mar 11:30-1 Apr 11:30 335:30 38,191.78",
        "BUY berth buy runners#1 --max 38191.78",
    )
    assert "USE " not in ended.out


def test_d2_where_the_zone_is_full_the_others_are_named_and_not_taken(held: YardProcess, plan: Any) -> None:
    """The same zone was wanted: nothing is bought elsewhere in silence, and what would help is said."""
    later = RENEWAL + timedelta(days=15)
    for team in ("a", "b", "c"):
        held.seed.block(**B200, state="scheduled", start=later, duration="336h", tags={"team": team})
    need = fleet.RUNNERS.replace("2027-03-18T11:30:00Z", "2027-04-02T11:30:00Z")
    ended = plan(held, need)
    assert ended.code == ExitCode.NO_CAPACITY
    sees(
        ended,
        "is in use1-az5, not in use1-az4",
        "if allowing zone use1-az5: $38,191.78 in 1 piece",
    )
    ended = plan(held, need.replace('"use1-az4"', '"use1-az4", "use1-az5"'))
    assert ended.code == ExitCode.DONE
    sees(ended, "1 capacity-block use1-az5 2 Apr 11:30-16 Apr 11:30 335:30 38,191.78")
    under = plan(held, need.replace('"use1-az4"', '"use1-az5"'), "--budget", "38000")
    assert under.code == ExitCode.NO_CAPACITY
    sees(under, "costs 38,191.78 USD, over the budget of 38,000.00 USD")


# -- D3: sixteen H200 at once ------------------------------------------------------------------------------
def test_d3_five_lengths_in_three_regions_and_zones_without_a_subnet(march: YardProcess, plan: Any) -> None:
    """Two p5en in one zone from a Monday in New York for 5 to 9 days, under 30,000, with five subnets.

    A reader sees: fifteen places asked, what each length costs, the best ones with whole prices first in
    zones that have a subnet, the others marked, that it saves nothing, and that the start is Monday there.
    """
    ended = plan(march, H200)
    assert ended.code == ExitCode.DONE, ended.err
    sees(
        ended,
        "2 x p5en.48xlarge (16 H200), EC2 instances, 5 to 9 days, the shortest that does",
        "from Mon 2027-04-05 04:00Z (00:00 New York), start may move",
        "15 of 15 places",
        "capacity block, 5 days $15,157.92 up front, no refund, no cancel",
        "the shortest that meets the need",
        "You buy the date.",
        "LASTS 5 days 15,157.92 (#1); 6 days 18,189.50",
        "9 days 27,284.26",
        "1 capacity-block use1-az4 5 Apr 11:30-10 Apr 11:30 119:30 15,157.92 7.928",
        "2 capacity-block use2-az1 5 Apr 11:30-10 Apr 11:30 119:30 15,157.92 7.928",
    )
    document = plan(march, H200, "--json").json
    subnets = {"use1-az4", "use1-az6", "use2-az1", "use2-az2", "usw2-az2"}
    week = [c for c in document["choices"] if c["cost"]["paid_s"] == 5 * 86_400]
    zones = [segment["zone_id"] for c in week for segment in c["offer"]["segments"]]
    inside = [zone in subnets for zone in zones]
    assert inside == sorted(inside, reverse=True), "zones that need a subnet stand behind"
    marked = [c for c in week if any("It needs a subnet" in care for care in c["cares"])]
    assert len(marked) == inside.count(False)
    assert {c["offer"]["query"]["duration_hours"] for c in document["choices"]} == {120, 144, 168, 192, 216}
    assert all(len(c["offer"]["segments"]) == 1 for c in document["choices"]), "both in one zone"


def test_d3_a_zone_that_needs_a_subnet_is_marked_where_it_is_the_only_one(
    march: YardProcess, plan: Any
) -> None:
    """In us-west-2 the zone that sells has no subnet: it is offered, and says so in its row."""
    ended = plan(march, H200, "--region", "us-west-2")
    assert ended.code == ExitCode.DONE, ended.err
    sees(ended, "It needs a subnet: the need names none in usw2-az1.")
    assert "\n   needs a subnet\n" in ended.out


# -- D7: a benchmark on an endpoint ------------------------------------------------------------------------
def test_d7_an_endpoint_for_a_saturday_under_a_cap(march: YardProcess, plan: Any) -> None:
    """One ml.p5.48xlarge for 24 h from Saturday, at most 1,200.

    A reader sees: only a plan for endpoints does it, its fee under the cap, from how much serving it pays,
    that the endpoint starts on paid time, when AWS takes it back, and why EC2's ways are none.
    """
    ended = plan(march, fleet.BENCH)
    assert ended.code == ExitCode.DONE, ended.err
    sees(
        ended,
        "1 x ml.p5.48xlarge (8 H100), endpoint, 24 h, us-east-1, at most $1,200.00",
        "start fixed Sat 2027-03-13 11:30Z",
        "BEST bench#1 training plan $1,146.17 now, no refund, no cancel",
        "of the ways that can host an endpoint only a plan promises it",
        "pays from 18 h 07 min of serving: 77 % of the 23 h 30 min you can use",
        "endpoint can be created only once Active: start-up eats paid time.",
        "of $15.92 start-up (0 h 20 min)",
        "1 training-plan use1-az6 Sat 13 11:30-Sun 14 11:30 23:30 1,146.17",
        "- sagemaker-od us-east-1 on the day, no promise",
        "NO capacity-block EC2 only, cannot serve an endpoint",
        "BUY berth buy bench#1 --max 1146.17",
    )
    offer = plan(march, fleet.BENCH, "--json").json["choices"][0]["offer"]
    assert offer["query"]["target"] == "endpoint", "a plan is bound to what it was asked for"
    assert "endpoint" in offer["targets"]


def test_d7_over_the_cap_nothing_is_offered_and_the_price_is_named(march: YardProcess, plan: Any) -> None:
    """1,100 is too little: exit 10, and the smallest change that would do is the budget."""
    ended = plan(march, fleet.BENCH.replace("1200 USD", "1100 USD"))
    assert ended.code == ExitCode.NO_CAPACITY
    sees(ended, "costs 1,146.17 USD, over the budget of 1,100.00 USD", "if a budget of 1,146.17 USD")
    assert ended.money == "nothing was spent"


# -- D9: release tests on rare types -----------------------------------------------------------------------
def test_d9_the_shortest_cheapest_block_anywhere(march: YardProcess, plan: Any) -> None:
    """Two B200 machines for a day at 50.00 in one Region, at 113.666 in another: the cheap one, under 2,500.

    A reader sees: three Regions asked, the shortest length first, its zone for the test to be rendered to,
    the price of a usable hour, and what is over the cap.
    """
    ended = plan(march, fleet.RELEASE)
    assert ended.code == ExitCode.DONE, ended.err
    sees(
        ended,
        "6 of 6 places asked",
        "BEST efa#1 capacity block, 24 h $2,400.00 up front, no refund, no cancel",
        "why the shortest that meets the need",
        "1 capacity-block usw2-az1 9 Mar 11:30-10 Mar 11:30 23:30 2,400.00 6.383",
        "over the budget: 2 days $4,800.00",
        "published 113.666/h, 5 months old, 127.3 % above the live offer of 50.00/h",
    )
    offer = plan(march, fleet.RELEASE, "--json").json["choices"][0]["offer"]
    assert (offer["segments"][0]["zone_id"], offer["region"]) == ("usw2-az1", "us-west-2")
    assert offer["offering_id"].startswith("cb-")


@pytest.mark.parametrize("state", ["scheduled", "active", "payment-pending"])
def test_d9_an_owned_block_is_reused_at_any_state(state: str, held: YardProcess, plan: Any) -> None:
    """Two machines of the release team, whatever their state: nothing is bought, the owned one is named."""
    hours = {"active": -3, "scheduled": 10, "payment-pending": 20}[state]
    start = datetime(2027, 3, 9, 11, 30, tzinfo=UTC) + timedelta(days=hours)
    mine = {**B200, "region": "us-west-2", "zone": "usw2-az1", "tags": {"team": f"release-{state}"}}
    block = held.seed.block(**mine, state=state, start=start, duration="240h", count=2)
    ended = plan(held, fleet.RELEASE.replace('team = "release"', f'team = "release-{state}"'))
    assert ended.code == ExitCode.DONE, ended.err
    sees(ended, f"USE {block['capacity_reservation_id']} capacity block that you own already $0.00 more")
    assert "BUY " not in ended.out


FAILURES = [
    pytest.param("no-capacity", ExitCode.NO_CAPACITY, "nothing that fits is on sale", id="no capacity"),
    pytest.param("quota", ExitCode.QUOTA, "no place answered the question", id="quota"),
    pytest.param("not-allowed", ExitCode.CREDENTIALS, "no place answered the question", id="not allowed"),
    pytest.param("incomplete", ExitCode.INCOMPLETE, "not every place answered in full", id="incomplete"),
    pytest.param("bad", ExitCode.BAD_REQUEST, "count", id="bad request"),
]
NO_SEARCH = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "ec2:DescribeCapacityBlockOfferings", "Resource": "*"},
    ],
}


@pytest.mark.parametrize(("kind", "code", "said"), FAILURES)
def test_d9_no_capacity_is_told_apart_from_every_other_failure(
    kind: str, code: ExitCode, said: str, march: YardProcess, plan: Any
) -> None:
    """A pipeline reads the exit code: 10 alone means that nothing is on sale; nothing was spent by any."""
    need, account = fleet.RELEASE, None
    if kind == "no-capacity":
        need = need.replace("count = 2", "count = 4")
    elif kind == "bad":
        need = need.replace("count = 2", "count = 0")
    elif kind == "quota":
        need = need.replace("p6-b200", "p5e").replace('"us-east-1", "us-east-2", "us-west-2"', '"us-east-1"')
    elif kind == "not-allowed":
        account = march.account("outsider", NO_SEARCH)["account"]
    else:
        march.fault("malformed-body", "DescribeCapacityBlockOfferings", times=1)
    ended = plan(march, need, account=account)
    assert (ended.code, ended.money) == (code, "nothing was spent"), ended.err
    assert said in " ".join(ended.err.split())


# -- a fallback that is sold -------------------------------------------------------------------------------
def test_three_for_35_days_get_proposals_that_are_sold(march: YardProcess, plan: Any) -> None:
    """Field fault 47: nothing is on sale: 28, 21, 14 days or 2, 1 machines, in the chosen Region alone; no
    call asks for what is not sold.
    """
    before = len(march.log)
    need = fleet.RELEASE.replace('"1d..2d"\ngoal = "shortest"', '"35d"').replace("p6-b200", "p5en")
    need = need.replace("count = 2", "count = 3").replace(
        '"us-east-1", "us-east-2", "us-west-2"', '"us-east-2"'
    )
    ended = plan(march, need, "--budget", "900000")
    assert (ended.code, ended.money) == (ExitCode.NO_CAPACITY, "nothing was spent")
    said = " ".join(ended.err.split())
    assert "for 28 days, 21 days or 14 days instead of 35 days; or for 2 or 1 instead of 3" in said
    calls = march.log[before:]
    searches = [call for call in calls if call["operation"] == "DescribeCapacityBlockOfferings"]
    assert {call["region"] for call in searches} == {"us-east-2"}
    assert {call["outcome"] for call in searches} == {"ok"}, "no InvalidParameterValue"
