"""Capacity Blocks through the command line against a yard: bought once, launched into, ended."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.terms.instants import parse_instant

NEED = """
name = "{name}"
instance_type = "{kind}"
count = {count}
duration = "24h"
target = "instances"
regions = ["us-east-1"]
{more}
"""
KIND = "p5.48xlarge"


class Blocks:
    """The command line for one account, and what the yard knows of it."""

    def __init__(self, berth: Any, account: str) -> None:
        self.berth = berth
        self.yard = berth.yard
        self.account = account
        self.clients = self.yard.clients_of(account)
        self.id: str = self.clients.sts.get_caller_identity()["Account"]

    def __call__(self, *arguments: str) -> Any:
        """Run `berth ARGUMENTS`."""
        return self.berth(*arguments)

    def need(self, name: str, *, kind: str = KIND, count: int = 1, more: str = "") -> str:
        """Write a need file; its path."""
        file = self.berth.folder / f"{name}.toml"
        file.write_text(NEED.format(name=name, kind=kind, count=count, more=more))
        return str(file)

    def plan(self, name: str, **said: Any) -> dict[str, Any]:
        """Plan a need; the plan."""
        ended = self("plan", self.need(name, **said), "--json")
        assert ended.code == 0, ended.err
        found: dict[str, Any] = ended.json
        return found

    def buy(self, name: str, *more: str) -> Any:
        """Buy the first choice without asking."""
        return self("buy", f"{name}#1", "--yes", "--max", "9000", *more)

    def held(self) -> list[dict[str, Any]]:
        """The account's blocks as a stock client sees them."""
        found: list[dict[str, Any]] = self.clients.ec2.describe_capacity_reservations()[
            "CapacityReservations"
        ]
        return found

    def sold(self) -> list[Decimal]:
        """What the yard billed to the account, once all payments are through."""
        self.yard.clear_faults()
        self.yard.clock.advance(minutes=6)
        return [Decimal(sale["amount"]) for sale in self.yard.ledger if sale["account_id"] == self.id]

    def calls(self, operation: str) -> int:
        """How many calls of an operation the yard has seen from the account."""
        return sum(call["account_id"] == self.id for call in self.yard.log_of(operation))

    def open(self, name: str, **later: float) -> None:
        """Move the yard's clock to a minute after the order's window opens, or so much after its start."""
        start = parse_instant(self("show", name, "--json").json["seen"]["start"])
        self.yard.clock.set(start + timedelta(**(later or {"minutes": 1})))

    def image(self, platform: str = "Linux/UNIX") -> str:
        """An image of the yard for a platform."""
        found = self.clients.ec2.describe_images(Filters=[{"Name": "platform-details", "Values": [platform]}])
        image: str = found["Images"][0]["ImageId"]
        return image


@pytest.fixture
def blocks(house: Any, at_yard: Callable[..., Any], request: pytest.FixtureRequest) -> Iterator[Blocks]:
    """The command line with an account of its own: EC2's search is throttled for each account apart."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:30].strip("-")
    house.account(name)
    yield Blocks(at_yard(house, name), name)
    house.clear_faults()


def test_a_block_is_bought_once(blocks: Blocks) -> None:
    """Planned, bought, shown; bought again nothing is spent; one block, our tags, books equal ledger."""
    plan = blocks.plan("once")
    assert plan["choices"][0]["offer"]["fee"] == {"amount": "1146.17", "currency": "USD"}
    first = blocks.buy("once", "--json")
    assert first.code == 0, first.err
    assert "cannot be seen from here" in " ".join(first.err.split())
    assert first.json["state"] == "bought"
    again = blocks.buy("once")
    assert again.code == 0
    assert "bought already" in again.err
    (held,) = blocks.held()
    assert held["CapacityReservationId"] == first.json["reservation"]
    tags = {tag["Key"]: tag["Value"] for tag in held["Tags"]}
    assert tags["berth:order"] == f"{blocks.id}/once/1"
    assert tags["berth:fee"] == "1146.17 USD"
    assert blocks.sold() == [Decimal("1146.17")]
    assert blocks("show", "once", "--json").json["money"]["line"] == "paid 1,146.17 USD, order once"
    assert blocks.calls("PurchaseCapacityBlock") == 1


@pytest.mark.parametrize("fault", ["lost-reply", "error-after-commit", "malformed-body"])
def test_a_lost_answer_is_one_block(blocks: Blocks, fault: str) -> None:
    """The answer is lost after the sale: found by its tag, one call in the yard's log (field fault 1)."""
    blocks.plan("lost")
    blocks.yard.fault(fault, "PurchaseCapacityBlock", times=None)
    ended = blocks.buy("lost")
    assert ended.code == 0, ended.err
    assert "found in AWS" in ended.err
    assert blocks.buy("lost").code == 0
    assert blocks.calls("PurchaseCapacityBlock") == 1
    assert len(blocks.held()) == 1
    assert blocks.sold() == [Decimal("1146.17")]


