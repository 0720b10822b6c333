"""An option that is given without a value is an error, whatever the verb."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from berth.cli import main as command_line
from berth.cli.needs import typed_need
from berth.terms.outcomes import BerthError, ExitCode


def _options(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every option of every verb that takes a value, with the words of its verb."""
    for name, inner in getattr(command, "commands", {}).items():
        if name != "yard":
            yield from _options(inner, (*words, name))
    for option in command.params if words and not hasattr(command, "commands") else ():
        if option.param_type_name == "option" and not option.is_flag and not option.count:
            yield words, max(option.opts, key=len)


ALL = typer.main.get_command(command_line.app)
OPTIONS = tuple(_options(ALL, ()))


def test_every_verb_is_looked_at() -> None:
    """A verb of a group too."""
    assert {words[0] for words, _ in OPTIONS} >= {"plan", "buy", "run", "extend", "doctor", "approvals"}
    assert (("plan",), "--count") in OPTIONS


def test_no_option_takes_an_empty_value() -> None:
    """A script's unset variable must not mean that nothing was said; what to do next is told."""
    for words, option in OPTIONS:
        with pytest.raises(BerthError) as found:
            ALL.main([*words, option, ""], prog_name="berth", standalone_mode=False)
        assert (found.value.exit_code, found.value.message) == (
            ExitCode.USAGE,
            f"{option}: the value is empty",
        )
        assert f"leave {option} out (berth {words[-1]} --help)" in str(found.value.next_step)


def test_blanks_are_empty_and_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """The whole end of the command."""
    assert command_line.run(["plan", "--count", "  "]) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "error: --count: the value is empty",
        "next: give it a value, or leave --count out (berth plan --help)",
        "nothing was spent",
    ]


def test_one_of_several_values_may_not_be_empty_either(capsys: pytest.CaptureFixture[str]) -> None:
    """A list that a script made of two variables."""
    assert command_line.run(["plan", "--region", "us-east-1", "--region="]) == ExitCode.USAGE
    assert "--region: the value is empty" in capsys.readouterr().err


def test_what_was_not_typed_is_left_out() -> None:
    """Options that were not given leave the file's values alone."""
    assert typed_need(None, {"name": "x", "count": None, "regions": [], "retryable": ""}).flags == {
        "name": "x"
    }
