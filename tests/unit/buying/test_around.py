"""What surrounds a purchase: waiting, the account of a reservation, artefacts, requests, processes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cli.buy import read_handle
from berth.cli.options import read_amount
from berth.orders.holder import Processes
from berth.orders.journal import Event
from berth.orders.steps import StepKind, StepState
from berth.terms.outcomes import BerthError, ExitCode, Spending
from berth.watch.waiting import pause, wait_for
from berth.workloads.artefact import packed
from berth.workloads.invoke import LARGEST_BODY, invoke
from berth.workloads.report import in_service, make_report, report_lines

NOON = datetime(2027, 3, 2, 12, 0, tzinfo=UTC)


def test_a_quiet_day_takes_few_looks() -> None:
    """Over a quiet day at most 300 looks; around a known time one every 10 s (field fault 25)."""
    start = NOON + timedelta(days=1)
    now, looks, near = NOON, 0, 0
    while now < start + timedelta(minutes=5):
        step = pause(now, NOON, (start,), simulated=False)
        assert step > 0
        looks += 1
        near += now >= start - timedelta(seconds=30)
        now += timedelta(seconds=step)
    assert looks - near <= 300
    assert near >= 30


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 10**6), st.lists(st.integers(-(10**6), 10**6), max_size=5))
def test_no_known_time_is_slept_over(since: int, known: list[int]) -> None:
    """Whatever is known, the next look comes at most 10 s after a known time."""
    now = NOON + timedelta(seconds=since)
    times = [now + timedelta(seconds=at) for at in known]
    step = timedelta(seconds=pause(now, NOON, times, simulated=False))
    for at in times:
        assert not (now < at and now + step > at + timedelta(seconds=10))


def test_a_standing_clock_is_said_once(world: Any) -> None:
    """Where a yard's clock does not move, the wait says how to move it, and goes on."""
    world.clock.stands = True
    told: list[int] = []

    def look() -> int:
        if world.clock.real > 5:
            world.clock.advance(minutes=6)
        return int(world.clock.real)

    seen = wait_for(look, lambda at: world.clock.at > NOON, world.clock, standing=told.append, limit_s=None)
    assert seen > 5
    assert len(told) == 1


def test_a_limit_ends_the_wait(world: Any) -> None:
    """With a limit of nothing there is one look."""
    looks: list[int] = []
    wait_for(lambda: looks.append(1), lambda seen: False, world.clock, limit_s=0.0)
    assert len(looks) == 1


def event(number: int, minutes: int, state: StepState) -> Event:
    """A line of history about the endpoint."""
    start = datetime(2027, 3, 2, 11, 30, tzinfo=UTC)
    return Event(number, start + timedelta(minutes=minutes), f"{StepKind.ENDPOINT} {state}", "")


def test_the_account_of_a_reservation(world: Any) -> None:
    """Used is time in service within the usable window; idle is the usable rest so far."""
    order = world.buy().order
    events = [event(1, 60, StepState.MADE), event(2, 180, StepState.REMOVING), event(3, 240, StepState.MADE)]
    report = make_report(order, events, datetime(2027, 3, 4, tzinfo=UTC))
    assert report.usable == timedelta(hours=23, minutes=30)
    assert report.used == timedelta(hours=2) + timedelta(hours=19, minutes=30)
    assert report.idle == timedelta(hours=2)
    assert str(report.idle_money) == "19.47 USD"
    assert report.on_demand_for_used is None
    assert "not known" in report_lines(report)[-1]
    assert make_report(order, [], order.offer.paid_window.start).idle == timedelta(0)


def test_an_endpoint_that_still_serves_counts_until_now() -> None:
    """An open span ends at the present; spans of nothing are none."""
    now = datetime(2027, 3, 2, 12, 30, tzinfo=UTC)
    assert [w.duration for w in in_service([event(1, 0, StepState.MADE)], now)] == [timedelta(hours=1)]
    assert in_service([event(1, 90, StepState.MADE)], now) == []


