"""`berth run` killed with -9 at seeded moments: nothing bought twice, nothing lost, nothing left over."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import create_loader

from berth.cli.main import run

SEEDS = 10  # two kills each
NEED = """
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


@pytest.fixture(scope="module")
def house() -> Iterator[Any]:
    """One yard for all runs."""
    from berth.yard.testing.process import YardProcess

    with tempfile.TemporaryDirectory(prefix="yard-") as folder, YardProcess(Path(folder)) as started:
        yield started


one_loader = cache(create_loader)  # AWS's models are read once, not once a command


class Runs:
    """`berth` in processes that are killed, and to its end in this one."""

    def __init__(
        self, yard: Any, home: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.yard = yard
        self.capsys = capsys
        kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        self.environment = {**kept, **yard.environment, "BERTH_HOME": str(home)}
        for key, value in self.environment.items():
            patch.setenv(key, value)
        patch.setattr("botocore.session.create_loader", one_loader)

    def end(self, *arguments: str) -> tuple[int, str, str]:
        """Run `berth ARGUMENTS` to its end."""
        self.capsys.readouterr()
        code = run(arguments)
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def killed_after(self, seconds: float, *arguments: str) -> None:
        """Start, and kill with -9 after so many real seconds; it may have ended by itself."""
        child = subprocess.Popen(
            [sys.executable, "-m", "berth", *arguments], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        child.communicate()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_killed_run_goes_on(
    house: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seed: int,
) -> None:
    """Killed while it plans, buys or deploys, then run to its end: one sale, one endpoint, all cleared up."""
    chance = random.Random(seed)
    name = f"kill-{seed}"
    file = tmp_path / "need.toml"
    file.write_text(NEED.format(name=name))
    runs = Runs(house, tmp_path / "home", monkeypatch, capsys)
    command = ("run", str(file), "--yes", "--max", "500")

    runs.killed_after(chance.uniform(0.3, 1.6), *command)
    code, out, err = finish(runs, command)
    assert code == 0, err
    assert "waiting until" in out
    plans = [
        plan
        for plan in house.clients.sagemaker.list_training_plans(MaxResults=100)["TrainingPlanSummaries"]
        if plan["TrainingPlanName"].startswith(f"{name}-")
    ]
    assert len(plans) == 1
    house.clock.set(max(plans[0]["StartTime"] + timedelta(minutes=1), house.clock.now))

    runs.killed_after(chance.uniform(0.3, 2.0), *command)
    code, out, err = finish(runs, command)
    assert code == 0, err
    assert "is in service" in out
    endpoints = house.clients.sagemaker.list_endpoints(NameContains=f"{name}-")["Endpoints"]
    assert [one["EndpointStatus"] for one in endpoints] == ["InService"]
    code, out, err = runs.end("clean", name)
    assert code == 31, err
    assert house.clients.sagemaker.list_endpoints(NameContains=f"{name}-")["Endpoints"] == []
    assert len([entry for entry in house.ledger if f"/{name}-" in entry["subject"]]) == 1


def finish(runs: Runs, command: tuple[str, ...]) -> tuple[int, str, str]:
    """Run to the end; while the outcome is unknown, the yard's clock is moved on, as a person would."""
    for _ in range(4):
        code, out, err = runs.end(*command)
        if code != 40:
            return code, out, err
        runs.yard.clock.advance(minutes=6)
    return code, out, err
