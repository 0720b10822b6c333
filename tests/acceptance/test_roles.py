"""Accounts by role: several in one order, roles that fail, sessions that end, approvers in a role."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

UNTHROTTLED = 10_000.0
FLEET = Path(__file__).with_name("several_pieces.toml")
HUNDRED = """
name = "{name}"
type = "p5.48xlarge"
count = 100
duration = "24h"
target = "instances"
start = "2026-12-03T11:30:00Z"
regions = ["us-east-1"]
zone_ids = ["use1-az1"]

[[accounts]]
id = "{own}"

[[accounts]]
role = "{role}"
{more}
"""
BUY = ("--yes", "--max", "99000", "--unconfirmed")


@pytest.fixture(scope="module")
def wide() -> Iterator[Any]:
    """A yard with room for several blocks at once; no test is throttled by what others have asked."""
    from berth.yard.testing.process import YardProcess

    with (
        tempfile.TemporaryDirectory(prefix="yard-") as folder,
        YardProcess(Path(folder), fleet=FLEET, throttle_scale=UNTHROTTLED) as one,
    ):
        yield one


class Firm:
    """Two accounts of one firm: the caller's, and one that is reached by the role `buyer` alone."""

    def __init__(self, berth: Any, name: str) -> None:
        self.berth, self.yard = berth, berth.yard
        self.name, self.other = name, f"{name}-b"
        self.own: str = self.yard.account(name)["account"]
        self.there: str = self.yard.account(self.other)["account"]
        self.role: str = self.trust(name)
        self.policy: dict[str, Any] | None = None

    def trust(self, *whom: str, external_id: str = "", policy: dict[str, Any] | None = None) -> str:
        """Give the other account the role, or change it."""
        arn: str = self.yard.role(self.other, "buyer", trust=whom, external_id=external_id, policy=policy)
        return arn

    def need(self, name: str, more: str = "") -> str:
        """Write the need for a hundred; its path."""
        file: Path = self.berth.folder / f"{name}.toml"
        file.write_text(HUNDRED.format(name=name, own=self.own, role=self.role, more=more))
        return str(file)

    def planned(self, name: str, more: str = "") -> None:
        """Plan it."""
        ended = self.berth("plan", self.need(name, more), "--json")
        assert ended.code == 0, ended.err

    def bought(self) -> tuple[int, int]:
        """How many blocks the own account has, and the other."""
        clients = (self.yard.clients_of(name).ec2 for name in (self.name, self.other))
        own, there = (len(one.describe_capacity_reservations()["CapacityReservations"]) for one in clients)
        return own, there


@pytest.fixture
def firm(
    wide: Any, at_yard: Callable[..., Any], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Firm]:
    """The command line with two accounts of its own. The first has room for 64 instances more."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:24].strip("-[")
    berth = at_yard(wide)
    made = Firm(berth, name)
    berth.account = name
    for key, value in wide.environment_of(name).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("berth.cli.buy_pieces._held", lambda there: 192 if there.account == made.own else 0)
    yield made
    wide.clear_faults()


def test_pieces_of_two_accounts_by_role_are_one_order(firm: Firm) -> None:
    """64 with the caller's keys, 36 in the role: searched, paid, shown, and never twice."""
    berth = firm.berth
    firm.planned("spread")
    bought = berth("buy", "spread#best", *BUY, "--json")
    assert bought.code == 0, bought.err
    assert {(one["account"], one["offer"]["count"]) for one in bought.json["pieces"]} == {
        (firm.own, 64),
        (firm.there, 36),
    }
    assert f"also: {firm.there[:4]}-{firm.there[4:8]}-{firm.there[8:]}, role buyer" in bought.err
    assert firm.bought() == (1, 1)
    shown = berth("show", "spread", "--json")
    assert shown.code == 0, shown.err
    assert shown.json["state"] == "bought"
    again = berth("buy", "spread#best", *BUY)
    assert again.code == 0, again.err
    assert firm.bought() == (1, 1)
