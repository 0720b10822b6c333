"""`berth plan` against a started yard: what it shows, what it remembers, what it never does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.aws.guards import PAID
from berth.planner.plan import Plan
from berth.terms.outcomes import ExitCode
from berth.yard.testing.process import YardProcess

from .conftest import UNTHROTTLED, Typed

NEED = Path(__file__).parents[2] / "examples" / "inference-before-launch" / "need.toml"
FIXED = ("--start", "2026-12-02T11:30Z", "--time-zone", "Europe/Berlin")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """One yard for the tests of this file, its clock standing on 1 December 2026, 09:00Z."""
    with YardProcess(tmp_path_factory.mktemp("y"), throttle_scale=UNTHROTTLED) as yard:
        yield yard


def test_the_article_in_80_columns(here: YardProcess, typed: Typed) -> None:
    """One Trainium instance for a day: fee, usable hours, break-even, price of an accelerator hour."""
    code, out, err = typed(here, "plan", NEED, *FIXED)
    assert (code, err) == (ExitCode.DONE, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"REHEARSAL  yard {here.url[7:]}, its clock Tue 2026-12-01 09:00Z.")
    for said in (
        "BEST   eval-1#1  training plan  $228.77 now, no refund, no cancel",
        "pays from 8 h 02 min of serving: 34 % of the 23 h 30 min you can use",
        "Wed 2 11:30-Thu 3 11:30  23:30        228.77   0.608",
        "669.68 [1]   1.781",
        "NO capacity-block   EC2 only, cannot serve an endpoint",
        "berth buy eval-1#1 --max 228.77",
    ):
        assert said in out
    assert max(map(len, lines)) <= 80


def test_json_is_the_whole_plan_and_nothing_else(here: YardProcess, typed: Typed, tmp_path: Path) -> None:
    """`berth.plan/1` on stdout, the first line on stderr; the journal holds the same plan for `buy`."""
    from berth.orders.journal import open_journal

    code, out, err = typed(here, "plan", NEED, *FIXED, "--json")
    assert code == ExitCode.DONE
    plan = Plan.from_json(json.loads(out))
    assert err.startswith("REHEARSAL")
    assert plan.rehearsal == here.url
    assert plan.best is not None
    assert plan.best.offer.segments[0].zone_id is not None
    journal = open_journal(tmp_path / "journal.sqlite", here.url[7:])
    assert plan.account is not None
    remembered = journal.recall_plan(plan.account, "eval-1")
    assert remembered == plan.to_json()
    assert remembered == {key: json.loads(out)[key] for key in remembered}
    journal.close()


def test_zone_ids_are_the_same_for_every_account(here: YardProcess, typed: Typed) -> None:
    """A second account sees other zone names for the same zones; plans speak of ids."""
    name = here.account("second")["account"]
    places = []
    for account in (None, name):
        _, out, _ = typed(here, "plan", NEED, *FIXED, "--json", account=account)
        (segment,) = json.loads(out)["choices"][0]["offer"]["segments"]
        places.append((segment["zone_id"], segment["zone_name"]))
    assert places[0][0] == places[1][0]


def test_reading_never_spends(here: YardProcess, typed: Typed) -> None:
    """Whatever is planned, well or badly: no paid call reaches the yard (field fault 9)."""
    before = len(here.ledger)
    typed(here, "plan", NEED, "--region", "us-east-1", "--region", "us-west-2", "--ways")
    typed(here, "plan", NEED, "--count", "3")
    typed(here, "plan", NEED, "--target", "instances", "--type", "p5.48xlarge")
    typed(here, "show")
    typed(here, "exit-codes")
    assert {call["operation"] for call in here.log} & PAID == set()
    assert len(here.ledger) == before


def test_a_bad_need_sends_nothing(here: YardProcess, typed: Typed, tmp_path: Path) -> None:
    """Everything wrong is told before the yard hears a word."""
    need = tmp_path / "need.toml"
    need.write_text(NEED.read_text().replace('"24h"', '"2000d"').replace("count = 1", "count = 1001"))
    before = len(here.log)
    code, out, err = typed(here, "plan", need)
    assert (code, out) == (ExitCode.BAD_REQUEST, "")
    assert "count: must be a whole number from 1 to 1000, not 1001" in err
    assert "duration: must be from 1 h to 1,095 days, not 2000 d" in err
    assert err.splitlines()[-1] == "nothing was spent"
    assert len(here.log) == before


FAULTS = [
    ("throttle", "", ExitCode.THROTTLED, "throttled"),
    ("malformed-body", "", ExitCode.INCOMPLETE, "failed"),
]


@pytest.mark.parametrize(("kind", "amount", "code", "said"), FAULTS, ids=[f[0] for f in FAULTS])
def test_what_could_not_be_asked_is_not_called_sold_out(
    here: YardProcess, typed: Typed, kind: str, amount: str, code: ExitCode, said: str
) -> None:
    """A place that did not answer makes the plan incomplete, with an exit code of its own."""
    here.fault(kind, "SearchTrainingPlanOfferings", times=None, amount=amount)
    try:
        ended, out, err = typed(here, "plan", NEED, *FIXED)
    finally:
        here.clear_faults()
    assert ended == code
    assert f"INCOMPLETE, 0 of 1 region searched: us-east-1 {said}" in " ".join(out.split())
    assert "sale" not in out
    assert err.splitlines()[-1] == "nothing was spent"


@pytest.mark.parametrize("kind", ["absent-members", "unknown-values"])
@pytest.mark.parametrize("member", ["UpfrontFee", "AvailabilityZone", "CurrencyCode", "TargetResources"])
def test_missing_and_unknown_members_crash_nothing(
    here: YardProcess, typed: Typed, kind: str, member: str
) -> None:
    """Whatever AWS leaves out or adds, a plan comes out, and no unknown price leads it."""
    here.fault(kind, "SearchTrainingPlanOfferings", times=1, amount=member)
    try:
        code, out, err = typed(here, "plan", NEED, *FIXED, "--json")
    finally:
        here.clear_faults()
    assert code in {ExitCode.DONE, ExitCode.NO_CAPACITY, ExitCode.INCOMPLETE}, err
    plan = Plan.from_json(json.loads(out))
    totals = [choice.cost.total is None for choice in plan.choices]
    assert totals == sorted(totals)


def test_a_start_that_is_not_on_sale_yet_says_from_when(here: YardProcess, typed: Typed) -> None:
    """Ten weeks ahead nothing is asked; the verdict says why, and on-demand is what is left."""
    code, out, err = typed(here, "plan", NEED, "--start", "2027-02-10T11:30Z")
    assert code == ExitCode.NO_CAPACITY
    assert "nobody asked" in out
    assert "not on sale yet: 8 weeks ahead, so from 2026-12-16 on" in err
    assert "what is left: sagemaker-on-demand" in err


@pytest.mark.yard(clock="2027-03-02T02:10:00Z")
def test_today_in_los_angeles_is_not_yesterday(yard: YardProcess, typed: Typed) -> None:
    """Field fault 52: "start today, end 5 March" finds the offering that ends on 5 March, 11:30Z."""
    code, out, err = typed(
        yard, "plan", NEED, "--from", "today", "--until", "5 March", "--time-zone", "America/Los_Angeles",
        "--duration", "3d", "--json",
    )  # fmt: skip
    assert code == ExitCode.DONE, err
    document = json.loads(out)
    assert document["need"]["earliest_start"] == "2027-03-02T02:10:00Z"
    assert document["need"]["latest_end"] == "2027-03-06T08:00:00Z"
    ends = {segment["end"] for c in document["choices"] for segment in c["offer"]["segments"]}
    assert "2027-03-05T11:30:00Z" in ends


def test_the_command_that_buys_names_the_profile_that_asked(
    here: YardProcess, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As typed, it can be copied: without it the keys of the environment would buy."""
    keys = here.environment
    (tmp_path / "config").write_text(
        "[profile team]\nregion = us-east-1\n"
        f"aws_access_key_id = {keys['AWS_ACCESS_KEY_ID']}\n"
        f"aws_secret_access_key = {keys['AWS_SECRET_ACCESS_KEY']}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    code, out, err = typed(here, "plan", NEED, *FIXED, "--profile", "team")
    assert code == ExitCode.DONE, err
    assert "\nBUY    berth buy eval-1#1 --max 228.77 --profile team\n" in out
