"""`berth plan --guide` in a terminal: it asks, checks at once, writes the file; Ctrl-C writes nothing."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from berth.planner.need_file import read_need
from berth.terms.outcomes import ExitCode
from berth.terms.ways import Way

GRACE_S = 60.0
"""After so long without the awaited words the test fails; it waits for words, never for time."""


class Terminal:
    """A pseudo-terminal with the guide in it: `expect` waits for words, `type` answers."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.seen = ""

    def expect(self, words: str) -> None:
        """Read until `words` were shown since the last time."""
        fresh = ""
        while words not in " ".join(fresh.split()):
            ready, _, _ = select.select([self._master], [], [], GRACE_S)
            assert ready, f"{words!r} was not shown: {fresh!r}"
            try:
                read = os.read(self._master, 65536).decode()
            except OSError:
                read = ""
            assert read, f"ended without {words!r}: {fresh!r}"
            fresh += read
        self.seen += fresh

    def type(self, line: str) -> None:
        """Type a line and Enter."""
        os.write(self._master, f"{line}\n".encode())

    def rest(self) -> str:
        """Everything until it ends."""
        while True:
            try:
                read = os.read(self._master, 65536)
            except OSError:
                break
            if not read:
                break
            self.seen += read.decode()
        self.process.wait(GRACE_S)
        return self.seen


@contextmanager
def guided(folder: Path, *arguments: str) -> Iterator[Terminal]:
    """The guide, started in `folder` with a terminal of its own."""
    master, slave = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "BERTH_HOME": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "berth", "plan", "--guide", *arguments],
        stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environ, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(master)


def test_it_asks_checks_explains_goes_back_and_writes_the_file(tmp_path: Path) -> None:
    """A wrong answer is refused at once, ? explains, < goes back; the file is shown and reads as typed."""
    with guided(tmp_path) as seat:
        for words, answer in (
            ("What will run?", "instances"),
            ("What is it called?", "Eval 1"),
            ("That does not do: 'Eval 1' is not valid", "eval-1"),
            ("Which type of machine?", "p5.49xlarge"),
            ("near: p5.4xlarge, p5.48xlarge", "p5.48xlarge, p5e.48xlarge"),
            ("How many machines at least?", "0"),
            ("must be a whole number from 1 to 1000, not 0", "?"),
            ("One Capacity Block holds 64 at most", "2"),
            ("And how many at best?", ""),
            ("For how long?", "<"),
            ("And how many at best?", "4"),
            ("For how long?", "5d..9d"),
            ("Which length of the range is best?", "longest"),
            ("How much may it cost in all?", ""),
            ("this one has to be answered", "30000 USD"),
            ("In which time zone do you plan?", "Europe/Berlin"),
            ("Is the start fixed?", ""),
            ("Not before which day?", "tomorrow"),
            ("Over by the end of which day?", ""),
            ("In which Regions?", "us-east-1, us-west-2"),
            ("In which zones do you have subnets?", "use1-az4"),
            ("Must all of it be in one zone?", "yes"),
            ("Which ways must not be used?", "odcr"),
            ("Does the work survive two minutes' notice?", "yes"),
            ("How often does it save what it has done?", "1h"),
            ("In which share of the time", "0.6"),
            ("How long until a machine works", "20min"),
            ("Write it to which file?", ""),
        ):
            seat.expect(words)
            seat.type(answer)
        said = seat.rest()
    assert "NEXT berth plan eval-1.toml" in " ".join(said.split())
    need = read_need((tmp_path / "eval-1.toml").read_text(), "eval-1.toml", datetime.now(UTC))
    assert [(t.instance_type, t.count, t.wanted) for t in need.types] == [
        ("p5.48xlarge", 2, 4), ("p5e.48xlarge", 2, 4),
    ]  # fmt: skip
    assert (need.goal, need.duration.days, need.duration_at_most.days) == ("longest", 5, 9)
    assert (need.interruptible, str(need.utilisation), need.subnet_zones) == (True, "0.6", ("use1-az4",))
    assert need.same_zone is True
    assert Way.ODCR not in need.ways
    assert len(need.ways) == len(Way) - 1


def test_ctrl_c_writes_nothing_and_loses_no_answer(tmp_path: Path) -> None:
    """The answers so far are shown as a file's lines; none is written; 130, and nothing was spent."""
    with guided(tmp_path) as seat:
        seat.expect("What will run?")
        seat.type("endpoint")
        seat.expect("What is it called?")
        seat.type("serve-1")
        seat.expect("Which type of machine?")
        seat.process.send_signal(signal.SIGINT)
        said = " ".join(seat.rest().split())
        assert seat.process.returncode == ExitCode.INTERRUPTED
    assert 'name = "serve-1" target = "endpoint"' in said
    assert "no file was written" in said
    assert "nothing was spent" in said
    assert list(tmp_path.glob("*.toml")) == []


def test_a_file_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    """Another name is asked for."""
    (tmp_path / "first-need.toml").write_text("mine")
    with guided(tmp_path) as seat:
        seat.expect("What will run?")
        seat.type("endpoint")
        seat.expect("What is it called?")
        for answer in ("", "ml.trn1.32xlarge", *[""] * 12):
            seat.type(answer)
        seat.expect("Write it to which file?")
        seat.type("")
        seat.expect("exists already, and is left as it is")
        seat.type("other.toml")
        seat.rest()
        assert seat.process.returncode == ExitCode.DONE
    assert (tmp_path / "first-need.toml").read_text() == "mine"
    assert 'type = "ml.trn1.32xlarge"' in (tmp_path / "other.toml").read_text()


def test_without_a_terminal_nothing_is_asked(tmp_path: Path) -> None:
    """A script gets told what to do instead of waiting for ever."""
    done = subprocess.run(
        [sys.executable, "-m", "berth", "plan", "--guide"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == ExitCode.DECISION_NEEDED
    assert "there is no terminal to ask them on" in " ".join(done.stderr.split())
