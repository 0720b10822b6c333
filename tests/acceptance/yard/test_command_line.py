"""`berth yard ...` as a person runs it: words, exit codes, and what it leaves behind."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from berth.cli.main import run
from berth.terms.outcomes import ExitCode

from .conftest import SMALL


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Shell:
    """Runs `berth yard` on one data folder."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def _where(self, data: bool) -> tuple[str, ...]:
        return ("--data", str(self.data)) if data else ()

    def __call__(self, *words: str, data: bool = True, environ: Mapping[str, str] | None = None) -> Ended:
        """In a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "berth", "yard", *words, *self._where(data)],
            capture_output=True, text=True, check=False, timeout=60,
            env={**os.environ, **(environ or {})},
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    def here(self, *words: str) -> Ended:
        """The same in this process, for tables of many rows: starting Python costs more than the answer."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["yard", *words, *self._where(True)])
        return Ended(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def berth_yard() -> Iterator[Shell]:
    """A yard on the small fleet, started detached by the command line itself, under somebody's AWS profile.
    A yard on the small fleet, started detached by the command line itself, under somebody's AWS profile."""
    data = Path(tempfile.mkdtemp(prefix="yard-"))
    shell = Shell(data / "y")
    started = shell(
        "start", "--detach", "--port", "0", "--clock", "2026-12-01T09:00Z", "--fleet", str(SMALL),
        environ={"AWS_PROFILE": "nobody-has-this"},
    )  # fmt: skip
    assert started.code == 0, started.err
    assert started.out.startswith("yard ready at http://127.0.0.1:")
    assert f'eval "$(berth yard env --data {shell.data})"' in started.out
    yield shell
    running = shell.data / "running.json"
    if running.exists():  # a test failed before the yard was stopped
        os.kill(json.loads(running.read_text())["pid"], signal.SIGKILL)
    shutil.rmtree(data, ignore_errors=True)


def test_status_says_what_runs(berth_yard: Shell) -> None:
    """Address, kind, clock, confinement, limits, accounts, faults; the same as JSON."""
    shown = berth_yard("status")
    assert shown.code == 0
    for words in (
        "(rehearsal: Small)",
        "2026-12-01T09:00:00Z  stands still until moved",
        "default (",
        "none armed",
    ):
        assert words in shown.out
    facts = json.loads(berth_yard("status", "--json").out)
    assert facts["kind"] == "rehearsal"
    assert facts["engine"]["name"] == "local"
    assert {"confinement", "limits"} <= set(facts["engine"])
    assert "secret" not in json.dumps(facts).lower()


def test_the_environment_can_be_evaluated_by_a_shell(berth_yard: Shell) -> None:
    """In a plain sh that had a profile and a session: after it, only the yard is left."""
    script = (
        f'eval "$({sys.executable} -m berth yard env --data {berth_yard.data})"\n'
        'echo "$AWS_ENDPOINT_URL|$AWS_ENDPOINT_URL_S3|$BERTH_YARD|$AWS_REGION|$AWS_DEFAULT_REGION"\n'
        'echo "$AWS_ACCESS_KEY_ID" | cut -c1-4\n'
        'echo "${AWS_PROFILE-unset} ${AWS_SESSION_TOKEN-unset}"\n'
    )
    done = subprocess.run(
        ["sh", "-euc", script], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "AWS_PROFILE": "prod", "AWS_SESSION_TOKEN": "token"},
    )  # fmt: skip
    urls, prefix, unset = done.stdout.splitlines()
    yard, s3, declared, region, default_region = urls.split("|")
    assert declared.split() == [yard, s3]
    assert (region, default_region) == ("us-east-1", "us-east-1")
    assert (prefix, unset) == ("YARD", "unset unset")


