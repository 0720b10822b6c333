"""`berth renewal` against a yard: extending beside buying anew; it proposes, and never spends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from berth.terms.instants import parse_instant

NEED = """
name = "{name}"
type = "p6-b200.48xlarge"
duration = "14d"
target = "instances"
regions = ["us-west-2"]
start = 2027-03-01T11:30:00Z
"""
FLEET = Path(__file__).parents[2] / "examples" / "d2-rolling-blocks" / "fleet.toml"
PAID = ("--yes", "--max", "40000")
BUYS = ("PurchaseCapacityBlock", "PurchaseCapacityBlockExtension")


@pytest.fixture
def pool(yard: Any, at_yard: Callable[..., Any], tmp_path: Path) -> Any:
    """The command line, with a block of two weeks that ends on 15 March 2027; the clock is on 5 March."""
    berth = at_yard(yard)
    need = tmp_path / "pool.toml"
    need.write_text(NEED.format(name="pool"))
    assert berth("plan", str(need)).code == 0
    assert berth("buy", "pool#1", *PAID).code == 0
    yard.clock.set(parse_instant("2027-03-05T12:00Z"))
    return berth


def paid_calls(yard: Any) -> int:
    """How often something was bought, or tried to."""
    return sum(len(yard.log_of(operation)) for operation in BUYS)


@pytest.mark.yard(clock="2027-02-20T12:00Z", fleet=FLEET)
def test_the_proposed_command_buys_once(pool: Any, yard: Any) -> None:
    """Not due; then both ways side by side; the command as it is shown buys; then it is not due again."""
    early = pool("renewal", "pool", "--within", "5d")
    assert "looked at again from 2027-03-10T11:30Z on" in early.out
    before = paid_calls(yard)
    ended = pool("renewal", "pool", "--within", "10d", "--json")
    assert ended.code == 0, ended.err
    assert [way["means"] for way in ended.json["ways"][:2]] == ["extend", "new"]
    assert paid_calls(yard) == before
    words = ended.json["proposed"].split()[1:]
    assert pool(*words, "--yes").code == 0
    assert "nothing was spent now" in pool(*words, "--yes").out
    assert paid_calls(yard) == before + 1
    yard.clock.advance(minutes=6)
    assert "ends at 2027-03-29T11:30Z" in pool("renewal", "pool", "--within", "10d").out


@pytest.mark.yard(clock="2027-02-20T12:00Z", fleet=FLEET)
def test_a_new_block_is_bought_under_the_next_number(pool: Any, yard: Any) -> None:
    """What the plan of the renewal numbers can be bought; the first order then says what goes on from it."""
    made = pool("renewal", "pool", "--json").json
    new = next(way for way in made["ways"] if way["means"] == "new" and way["same_zone"] and not way["gap_s"])
    assert pool("buy", f"pool/2#{new['choice']}", *PAID).code == 0
    assert "order pool/2 goes on from it, until 2027-03-29T11:30Z" in pool("renewal", "pool/1").out
    assert "nothing was spent" in pool("renewal", "pool", "--within", "10d").out
    assert len(yard.log_of(BUYS[0])) == 2


@pytest.mark.yard(clock="2027-02-20T12:00Z", fleet=FLEET)
def test_what_did_not_answer_is_said(pool: Any, yard: Any) -> None:
    """An extension search that is refused: the new block is proposed all the same, with exit code 14."""
    yard.fault("throttle", "DescribeCapacityBlockExtensionOfferings", times=None)
    ended = pool("renewal", "pool")
    assert ended.code == 14
    assert ended.money == "nothing was spent"
    assert "UNKNOWN whether it can be extended" in ended.out
    assert "next    berth buy pool/2#" in ended.out
    yard.clear_faults()
    odd = pool("renewal", "pool", "--by", "40h")
    assert odd.code == 10, odd.err
    assert odd.money == "nothing was spent"
    assert "no extension of that length is on sale" in odd.out
    assert pool("renewal", "pool", "--by", "soon").code == 2
    assert pool("renewal", "nobody").code == 20