def test_an_artefact_is_the_same_every_time(tmp_path: Path) -> None:
    """The same content gives the same bytes: rooted at the folder, sorted, without times and owners."""
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / "code").mkdir(parents=True)
        (folder / "code" / "b.py").write_text("b")
        (folder / "a.bin").write_bytes(b"a")
    os.utime(tmp_path / "two" / "a.bin", (1, 1))
    with packed(tmp_path / "one") as one, packed(tmp_path / "two") as two:
        assert one.read_bytes() == two.read_bytes()
        with tarfile.open(one) as archive:
            assert archive.getnames() == ["a.bin", "code", "code/b.py"]
        with packed(one) as same:
            assert same == one


def test_what_cannot_be_packed_is_said(tmp_path: Path) -> None:
    """A missing path, a broken archive, a link to a folder: clear, and nothing uploaded."""
    (tmp_path / "broken.tar.gz").write_bytes(b"no archive")
    folder = tmp_path / "linked"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path)
    for path in (tmp_path / "none", tmp_path / "broken.tar.gz", folder):
        with pytest.raises(BerthError) as caught, packed(path):
            pass
        assert caught.value.exit_code is ExitCode.BAD_REQUEST
        assert str(path) in caught.value.message


class FakeRuntime:
    """Answers or refuses one invocation."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def invoke_endpoint(self, **request: Any) -> Any:
        """InvokeEndpoint."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"Body": io.BytesIO(self.answer), "ContentType": "text/plain"}


@pytest.mark.parametrize(
    ("code", "status", "original", "expected"),
    [
        ("ValidationError", 400, None, ExitCode.BAD_REQUEST),
        ("ModelError", 424, 400, ExitCode.BAD_REQUEST),
        ("ModelError", 424, 500, ExitCode.BOUGHT_NOT_LAUNCHED),
        ("ServiceUnavailable", 503, None, ExitCode.BOUGHT_NOT_LAUNCHED),
        ("ThrottlingException", 400, None, ExitCode.THROTTLED),
    ],
)
def test_a_refused_invocation_says_whose_fault(
    world: Any, code: str, status: int, original: int | None, expected: ExitCode
) -> None:
    """The request's, the model's, or the service's."""
    problem = ClientError(
        {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status},
         "OriginalStatusCode": original},  # type: ignore[typeddict-unknown-key]
        "InvokeEndpoint",
    )  # fmt: skip
    with pytest.raises(BerthError) as caught:
        ask(world, FakeRuntime(problem), b"x")
    assert caught.value.exit_code is expected


def test_a_body_over_the_limit_is_not_sent(world: Any) -> None:
    """The model's limit is checked here, before anything leaves."""
    with pytest.raises(BerthError) as caught:
        ask(world, FakeRuntime(RuntimeError("sent")), b"x" * (LARGEST_BODY + 1))
    assert caught.value.exit_code is ExitCode.BAD_REQUEST
    assert ask(world, FakeRuntime(b"yes"), b"x").body == b"yes"


def ask(world: Any, runtime: Any, body: bytes) -> Any:
    """Invoke once."""
    return invoke(
        runtime, world.clock, "e", body, content_type="text/plain", accept=None, spent=Spending.nothing()
    )


def test_processes_are_told_apart() -> None:
    """This one lives; one that ended does not; another machine's is not known."""
    here = Processes()
    assert here.lives(here.me()) is True
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    place = here.me().rsplit(" ", 2)[0]
    assert here.lives(f"{place} {child.pid} 12345") is False
    assert here.lives(f"{place} {os.getpid()} 1") is False
    assert here.lives("elsewhere boot 1 2") is None
    host = place.split(" ")[0]
    assert here.lives(f"{host} another-boot 1 2") is False


@pytest.mark.parametrize(
    "text", ["", "eval", "eval#", "#1", "eval#0", "eval/0#1", "eval/2", "eval#1#2", "a b#1"]
)
def test_a_handle_that_is_none_is_usage(text: str) -> None:
    """NAME#1, or NAME/2#1."""
    with pytest.raises(BerthError) as caught:
        read_handle(text)
    assert caught.value.exit_code is ExitCode.USAGE


def test_handles_and_amounts_are_read() -> None:
    """Name, sequence, choice; money over zero."""
    assert read_handle("eval#1") == ("eval", None, 1)
    assert read_handle("eval-2/13#4") == ("eval-2", 13, 4)
    assert str(read_amount("1,146.17")) == "1,146.17 USD"
    for text in ("0", "-1", "x", ""):
        with pytest.raises(BerthError):
            read_amount(text)
