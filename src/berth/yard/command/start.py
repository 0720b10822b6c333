"""Starting a yard: in this process, or detached from it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from itertools import takewhile
from pathlib import Path

from berth.terms.clock import SystemClock
from berth.terms.ids import SystemIds
from berth.terms.outcomes import BerthError, ExitCode
from berth.yard.command.settings import StartSettings
from berth.yard.data_folder import DataFolder, FolderInUse, FolderUnusable

READY_LIMIT_S = 60.0
GONE_LIMIT_S = 60.0


def start_here(settings: StartSettings) -> None:
    """Run the yard in this process until it is stopped. Raises BerthError when it cannot start."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    real = SystemClock()
    lock = _claim(settings.folder)
    try:
        from berth.yard.command.build import build_server
        from berth.yard.server import serve

        server, close = build_server(settings, real, SystemIds(), lambda: _say_ready(settings.folder))
        try:
            serve(server)
        finally:
            close()
            settings.folder.withdraw()
    finally:
        os.close(lock)


def _claim(folder: DataFolder) -> int:
    try:
        folder.prepare()
        return folder.lock()
    except (FolderInUse, FolderUnusable) as problem:
        raise BerthError(ExitCode.BAD_REQUEST, str(problem)) from None


def _say_ready(folder: DataFolder) -> None:
    sys.stdout.write("\n".join(ready_lines(folder)) + "\n")
    sys.stdout.flush()


def ready_lines(folder: DataFolder) -> list[str]:
    """What is said once a yard is ready."""
    facts = json.loads(folder.running.read_text())
    where = f" --data {folder.path}"
    return [
        f"yard ready at {facts['url']}, pid {facts['pid']}, {facts['kind']}",
        f'next: eval "$(berth yard env{where})"; stop it with: berth yard stop{where}',
    ]


def start_detached(settings: StartSettings) -> None:
    """Start the yard in a session of its own and return when it is ready. Raises BerthError if it is not."""
    folder = settings.folder
    os.close(_claim(folder))  # says at once when the folder is taken; the child claims it for good
    folder.running.unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "berth", "yard", "start",
        "--data", str(folder.path), "--port", str(settings.port), "--clock", settings.clock,
    ]  # fmt: skip
    if settings.fleet_file is not None:
        command += ["--fleet", str(settings.fleet_file)]
    if settings.rest is not None:
        command += ["--rest", settings.rest]
    if settings.throttle_scale != 1:
        command += ["--throttle-scale", str(settings.throttle_scale)]
    begun = folder.log.stat().st_size if folder.log.exists() else 0
    with folder.log.open("ab") as log:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )
    deadline = time.monotonic() + READY_LIMIT_S
    while not folder.running.exists():
        if child.poll() is not None:
            raise BerthError(ExitCode.BAD_REQUEST, _why(folder, begun), f"the whole log: {folder.log}")
        if time.monotonic() > deadline:
            child.terminate()
            raise BerthError(
                ExitCode.INTERNAL_ERROR,
                f"the yard was not ready in {READY_LIMIT_S:.0f} s",
                f"see {folder.log}",
            )
        time.sleep(0.01)
    _say_ready(folder)


def _why(folder: DataFolder, begun: int) -> str:
    """What the child said was wrong, whole, from where its part of the log begins."""
    with folder.log.open("rb") as log:
        log.seek(begun)
        lines = log.read().decode("utf-8", "replace").strip().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("error: "):
            said = takewhile(
                lambda more: not more.startswith(("next: ", "nothing was spent")), lines[number:]
            )
            return "\n".join(said).removeprefix("error: ")
    return lines[-1] if lines else "the yard ended without a word"


def wait_until_gone(folder: DataFolder, pid: int) -> None:
    """Wait until the stopped yard has let go of its folder and its process `pid` has ended.

    Raises BerthError after a minute.
    """
    deadline = time.monotonic() + GONE_LIMIT_S
    while _holds(folder) or _lives(pid):
        if time.monotonic() > deadline:
            raise BerthError(ExitCode.INTERNAL_ERROR, f"the yard on {folder.path} has not ended yet")
        time.sleep(0.01)


def _holds(folder: DataFolder) -> bool:
    try:
        os.close(folder.lock())
    except FolderInUse:
        return True
    return False


def _lives(pid: int) -> bool:
    """Whether the process runs; one that has ended and waits for its parent to notice does not (proc(5))."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}
