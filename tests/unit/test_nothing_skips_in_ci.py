"""A skip is a hole in the net; where CI is true it counts as a failure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
LEAVING_OUT = {
    "skip in a test": "import pytest\ndef test_it(): pytest.skip('no engine here')\n",
    "skip mark": "import pytest\n@pytest.mark.skip(reason='no engine here')\ndef test_it(): pass\n",
    "xfail": "import pytest\n@pytest.mark.xfail(reason='no engine here')\ndef test_it(): 1 / 0\n",
    "whole file": "import pytest\npytest.skip('no engine here', allow_module_level=True)\n",
}


def run_pytest(folder: Path, text: str, ci: str) -> subprocess.CompletedProcess[str]:
    """Run pytest alone on one test file below the project's conftest."""
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "test_sample.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder)]
    environment = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("text", LEAVING_OUT.values(), ids=LEAVING_OUT.keys())
def test_what_is_left_out_fails_in_ci_with_its_reason(tmp_path: Path, text: str) -> None:
    """Every way of leaving a test out is a failure that prints why, where CI is true."""
    done = run_pytest(tmp_path, text, ci="true")
    assert done.returncode in {1, 2}, done.stdout
    assert "no engine here" in done.stdout
    assert "CI is true" in done.stdout


def test_outside_ci_a_skip_is_a_skip(tmp_path: Path) -> None:
    """On a person's machine a test may say that something is missing there."""
    done = run_pytest(tmp_path, LEAVING_OUT["skip in a test"], ci="")
    assert "1 skipped" in done.stdout
