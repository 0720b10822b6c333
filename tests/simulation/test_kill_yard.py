"""Kill -9 of the yard at random moments: nothing lost, nothing twice, nothing promised twice, nobody left
over."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from .yard_kills import KilledYard

KILLS = int(os.environ.get("BERTH_KILLS", "20"))
FOLDERS = 4  # so that two cores have something to do each
FLEET = Path(__file__).parents[1] / "unit" / "yard" / "small.toml"


@pytest.mark.parametrize("seed", range(FOLDERS))
def test_what_was_acknowledged_survives_kills_at_random_moments(seed: int) -> None:
    """While clients buy, deploy, delete and move the clock; looked over after each of the kills."""
    folder = Path(tempfile.mkdtemp(prefix="yard-"))
    yard = KilledYard(folder, FLEET, seed)
    try:
        for number in range(-(-KILLS // FOLDERS)):
            yard.kill_once(number)
    finally:
        yard.close()
    shutil.rmtree(folder)
    assert yard.seen.plans
    assert yard.seen.endpoints
