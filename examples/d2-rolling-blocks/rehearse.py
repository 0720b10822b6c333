"""A CI pool on rolling blocks: ten days before each end a proposal, an approval, and one purchase.

One command plays it against a yard of its own, in a temporary folder. The team's first block was bought in
the console. Ten days before its end it cannot be extended, since another team holds what is behind it: a new
block is proposed, approved and bought. Ten days before the end of that one it can be extended: approved, and
bought once by a timer that runs every minute.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from staging import Ended, Stage, run_rehearsal  # noqa: E402

CLOCK = "2027-02-17T12:00Z"
ACCOUNT = "platform"
REGION = "us-west-2"
TYPE = "p6-b200.48xlarge"
FEE = Decimal("38191.78")  # 113.666 USD x 336 h
WITHIN = ("--within", "10d")
BUY, EXTEND = "PurchaseCapacityBlock", "PurchaseCapacityBlockExtension"
RULES = """time_zone = "America/Los_Angeles"

[[cap]]
per = "fortnight"
most = "45,000.00 USD"

[approval]
above = "30,000.00 USD"
approvers = ["{lead}"]
"""


def client(stage: Stage, user: str) -> Any:
    """A stock EC2 client with a user's keys, for what is done in the console."""
    import boto3

    keys = stage.keys(ACCOUNT, user)
    session = boto3.session.Session(keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"])
    return session.client("ec2", REGION, endpoint_url=keys["AWS_ENDPOINT_URL"])


def buy_in_console(ec2: Any, start: str, end: str, count: int, team: str) -> str:
    """Buy a block of usw2-az1 without Berth; its id."""
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    (zone,) = [one["ZoneName"] for one in zones if one["ZoneId"] == "usw2-az1"]
    offers = ec2.describe_capacity_block_offerings(
        InstanceType=TYPE, InstanceCount=count, CapacityDurationHours=336,
        StartDateRange=start, EndDateRange=end,
    )["CapacityBlockOfferings"]  # fmt: skip
    (offer,) = [one for one in offers if one["AvailabilityZone"] == zone]
    bought = ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX",
        TagSpecifications=[
            {"ResourceType": "capacity-reservation", "Tags": [{"Key": "team", "Value": team}]}
        ],
    )  # fmt: skip
    return str(bought["CapacityReservation"]["CapacityReservationId"])


def set_up(stage: Stage) -> tuple[str, Any, dict[str, Any]]:
    """Three users of one account, the rules, and two blocks from the console.

    The id of the CI team's block; a client of the other team, and its block as it was.
    """
    stage.say(
        "Set-up. One account with three users: ci, whose timer buys; lead, who approves; vision, another"
        " team. The rules of spending allow 45,000 USD a fortnight, and ask for the lead's word above 30,000"
        " USD."
    )
    number = stage.account(ACCOUNT, "ci", "lead", "vision")
    rules = stage.folder / "journal" / "rules.toml"
    rules.parent.mkdir()
    rules.write_text(RULES.format(lead=f"arn:aws:iam::{number}:user/lead"))
    first = buy_in_console(client(stage, "ci"), "2027-03-01T11:30:00Z", "2027-03-15T11:30:00Z", 1, "ci")
    vision = client(stage, "vision")
    other = buy_in_console(vision, "2027-03-15T11:30:00Z", "2027-03-29T11:30:00Z", 2, "vision")
    stage.clock("advance", "6m")
    (theirs,) = vision.describe_capacity_reservations(CapacityReservationIds=[other])["CapacityReservations"]
    stage.become("ci", ACCOUNT, "ci")
    return first, vision, theirs


def taken_over(stage: Stage, block: str) -> None:
    """The block from the console becomes an order; the other team's is shown."""
    stage.say("1. The first block was bought in the console. It becomes an order; nothing is paid.")
    stage.berth("adopt", block, "--as", "need.toml", "--paid", str(FEE))
    stage.say("What the account owns, whoever bought it:")
    listed = stage.berth("ls", "--region", REGION)
    stage.check("the other team's block is listed, with its tag", true="vision" in listed.out)
    stage.check("nothing was bought by that", true=len(stage.calls(BUY)) == 2)


def a_new_block(stage: Stage, theirs: str) -> None:
    """Ten days before the end: no extension is on sale, a new block goes on in the other zone."""
    stage.clock("set", "2027-03-04T12:00Z")
    early = stage.berth("renewal", "ci-b200", *WITHIN)
    stage.check("eleven days before the end nothing is asked", true="looked at again" in early.out)
    stage.say("2. Ten days before the end. The other team holds both machines of the zone from then on.")
    stage.clock("set", "2027-03-05T12:00Z")
    made = stage.berth("renewal", "ci-b200", *WITHIN).out
    stage.check("no extension is on sale", true="extend no extension of that length is on sale now" in made)
    ways = ways_of(made)
    stage.check(
        "the block that is proposed begins as the old one ends, in usw2-az2, without a gap",
        true=ways[0][1:5] == ["new", "usw2-az2", "2027-03-15", "11:30Z"] and ways[0][7] == "none",
    )
    stage.check("the other team's block is shown beside it", true=f"OTHERS  {theirs}" in made)
    paid = stage.paid(ACCOUNT)
    command = proposed(made)
    first = stage.berth(*command, expect=15)
    again = stage.berth(*command, expect=15)
    one_alarm(stage, [first, again])
    stage.check("nothing was bought", true=stage.paid(ACCOUNT) == paid)
    digits = open_request(stage)
    stage.say("Who asks cannot agree.")
    stage.berth("approve", digits, "--out", str(stage.folder / "mine.json"), "--yes", expect=13)
    approved(stage, digits)
    stage.berth(*command)
    stage.clock("advance", "6m")
    stage.check("one block was bought", true=stage.paid(ACCOUNT) == [*paid, FEE])
    stage.say("The cap of the fortnight is used up: one more is refused, whoever approves.")
    stage.berth("plan", "need.toml", "--start", "2027-03-16T11:30Z", show=False)
    refused = stage.berth("buy", "ci-b200/3#1", "--yes", "--max", "45000", expect=15)
    stage.check("the cap per fortnight says no", true="the cap per fortnight of 45,000.00 USD" in refused.err)


