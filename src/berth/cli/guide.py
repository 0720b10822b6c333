"""`berth plan --guide`: asks a newcomer for a need, question by question, and writes the need file."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.planner.guide import Question

WELCOME = (
    "A need says what you want; berth plan then says what there is. Enter takes what stands in [brackets], ? "
    "explains, < goes back, Ctrl-C ends and writes nothing. Nothing is bought here."
)


class _Ended(Exception):
    """Ctrl-C, or the end of the input."""


def guide(output: Output, file: Path | None, *, stdin: TextIO | None = None) -> int:
    """Ask, write the file (`file`, or one called after the need), show it and say how to go on.

    Raises BerthError without a terminal, and when the person ends it: then nothing is written, and the
    answers so far are shown, so that none is lost.
    """
    from berth.planner.guide import need_toml

    if not output.can_ask():
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            "--guide asks questions, and there is no terminal to ask them on",
            "write a need file: docs/howto/write-a-need.md",
        )
    if file is not None and file.exists():
        raise BerthError(
            ExitCode.BAD_REQUEST, f"{file} exists already, and is left as it is", "name another, or none"
        )
    asking = _Asking(output, stdin or sys.stdin)
    output.talk(WELCOME)
    try:
        asking.all_questions()
        path = file or asking.file()
        _write(path, need_toml(asking.answers))
    except (_Ended, KeyboardInterrupt):
        output.talk("")
        if asking.answers:
            output.answer(need_toml(asking.answers).rstrip())
        raise BerthError(
            ExitCode.INTERRUPTED,
            "ended: no file was written" + ("; your answers so far stand above" if asking.answers else ""),
            "berth plan --guide begins again; or save the answers to a file and go on there",
        ) from None
    output.answer(f"\n{path}\n\n{need_toml(asking.answers)}\n")
    output.answer(f"NEXT   berth plan {path}     compares what there is; spends nothing")
    return ExitCode.DONE


class _Asking:
    """The conversation: what was answered so far, in order."""

    def __init__(self, output: Output, stdin: TextIO) -> None:
        self._output = output
        self._stdin = stdin
        self._now = _now()
        self.answers: dict[str, str] = {}

    def all_questions(self) -> None:
        """Until every question that applies has an answer."""
        from berth.planner.guide import next_question

        while (question := next_question(self.answers)) is not None:
            self._one(question)

    def _one(self, question: Question) -> None:
        from berth.planner.guide import complaint, taken, understood

        self._output.talk("")
        self._output.talk(f"{question.text}\n  for example: {question.example}")
        while True:
            typed = self._line(f"  [{question.default}] " if question.default else "  > ")
            if typed == "?":
                self._output.talk(question.explain)
                continue
            if typed == "<":
                self._back()
                return
            answer = taken(question, typed)
            wrong = complaint(question, answer, self.answers, self._now)
            if not wrong:
                written, told = understood(question, answer, self.answers, self._now)
                self.answers[question.key] = written
                if told:
                    self._output.talk(f"  {told}")
                return
            self._output.talk(f"That does not do: {wrong}")

    def _back(self) -> None:
        if self.answers:
            self.answers.popitem()

    def file(self) -> Path:
        """Where to write: the need's name, or another that does not exist yet."""
        path = Path(f"{self.answers['name']}.toml")
        self._output.talk("")
        while True:
            typed = self._line(f"Write it to which file?  [{path}] ")
            chosen = Path(typed) if typed else path
            if not chosen.exists():
                return chosen
            self._output.talk(f"{chosen} exists already, and is left as it is: another name, please")

    def _line(self, prompt: str) -> str:
        sys.stderr.write(prompt)
        sys.stderr.flush()
        line = self._stdin.readline()
        if not line:
            raise _Ended
        return line.strip()


def _now() -> datetime | None:
    """What decides what lies in the past: the present, or nothing where a yard has its own clock."""
    from berth.aws.worlds import declared_yard
    from berth.terms.clock import SystemClock

    return None if declared_yard(os.environ) is not None else SystemClock().now()


def _write(path: Path, text: str) -> None:
    """A new file; one that exists is never written over. Raises BerthError."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as problem:
        raise BerthError(
            ExitCode.BAD_REQUEST, f"{path} cannot be written: {problem.strerror}; the need is\n\n{text}"
        ) from None
