"""`berth run` killed with -9 at seeded moments and run to its end: one sale, at work, then cleared up.

Used by the test of the same name and by benchmarks/bench_killed_runs.py; the only difference is how often.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

PLAN = """
name = "{name}"
instance_type = "ml.trn1.32xlarge"
count = 1
duration = "24h"
target = "endpoint"
regions = ["us-east-1"]
[deployment]
image = "rehearsal/echo:1"
role = "arn:aws:iam::123456789012:role/serving"
"""
BLOCK = """
name = "{name}"
instance_type = "p5.48xlarge"
count = 1
duration = "24h"
target = "instances"
regions = ["us-east-1"]
[launch]
image = "{image}"
"""
UNKNOWN = 40
BERTH = (sys.executable, "-m", "berth")

End = Callable[[tuple[str, ...], Mapping[str, str]], tuple[int, str, str]]
"""Runs `berth ARGUMENTS` to its end in an environment: exit code, stdout, stderr."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one run: how often it was killed before its end, and was in doubt about money after."""

    killed: int
    in_doubt: int


def end_in_a_process(arguments: tuple[str, ...], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """The `End` that starts a process of its own."""
    done = subprocess.run(
        [*BERTH, *arguments], env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


class KilledRun:
    """One need of an account of its own: planned, bought, put to work, each time killed on the way."""

    def __init__(self, yard: Any, folder: Path, seed: int, end: End) -> None:
        self.yard = yard
        self.chance = random.Random(seed)
        self.is_block = bool(seed % 2)
        self.account = f"kill-{seed}"
        yard.account(self.account)
        self.clients = yard.clients_of(self.account)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        self.environment = {**kept, **yard.environment_of(self.account), "BERTH_HOME": str(folder / "home")}
        self.name = f"kill-{seed}"
        need = folder / "need.toml"
        need.write_text(
            BLOCK.format(name=self.name, image=self._image())
            if self.is_block
            else PLAN.format(name=self.name)
        )
        self.command = ("run", str(need), "--yes", "--max", "5000")
        self.end = end
        self.killed = 0
        self.in_doubt = 0

    def play(self) -> Outcome:
        """Kill it while it buys and while it puts to work, end it both times, clear up, compare the books."""
        if self.chance.random() < 0.5:  # an answer that takes its time makes the kill fall before it
            purchase = "PurchaseCapacityBlock" if self.is_block else "CreateTrainingPlan"
            self.yard.fault("stall", purchase, amount="1.5", account=self.account)
        self._kill_after(self.chance.uniform(0.3, 1.8))
        out = self._finish()
        assert "waiting until" in out, out
        window = self._window()
        self.yard.clock.set(max(window + timedelta(minutes=1), self.yard.clock.now))
        self._kill_after(self.chance.uniform(0.3, 2.0))
        out = self._finish()
        assert self._running() == 1, out
        self._clear_up()
        assert self._running() == 0
        mine = self.clients.sts.get_caller_identity()["Account"]
        sold = [entry for entry in self.yard.ledger if entry["account_id"] == mine]
        assert len(sold) == 1, sold
        return Outcome(self.killed, self.in_doubt)

    # -- steps -----------------------------------------------------------------------------------------
    def _kill_after(self, seconds: float) -> None:
        """Start, and kill with -9 after so many real seconds; it may have ended by itself."""
        child = subprocess.Popen(
            [*BERTH, *self.command], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(seconds)
        self.killed += child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.communicate()

    def _finish(self) -> str:
        """Run to the end; while the outcome is unknown, the yard's clock is moved on, as a person would."""
        code, out, err = UNKNOWN, "", ""
        for _ in range(4):
            code, out, err = self.end(self.command, self.environment)
            if code != UNKNOWN:
                break
            self.in_doubt += 1
            self.yard.clock.advance(minutes=6)
        assert code == 0, err
        self.in_doubt += "found in AWS" in err
        return out

    def _clear_up(self) -> None:
        code, _, err = self.end(("clean", self.name), self.environment)
        if self.is_block and code == 30:  # hosts are cleaned in the yard's time
            self.yard.clock.advance(minutes=11)
            code, _, err = self.end(("clean", self.name), self.environment)
        assert code == 31, err

    # -- what the yard says ----------------------------------------------------------------------------
    def _image(self) -> str:
        asked = [{"Name": "platform-details", "Values": ["Linux/UNIX"]}]
        image: str = self.clients.ec2.describe_images(Filters=asked)["Images"][0]["ImageId"]
        return image

    def _window(self) -> Any:
        """The start of the one reservation that there is."""
        if self.is_block:
            (block,) = self.clients.ec2.describe_capacity_reservations()["CapacityReservations"]
            return block["StartDate"]
        (plan,) = self.clients.sagemaker.list_training_plans()["TrainingPlanSummaries"]
        return plan["StartTime"]

    def _running(self) -> int:
        """Instances that are not ending, or endpoints in service."""
        if self.is_block:
            asked = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
            groups = self.clients.ec2.describe_instances(Filters=asked)["Reservations"]
            return sum(len(group["Instances"]) for group in groups)
        endpoints = self.clients.sagemaker.list_endpoints()["Endpoints"]
        return sum(one["EndpointStatus"] == "InService" for one in endpoints)
