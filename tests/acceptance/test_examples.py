"""The rehearsals in `examples/`, as a person runs them: one command each, which checks its facts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 540  # for a machine that is busy with all else; a quiet one takes half a minute


@pytest.mark.parametrize(
    ("folder", "facts"),
    [
        (
            "d2-rolling-blocks",
            (
                "the other team's block was never touched",
                "five runs, two of them at once: one paid call",
                "3 tries, one alarm",
                "the cap per fortnight says no",
                "the yard's ledger has the same",
            ),
        ),
        (
            "d3-sixteen-h200",
            (
                "on-demand is refused in all five zones",
                "5, 6, 7, 8 and 9 days were asked for in all three Regions",
                "these and no others say `needs a subnet`",
                "the yard's ledger has one entry",
                "the audit tells of one purchase",
            ),
        ),
    ],
)
def test_a_rehearsal_ends_with_its_facts_checked(folder: str, facts: tuple[str, ...]) -> None:
    """Exit code 0, each fact printed, its temporary folder gone, and nothing left that runs."""
    with tempfile.TemporaryDirectory(prefix="home-") as home:  # a short name: a yard's socket lies below it
        environment = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home}
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / folder / "rehearse.py")], cwd=home, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        assert not list(Path(home).glob("berth-rehearsal-*"))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    checked = " ".join(done.stdout.split()).split("CHECKED ")[1:]
    for fact in facts:
        assert any(fact in line for line in checked), fact


def test_a_fact_that_is_not_so_ends_a_rehearsal() -> None:
    """A command with another exit code than expected, or a fact that does not hold, is no success."""
    program = (
        f"import sys; sys.path.insert(0, {str(EXAMPLES)!r})\n"
        "from staging import Stage, run_rehearsal\n"
        "from pathlib import Path\n"
        "def story():\n"
        "    stage = Stage(Path('.'), '2027-03-01T00:00Z')\n"
        "    stage.check('one is one', true=True)\n"
        "    {step}\n"
        "sys.exit(run_rehearsal(story))\n"
    )
    for step, says in (
        ("stage.check('one is two', true=1 == 2)", "not so: one is two"),
        ("stage.berth('exit-codes', expect=3)", "exit code 0 instead of 3"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("{step}", step)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert says in done.stderr
        assert "CHECKED  one is one" in done.stdout
