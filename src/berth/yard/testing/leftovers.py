"""Which processes have to do with a folder: for tests that must find nothing left over."""

from __future__ import annotations

import os
import time
from collections.abc import Set
from pathlib import Path

PROC = Path("/proc")


def processes_of(folder: Path, besides: Set[int] = frozenset()) -> dict[int, str]:
    """Command lines by process id of all that name `folder` in their command line or environment, work in it,
    or hold a file of it open; this process and those of `besides` are left out.

    Sees what this user may look at; root sees all. Zombies are gone already and are not told.
    """
    mark = os.fsencode(folder)
    found = {}
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and int(entry.name) not in {os.getpid(), *besides} and _names(entry, mark):
            found[int(entry.name)] = _read(entry / "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
    return found


def wait_until_none(folder: Path, within_s: float, besides: Set[int] = frozenset()) -> dict[int, str]:
    """What of `processes_of` is still there after `within_s` seconds; empty as soon as nothing is."""
    deadline = time.monotonic() + within_s
    while (found := processes_of(folder, besides)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _names(process: Path, mark: bytes) -> bool:
    return (
        mark in _read(process / "cmdline")
        or mark in _read(process / "environ")
        or any(mark in target for target in _links(process))
    )


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # ended meanwhile, or not ours to look at
        return b""


def _links(process: Path) -> list[bytes]:
    targets = []
    try:
        names = [process / "cwd", *(process / "fd").iterdir()]
    except OSError:
        return []
    for name in names:
        try:
            targets.append(os.fsencode(os.readlink(name)))
        except OSError:
            continue
    return targets
