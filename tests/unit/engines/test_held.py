"""A held process is ended with all that it started, its log is bounded, and it never outlives the yard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.yard.engines.held import LOG_LIMIT_BYTES, Command, Held
from berth.yard.engines.logs import last_line, tail

PATIENCE_S = 20.0

# A process that does all it can to get away from whoever started it, then sleeps.
ESCAPES = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    os._exit(0)
os.wait()
print("away", flush=True)
time.sleep(600)
"""


def processes_with(mark: str) -> list[int]:
    """The pids of the processes that have `mark` in their environment or command line."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            told = Path(f"/proc/{name}/environ").read_bytes() + Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in told and int(name) != os.getpid():
            found.append(int(name))
    return found


def wait_until(what: object, within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not what():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"did not happen within {within_s} seconds"
        time.sleep(0.01)


@pytest.fixture
def mark() -> Iterator[str]:
    """A word by which a test finds its processes; in the end none may be left."""
    word = f"mark-{uuid.uuid4().hex}"
    yield word
    left = processes_with(word)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def held(mark: str, log: Path, code: str) -> Held:
    return Held(Command(mark, [sys.executable, "-I", "-S", "-c", code], {"MARK": mark}, log))


def test_how_it_ended_is_told_as_a_shell_tells_it(tmp_path: Path, mark: str) -> None:
    """An exit code is itself, a signal is 128 and its number."""
    assert held(mark, tmp_path / "log", "raise SystemExit(7)").wait().status == 7
    assert held(mark, tmp_path / "log", "import os; os.kill(os.getpid(), 11)").wait().status == 128 + 11


def test_what_cannot_be_started_says_why_in_the_log(tmp_path: Path, mark: str) -> None:
    """The command that is not there is named."""
    ended = Held(Command(mark, ["/no/such/program"], {}, tmp_path / "log")).wait()
    assert ended.status == 127
    assert "/no/such/program" in last_line(tmp_path / "log")


def test_a_cgroup_that_cannot_be_made_is_the_supervisors_problem(tmp_path: Path, mark: str) -> None:
    """Nothing runs without the limits that it was to have."""
    from berth.yard.engines.limits import Cgroup

    group = Cgroup(tmp_path / "no/such/place", [("memory.max", "1")])
    command = Command(mark, ["/bin/touch", str(tmp_path / "ran")], {}, tmp_path / "log", cgroups=[group])
    ended = Held(command).wait()
    assert ended.problem is not None
    assert "no/such/place" in ended.problem
    assert not (tmp_path / "ran").exists()


def test_children_that_got_away_are_ended_too(tmp_path: Path, mark: str) -> None:
    """A process that forked twice into sessions of its own is found and killed."""
    process = held(mark, tmp_path / "log", ESCAPES)
    wait_until(lambda: "away" in tail(tmp_path / "log", 100))
    assert len(processes_with(mark)) == 3  # supervisor, process, the one that got away
    process.stop(10)
    assert process.wait().status == 128 + signal.SIGTERM
    assert processes_with(mark) == []


def test_who_does_not_end_when_asked_is_killed(tmp_path: Path, mark: str) -> None:
    """SIGTERM ignored, SIGKILL after the time of grace."""
    code = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    process = held(mark, tmp_path / "log", code)
    wait_until(lambda: "deaf" in tail(tmp_path / "log", 100))
    process.stop(0.2)
    assert process.wait().status == 128 + signal.SIGKILL


def test_the_log_is_bounded_and_keeps_its_end(tmp_path: Path, mark: str) -> None:
    """However much is printed, two files hold the last of it."""
    code = f"import sys; sys.stdout.write('x' * {3 * LOG_LIMIT_BYTES}); print('the end')"
    assert held(mark, tmp_path / "log", code).wait().status == 0
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= LOG_LIMIT_BYTES
    assert tail(tmp_path / "log", 8) == "the end\n"


def test_a_last_line_is_fit_to_print(tmp_path: Path) -> None:
    """Control characters of a container do not reach a terminal, and blank lines are passed over."""
    (tmp_path / "log").write_bytes(b"first\n\x1b[2J\xff worse\n\n  \n")
    assert last_line(tmp_path / "log") == "?[2J\ufffd worse"
    assert last_line(tmp_path / "none") == ""


def test_the_end_of_the_thread_that_started_it_ends_nothing(tmp_path: Path, mark: str) -> None:
    """Linux's parent-death signal means the thread; a yard outlives its threads."""
    made: list[Held] = []
    code = "print('up', flush=True); import time; time.sleep(600)"
    thread = threading.Thread(target=lambda: made.append(held(mark, tmp_path / "log", code)))
    thread.start()
    thread.join()
    wait_until(lambda: "up" in tail(tmp_path / "log", 10))
    time.sleep(0.2)  # nothing to wait for: it is about something that does not happen
    assert made[0].alive()
    made[0].kill()
    assert made[0].wait().status == 128 + signal.SIGKILL


YARD = """
import sys, time
from pathlib import Path
from berth.yard.engines.held import Command, Held
mark, log, code = sys.argv[1:]
kept = [Held(Command(mark, [sys.executable, "-c", code], {"MARK": mark}, Path(log))) for _ in range(2)]
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_yard_is_killed(tmp_path: Path, mark: str, number: int) -> None:
    """However the yard ends, what it held ends, and what got away from that."""
    yard = subprocess.Popen([sys.executable, "-c", YARD, mark, str(tmp_path / "log"), ESCAPES])
    try:
        wait_until(lambda: tail(tmp_path / "log", 100).count("away") == 2)
        assert len(processes_with(mark)) >= 7
    finally:
        yard.send_signal(number)
        yard.wait()
    wait_until(lambda: processes_with(mark) == [])


def test_a_process_ends_with_its_supervisor(tmp_path: Path, mark: str) -> None:
    """Should somebody kill the supervisor, the process goes, and the yard is told."""
    process = held(mark, tmp_path / "log", "print('up', flush=True); import time; time.sleep(600)")
    wait_until(lambda: "up" in tail(tmp_path / "log", 10))
    process.supervisor.kill()
    ended = process.wait()
    assert ended.problem == "its supervisor was killed"
    wait_until(lambda: processes_with(mark) == [])
