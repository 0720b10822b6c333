"""The pytest fixture `yard`: a rehearsal of one's own for a test.

It comes with the package (entry point `pytest11`); a project that tests capacity code needs nothing more
than `gpu-berth[yard]` among its test dependencies. Works under pytest-xdist: each yard has its own folder and
port.

    def test_buys_once(yard):
        yard.fault("lost-reply", "CreateTrainingPlan")
        ...
        assert len(yard.ledger) == 1

`@pytest.mark.yard(clock="2027-03-02T02:10Z", fleet=path)` sets where its clock stands, and its fleet file.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from berth.yard.testing.process import YardProcess


def pytest_configure(config: pytest.Config) -> None:
    """Tell pytest of the marker."""
    config.addinivalue_line("markers", "yard(clock=..., fleet=...): how the `yard` fixture starts")


def _short_folder() -> Path:
    """A folder with a short path: the admin socket's must stay under 108 bytes; pytest's may be longer."""
    return Path(tempfile.mkdtemp(prefix="yard-"))


@pytest.fixture
def make_yard() -> Iterator[Callable[..., YardProcess]]:
    """Start yards by hand: `make_yard(clock=..., fleet=..., path=...)`. All end with the test."""
    from berth.yard.testing.process import YardProcess

    started: list[YardProcess] = []
    folders: list[Path] = []

    def make(path: Path | None = None, **settings: Any) -> YardProcess:
        if path is None:
            path = _short_folder()
            folders.append(path)
        yard = YardProcess(path, **settings)
        started.append(yard)
        return yard

    yield make
    for yard in started:
        yard.stop()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def yard(request: pytest.FixtureRequest, make_yard: Callable[..., YardProcess]) -> YardProcess:
    """A fresh yard in rehearsal, its clock standing at 2026-12-01 09:00Z unless the marker says otherwise."""
    marker = request.node.get_closest_marker("yard")
    return make_yard(**(marker.kwargs if marker is not None else {}))