def test_the_clock_is_shown_set_and_advanced(berth_yard: Shell) -> None:
    """Every timer on the way is played; back it does not go, and nonsense is refused with what would be
    right."""
    assert "2026-12-01T09:00:00Z" in berth_yard.here("clock", "show").out
    assert "2026-12-01T10:30:00Z" in berth_yard.here("clock", "set", "2026-12-01T10:30Z").out
    advanced = berth_yard.here("clock", "advance", "1d 12h")
    assert "2026-12-02T22:30:00Z" in advanced.out
    assert "timers played" in advanced.out
    for words, said in (
        (("set", "2026-12-01T09:00Z"), "never goes back"),
        (("set", "2026-12-03"), "names no time zone"),
        (("set", "soon"), "is no instant; write it like"),
        (("set", "9999-01-01T00:00Z"), "no further than"),
        (("advance", "soon"), "not a duration: 'soon'; write it like 24h, 7d or 15h30m"),
        (("advance", "0h"), "longer than zero"),
        (("advance", "99999999999w"), ""),
    ):
        refused = berth_yard.here("clock", *words)
        assert refused.code == ExitCode.BAD_REQUEST, words
        assert said in refused.err
        assert refused.err.endswith("nothing was spent\n")
    assert "2026-12-02T22:30:00Z" in berth_yard.here("clock", "show").out


def test_accounts_are_added_and_listed(berth_yard: Shell) -> None:
    """Keys once, at the adding; a name is taken once; nonsense is refused."""
    added = json.loads(berth_yard.here("account", "add", "team-b", "--json").out)
    assert added["access_key_id"].startswith("YARD")
    listed = berth_yard.here("account", "list").out
    assert added["account"] in listed
    assert added["secret_access_key"] not in listed
    assert added["access_key_id"] in berth_yard.here("env", "--account", "team-b").out
    assert "already" in berth_yard.here("account", "add", "team-b").err
    shown = berth_yard.here("account", "user", "team-b", "lead")
    assert f"user lead of account {added['account']}" in shown.out
    assert "berth yard env --account team-b --user lead" in shown.out
    assert "team-b/lead" in berth_yard.here("account", "list").out
    assert "team-b/lead" in berth_yard.here("status").out
    key = json.loads(berth_yard.here("env", "--account", "team-b", "--user", "lead", "--json").out)
    assert key["AWS_ACCESS_KEY_ID"] in shown.out
    for words in (("user", "team-b", "lead"), ("user", "nobody", "lead"), ("user", "team-b", "a b")):
        assert berth_yard.here("account", *words).code == ExitCode.BAD_REQUEST, words
    assert "no user" in berth_yard.here("env", "--account", "team-b", "--user", "eve").err
    for name in ("", "a b", "-x", "a;rm", "x" * 65, "\u00e9"):
        assert berth_yard.here("account", "add", name).code in (ExitCode.BAD_REQUEST, ExitCode.USAGE), name
    assert berth_yard.here("env", "--account", "nobody").code == ExitCode.BAD_REQUEST


def test_faults_are_armed_listed_and_cleared(berth_yard: Shell) -> None:
    """An unknown kind is answered with the known ones."""
    armed = berth_yard.here("fault", "arm", "lost-reply", "--operation", "CreateTrainingPlan", "--times", "2")
    assert armed.out == "lost-reply on CreateTrainingPlan, 2 times\n"
    assert berth_yard.here("fault", "arm", "lag", "--amount", "3").out == "lag on *, until cleared, 3\n"
    assert berth_yard.here("fault", "list").out.splitlines() == [
        armed.out.strip(),
        "lag on *, until cleared, 3",
    ]
    assert berth_yard.here("fault", "clear").out == "2 disarmed\n"
    assert berth_yard.here("fault", "list").out == "none armed\n"
    refused = berth_yard.here("fault", "arm", "earthquake")
    assert refused.code == ExitCode.BAD_REQUEST
    assert "there are: lost-reply, error-after-commit" in refused.err
    assert berth_yard.here("fault", "arm", "stall", "--times", "0").code == ExitCode.USAGE
    assert berth_yard.here("fault", "arm", "stall", "--account", "nobody").code == ExitCode.BAD_REQUEST


def test_events_log_and_ledger_can_be_read(berth_yard: Shell) -> None:
    """As lines for people and as JSON for programs; from a number on."""
    events = json.loads(berth_yard.here("events", "--json").out)
    assert events[0]["reason"] == "account default added"
    assert berth_yard.here("events").out.startswith("     1  2026-12-01T09:00:00Z")
    assert len(json.loads(berth_yard.here("events", "--after", "1", "--limit", "1", "--json").out)) <= 1
    assert json.loads(berth_yard.here("log", "--json").out) == []
    assert json.loads(berth_yard.here("log", "--operation", "CreateTrainingPlan", "--json").out) == []
    assert json.loads(berth_yard.here("ledger", "--json").out) == []
    assert berth_yard.here("ledger", "--account", "nobody").code == ExitCode.BAD_REQUEST
    assert berth_yard.here("events", "--limit", "0").code == ExitCode.USAGE


