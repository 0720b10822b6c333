"""The demo's second story: the answer to a purchase is lost, and who has paid how often.

PurchaseCapacityBlock takes no client token, and there is no refund. The yard takes each purchase and cuts the
line before its answer, or never answers. A stock client sends again; `berth` is killed in the middle and run
again, by its owner and by a colleague with a journal of his own.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from berth.yard.admin.client import ask
from berth.yard.data_folder import DataFolder

NEED = Path(__file__).with_name("lost.toml")
PURCHASE = "PurchaseCapacityBlock"
ASKED = {
    "InstanceType": "p5.48xlarge",
    "InstanceCount": 1,
    "CapacityDurationHours": 24,
    "StartDateRange": "2026-12-03T11:30:00Z",
    "EndDateRange": "2026-12-04T11:30:00Z",
}
BUY = ("buy", "lost-1#1", "--yes", "--max", "1146.17")
PATIENCE_S = 20.0


class Stage(Protocol):
    """What the demo's stage does: it tells, types `berth` commands, and asks the yard."""

    environment: dict[str, str]
    folder: Path

    def say(self, text: str) -> None:
        """A paragraph of the story."""
        ...

    def run(self, *words: str, expect: int = 0, show: bool = True) -> str:
        """Type a `berth` command; its standard output."""
        ...

    def yard(self, *words: str, show: bool = True) -> str:
        """Type a `berth yard` command; its standard output."""
        ...


class Account:
    """One account of the yard, with a stock EC2 client."""

    def __init__(self, stage: Stage, name: str) -> None:
        import boto3

        self.yard = DataFolder(stage.folder / "yard").admin_socket
        self.name = name
        self.id: str = ask(self.yard, "POST", "/accounts", {"name": name})["account"]
        self.environment: dict[str, str] = ask(self.yard, "GET", "/environment", account=name)
        self.ec2: Any = boto3.session.Session(
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
            region_name=self.environment["AWS_REGION"],
        ).client("ec2", endpoint_url=self.environment["AWS_ENDPOINT_URL"])

    def blocks(self) -> list[str]:
        """Ids of the account's blocks."""
        found = self.ec2.describe_capacity_reservations()["CapacityReservations"]
        return [block["CapacityReservationId"] for block in found]

    def arm(self, kind: str, **how: object) -> None:
        """Let the yard's purchases of this account go wrong (`berth yard fault arm`)."""
        fault = {"kind": kind, "operation": PURCHASE, "account": self.name, **how}
        ask(self.yard, "POST", "/faults", fault)

    def sent(self) -> int:
        """How many purchase calls of this account the yard took (`berth yard log`)."""
        calls = ask(self.yard, "GET", "/calls", limit=1000, operation=PURCHASE)
        return sum(call["account_id"] == self.id for call in calls)

    def paid(self) -> list[Decimal]:
        """What the yard's own books say that this account paid (`berth yard ledger`)."""
        return [Decimal(entry["amount"]) for entry in ask(self.yard, "GET", "/ledger", account=self.name)]


def lost_answer_story(stage: Stage) -> None:
    """Stock boto3 pays several times for one wish; `berth` once, whoever runs it and whatever dies."""
    began = time.monotonic()
    stage.say(
        "6. The lost answer. A Capacity Block is paid at once, without refund, by a call that takes no client"
        " token. Now the yard takes each purchase and cuts the line before it answers."
    )
    stock, ours = Account(stage, "stock"), Account(stage, "ours")
    stage.environment.update(ours.environment)
    planning = type_in_background(stage, "plan", str(NEED))
    stock.arm("lost-reply")
    buy_with_stock_boto3(stock)
    planning.communicate()
    stage.say("Now `berth`. The yard never answers its call, and the process is killed with -9 meanwhile.")
    ours.arm("stall", amount="30", times=1)
    kill_once_it_has_paid(stage, ours)
    stage.run(*BUY)
    stage.say("A colleague with a journal of his own runs the same need:")
    owner = stage.environment["BERTH_HOME"]
    stage.environment["BERTH_HOME"] = str(stage.folder / "colleague")
    stage.run("run", str(NEED), "--yes", "--max", "1146.17")
    stage.environment["BERTH_HOME"] = owner
    stage.yard("clock", "advance", "6m", show=False)  # all payments come through
    compare_books(stage, stock, ours)
    print(f"That took {time.monotonic() - began:.1f} s.")


def buy_with_stock_boto3(stock: Account) -> None:
    """One call of a stock client, with its own default retries."""
    from botocore.exceptions import BotoCoreError

    offer = stock.ec2.describe_capacity_block_offerings(**ASKED)["CapacityBlockOfferings"][0]
    print("\n>>> ec2.purchase_capacity_block(...)   # stock boto3, default retries, called once")
    try:
        stock.ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
        )
    except BotoCoreError as problem:
        print(f"{type(problem).__name__}: Connection was closed before a response came")
    bought = stock.blocks()
    print(f"{len(bought)} blocks are bought now: {', '.join(bought)}", flush=True)


def kill_once_it_has_paid(stage: Stage, ours: Account) -> None:
    """Start the purchase, and kill it after the yard has sold and before it has answered."""
    print(f"\n$ berth {shlex.join(BUY)}".replace("'", ""), flush=True)
    buying = type_in_background(stage, *BUY)
    wait_for(lambda: bool(ours.blocks()) or buying.poll() is not None)
    buying.kill()
    said = buying.communicate()[0].splitlines()
    print("\n".join(line for line in said[2:] if line))
    print("Killed (-9): the call was sent, no answer was read")


def type_in_background(stage: Stage, *words: str) -> subprocess.Popen[str]:
    """A `berth` command that goes on while the story does."""
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("berth")), *words],
        cwd=stage.folder, env=stage.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def wait_for(true: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > end:
            raise RuntimeError("the purchase never reached the yard")
        time.sleep(0.02)


def compare_books(stage: Stage, stock: Account, ours: Account) -> None:
    """The yard's books beside the journal; raises when they differ, or when the story did not happen."""
    order = json.loads(stage.run("show", "lost-1", "--json", show=False))
    rows = [("stock boto3, one call", stock), ("berth, killed, run twice more", ours)]
    print(f"\n{'':<32}{'CALLS SENT':>10}{'BLOCKS':>8}{'PAID':>16}")
    for what, account in rows:
        paid = account.paid()
        total = f"{sum(paid, Decimal(0)):,.2f} USD"
        print(f"{what:<32}{account.sent():>10}{len(account.blocks()):>8}{total:>16}")
    journal = Decimal(order["money"]["amount"]["amount"])
    print(f"The journal: {order['money']['line']}, {order['reservation']}.")
    if ours.paid() != [journal] or ours.blocks() != [order["reservation"]]:
        raise RuntimeError(f"journal and ledger differ: {journal} and {ours.paid()}")
    if len(stock.paid()) < 2:
        raise RuntimeError("the stock client did not send again")