def ways_of(said: str) -> list[list[str]]:
    """The rows of a renewal that can be bought: number, how, zone, from, time, until, time, gap, fee."""
    return [line.split() for line in said.splitlines() if line[:1].isdigit()]


def proposed(said: str) -> tuple[str, ...]:
    """The words of the command that a renewal proposes, with `--yes` for a timer."""
    (line,) = [line for line in said.splitlines() if line.startswith("next ")]
    return (*line.split()[2:], "--yes")


def one_alarm(stage: Stage, ended: list[Ended]) -> None:
    """However often it was tried, somebody was told once."""
    alarms = sum(one.err.count("ALARM") for one in ended)
    stage.check(f"{len(ended)} tries, one alarm", true=alarms == 1)
    spent = all("nothing was spent" in one.err for one in ended)
    stage.check("each try ended with `nothing was spent`", true=spent)


def open_request(stage: Stage) -> str:
    """The first digits of the request that waits for somebody."""
    listed = stage.berth("approvals", "ls", show=False).out.splitlines()
    (request,) = [line for line in listed if "open" in line]
    return request.split()[0]


def approved(stage: Stage, digits: str) -> None:
    """The lead signs; the proof is verified at the yard's STS, and the approval is kept."""
    stage.say("Somebody else agrees, and proves it to STS.")
    proof = str(stage.folder / f"{digits}.json")
    stage.become("lead", ACCOUNT, "lead")
    stage.berth("approve", digits, "--out", proof, "--yes")
    stage.become("ci", ACCOUNT, "ci")
    stage.berth("approvals", "take", proof)


def a_timer_that_extends(stage: Stage) -> None:
    """Ten days before the second end: extending is proposed; a timer runs every minute, and buys once."""
    stage.say("3. A fortnight later. The other team is still there, and behind the second block all is free.")
    stage.clock("set", "2027-03-19T12:30Z")
    made = stage.berth("renewal", "ci-b200", *WITHIN).out
    best, second, *_ = ways_of(made)
    stage.check(
        "extending is proposed: the same zone, without a gap, beside a new block and its price",
        true=best[1:3] == ["extend", "usw2-az2"] and second[1] == "new" and best[7] == second[7] == "none",
    )
    paid = stage.paid(ACCOUNT)
    timer = proposed(made)
    stage.say("The proposal's command goes into a timer that runs every minute.")
    tries = [stage.berth(*timer, expect=15)]
    for _ in range(2):
        stage.ask("POST", "/clock", {"advance": "1m"})
        tries.append(stage.berth(*timer, expect=15, show=False))
    one_alarm(stage, tries)
    stage.check("nothing was bought, and no paid call was sent", true=stage.calls(EXTEND) == [])
    approved(stage, open_request(stage))
    ended = stage.together(timer, timer)
    for _ in range(3):
        stage.ask("POST", "/clock", {"advance": "1m"})
        ended.append(stage.berth(*timer, show=len(ended) == 4))
    stage.check("five runs, two of them at once: one paid call", true=len(stage.calls(EXTEND)) == 1)
    codes = {one.code for one in ended[:2]}
    stage.check(
        "of the two at once one bought, or waited for the other", true=0 in codes and codes <= {0, 15, 40}
    )
    stage.clock("advance", "6m")
    stage.check("one extension was billed", true=stage.paid(ACCOUNT) == [*paid, FEE])
    last = stage.berth(*timer)
    stage.check("run again: nothing more", true="nothing was spent now" in last.out)
    later = stage.berth("renewal", "ci-b200", *WITHIN)
    stage.check("the next proposal is due ten days before the new end", true="2027-04-02T11:30Z" in later.out)


def the_books(stage: Stage, vision: Any, theirs: dict[str, Any]) -> None:
    """Journal and ledger tell the same; what is another team's is as it was."""
    stage.say("4. The books.")
    stage.berth("show", "ci-b200")
    orders = stage.berth("ls", "--orders").out
    stage.check("the extended order shows both fees together", true="76,383.56 USD" in orders)
    events = stage.berth("audit", "--json", show=False).json["events"]
    kinds = ("bought", "extension bought")
    journal = [Decimal(one["amount"]["amount"]) for one in events if one["kind"] in kinds]
    mine = [Decimal(one["amount"]) for one in stage.ledger(ACCOUNT)[2:]]
    stage.check(f"the journal bought for {' and '.join(map(str, journal))} USD", true=journal == [FEE, FEE])
    stage.check("the yard's ledger has the same", true=mine == journal)
    (now,) = vision.describe_capacity_reservations(
        CapacityReservationIds=[theirs["CapacityReservationId"]]
    )["CapacityReservations"]  # fmt: skip
    same = all(now[key] == theirs[key] for key in ("Tags", "EndDate", "StartDate", "InstanceType"))
    stage.check("the other team's block was never touched", true=same)


def story() -> None:
    """The whole rehearsal."""
    with Stage(HERE, CLOCK, HERE / "fleet.toml") as stage:
        block, vision, theirs = set_up(stage)
        taken_over(stage, block)
        a_new_block(stage, theirs["CapacityReservationId"])
        a_timer_that_extends(stage)
        the_books(stage, vision, theirs)


if __name__ == "__main__":
    sys.exit(run_rehearsal(story))
