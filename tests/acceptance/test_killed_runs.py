"""`berth run` killed with -9 at seeded moments: nothing bought twice, nothing lost, nothing left over."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import create_loader

from berth.cli.main import run

from .conftest import UNTHROTTLED
from .killed_runs import KilledRun

SEEDS = int(os.environ.get("BERTH_KILLED_RUNS", "10"))  # two kills each; plans and blocks in turn


@pytest.fixture(scope="module")
def house() -> Iterator[Any]:
    """One yard for all runs, that throttles none for what earlier ones have asked."""
    from berth.yard.testing.process import YardProcess

    with (
        tempfile.TemporaryDirectory(prefix="yard-") as folder,
        YardProcess(Path(folder), throttle_scale=UNTHROTTLED) as started,
    ):
        yield started


one_loader = cache(create_loader)  # AWS's models are read once, not once a command


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_killed_run_goes_on(
    house: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seed: int,
) -> None:
    """Killed while it plans, buys or puts to work, then run to its end: one sale, all cleared up."""
    monkeypatch.setattr("botocore.session.create_loader", one_loader)

    def end_here(arguments: tuple[str, ...], environment: Mapping[str, str]) -> tuple[int, str, str]:
        for key, value in environment.items():
            monkeypatch.setenv(key, value)
        capsys.readouterr()
        code = run(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    outcome = KilledRun(house, tmp_path, seed, end_here).play()
    assert outcome.killed <= 2
