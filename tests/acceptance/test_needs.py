"""Whole needs against a started yard: the examples, ranges, several types, parts, several blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.aws.guards import PAID
from berth.planner.plan import Plan
from berth.terms.outcomes import ExitCode
from berth.yard.testing.process import YardProcess

from .conftest import UNTHROTTLED, Typed, words

EXAMPLES = Path(__file__).parents[2] / "examples" / "needs"


@pytest.fixture(scope="module")
def december(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """A yard on 1 December 2026, 09:00Z, that lets many searches through."""
    with YardProcess(tmp_path_factory.mktemp("y"), throttle_scale=UNTHROTTLED) as yard:
        yield yard


@pytest.fixture(scope="module")
def march(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """A yard on 25 March 2027, eleven days before scenario D3 begins."""
    with YardProcess(
        tmp_path_factory.mktemp("y"), clock="2027-03-25T09:00:00Z", throttle_scale=UNTHROTTLED
    ) as y:
        yield y


NEEDS = {
    "load-test": "BEST load-test#1 capacity block $4,584.67 up front",
    "model-validation": "BEST validate-1#1 capacity block, 4 days, 2 x p5e.48xlarge $10,545.41 up front",
    "workshop": "BEST workshop-1#1 training plan, 8 x ml.p4d.24xlarge $5,210.88 now",
    "inference-before-launch": "BEST serve-1#1 training plan $228.77 now",
    "training-cluster": "BEST train-1#best 1 purchase, the rest on-demand $24,266.66 in all",
    "release-test": "BEST efa-release#1 capacity block, 24 h",
}


@pytest.mark.parametrize("name", NEEDS)
def test_each_example_plans(name: str, december: YardProcess, typed: Typed) -> None:
    """It validates, finds what the yard sells, in 80 columns, and spends nothing."""
    before = len(december.ledger)
    code, out, err = typed(december, "plan", EXAMPLES / f"{name}.toml")
    assert code == ExitCode.DONE, err
    assert NEEDS[name] in words(out)
    assert max(map(len, out.splitlines())) <= 80
    assert len(december.ledger) == before
    assert {call["operation"] for call in december.log} & PAID == set()


def test_every_example_is_tried() -> None:
    """None stands there untested; scenario D3 has a test of its own."""
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == {*NEEDS, "sixteen-h200"}


def test_sixteen_h200_from_monday_for_five_to_nine_days(march: YardProcess, typed: Typed) -> None:
    """Scenario D3: five lengths in three Regions, each told with its price; Monday is New York's."""
    code, out, err = typed(march, "plan", EXAMPLES / "sixteen-h200.toml")
    assert code == ExitCode.DONE, err
    for said in (
        "2 x p5en.48xlarge (16 H200), EC2 instances, 5 to 9 days, the shortest that does",
        "from Mon 2027-04-05 04:00Z (00:00 New York)",
        "15 of 15 places",
        "capacity block, 5 days $15,157.92 up front",
        "the shortest that meets the need",
        "Used to the last usable minute it costs $30.18 MORE than on-demand. You buy the date.",
        "5 days 15,157.92 (#1); 6 days 18,189.50",
        "7 days 21,221.09",
        "9 days 27,284.26",
        "BUY berth buy p5en-0405#1 --max 15157.92",
    ):
        assert said in words(out)
    asked = [call for call in march.log if call["operation"] == "DescribeCapacityBlockOfferings"]
    assert len(asked) >= 15


def test_the_longest_under_a_budget_and_zones_without_a_subnet(march: YardProcess, typed: Typed) -> None:
    """25,000 dollars pay 8 days; where no subnet is, the row says so."""
    need = EXAMPLES / "sixteen-h200.toml"
    code, out, _ = typed(
        march, "plan", need, "--goal", "longest", "--budget", "25000", "--region", "us-west-2",
        "--zone-id", "usw2-az1", "--zone-id", "usw2-az2", "--zone-id", "usw2-az3", "--zone-id", "usw2-az4",
    )  # fmt: skip
    assert code == ExitCode.DONE
    assert "capacity block, 8 days $24,252.67 up front" in words(out)
    assert "over the budget: 9 days $27,284.26" in words(out)
    code, out, _ = typed(march, "plan", need, "--subnet-zone", "use1-az1", "--region", "us-east-2")
    assert code == ExitCode.DONE
    assert "It needs a subnet: the need names none in use2-az1." in words(out)
    assert "\n   needs a subnet\n" in out