def test_a_second_yard_on_the_folder_is_refused(berth_yard: Shell) -> None:
    """Detached or not, with how to stop the first; the first serves on."""
    for how in ((), ("--detach",)):
        refused = berth_yard("start", "--port", "0", *how)
        assert refused.code == ExitCode.BAD_REQUEST
        assert f"stop it with: berth yard stop --data {berth_yard.data}" in refused.err
    assert berth_yard("status").code == 0


def test_what_cannot_start_says_why(berth_yard: Shell, tmp_path: Path) -> None:
    """A port that is taken, a fleet file with a fault, a file that is not there, a folder too deep."""
    port = json.loads(berth_yard("status", "--json").out)["url"].rsplit(":", 1)[1]
    (tmp_path / "bad.toml").write_text(SMALL.read_text() + "\n[quotas]\nnonsense = 1\n\n[demand]\nsed = 1\n")
    for words, said in (
        (("--port", port), f"cannot listen on 127.0.0.1:{port}"),
        (("--fleet", str(tmp_path / "bad.toml")), "sed: unknown key"),
        (("--fleet", str(tmp_path / "none.toml")), "none.toml"),
        (("--clock", "yesterday"), "yesterday"),
        (("--clock", "2026-12-01T09:00"), "names no time zone"),
        (("--clock", "1066-10-14T09:00Z"), "a clock stands between"),
    ):
        for how in ((), ("--detach",)) if words[0] == "--fleet" else ((),):
            with tempfile.TemporaryDirectory(prefix="yard-") as folder:
                refused = Shell(Path(folder) / "y")("start", "--port", "0", *words, *how)
            assert refused.code == ExitCode.BAD_REQUEST, (words, refused)
            assert said in refused.err
            assert "Traceback" not in refused.err
            assert "nonsense" in refused.err or "bad.toml" not in refused.err, (
                "all complaints, not the first only"
            )
    deep = Shell(tmp_path / ("d" * 100))("start", "--port", "0")
    assert deep.code == ExitCode.BAD_REQUEST
    assert "choose a shorter one with --data" in deep.err


def test_without_a_yard_every_verb_says_how_to_start_one(tmp_path: Path) -> None:
    """Exit code of usage, and nothing was spent."""
    shell = Shell(tmp_path / "none")
    for words in (("status",), ("stop",), ("env",), ("clock", "show"), ("events",), ("fault", "list")):
        refused = shell.here(*words)
        assert refused.code == ExitCode.USAGE, words
        assert "no yard runs on" in refused.err
        assert f"berth yard start --detach --data {shell.data}" in refused.err
    assert not shell.data.exists()


def test_the_default_folder_is_under_the_state_home(tmp_path: Path) -> None:
    """Without --data it follows XDG_STATE_HOME, so `stop`, `env` and `clock` find the same yard."""
    refused = Shell(tmp_path)("status", data=False, environ={"XDG_STATE_HOME": str(tmp_path / "s")})
    assert str(tmp_path / "s" / "berth" / "yard") in refused.err


def test_stop_and_start_again(berth_yard: Shell) -> None:
    """Stopped in order; started again without --fleet and --clock it is the same yard at the same time."""
    before = json.loads(berth_yard("status", "--json").out)
    assert berth_yard("stop").out == f"the yard on {berth_yard.data} has stopped\n"
    process = Path(f"/proc/{before['pid']}/stat")
    assert not process.exists() or ") Z " in process.read_text()
    assert berth_yard("status").code == ExitCode.USAGE
    assert not (berth_yard.data / "admin.sock").exists()
    assert berth_yard("start", "--detach", "--port", "0").code == 0
    after = json.loads(berth_yard("status", "--json").out)
    assert (after["fleet"], after["clock"], after["accounts"]) == (
        before["fleet"], before["clock"], before["accounts"],
    )  # fmt: skip
    assert berth_yard("stop").code == 0
