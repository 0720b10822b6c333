"""Many at once: no cap is passed together, and one order is bought once (field fault 68)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from berth.orders.journal import OrderTaken, open_journal
from berth.orders.order import Approval, OrderState
from berth.orders.purchase import How, buy
from berth.orders.spending import Cap, Per, Rules
from berth.orders.spending_gate import OPEN, Gate
from berth.planner.offers import PlaceOutcome
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode, Spent

from .conftest import FakeHolders
from .fake_aws import KEY, Effects, FakeClock, FakePlans, client_error

ME = "arn:aws:iam::111122223333:user/ada"
CAPPED = Gate(Rules("rules.toml", caps=(Cap(Per.HOUR, Money(Decimal(700))),)), ME, ME)
AT_ONCE = 12


def all_at_once(call: Callable[[int], Any], many: int) -> list[Any]:
    """What `many` threads get from `call(number)`, all of which start together."""
    barrier = Barrier(many)

    def one(number: int) -> Any:
        barrier.wait(20)
        return call(number)

    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(one, range(many)))


def test_no_two_pass_a_cap_together(world: Any) -> None:
    """Twelve orders of 228.77 at once under a cap of 700 an hour, each with its connection: three pass."""

    def intend(number: int) -> str:
        journal = open_journal(world.place, "aws")
        try:
            key = replace(KEY, need=f"n{number}")
            approval = Approval(world.approved)
            journal.intend(
                key, approval, intent_id=f"i{number}", holder="p", now=world.clock.now(), gate=CAPPED
            )
        except BerthError as refused:
            return "refused" if "would go over the cap per hour" in refused.message else refused.message
        finally:
            journal.close()
        return "intended"

    ends = all_at_once(intend, AT_ONCE)
    assert sorted(ends) == ["intended"] * 3 + ["refused"] * 9
    assert len(world.journal.orders(None)) == 3


PROCESS = """
import sys, json
from datetime import UTC, datetime
from decimal import Decimal
from berth.orders.journal import open_journal
from berth.orders.order import Approval, OrderKey
from berth.orders.spending_file import read_rules
from berth.orders.spending_gate import OPEN, Gate
from berth.planner.offers import Offer
from berth.terms.outcomes import BerthError, ExitCode, Spent

file, number, offer = sys.argv[1], sys.argv[2], Offer.from_json(json.loads(sys.argv[3]))
gate = Gate(read_rules('[[cap]]\\nper = "hour"\\nmost = "700 USD"', "rules.toml"), "a", "a")
journal = open_journal(file, "aws")
print("ready", flush=True)
sys.stdin.readline()
try:
    journal.intend(OrderKey("111122223333", f"n{number}"), Approval(offer), intent_id=f"i{number}",
                   holder="p", now=datetime(2027, 3, 1, 12, tzinfo=UTC), gate=gate)
    print("intended")
except BerthError:
    print("refused")
