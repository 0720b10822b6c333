"""`berth`: one file a verb. Nothing heavy is imported before a verb runs, so that `--help` is instant."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Annotated

import typer

from berth import __version__
from berth.cli.exit_codes import table
from berth.cli.output import failure_json, failure_lines, folded, spending_so_far
from berth.cli.verb import refuse_empty_options
from berth.ctrl_c import let_ctrl_c_end, let_ctrl_c_raise
from berth.terms.outcomes import BerthError, ExitCode, Spending, Spent
from berth.terms.settings import SettingsError

# In the order of the help: what comes first, what comes after a purchase, what is rarely typed.
VERBS = (
    "plan", "doctor", "buy", "run", "show", "ls", "launch", "deploy", "invoke", "extend", "renewal", "clean",
    "leave", "adopt", "rebuild", "approve", "approvals", "history", "audit", "policy",
)  # fmt: skip

app = typer.Typer(
    name="berth",
    help="Get GPUs for a window of time: compare, buy once, run in it, clear up.",
    epilog="New here? `berth plan --guide` asks what you need; `berth yard start` starts a rehearsal."
    " Exit codes: see `berth exit-codes`.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"berth {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Get GPUs for a window of time: compare, buy once, run in it, clear up."""


for _verb in VERBS:
    import_module(f"berth.cli.{_verb}").register(app)
refuse_empty_options(app)


@app.command(
    "yard",
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
)
def _yard(context: typer.Context) -> int | None:
    """Run a yard: a rehearsal, or machines of your own. See `berth yard --help`."""
    # The two halves meet over HTTP only: the yard's command is looked up by name and given the bare
    # arguments.
    try:
        command = import_module("berth.yard.command.app")
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("berth."):
            raise
        raise BerthError(
            ExitCode.USAGE,
            f"the yard needs {missing.name}, which is not installed",
            "pip install 'gpu-berth[yard]'",
        ) from None
    result: int | None = command.main(list(context.args))
    return result


@app.command("exit-codes")
def _exit_codes() -> None:
    """Show what each exit code means."""
    typer.echo(table())


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with the exit code of the table."""
    code = int(ExitCode.INTERRUPTED)
    try:
        _open_streams()
        code = run(sys.argv[1:] if argv is None else list(argv))
        let_ctrl_c_end()
        _let_go_of_streams()
    except KeyboardInterrupt:  # once more, while the end was told: what was told of money stands
        pass
    sys.exit(code)


def _open_streams() -> None:
    """Open what the caller closed (`berth show 2>&-`), so that no file of ours becomes a standard stream."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    # A letter that the terminal or file cannot hold is no reason to end half-way.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def _let_go_of_streams() -> None:
    """What a stream did not take has been told: Python must not try again, and end with a code of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def run(argv: Sequence[str]) -> int:
    """Run the command line `argv` (without the program's name); the exit code. Never raises for a failure."""
    debug = "--debug" in argv
    spending_so_far.now = Spending.nothing()
    # Where no document is wanted none is owed.
    spending_so_far.documented = "--json" not in argv
    try:
        let_ctrl_c_raise()
        result = app([a for a in argv if a != "--debug"], prog_name="berth", standalone_mode=False)
    except BerthError as error:
        return _failed(error)
    except SettingsError as problem:
        return _failed(BerthError(ExitCode.BAD_REQUEST, str(problem)))
    except (KeyboardInterrupt, typer.Abort):
        result = ExitCode.INTERRUPTED
    except SystemExit:
        # Typer ends the process when whoever reads our answer has gone (`berth plan | head`).
        return _failed(BerthError(ExitCode.INTERNAL_ERROR, "the answer could not be written to its end"))
    except Exception as fault:  # noqa: BLE001 - the last door: whatever comes here is a fault of ours
        return _usage(fault) if hasattr(fault, "format_message") else _fault(fault, debug)
    if result == ExitCode.INTERRUPTED:
        return _failed(BerthError(ExitCode.INTERRUPTED, "interrupted"))
    return int(result or 0)


def _failed(error: BerthError) -> int:
    spent = error.spent if error.spent.spent is not Spent.NOTHING else spending_so_far.now
    with contextlib.suppress(OSError):  # nobody can be told; the exit code still says what it was
        lines = failure_lines(error, spent)
        sys.stderr.write("\n".join(map(folded, lines) if sys.stderr.isatty() else lines) + "\n")
        sys.stderr.flush()
    unknown = spent.spent is Spent.NOT_KNOWN and error.exit_code is ExitCode.INTERNAL_ERROR
    code = ExitCode.OUTCOME_UNKNOWN if unknown else error.exit_code
    if not spending_so_far.documented:
        spending_so_far.documented = True
        with contextlib.suppress(OSError):
            sys.stdout.write(json.dumps(failure_json(error, spent, code), indent=2) + "\n")
            sys.stdout.flush()
    return code


def _usage(problem: Exception) -> int:
    """How a command line ends that Typer cannot read: in a line, with the help of the verb that was typed."""
    message = getattr(problem, "format_message")()  # noqa: B009 - typer's own type
    context = getattr(problem, "ctx", None)
    verb = context.command_path if context is not None else "berth"
    if type(problem).__name__ == "NoArgsIsHelpError":  # nothing was typed, so nothing is wrong
        sys.stdout.write(f"{message}\n")
        return ExitCode.DONE
    return _failed(BerthError(ExitCode.USAGE, " ".join(message.split()), f"{verb} --help"))


def _fault(fault: Exception, debug: bool) -> int:
    text = "".join(traceback.format_exception(fault))
    if debug:
        sys.stderr.write(text)
        where = "the trace is above"
    else:
        where = _keep(text)
    one_line = f"{type(fault).__name__}: {fault}".splitlines()[0]
    return _failed(BerthError(ExitCode.INTERNAL_ERROR, f"internal error, {one_line}; {where}"))


def _keep(text: str) -> str:
    """Write a trace beside the journal; a sentence saying where."""
    from berth.storage.home import berth_home

    folder = berth_home(os.environ) / "faults"
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        return f"its trace could not be kept ({problem}): run again with --debug"
    return f"its trace is in {path}"
