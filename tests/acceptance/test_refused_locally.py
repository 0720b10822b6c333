"""What is refused before anything is sent: counts that nobody sells, wrong ids, unasked payments."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from berth.aws.guards import PAID
from berth.aws.permissions import FOUR_PAID
from berth.cli.main import VERBS

COUNTS = ["0", "-1", "1001", "2147483647", "9" * 30, "1.5", "two"]
ENDPOINT = ("--name", "many", "--type", "ml.trn1.32xlarge", "--duration", "24h", "--target", "endpoint")
INSTANCES = ("--name", "many", "--type", "p5.48xlarge", "--duration", "24h", "--target", "instances")


def paid_calls(berth: Any) -> int:
    """How many paid calls the yard has heard."""
    names = {row.partition(":")[2] for row in FOUR_PAID} | PAID
    return sum(call["operation"] in names for call in berth.yard.log)


# -- field fault 57 ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", [ENDPOINT, INSTANCES], ids=["endpoint", "instances"])
@pytest.mark.parametrize("count", COUNTS)
def test_a_count_that_cannot_be_is_refused_alike_on_every_path(
    berth: Any, target: tuple[str, ...], count: str
) -> None:
    """By option and by file the same refusal with the bounds, exit 20, and nothing is searched."""
    before = len(berth.yard.log)
    by_flag = berth("plan", *target, "--region", "us-east-1", f"--count={count}")
    file = berth.folder / "many.toml"
    words = dict(zip(("name", "instance_type", "duration", "target"), target[1::2], strict=True))
    body = [f'{key} = "{value}"' for key, value in words.items()]
    value = count if count.lstrip("-").replace(".", "", 1).isdigit() else f'"{count}"'
    file.write_text("\n".join([*body, 'regions = ["us-east-1"]', f"count = {value}"]))
    by_file = berth("plan", str(file))
    assert (by_flag.code, by_file.code) == (20, 20), by_flag.err + by_file.err
    assert "must be a whole number from 1 to 1000" in by_flag.err
    assert "must be a whole number from 1 to 1000" in by_file.err
    assert by_flag.money == by_file.money == "nothing was spent"
    assert len(berth.yard.log) == before


@pytest.mark.parametrize("count", ["3", "65", "257", "1000"])
def test_a_count_in_which_plans_are_not_sold_names_the_nearest(berth: Any, count: str) -> None:
    """Training plans come in powers of two up to 64: nothing is bought, and what would be sold is said."""
    ended = berth("plan", *ENDPOINT, "--region", "us-east-1", "--count", count)
    assert ended.code != 0
    assert "1, 2, 4, 8, 16, 32 or 64" in ended.out + ended.err


def test_no_search_for_a_block_asks_for_more_than_it_holds(berth: Any) -> None:
    """257 instances are more than an account may hold in blocks: no block is searched for, and it is said."""
    ended = berth("plan", *INSTANCES, "--region", "us-east-1", "--count", "257")
    assert "256" in ended.out + ended.err
    assert ended.money == "nothing was spent" or ended.code == 0


@pytest.mark.parametrize("count", [0, 3, 65, 257, 1001, 2147483647])
def test_a_plan_whose_count_was_edited_is_not_bought(berth: Any, count: int) -> None:
    """What the journal remembers is checked like what was typed: edited to anything else it buys nothing."""
    import os

    from berth.orders.journal import journal_place

    document = berth.plan("edited")
    offer = document["choices"][0]["offer"]
    offer["count"] = offer["query"]["count"] = count
    for part in offer["segments"]:
        part["count"] = count
    db = journal_place(os.environ).to_write()
    with db.writing():
        db.execute("UPDATE plans SET document = ? WHERE need = 'edited'", (json.dumps(document),))
    db.close()
    before = paid_calls(berth)
    ended = berth.buy("edited")
    assert ended.code == 20, ended.err
    assert f"{count} instances at once are not sold as training-plan" in ended.err
    assert ended.money == "nothing was spent"
    assert paid_calls(berth) == before


# -- field fault 70 ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", ["show", "clean", "launch", "deploy"])
@pytest.mark.parametrize("given", ["cb-0123456789abcdef0", "cr-0123456789abcdef0"])
def test_an_id_where_an_order_belongs_is_corrected_in_one_line(berth: Any, verb: str, given: str) -> None:
    """`cb-` and `cr-` are AWS's names; the error says in one line what was meant."""
    ended = berth(verb, given)
    assert ended.code == 20
    first = next(line for line in ended.err.splitlines() if line.startswith("error:"))
    assert f"{given} is" in first
    assert "an order is named like its need" in first


# -- field fault 9 -----------------------------------------------------------------------------------------
def test_no_verb_that_does_not_spend_pays(berth: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every verb but those that pay, every help page, wrong files and options: no paid call is heard."""
    before = paid_calls(berth)
    berth.plan("calm")
    broken = berth.folder / "broken.toml"
    broken.write_text("count = 1\nsurprise = 2")
    asked = [
        ("plan", str(broken)),
        ("plan", berth.need("calm"), "--ways"),
        ("approvals", "ls"),
        ("approvals", "request", "calm#1"),
        ("approve", "0123456789abcdef", "--out", str(berth.folder / "x")),
        ("show",),
        ("show", "calm"),
        ("ls",),
        ("leave",),
        ("doctor", berth.need("calm")),
        ("clean", "calm"),
        ("launch", "calm"),
        ("deploy", "calm"),
        ("invoke", "calm", "x"),
        ("audit",),
        ("policy", "read"),
        ("policy", "buy"),
        ("exit-codes",),
        ("buy", "calm#1"),  # nobody can be asked
        ("buy", "calm#1", "--yes"),
        ("buy", "calm#9", "--yes", "--max", "500"),
        ("buy", "calm#1", "--yes", "--max", "1"),
        ("run", str(broken), "--yes", "--max", "500"),
        *((verb, "--help") for verb in VERBS),
        ("--help",),
        ("--version",),
        (),
    ]
    for arguments in asked:
        berth(*arguments)
    assert paid_calls(berth) == before
    monkeypatch.setenv("BERTH_RULES", str(broken))
    assert berth.buy("calm").code == 20
    assert paid_calls(berth) == before


def test_importing_all_of_it_pays_nothing_and_asks_nobody(berth: Any) -> None:
    """Every module of the client can be imported without a call."""
    before = len(berth.yard.log)
    script = (
        "import importlib, pkgutil, berth\n"
        "for found in pkgutil.walk_packages(berth.__path__, 'berth.'):\n"
        "    if not found.name.startswith('berth.yard') and not found.name.endswith('__main__'):\n"
        "        importlib.import_module(found.name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=berth.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(berth.yard.log) == before