"""


def test_no_two_processes_pass_a_cap_together(tmp_path: Path) -> None:
    """The same with five processes on one file."""
    file = tmp_path / "journal.sqlite"
    open_journal(file, "aws").close()
    offer = json.dumps(FakePlans(FakeClock(), Effects()).offer().to_json())
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(file), str(number), offer],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(5)
    ]  # fmt: skip
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    ends = [one.communicate(timeout=60)[0].strip() for one in started]
    assert sorted(ends) == ["intended"] * 3 + ["refused"] * 2


def test_twenty_intents_of_one_order_are_one(world: Any) -> None:
    """Field fault 68: one wins, nineteen are told that the order is taken."""

    def intend(number: int) -> str:
        journal = open_journal(world.place, "aws")
        try:
            journal.intend(
                KEY, Approval(world.approved), intent_id=f"i{number}", holder="p", now=world.clock.now()
            )
        except OrderTaken:
            return "taken"
        finally:
            journal.close()
        return "won"

    assert sorted(all_at_once(intend, 20)) == ["taken"] * 19 + ["won"]


@pytest.mark.parametrize("cap", [None, CAPPED], ids=["no rules", "rules"])
def test_twenty_buyers_of_one_order_pay_once(world: Any, cap: Gate | None) -> None:
    """Field fault 68: twenty purchases of one order at once, one paid call; the others find it or wait."""

    def purchase(number: int) -> str:
        journal = open_journal(world.place, "aws")
        holders = FakeHolders(f"p{number}", {f"p{one}" for one in range(20)})
        desk = replace(world.desk(), journal=journal, holders=holders, gate=cap or OPEN)
        try:
            return str(buy(desk, lambda: world.aws, KEY, Approval(world.approved)).how)
        except BerthError as error:
            return error.exit_code.name
        finally:
            journal.close()

    ends = all_at_once(purchase, 20)
    assert ends.count(str(How.BOUGHT)) == 1
    assert set(ends) <= {
        str(How.BOUGHT),
        str(How.ALREADY),
        str(How.FOUND),
        str(How.ELSEWHERE),
        "OUTCOME_UNKNOWN",
    }
    assert len(world.aws.ledger) == 1
    assert world.order().state is OrderState.BOUGHT


def test_another_body_under_the_same_key_is_refused(world: Any) -> None:
    """Field fault 68: the same order for another window is no replay; what is bought stays what it is."""
    from berth.orders.guard import same_purchase

    first = world.buy()
    other = replace(world.approved, count=2)
    assert same_purchase(first.order, world.approved)
    assert not same_purchase(first.order, other)
    again = buy(world.desk(), lambda: world.aws, KEY, Approval(other))
    assert again.how is How.ALREADY
    assert again.order.offer.count == 1
    assert len(world.aws.ledger) == 1


def _meanwhile(world: Any, *happens: Callable[[], object]) -> None:
    """This happens once, between the world's first look and its search."""
    real, to_come = world.aws.search, list(happens)

    def search(query: Any) -> Any:
        now = list(to_come)
        to_come.clear()  # first: what happens may search too
        for one in now:
            one()
        return real(query)

    world.aws.search = search


def _sold_out(aws: Any) -> None:
    aws.on_sale = False


def _throttled(aws: Any) -> None:
    aws.on_sale, aws.outcome = False, PlaceOutcome.THROTTLED


def _dearer(aws: Any) -> None:
    aws.fee += 100


@pytest.mark.parametrize("sells", ["plans", "blocks"])
@pytest.mark.parametrize("then", [_sold_out, _throttled, _dearer])
def test_what_is_gone_to_this_very_order_is_bought(
    make_world: Callable[..., Any], sells: str, then: Callable[[Any], None]
) -> None:
    """The other machine bought it between the look and the search: told so, not "nothing was spent"."""
    world, other = make_world(sells), make_world(sells)
    other.aws = world.aws
    _meanwhile(world, other.buy, lambda: then(world.aws))
    bought = world.buy()
    assert bought.how is How.ELSEWHERE
    assert len(world.aws.ledger) == 1


def test_an_ending_without_a_second_look_says_so(world: Any) -> None:
    """Nothing answers any more: the ending stands, and it is said that others were not looked for."""

    def fails(operation: str) -> None:
        raise client_error("ThrottlingException", operation=operation)

    def cut() -> None:
        world.aws.on_sale, world.aws.read_fault = False, fails

    _meanwhile(world, cut)
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert caught.value.spent.spent is Spent.NOTHING
    assert any("whether another process has bought order eval meanwhile" in one for one in world.warnings)


def test_another_process_in_doubt_ends_in_doubt(make_world: Callable[..., Any]) -> None:
    """With one journal: what another process intends meanwhile is no "nothing was spent"."""
    world = make_world()

    def intends() -> None:
        world.journal.intend(
            KEY, Approval(world.approved), intent_id="i9", holder="p9", now=world.clock.now(), gate=OPEN
        )
        world.holders.alive.add("p9")
        world.aws.on_sale = False

    _meanwhile(world, intends)
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert caught.value.spent.spent is Spent.NOT_KNOWN