def test_stock_clients_buy_several(blocks: Blocks) -> None:
    """The same cut line at a stock client: boto3's default sends again, and each call is paid."""
    blocks.yard.fault("lost-reply", "PurchaseCapacityBlock", times=None)
    ec2 = blocks.clients("ec2", retries={"mode": "standard", "total_max_attempts": 3})
    found = ec2.describe_capacity_block_offerings(
        InstanceType=KIND, InstanceCount=1, CapacityDurationHours=24
    )["CapacityBlockOfferings"]
    offer = next(one for one in found if one["UpfrontFee"] == "1146.17")
    with pytest.raises(Exception, match="Connection"):
        ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
        )
    assert blocks.sold() == [Decimal("1146.17")] * 3


def test_lagging_describes_leave_it_unknown(blocks: Blocks) -> None:
    """A lost answer, reads 5 minutes late: exit 40, never a second call; known once the clock moved."""
    blocks.plan("lag")
    blocks.yard.fault("lag", "*", account=blocks.account)
    blocks.yard.fault("lost-reply", "PurchaseCapacityBlock")
    ended = blocks.buy("lag")
    assert ended.code == 40
    assert ended.money.startswith("not known whether 1,146.17 USD was paid, order lag: do not buy by hand")
    assert blocks.buy("lag").code == 40
    assert blocks("run", blocks.need("lag"), "--yes", "--max", "9000").code == 40
    blocks.yard.clock.advance(minutes=6)
    assert blocks("show", "lag").code == 0
    assert blocks.buy("lag").code == 0
    assert blocks.sold() == [Decimal("1146.17")]


def test_killed_between_call_and_reply(blocks: Blocks, until: Callable[..., None]) -> None:
    """Kill -9 while the yard stalls its answer: the next run finds the block by its tag and pays nothing."""
    blocks.plan("killed")
    blocks.yard.fault("stall", "PurchaseCapacityBlock", amount="8")
    child = subprocess.Popen(
        [sys.executable, "-m", "berth", "buy", "killed#1", "--yes", "--max", "9000"],
        env=blocks.berth.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: len(blocks.held()) == 1)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    after = blocks.buy("killed")
    assert after.code == 0, after.err
    assert "found in AWS" in after.err
    assert blocks.sold() == [Decimal("1146.17")]
    assert blocks.calls("PurchaseCapacityBlock") == 1


