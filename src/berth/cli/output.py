"""Answers go to stdout, talk goes to stderr; nothing from elsewhere is printed with control characters."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import termios
import textwrap
from collections.abc import Mapping
from typing import Any, TextIO

from berth.cli.exit_codes import NEXT_STEPS
from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode, Spending, Spent
from berth.terms.text import plain

WIDTH = 80


class SpendingSoFar:
    """What the running command is known to have spent, and whether it has given its JSON document.

    A verb that pays sets `now` before the paid call (to not known) and after it (to paid, or back to
    nothing), so that even a fault or Ctrl-C in between ends with the right line.
    """

    def __init__(self) -> None:
        self.now: Spending = NOTHING_SPENT
        self.documented = False


class Output:
    """The two streams of one command.

    `as_json` promises that stdout holds one JSON document and nothing else.
    """

    def __init__(
        self,
        *,
        as_json: bool = False,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        stdin: TextIO | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.as_json = as_json
        self._stdout = stdout or sys.stdout
        self._stderr = stderr or sys.stderr
        self._stdin = stdin or sys.stdin
        self._environ = environ

    def answer(self, text: str) -> None:
        """Print what was asked for; nothing in JSON mode, whose answer is `document`."""
        if not self.as_json:
            self._answer(text)

    def document(self, value: Mapping[str, Any]) -> None:
        """Print the JSON answer, if JSON was asked for."""
        if self.as_json:
            spending_so_far.documented = True
            whole = (self._stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
            self._answer(json.dumps(value, indent=2, ensure_ascii=not whole))

    def _answer(self, text: str) -> None:
        """Write to stdout. Raises BerthError when that takes no more: a full disk, a reader that has gone."""
        try:
            _write(self._stdout, text)
        except OSError as problem:
            raise BerthError(
                ExitCode.INTERNAL_ERROR, f"the answer could not be written to its end: {problem.strerror}"
            ) from None

    def talk(self, text: str) -> None:
        """Tell the person what happens, folded at 80 columns; addresses and paths stay whole.

        Where nobody can hear it (stderr is full or its reader has gone) the work goes on: a purchase must not
        stop half-way for want of a listener.
        """
        with contextlib.suppress(OSError):
            _write(self._stderr, "\n".join(folded(line) for line in text.splitlines()))

    def talks_to_terminal(self) -> bool:
        """Whether what is told is seen on a terminal that can write over its last line."""
        return self._stderr.isatty() and self._environ.get("TERM") != "dumb"

    def overwrite(self, text: str, *, last: bool) -> None:
        """Tell how far something is: on a terminal over the line before, elsewhere in a line of its own.

        `last`: the line stays, and what follows begins a new one.
        """
        if not self.talks_to_terminal():
            self.talk(text)
            return
        with contextlib.suppress(OSError):
            self._stderr.write(f"\r{plain(text, WIDTH - 1):<{WIDTH - 1}}{chr(10) if last else ''}")
            self._stderr.flush()

    def bell(self) -> str:
        """What makes a terminal ring; '' where there is none."""
        return "\a" if self.talks_to_terminal() else ""

    def answers_to_terminal(self) -> bool:
        """Whether what is asked for is shown to whoever looks, and not piped on or written to a file."""
        return self._stdout.isatty()

    def can_ask(self) -> bool:
        """Whether a person sits at both ends: without a terminal nothing is asked."""
        return self._stdin.isatty() and self._stderr.isatty()

    def ask(self, question: str) -> bool:
        """Ask yes or no; anything but a typed yes is no. Raises DECISION_NEEDED without a terminal."""
        if not self.can_ask():
            raise BerthError(
                ExitCode.DECISION_NEEDED,
                "a question has to be answered and there is no terminal to ask it on",
                "add --yes --max AMOUNT to decide beforehand",
            )
        # What was typed before the question is shown is no answer to it. A stream that only says that it is a
        # terminal holds nothing back.
        with contextlib.suppress(io.UnsupportedOperation):
            termios.tcflush(self._stdin.fileno(), termios.TCIFLUSH)
        self._stderr.write(f"{plain(question)} [y/N] ")
        self._stderr.flush()
        return self._stdin.readline().strip().lower() in {"y", "yes"}

    def strong(self, text: str) -> str:
        """`text` in bold where stdout is a terminal that may show it (NO_COLOR is obeyed)."""
        dumb = self._environ.get("TERM") == "dumb" or bool(self._environ.get("NO_COLOR"))
        return text if dumb or self.as_json or not self._stdout.isatty() else f"\x1b[1m{text}\x1b[0m"


def _write(stream: TextIO, text: str) -> None:
    stream.write(text if text.endswith("\n") else text + "\n")
    stream.flush()


def folded(line: str) -> str:
    """The line at 80 columns; addresses and paths stay whole."""
    return textwrap.fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


spending_so_far = SpendingSoFar()


def failure_lines(error: BerthError, spent: Spending) -> list[str]:
    """The lines that end a failed command: what, what next, and what is known about money (always last)."""
    first, *more = [plain(line, 2000) for line in error.message.splitlines() or [""]]
    return [f"error: {first}", *more, f"next: {next_of(error, spent)}", plain(spent.line())]


def next_of(error: BerthError, spent: Spending) -> str:
    """What to do after a failure: what it says itself, else what its exit code asks for."""
    if spent.spent is Spent.NOT_KNOWN and not error.next_step:
        return plain(f"berth show {spent.order} --wait")
    return plain(error.next_step or NEXT_STEPS[error.exit_code], 1000)


def failure_json(error: BerthError, spent: Spending, exit_code: int) -> dict[str, Any]:
    """The document of schema `berth.failure/1`: the JSON answer of a command that failed without another."""
    amount = None
    if spent.amount is not None:
        amount = {"amount": f"{spent.amount.amount:f}", "currency": spent.amount.currency}
    return {
        "schema": "berth.failure/1",
        "exit_code": int(exit_code),
        "error": "\n".join(plain(line, 2000) for line in error.message.splitlines()),
        "next": next_of(error, spent),
        "money": {"spent": spent.spent.value, "amount": amount, "order": plain(spent.order) or None},
    }
