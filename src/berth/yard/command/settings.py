"""What `berth yard start` was told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from berth.yard.data_folder import DataFolder


@dataclass(frozen=True, slots=True)
class StartSettings:
    """What `berth yard start` was told. `fleet_file` None = the fleet of the folder, else the shipped one;
    `rest` is the URL of another emulator, None = no other; `throttle_scale` how many times faster than real
    time a rehearsal's throttles refill."""

    folder: DataFolder
    fleet_file: Path | None
    port: int
    clock: str
    rest: str | None = None
    throttle_scale: float = 1.0
