"""The first ten minutes of docs/start.md, command by command, as a newcomer pastes them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "start.md").read_text()
BERTH = str(Path(sys.executable).with_name("berth"))


def block(language: str, containing: str) -> str:
    """The fenced block of that language that contains the words."""
    blocks = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", PAGE)
    (found,) = [text for kind, text in blocks if kind == language and containing in text]
    return str(found)


def commands(containing: str) -> list[list[str]]:
    """The `berth` commands of a block, their comments taken off."""
    lines = (line.partition("   #")[0].strip() for line in block("", containing).splitlines())
    return [shlex.split(line)[1:] for line in lines if line.startswith("berth ")]


@pytest.fixture
def berth(yard: Any, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `berth` with the yard's environment, in a home of its own."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **yard.environment}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BERTH, *arguments], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    return run


@pytest.mark.yard(clock="2026-12-01T09:00Z")
def test_the_commands_of_the_start_page_work(
    berth: Callable[..., subprocess.CompletedProcess[str]], yard: Any, tmp_path: Path
) -> None:
    """Plan, buy, show, move the clock, show: each ends well, and the plan has been paid once."""
    assert "--clock 2026-12-01T09:00Z" in PAGE
    (tmp_path / "digits.toml").write_text(block("toml", "duration"))
    said = ""
    pasted = commands("berth plan")
    assert [command[0] for command in pasted] == ["plan", "buy", "show", "yard", "show"]
    for command in pasted:
        if command[:1] == ["buy"]:  # the page has a terminal to answer at
            command += ["--yes", "--max", "1000"]
        if command[:1] == ["yard"]:  # the page's yard has the default folder
            command += ["--data", str(yard.folder.path)]
        done = berth(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said = done.stdout
    assert "Active" in said
    assert len(yard.ledger) == 1
