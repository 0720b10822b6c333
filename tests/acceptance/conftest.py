"""The command line as a person types it, at a yard over HTTP: what every acceptance test of it needs."""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import botocore.loaders
import pytest

from berth.cli.main import run
from berth.terms.instants import parse_instant

NEED = """
name = "{name}"
instance_type = "ml.trn1.32xlarge"
count = 1
duration = "24h"
target = "{target}"
regions = ["us-east-1"]
{more}
"""

UNTHROTTLED = 10_000.0
one_loader = cache(botocore.loaders.create_loader)


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The answer as JSON."""
        return dict(json.loads(self.out))

    @property
    def money(self) -> str:
        """The last line of a failure: one of the three about money."""
        return self.err.strip().splitlines()[-1]


class Berth:
    """The command line in this process, with an account's environment and a journal of its own."""

    def __init__(
        self, yard: Any, folder: Path, capsys: pytest.CaptureFixture[str], account: str | None = None
    ) -> None:
        self.yard = yard
        self.account = account
        self.folder = folder
        self.capsys = capsys
        (folder / "model").mkdir()
        (folder / "model" / "weights").write_text("1")

    def __call__(self, *arguments: str) -> Ended:
        """Run `berth ARGUMENTS`."""
        self.capsys.readouterr()
        code = run(arguments)
        said = self.capsys.readouterr()
        return Ended(code, said.out, said.err)

    def environment(self) -> dict[str, str]:
        """What a child process needs."""
        keep = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        environment = self.yard.environment_of(self.account)
        return {**keep, **environment, "BERTH_HOME": os.environ["BERTH_HOME"]}

    def need(self, name: str, target: str = "endpoint", more: str = "") -> str:
        """Write a need file; its path."""
        file = self.folder / f"{name}.toml"
        file.write_text(NEED.format(name=name, target=target, more=more))
        return str(file)

    def plan(self, name: str, **said: str) -> dict[str, Any]:
        """Plan a need; the plan."""
        ended = self("plan", self.need(name, **said), "--json")
        assert ended.code == 0, ended.err
        return ended.json

    def buy(self, name: str, *more: str) -> Ended:
        """Buy the first choice without asking."""
        return self("buy", f"{name}#1", "--yes", "--max", "500", *more)

    def open_window(self, name: str) -> None:
        """Move the yard's clock to a minute after the order's window opens."""
        start = self("show", name, "--json").json["seen"]["start"]
        self.yard.clock.set(parse_instant(start) + timedelta(minutes=1))

    def sold(self, name: str) -> list[dict[str, Any]]:
        """What the yard billed for the need's training plans, once all payments are through."""
        self.yard.clear_faults()
        self.yard.clock.advance(minutes=6)
        return [entry for entry in self.yard.ledger if f"/{name}-" in json.dumps(entry)]


@pytest.fixture(scope="module")
def house() -> Iterator[Any]:
    """One yard for the tests of this file that need none of their own.

    Its buckets refill so fast that no test is throttled by what others have asked before.
    """
    from berth.yard.testing.process import YardProcess

    with (
        tempfile.TemporaryDirectory(prefix="yard-") as folder,
        YardProcess(Path(folder), throttle_scale=UNTHROTTLED) as started,
    ):
        yield started


@pytest.fixture
def berth(house: Any, at_yard: Callable[..., Berth]) -> Iterator[Berth]:
    """The command line at the shared yard."""
    yield at_yard(house)
    house.clear_faults()


@pytest.fixture
def at_yard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Berth]:
    """Points this process at a yard: `at_yard(yard, account)`. AWS's models are read once for all."""

    def point(yard: Any, account: str | None = None) -> Berth:
        monkeypatch.setattr("botocore.session.create_loader", one_loader)
        for key, value in yard.environment_of(account).items():
            monkeypatch.setenv(key, value)
        monkeypatch.setenv("BERTH_HOME", str(tmp_path / "home"))
        monkeypatch.setattr("sys.stdin", io.StringIO())
        return Berth(yard, tmp_path, capsys, account)

    return point


Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Typed:
    """`typed(yard, "plan", ..., account=None)`: exit code, stdout and stderr of the command in the yard's
    environment, with a journal of its own."""
    monkeypatch.setenv("BERTH_HOME", str(tmp_path))

    def call(yard: Any, *arguments: object, account: str | None = None) -> tuple[int, str, str]:
        for name, value in yard.environment_of(account).items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = run([str(a) for a in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def words(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())


@pytest.fixture
def until() -> Callable[..., None]:
    """Waits for something that another process does."""

    def wait(true: Callable[[], bool], limit_s: float = 20) -> None:
        deadline = time.monotonic() + limit_s
        while not true():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.02)

    return wait


# -- rules of spending, and somebody else who approves ----------------------------------------------------
@dataclass
class Lead:
    """Another account of the yard, whose user approves."""

    arn: str
    environment: dict[str, str]

    def become(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Act as the lead from now on."""
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def lead(house: Any) -> Lead:
    """The approver."""
    added = house.account("lead")
    return Lead(f"arn:aws:iam::{added['account']}:user/lead", house.environment_of("lead"))


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`rules(TOML)`: the rules that hold from now on."""
    file = tmp_path / "rules.toml"
    monkeypatch.setenv("BERTH_RULES", str(file))

    def write(text: str) -> Path:
        file.write_text(text)
        return file

    return write


@pytest.fixture
def approving(lead: Lead, rules: Callable[[str], Path]) -> Callable[..., None]:
    """`approving()`: rules that ask for the lead's word above 100 USD."""

    def write(above: str = "100.00 USD", more: str = "") -> None:
        rules(f'[approval]\nabove = "{above}"\napprovers = ["{lead.arn}"]\n{more}')

    return write


@pytest.fixture
def approve(berth: Any, lead: Lead, tmp_path: Path) -> Callable[..., Any]:
    """`approve(HASH, ...)` as the lead; how it ended. Without a place it writes the file `proof.json`."""

    def run(*arguments: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            lead.become(patch)
            given = arguments if "--to" in arguments else (*arguments, "--out", str(tmp_path / "proof.json"))
            return berth("approve", *given, "--yes")

    return run
