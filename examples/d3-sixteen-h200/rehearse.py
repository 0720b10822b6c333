"""A model that needs 16 H200 at once: two p5en.48xlarge in one zone, found, compared, and bought once.

One command plays it against a yard of its own, in a temporary folder. The need is sixteen-h200.toml
among the needs here. The clock stands at 25 March 2027. Who plans may not pay; another user does.
"""

from __future__ import annotations

import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from staging import Stage, run_rehearsal  # noqa: E402

NEED = "../needs/sixteen-h200.toml"
CLOCK = "2027-03-25T12:00Z"
REGIONS = ("us-east-1", "us-east-2", "us-west-2")
ZONES = {"use1-az4", "use1-az6", "use2-az1", "use2-az2", "usw2-az2"}  # those with a subnet, as in the need
DAYS = range(5, 10)
CAP = Decimal(30_000)
ACCOUNT = "inference"
PURCHASE = "PurchaseCapacityBlock"


def set_up(stage: Stage) -> None:
    """An account with two users: the planner, who may read, and the buyer, who may buy."""
    stage.say(
        "Set-up. One account, two identities. The planner has the policy that `berth policy read` prints, the"
        " buyer that of `berth policy buy`."
    )
    stage.account(ACCOUNT)
    for user, role in (("planner", "read"), ("buyer", "buy")):
        stage.user(ACCOUNT, user, stage.berth("policy", role, show=False).out)
    stage.profiles({user: stage.keys(ACCOUNT, user) for user in ("planner", "buyer")})


def nothing_on_demand(stage: Stage) -> None:
    """Launching on demand is refused in every zone of the three Regions."""
    import boto3
    from botocore.exceptions import ClientError

    stage.say("1. On demand there is nothing: stock boto3 asks each zone for the two machines.")
    keys = stage.keys(ACCOUNT)
    session = boto3.session.Session(keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"])
    asked = Counter[str]()
    for region in REGIONS:
        ec2: Any = session.client("ec2", region, endpoint_url=keys["AWS_ENDPOINT_URL"])
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        for subnet in ec2.describe_subnets()["Subnets"]:
            if subnet["AvailabilityZoneId"] not in ZONES:
                continue
            try:
                ec2.run_instances(
                    InstanceType="p5en.48xlarge", MinCount=2, MaxCount=2, ImageId=image,
                    SubnetId=subnet["SubnetId"],
                )  # fmt: skip
            except ClientError as refused:
                code = refused.response["Error"]["Code"]
                print(f"{subnet['AvailabilityZoneId']:<10} {code}")
                asked[code] += 1
    stage.check("on-demand is refused in all five zones", true=sum(asked.values()) == len(ZONES))


def compared(stage: Stage) -> dict[str, Any]:
    """Every length in every Region; what lies outside of the subnets is marked; two best, with reasons."""
    stage.say("2. The planner asks: five lengths, three Regions, any start from Monday 5 April on.")
    stage.berth("plan", NEED, "--profile", "planner", brief=36)
    offers = ("plan", NEED, "--profile", "planner", "--offers")
    stage.excerpts(offers, ("next best", 6, 7), ("needs a subnet", 3, 4))
    plan: dict[str, Any] = stage.berth("plan", NEED, "--profile", "planner", "--json", show=False).json
    asked = {(one["question"]["region"], one["question"]["duration_hours"] // 24) for one in plan["places"]}
    ladder = {(region, days) for region in REGIONS for days in DAYS}
    stage.check("5, 6, 7, 8 and 9 days were asked for in all three Regions", true=asked == ladder)
    stage.check("every place answered", true=plan["incomplete"] is False)
    needs_subnet = [one for one in plan["choices"] if any("needs a subnet" in care for care in one["cares"])]
    outside = [one for one in plan["choices"] if not zones_of(one) <= ZONES]
    stage.check(
        f"{len(outside)} offers lie outside of the five zones; these and no others say `needs a subnet`",
        true=bool(outside) and [one["number"] for one in needs_subnet] == [one["number"] for one in outside],
    )
    first, second = plan["choices"][:2]
    for one in (first, second):
        print(f"#{one['number']} {', '.join(sorted(zones_of(one)))}: {'; '.join(one['reasons'])}")
        stage.check(
            f"#{one['number']} has a subnet, costs {one['offer']['fee']['amount']} USD and says why",
            true=zones_of(one) <= ZONES
            and bool(one["reasons"])
            and Decimal(one["offer"]["fee"]["amount"]) <= CAP,
        )
    stage.check("nothing was bought by looking", true=stage.calls(PURCHASE) == [])
    return plan


def zones_of(choice: dict[str, Any]) -> set[str]:
    """Zone ids of a choice."""
    return {part["zone_id"] for part in choice["offer"]["segments"]}


def bought_once(stage: Stage, plan: dict[str, Any]) -> None:
    """The planner cannot pay; a price that moved is not paid; the answer is lost; one block is bought."""
    fee = plan["choices"][0]["offer"]["fee"]["amount"]
    buy = ("buy", f"{plan['need']['name']}#1", "--yes", "--max", str(CAP), "--profile", "planner")
    stage.say("3. The planner tries to buy. AWS refuses, and nothing is spent.")
    refused = stage.berth(*buy, expect=13)
    stage.check("it ends with `nothing was spent`", true="nothing was spent" in refused.err)
    with_buyer = (*buy, "--buyer-profile", "buyer")
    stage.say("4. The buyer pays. But the price has moved since the plan; it is read again before the call.")
    stage.yard("fault", "arm", "price-change", "--amount", "1.02", show=True)
    stage.berth(*with_buyer, expect=15)
    stage.yard("fault", "clear", show=True)
    stage.check("no purchase came through", true=stage.paid(ACCOUNT) == [])
    stage.say("5. The price is as it was. Now the line breaks after AWS has sold and before it answers.")
    stage.yard("fault", "arm", "lost-reply", "--operation", PURCHASE, "--times", "1", show=True)
    stage.berth(*with_buyer)
    stage.say("6. Nobody is sure what happened, so the command is typed again.")
    again = stage.berth(*with_buyer)
    stage.check("it says that nothing was spent now", true="nothing was spent now" in again.err + again.out)
    stage.clock("advance", "6m")
    books_equal_ledger(stage, plan["need"]["name"], Decimal(fee))


def books_equal_ledger(stage: Stage, name: str, fee: Decimal) -> None:
    """Journal, ledger and log tell the same."""
    stage.say("7. The books.")
    stage.berth("show", name, "--profile", "planner")
    order = stage.berth("show", name, "--profile", "planner", "--json", show=False).json
    paid = stage.paid(ACCOUNT)
    stage.check(f"the yard's ledger has one entry, of {fee} USD", true=paid == [fee])
    stage.check("the journal has the same amount", true=Decimal(order["money"]["amount"]["amount"]) == fee)
    stage.check("the block is held and paid", true=order["seen"]["state"] == "scheduled")
    (sent,) = [call for call in stage.calls(PURCHASE) if call["outcome"] == "ok"]
    stage.check(
        f"one purchase was accepted, in {sent['region']}", true=sent["region"] == order["offer"]["region"]
    )
    events = stage.berth("audit", "--json", show=False).json["events"]
    intents = [one for one in events if one["kind"] == "bought"]
    stage.check("the audit tells of one purchase", true=len(intents) == 1)


def story() -> None:
    """The whole rehearsal."""
    with Stage(HERE, CLOCK, HERE / "fleet.toml") as stage:
        set_up(stage)
        nothing_on_demand(stage)
        bought_once(stage, compared(stage))


if __name__ == "__main__":
    sys.exit(run_rehearsal(story))