def test_a_colleague_is_told_that_it_is_bought(blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another journal, the same need: `buy` and `run` find the block by its tag and spend nothing."""
    blocks.plan("shared")
    assert blocks.buy("shared").code == 0
    monkeypatch.setenv("BERTH_HOME", str(blocks.berth.folder / "colleague"))
    ran = blocks("run", blocks.need("shared"), "--yes", "--max", "9000", "--json")
    assert ran.code == 0, ran.err
    assert "already bought" in ran.err
    assert ran.json["money"]["amount"]["amount"] == "1146.17"
    monkeypatch.setenv("BERTH_HOME", str(blocks.berth.folder / "third"))
    blocks.plan("shared")
    bought = blocks.buy("shared")
    assert bought.code == 0, bought.err
    assert "already bought" in bought.err
    assert blocks.sold() == [Decimal("1146.17")]


def test_gone_between_search_and_purchase(blocks: Blocks) -> None:
    """Exit 15, nothing spent, what else there is with its difference; never the next one (field fault 8)."""
    blocks.plan("gone")
    blocks.yard.fault("gone", "PurchaseCapacityBlock")
    ended = blocks.buy("gone")
    assert ended.code == 15, ended.err
    assert "the offer is gone" in ended.err
    assert "instead:" in ended.err
    assert "USD)" in ended.err
    assert ended.money == "nothing was spent"
    assert blocks.sold() == []


def test_a_moved_price_is_a_decision(blocks: Blocks) -> None:
    """Dearer by a cent and more, though under the cap: both prices, nothing spent (field fault 7)."""
    blocks.plan("dearer")
    blocks.yard.fault("price-change", "DescribeCapacityBlockOfferings", amount="1.01", account=blocks.account)
    ended = blocks.buy("dearer")
    assert ended.code == 15
    assert "the price moved: 1,146.17 USD to 1,157.63 USD" in ended.err
    assert ended.money == "nothing was spent"
    assert blocks.calls("PurchaseCapacityBlock") == 0


def test_the_cheapest_that_fits_is_bought_and_not_the_first(blocks: Blocks) -> None:
    """EC2 lists the earliest first; the choice is the cheapest total, within the cap (field fault 7)."""
    plan = blocks.plan("cheap")
    fees = [Decimal(choice["offer"]["fee"]["amount"]) for choice in plan["choices"]]
    assert fees == sorted(fees)
    assert blocks("buy", "cheap#1", "--yes", "--max", "1146.16").code == 15
    assert blocks.sold() == []


def test_nothing_is_bought_where_offers_cannot_be_read(blocks: Blocks) -> None:
    """No known price, or no readable answer: exit 14 with the reason, never "none on sale"."""
    search = "DescribeCapacityBlockOfferings"
    blocks.yard.fault("absent-members", search, amount="UpfrontFee", times=None, account=blocks.account)
    ended = blocks("run", blocks.need("dear"), "--yes", "--max", "9000")
    assert (ended.code, blocks.held()) == (14, []), ended.err
    assert "no price of it is known" in ended.err
    blocks.yard.clear_faults()
    blocks.yard.fault("malformed-body", search, times=None, account=blocks.account)
    ended = blocks("run", blocks.need("garbled"), "--yes", "--max", "9000")
    assert (ended.code, blocks.held()) == (14, []), ended.err
    assert "0 of 1 places searched" in ended.err
    assert "on sale" not in ended.err.splitlines()[-3]
    blocks.yard.clear_faults()


def test_an_immediate_block_moves_with_the_clock(blocks: Blocks) -> None:
    """Ten minutes later it starts later and costs less, at the same rate; forty minutes later it is gone."""
    plan = blocks.plan("now", more='latest_end = "2040-01-01T00:00Z"')
    choice = next(one for one in plan["choices"] if one["offer"]["starts_at_once"])
    approved = Decimal(choice["offer"]["fee"]["amount"])
    blocks.yard.clock.advance(minutes=40)
    late = blocks("buy", f"now#{choice['number']}", "--yes", "--max", "9000")
    assert late.code == 15, late.err
    assert "the offer is gone" in late.err
    plan = blocks.plan("now", more='latest_end = "2040-01-01T00:00Z"')
    choice = next(one for one in plan["choices"] if one["offer"]["starts_at_once"])
    approved = Decimal(choice["offer"]["fee"]["amount"])
    blocks.yard.clock.advance(minutes=10)
    bought = blocks("buy", f"now#{choice['number']}", "--yes", "--max", "9000", "--json")
    assert bought.code == 0, bought.err
    assert bought.json["seen"]["start"] > choice["offer"]["segments"][0]["start"]
    (paid,) = blocks.sold()
    assert approved - 10 < paid < approved


def test_a_failed_payment_leads_to_the_next_order(blocks: Blocks) -> None:
    """Payment fails: nothing was spent, and the next purchase is order NAME/2 with a mark of its own."""
    blocks.plan("payment")
    blocks.yard.fault("payment-failure", "PurchaseCapacityBlock")
    assert blocks.buy("payment").code == 0
    blocks.yard.clock.advance(minutes=6)
    shown = blocks("show", "payment", "--json").json
    assert shown["state"] == "failed"
    assert shown["money"]["line"] == "nothing was spent"
    blocks.plan("payment")
    second = blocks.buy("payment", "--json")
    assert second.code == 0, second.err
    assert second.json["order"] == "payment/2"
    assert blocks.sold() == [Decimal("1146.17")]


def test_again_typed_twice_buys_once_more(blocks: Blocks, until: Callable[..., None]) -> None:
    """--again killed after its purchase and typed again: told that NAME/2 exists, and asked for NAME/3."""
    blocks.plan("more")
    assert blocks.buy("more").code == 0
    blocks.yard.fault("stall", "PurchaseCapacityBlock", amount="8")
    child = subprocess.Popen(
        [sys.executable, "-m", "berth", "buy", "more#1", "--again", "--yes", "--max", "9000"],
        env=blocks.berth.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: len(blocks.held()) == 2)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    resumed = blocks.buy("more", "--again", "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["order"] == "more/2"
    typed_again = blocks.buy("more", "--again")
    assert typed_again.code == 15
    assert "berth buy more/3#1" in typed_again.err
    assert blocks("buy", "more/2#1", "--yes", "--max", "9000").code == 0
    assert blocks.sold() == [Decimal("1146.17")] * 2


def test_bare_answers_and_unknown_states(blocks: Blocks) -> None:
    """Optional members missing, a state that nobody knows: bought, warned, exit 0 (field faults 2 and 40)."""
    blocks.plan("bare")
    absent = "InstanceType,AvailabilityZone,AvailabilityZoneId,EndDate,TotalInstanceCount,OwnerId,Tenancy"
    for operation in ("PurchaseCapacityBlock", "DescribeCapacityReservations"):
        blocks.yard.fault("absent-members", operation, amount=absent, times=None)
        blocks.yard.fault("unknown-values", operation, amount="State", times=None)
    ended = blocks.buy("bare")
    assert ended.code == 0, ended.err
    assert "does not show the reservation's instance type" in " ".join(ended.err.split())
    assert "which this program does not know" in " ".join(ended.err.split())
    assert blocks.buy("bare").code == 0
    assert blocks("show", "bare").code == 0
    assert blocks.calls("PurchaseCapacityBlock") == 1
    assert blocks.sold() == [Decimal("1146.17")]


def test_another_platform_is_bought_as_said(blocks: Blocks) -> None:
    """The platform of the need is the platform of the block, and the image must be of it."""
    blocks.plan("pro", more='platform = "Ubuntu Pro"')
    assert blocks.buy("pro").code == 0
    assert blocks.held()[0]["InstancePlatform"] == "Ubuntu Pro"
    blocks.open("pro")
    ended = blocks("launch", "pro", "--image", blocks.image())
    assert ended.code == 20
    assert "was bought for Ubuntu Pro" in " ".join(ended.err.split())
    assert blocks.calls("RunInstances") == 0
    assert blocks("launch", "pro", "--image", blocks.image("Ubuntu Pro")).code == 0


def test_launch_read_back_and_clean(blocks: Blocks) -> None:
    """Refused before the start; then in the block; ended, cleaned, and what stays paid is said."""
    blocks.plan("serve", count=2)
    assert blocks.buy("serve").code == 0
    early = blocks("launch", "serve", "--image", blocks.image())
    assert early.code == 30
    assert "starts in" in early.err
    assert early.money == "paid 2,292.34 USD, order serve"
    assert blocks.calls("RunInstances") == 0
    blocks.open("serve")
    launched = blocks("launch", "serve", "--image", blocks.image(), "--json")
    assert launched.code == 0, launched.err
    reservation = blocks.held()[0]["CapacityReservationId"]
    assert [one["block"] for one in launched.json["instances"]] == [reservation] * 2
    assert {one["lifecycle"] for one in launched.json["instances"]} == {"capacity-block"}
    again = blocks("launch", "serve", "--image", blocks.image(), "--json")
    assert again.json["started"] == 0
    shown = blocks("show", "serve", "--json").json
    assert [one["stray"] for one in shown["instances"]] == ["", ""]
    blocks.yard.clock.advance(hours=6)
    assert blocks("clean", "serve").code == 30
    blocks.yard.clock.advance(minutes=10)
    cleaned = blocks("clean", "serve", "--json")
    assert cleaned.code == 31, cleaned.err
    assert cleaned.json["report"]["used_s"] == 6 * 3600
    assert blocks.held()[0]["AvailableInstanceCount"] == 2
    relaunched = blocks("launch", "serve", "--image", blocks.image(), "--count", "1", "--json")
    assert relaunched.code == 0, relaunched.err
    assert relaunched.json["started"] == 1


def test_nothing_is_launched_into_a_block_that_is_taken_back(blocks: Blocks) -> None:
    """25 minutes before the end, with free places shown: no RunInstances (field fault 21)."""
    blocks.plan("late")
    assert blocks.buy("late").code == 0
    blocks.open("late", hours=23, minutes=35)
    ended = blocks("launch", "late", "--image", blocks.image())
    assert ended.code == 30
    assert "too late in this block" in ended.err
    assert blocks.calls("RunInstances") == 0


def test_misfits_are_told_before_any_launch(blocks: Blocks) -> None:
    """A subnet of another zone and more than was bought: two findings, no launch (field fault 32)."""
    blocks.plan("misfit", count=2)
    assert blocks.buy("misfit").code == 0
    blocks.open("misfit")
    zone = blocks.held()[0]["AvailabilityZoneId"]
    elsewhere = next(
        one["SubnetId"]
        for one in blocks.clients.ec2.describe_subnets()["Subnets"]
        if one["AvailabilityZoneId"] != zone
    )
    ended = blocks("launch", "misfit", "--image", blocks.image(), "--subnet", elsewhere, "--count", "3")
    assert ended.code == 20
    said = " ".join(ended.err.split())
    assert f"subnet {elsewhere} is in" in said
    assert "3 wanted, 2 reserved" in said
    assert blocks.calls("RunInstances") == 0


def test_owned_capacity_needs_no_quota(blocks: Blocks) -> None:
    """On-demand quotas are not asked, and nothing is searched: what is owned is used (field fault 37)."""
    seeded = blocks.yard.seed.block(state="active", count=2, account=blocks.account)
    blocks.clients.ec2.create_tags(
        Resources=[seeded["capacity_reservation_id"]],
        Tags=[
            {"Key": "berth:order", "Value": f"{blocks.id}/owned/1"},
            {"Key": "berth:fee", "Value": "2292.34 USD"},
        ],
    )
    ran = blocks("run", blocks.need("owned", count=2), "--json")
    assert ran.code == 0, ran.err
    assert "already bought" in ran.err
    launched = blocks("launch", "owned", "--image", blocks.image())
    assert launched.code == 0, launched.err
    assert blocks.calls("PurchaseCapacityBlock") == 0
    assert blocks.calls("DescribeCapacityBlockOfferings") == 0


def test_an_owned_block_is_not_bought_beside(blocks: Blocks) -> None:
    """`run` buys nothing while an owned block covers the need; it says how to use that (field fault 10)."""
    seeded = blocks.yard.seed.block(state="scheduled", count=1, account=blocks.account, duration="48h")
    ended = blocks("run", blocks.need("have"), "--yes", "--max", "9000")
    assert ended.code == 15, ended.err
    assert seeded["capacity_reservation_id"] in ended.err
    assert ended.money == "nothing was spent"
    assert blocks.calls("PurchaseCapacityBlock") == 0


def test_three_blocks_are_filled_in_turn(blocks: Blocks) -> None:
    """2, 2 and 4 places and 8 wanted: three launches, no error (field fault 35)."""
    facts = {"state": "active", "instance_type": "p5.4xlarge", "region": "us-east-1"}
    ids = [
        blocks.yard.seed.block(count=count, account=blocks.account, **facts)["capacity_reservation_id"]
        for count in (2, 2, 4)
    ]
    mark = [
        {"Key": "berth:order", "Value": f"{blocks.id}/eight/1"},
        {"Key": "berth:fee", "Value": "1.00 USD"},
    ]
    blocks.clients.ec2.create_tags(Resources=ids[:1], Tags=mark)
    assert blocks("run", blocks.need("eight", kind="p5.4xlarge", count=2)).code == 0
    launched = blocks(
        "launch", "eight", "--image", blocks.image(), "--count", "8", "--block", ids[1], "--block", ids[2],
        "--json",
    )  # fmt: skip
    assert launched.code == 0, launched.err
    assert launched.json["started"] == 8
    in_blocks = [one["block"] for one in launched.json["instances"]]
    assert [in_blocks.count(one) for one in ids] == [2, 2, 4]
    assert blocks.calls("RunInstances") == 3


def test_an_ended_block_that_is_not_described_any_more(blocks: Blocks) -> None:
    """NotFound for an expired id is normal: shown as ended, cleaned with exit 0 (field fault 24)."""
    blocks.plan("old")
    assert blocks.buy("old").code == 0
    blocks.yard.clock.advance(days=40)
    assert blocks.held() == []
    shown = blocks("show", "old")
    assert shown.code == 0, shown.err
    assert "ended (no longer reported)" in shown.out
    assert "p5.48xlarge" in shown.out
    assert "warning" not in shown.err
    cleaned = blocks("clean", "old")
    assert cleaned.code == 0, cleaned.err
    assert blocks("launch", "old", "--image", "ami-0123456789abcdef0").code == 30


def test_run_goes_on_where_it_was(blocks: Blocks) -> None:
    """`berth run` ends with a time to wait for; run again then it launches; at the end it clears up."""
    more = f'[launch]\nimage = "{blocks.image()}"'
    file = blocks.need("whole", more=more)
    first = blocks("run", file, "--yes", "--max", "9000")
    assert first.code == 0, first.err
    assert "waiting until" in first.out
    assert blocks("run", file).code == 0
    blocks.open("whole")
    running = blocks("run", file, "--json")
    assert running.code == 0, running.err
    assert running.json["stage"] == "running"
    assert len(running.json["instances"]) == 1
    blocks.yard.clock.advance(hours=23, minutes=45)
    over = blocks("run", file)
    assert over.code == 31, over.err
    assert blocks.sold() == [Decimal("1146.17")]


def test_each_verb_for_its_own(blocks: Blocks) -> None:
    """Deploying into a block and launching into what is not bought are refused in a sentence."""
    blocks.plan("verbs")
    assert blocks("launch", "verbs").code == 20
    assert blocks.buy("verbs").code == 0
    ended = blocks("deploy", "verbs", "--model", "any")
    assert ended.code == 20
    assert "berth launch verbs" in ended.err
    assert blocks("invoke", "verbs", "x").code == 20
