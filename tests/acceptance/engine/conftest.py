"""Engines that the tests of a module share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from berth.yard.engines.engine import (
    Container,
)
from berth.yard.engines.probe import find_confinement
from berth.yard.engines.sandbox import Confinement, Grants

from .bench import UNCONFINED, Bench, bench, cgroups_of, processes_of


@pytest.fixture(scope="module")
def confinement() -> Confinement:
    found = find_confinement(Grants())
    if found.bubblewrap is None and os.environ.get("CI") != "true":
        pytest.skip(f"nothing confines here: {found.why_not}")
    assert found.bubblewrap is not None, found.why_not
    return found


@pytest.fixture(scope="module")
def confined(confinement: Confinement, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = bench(tmp_path_factory.mktemp("confined"), confinement)
    yield made
    made.engine.close()
    assert processes_of(made.mark) == []
    assert cgroups_of(made.folder) == []


@pytest.fixture(scope="module")
def unconfined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = bench(tmp_path_factory.mktemp("unconfined"), UNCONFINED)
    yield made
    made.engine.close()
    assert processes_of(made.mark) == []
    assert cgroups_of(made.folder) == []


@pytest.fixture(params=["confined", "unconfined"])
def either(request: pytest.FixtureRequest) -> Bench:
    made: Bench = request.getfixturevalue(request.param)
    return made


@pytest.fixture(scope="module")
def curious(confined: Bench) -> Container:
    """A confined container in which a test can look around."""
    return confined.started(confined.container(ECHO_EVAL="1"))