def test_a_budget_under_the_price_is_no_capacity_and_names_what_it_takes(
    december: YardProcess, typed: Typed
) -> None:
    """Scenario D9: a cap of 2,500 is under two B200 machines for a day: exit 10, no bad need."""
    code, out, err = typed(december, "plan", EXAMPLES / "release-test.toml", "--budget", "2500")
    assert code == ExitCode.NO_CAPACITY
    assert "LASTS over the budget: 24 h $5,455.97; 2 days $10,911.94" in words(out)
    assert "nothing was spent" in err
    assert typed(december, "plan", EXAMPLES / "release-test.toml", "--count", "0")[0] == ExitCode.BAD_REQUEST


def test_an_endpoint_for_a_day_from_saturday_under_a_cap(december: YardProcess, typed: Typed) -> None:
    """Scenario D7: one ml.p5.48xlarge for 24 h from Saturday, at most 1,200: only an endpoint's plan does."""
    code, out, _ = typed(
        december, "plan", "--name", "bench", "--type", "ml.p5.48xlarge", "--target", "endpoint",
        "--duration", "24h", "--start", "2026-12-05T11:30Z", "--budget", "1200", "--region", "us-east-1",
    )  # fmt: skip
    assert code == ExitCode.DONE
    assert "BEST bench#1 training plan $1,146.17 now, no refund, no cancel" in words(out)
    assert "of the ways that can host an endpoint only a plan promises it" in words(out)
    assert "Sat 5 11:30-Sun 6 11:30" in out


def test_a_hundred_machines_are_several_blocks(december: YardProcess, typed: Typed) -> None:
    """64 and 36 are asked for, never 100; 36 once more from where 64 are free; they are the answer."""
    seen = len(december.log)
    code, out, err = typed(
        december, "plan", "--name", "hundred", "--type", "p5.48xlarge", "--count", "100", "--duration", "7d",
        "--target", "instances", "--region", "us-east-1",
    )  # fmt: skip
    assert code == ExitCode.DONE, err
    assert "BEST hundred#best 2 purchases together $802,317.60 in all" in words(out)
    assert "a block holds 64 instances at most: several blocks: 64 + 36" in words(out)
    assert "holds 36 x p5.48xlarge of the 100 wanted: one of several" in words(out)
    assert "100 at once in one zone are more than a search can be asked for" in words(out)
    assert "BUY berth buy hundred#best --max 802317.60 with --unconfirmed: asks once" in words(out)
    asked = [c for c in december.log[seen:] if c["operation"] == "DescribeCapacityBlockOfferings"]
    assert len(asked) == 3


def test_parts_are_planned_and_named(december: YardProcess, typed: Typed) -> None:
    """Field fault 42: both are listed; a part is planned by name, and one that is not held is refused."""
    need = EXAMPLES / "training-cluster.toml"
    _, out, _ = typed(december, "plan", need)
    assert "BESIDE head: 1 x c7g.2xlarge, on-demand, zone of the block, use1-" in words(out)
    assert "else c8g.2xlarge or c6g.2xlarge" in words(out)
    assert "8 x p5.48xlarge (64 H100): 2 at first, 8 from 2 days on" in words(out)
    code, _, err = typed(december, "plan", need, "--part", "head")
    assert code == ExitCode.USAGE
    assert "it is not held ahead, so there is nothing to plan" in words(err)
    code, _, err = typed(december, "plan", need, "--part", "tail")
    assert "the need has no such part; it has nodes, head" in words(err)


def test_a_plan_of_a_range_is_remembered_whole(december: YardProcess, typed: Typed) -> None:
    """The plan in the JSON document reads back as the same plan, types, range and questions included."""
    code, out, _ = typed(
        december, "plan", EXAMPLES / "model-validation.toml", "--region", "us-west-2", "--json"
    )
    assert code == ExitCode.DONE
    document = json.loads(out)
    plan = Plan.from_json(document)
    assert plan.to_json() == {key: document[key] for key in plan.to_json()}
    assert [t.instance_type for t in plan.need.types] == [
        "p5e.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge",
    ]  # fmt: skip
    assert {a.question.duration_hours for a in plan.answers if a.question} == {48, 72, 96}
