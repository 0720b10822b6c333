"""The command line: exit codes, the last line of every failure, streams, and a help that is there at once."""

from __future__ import annotations

import errno
import io
import json
import os
import shlex
import subprocess
import sys
import termios
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from berth.cli import main as command_line
from berth.cli.exit_codes import MEANINGS, NEXT_STEPS, table
from berth.cli.output import Output, failure_json, failure_lines, spending_so_far
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode, Spending
from berth.terms.settings import Complaint, SettingsError

PRICE = Money(Decimal("228.77"))
LAST_LINES = {
    "nothing": (Spending.nothing(), "nothing was spent"),
    "paid": (Spending.paid(PRICE, "eval-1"), "paid 228.77 USD, order eval-1"),
    "not known": (
        Spending.not_known(PRICE, "eval-1"),
        "not known whether 228.77 USD was paid, order eval-1: do not buy by hand, run `berth show eval-1`",
    ),
}


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """`failing(error)`: whatever verb is run ends with that exception."""

    def arm(error: BaseException) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(command_line, "app", fail)

    return arm


@pytest.mark.parametrize(("spent", "line"), LAST_LINES.values(), ids=LAST_LINES)
def test_every_failure_ends_with_what_is_known_about_money(
    spent: Spending, line: str, failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """One of three lines, last, on stderr."""
    failing(BerthError(ExitCode.QUOTA, "too much", "ask for more", spent))
    assert command_line.run([]) == ExitCode.QUOTA
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == ["error: too much", "next: ask for more", line]


@pytest.mark.parametrize(("spent", "line"), LAST_LINES.values(), ids=LAST_LINES)
def test_a_failure_is_one_document_too(
    spent: Spending, line: str, failing: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json stdout holds `berth.failure/1`; stderr says the same as ever."""
    failing(BerthError(ExitCode.QUOTA, "too much\nof it", "ask for more", spent))
    assert command_line.run(["buy", "eval#1", "--json"]) == ExitCode.QUOTA
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["schema"], document["exit_code"]) == ("berth.failure/1", 11)
    assert (document["error"], document["next"]) == ("too much\nof it", "ask for more")
    assert document["money"]["spent"] == spent.spent.value
    paid = spent.amount and {"amount": "228.77", "currency": "USD"}
    assert document["money"]["amount"] == paid
    assert said.err.splitlines()[-1] == line


def test_a_document_that_was_given_is_followed_by_no_second(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verb that answers and fails has said it: one document and nothing else."""

    def answers_and_fails(*_: object, **__: object) -> None:
        Output(as_json=True).document({"schema": "berth.leave/1"})
        raise BerthError(ExitCode.SOMETHING_LEFT, "something runs")

    monkeypatch.setattr(command_line, "app", answers_and_fails)
    assert command_line.run(["leave", "--json"]) == ExitCode.SOMETHING_LEFT
    assert json.loads(capsys.readouterr().out) == {"schema": "berth.leave/1"}
    assert command_line.run(["leave"]) == ExitCode.SOMETHING_LEFT


@pytest.mark.parametrize("code", [code for code in ExitCode if code is not ExitCode.DONE])
def test_every_failure_says_what_to_do(code: ExitCode) -> None:
    """Where it has no step of its own, its exit code has one; in doubt it is to look."""
    said = failure_lines(BerthError(code, "so it is"), Spending.nothing())
    assert said[1] == f"next: {NEXT_STEPS[code]}"
    assert failure_lines(BerthError(code, "so it is"), LAST_LINES["not known"][0])[1] == (
        "next: berth show eval-1 --wait"
    )


def test_letters_that_a_terminal_cannot_hold_end_nothing(tmp_path: Path) -> None:
    """Text with a question mark instead, JSON with its escapes; exit code and answer are the same."""
    program = (
        "import sys; from berth.cli import main as m; from berth.cli.output import Output\n"
        "def app(*_, **__):\n"
        "    Output().answer('\\u2581\\ud800')\n"
        "    Output(as_json=True).document({'name': '\\u2581'})\n"
        "m.app = app; m.main(['show'])"
    )
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    first, rest = done.stdout.split(b"\n", 1)
    assert first == b"??"
    assert json.loads(rest) == {"name": "\u2581"}


ENDS = [
    (KeyboardInterrupt(), ExitCode.INTERRUPTED, "error: interrupted"),
    (
        SettingsError("need.toml", [Complaint(3, "count", "wrong")]),
        ExitCode.BAD_REQUEST,
        "need.toml:3: count",
    ),
    (SystemExit(1), ExitCode.INTERNAL_ERROR, "the answer could not be written to its end"),
    (ValueError("boom"), ExitCode.INTERNAL_ERROR, "internal error, ValueError: boom; its trace is in"),
]


@pytest.mark.parametrize(("error", "code", "said"), ENDS, ids=[type(e[0]).__name__ for e in ENDS])
def test_other_ends(
    error: BaseException,
    code: ExitCode,
    said: str,
    failing: Callable[[BaseException], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Ctrl-C, a bad file, and a fault of ours, whose trace is kept beside the journal."""
    monkeypatch.setenv("BERTH_HOME", str(tmp_path))
    failing(error)
    assert command_line.run([]) == code
    lines = capsys.readouterr().err.splitlines()
    assert said in lines[0]
    assert lines[-1] == "nothing was spent"
    kept = list(tmp_path.glob("faults/*.txt"))
    assert len(kept) == (1 if isinstance(error, ValueError) and error.args == ("boom",) else 0)
    assert all("ValueError: boom" in path.read_text() for path in kept)


def test_a_fault_during_a_purchase_is_an_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whatever breaks after the paid call left: exit 40 and how to find out, never "nothing was spent"."""
    monkeypatch.setenv("BERTH_HOME", str(tmp_path))

    def pays_and_breaks(*_: object, **__: object) -> None:
        spending_so_far.now = Spending.not_known(PRICE, "eval-1")
        raise RuntimeError("after the call")

    monkeypatch.setattr(command_line, "app", pays_and_breaks)
    assert command_line.run([]) == ExitCode.OUTCOME_UNKNOWN
    assert capsys.readouterr().err.splitlines()[-1] == LAST_LINES["not known"][1]
    monkeypatch.setattr(command_line, "app", lambda *_, **__: 0)
    assert command_line.run([]) == 0
    assert spending_so_far.now == Spending.nothing(), "a new command starts with nothing spent"


@pytest.mark.parametrize("arguments", [["fly"], ["plan", "--wings"], ["buy"]])
def test_a_command_line_that_cannot_be_read_is_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, one error line, nothing spent."""
    assert command_line.run(arguments) == ExitCode.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("error: ")
    assert lines[-1] == "nothing was spent"


def test_every_exit_code_has_a_meaning_in_the_reference() -> None:
    """One table: the enum, the help text and docs/reference/cli.md agree."""
    assert set(MEANINGS) == set(ExitCode)
    page = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text()
    for code, meaning in MEANINGS.items():
        assert f"| {code.value} | {meaning} |" in page
    assert len(table().splitlines()) == len(ExitCode)


def test_remote_text_cannot_write_to_the_terminal() -> None:
    """Control characters in a message are taken out."""
    lines = failure_lines(BerthError(ExitCode.QUOTA, "a\x1b[2Jb\nsecond", "c\x07d"), Spending.nothing())
    assert lines == ["error: a [2Jb", "second", "next: c d", "nothing was spent"]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def test_in_json_mode_stdout_holds_one_document() -> None:
    """Answers for people are left out, talk goes to stderr."""
    out, err = io.StringIO(), io.StringIO()
    output = Output(as_json=True, stdout=out, stderr=err)
    output.answer("a table")
    output.talk("asking")
    output.document({"schema": "berth.plan/1"})
    assert json.loads(out.getvalue()) == {"schema": "berth.plan/1"}
    assert err.getvalue() == "asking\n"


class Full(io.StringIO):
    """A stream that takes nothing, as on a full disk."""

    def write(self, _: str) -> int:
        """Never."""
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("as_json", [False, True])
def test_an_answer_that_cannot_be_written_is_a_failure_in_words(as_json: bool) -> None:
    """Not a fault of ours, and never silence."""
    output = Output(as_json=as_json, stdout=Full())

    def answered() -> None:
        output.document({"schema": "berth.plan/1"})
        output.answer("a table")

    with pytest.raises(BerthError, match="could not be written to its end: No space left") as found:
        answered()
    assert found.value.exit_code is ExitCode.INTERNAL_ERROR


def test_work_goes_on_when_nobody_listens() -> None:
    """A purchase that has begun must not stop half-way because stderr takes no more."""
    Output(stderr=Full()).talk("looking for the reservation")


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_the_exit_code_is_right_even_where_nothing_can_be_said(redirection: str) -> None:
    """Streams that are closed or full change nothing about how a command ends."""
    line = f"{shlex.quote(sys.executable)} -m berth buy eval#x {redirection}"
    assert subprocess.run(line, shell=True, check=False).returncode == ExitCode.USAGE


def test_without_a_terminal_nothing_is_asked() -> None:
    """A question that nobody can answer is a decision that is needed (exit 15)."""
    output = Output(stdin=io.StringIO("y\n"), stderr=io.StringIO())
    with pytest.raises(BerthError) as found:
        output.ask("Buy?")
    assert found.value.exit_code is ExitCode.DECISION_NEEDED


@pytest.mark.parametrize(
    ("typed", "meant"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False), ("yo\n", False)]
)
def test_only_a_typed_yes_is_yes(typed: str, meant: bool) -> None:
    """Everything else is no, the end of the input too."""
    assert Output(stdin=Terminal(typed), stderr=Terminal()).ask("Buy?") is meant


@pytest.mark.parametrize(
    ("environ", "bold"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_no_color_is_obeyed(environ: dict[str, str], bold: bool) -> None:
    """Bold only on a terminal that wants it."""
    assert (Output(stdout=Terminal(), environ=environ).strong("x") != "x") is bold
    assert Output(stdout=io.StringIO(), environ={}).strong("x") == "x"


def test_the_yard_without_its_dependencies_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The core install is the client alone."""

    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named 'uvicorn' for {name}", name="uvicorn")

    monkeypatch.setattr(command_line, "import_module", missing)
    assert command_line.run(["yard", "start"]) == ExitCode.USAGE
    assert "pip install 'gpu-berth[yard]'" in capsys.readouterr().err


HEAVY = ("boto3", "botocore", "numpy", "sqlite3", "rich", "berth.yard", "berth.planner", "uvicorn")


def test_help_loads_nothing_heavy() -> None:
    """`berth --help` imports neither boto3 nor a rule: that is why it is instant."""
    program = (
        "import sys; from berth.cli.main import run; code = run(['--help']); "
        f"heavy = [m for m in {HEAVY} if m in sys.modules]; sys.exit(repr(heavy) if heavy else code)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    for verb in command_line.VERBS:
        assert f"\n  {verb} " in ended.stdout


@pytest.mark.parametrize(("typed", "agreed"), [("n\n", False), ("yes\n", True)])
def test_what_was_typed_before_a_question_is_no_answer(
    typed: str, agreed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A yes that waits in the terminal before money is asked about is thrown away."""
    person, terminal = os.openpty()
    flush = termios.tcflush

    def flushed(descriptor: int, queue: int) -> None:
        flush(descriptor, queue)
        os.write(person, typed.encode())

    monkeypatch.setattr(termios, "tcflush", flushed)
    os.write(person, b"y\n")
    with os.fdopen(terminal) as stdin, os.fdopen(os.dup(terminal), "w") as stderr:
        assert Output(stdin=stdin, stderr=stderr).ask("Buy it?") is agreed
    os.close(person)


# -- Ctrl-C before a verb can catch it -----------------------------------------------------------------------
INTERRUPTED_BY_ITSELF = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except BaseException as problem:  # as an extension module may do while it is loaded
    raise ImportError("half of it is there") from problem
"""


# Whatever started the tests may ignore SIGINT, and a child inherits that.
HEEDS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("module", ["typer", "berth.cli.plan", "berth.terms.outcomes"])
def test_ctrl_c_while_the_program_is_read(module: str, as_json: bool, tmp_path: Path) -> None:
    """No trace: the words, the document and the exit code of an interrupted command; nothing was spent."""
    program = (
        f"{HEEDS_CTRL_C}"
        "import importlib.util, sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name != {module!r}: return None\n"
        f"        return importlib.util.spec_from_file_location(name, {str(tmp_path / 'slow.py')!r})\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from berth.entry import main\n"
        "main()\n"
    )
    (tmp_path / "slow.py").write_text(INTERRUPTED_BY_ITSELF)
    words = ["plan", *(["--json"] if as_json else [])]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    error = BerthError(ExitCode.INTERRUPTED, "interrupted")
    assert done.returncode == ExitCode.INTERRUPTED, done.stderr
    assert done.stderr.splitlines() == failure_lines(error, Spending.nothing())
    document = failure_json(error, Spending.nothing(), ExitCode.INTERRUPTED)
    assert (json.loads(done.stdout) if as_json else done.stdout) == (document if as_json else "")


def test_ctrl_c_in_a_verb_is_caught_where_money_is_known(tmp_path: Path) -> None:
    """Once a verb runs, the last line is what is known of money, and never that of the program's start."""
    program = (
        f"{HEEDS_CTRL_C}"
        "import os; from berth.cli import main as m; from berth.cli.output import spending_so_far\n"
        "from berth.terms.money import Money; from berth.terms.outcomes import Spending\n"
        "def app(*_, **__):\n"
        "    spending_so_far.now = Spending.not_known(Money.parse('228.77'), 'eval-1')\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "m.app = app\n"
        "from berth.entry import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.INTERRUPTED, done.stderr
    assert done.stderr.splitlines()[0] == "error: interrupted"
    assert done.stderr.splitlines()[-1] == LAST_LINES["not known"][1]


def test_a_job_that_ignores_ctrl_c_goes_on_ignoring_it(tmp_path: Path) -> None:
    """As of a shell that started it in the background."""
    program = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from berth.cli import main as m\n"
        "m.app = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT) or 0\n"
        "from berth.entry import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [[], ["approvals"]])
def test_a_bare_command_shows_its_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was typed, so nothing is wrong: exit 0, and no failure."""
    assert command_line.run(arguments) == ExitCode.DONE
    said = capsys.readouterr()
    assert said.out.startswith(f"Usage: {' '.join(['berth', *arguments])} ")
    assert said.err == ""


@pytest.mark.parametrize(
    ("arguments", "step"),
    [
        (["byu"], "berth --help"),
        (["buy"], "berth buy --help"),
        (["buy", "--wings"], "berth buy --help"),
        (["approvals", "show"], "berth approvals show --help"),
        (["policy", "none"], "berth policy --help"),
    ],
)
def test_a_usage_error_names_the_help_of_its_verb(
    arguments: list[str], step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line of error, then that verb's own help."""
    assert command_line.run(arguments) == ExitCode.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == [f"next: {step}", "nothing was spent"]


def test_help_is_whole_sentences_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """No verb's line is cut off, none is wider than a terminal; usage has one kind of brackets."""
    command_line.run(["--help"])
    verbs = capsys.readouterr().out
    assert "..." not in verbs.partition("Commands:")[2]
    for verb in command_line.VERBS:
        command_line.run([verb, "--help"])
        said = capsys.readouterr().out
        assert max(map(len, said.splitlines())) <= 80
        usage = said.partition("\n\n")[0]
        assert "{" not in usage, usage
        assert "[[" not in usage, usage
