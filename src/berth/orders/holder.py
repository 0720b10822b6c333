"""Who holds an intent: so that a paid call under way is told from one whose process has died."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path
from typing import Protocol


class Holders(Protocol):
    """Names of processes, and whether one still lives."""

    def me(self) -> str:
        """The name of this process, different from every other one's, also after a reboot."""
        ...

    def lives(self, holder: str) -> bool | None:
        """Whether the process of that name lives; None when this machine cannot tell."""
        ...


class Processes:
    """Processes of this machine: host, boot, process id and start time, which no later process repeats."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._place = f"{socket.gethostname()} {self._boot()}"

    def me(self) -> str:
        """This process."""
        return f"{self._place} {os.getpid()} {self._started(os.getpid())}"

    def lives(self, holder: str) -> bool | None:
        """Whether it lives; None for another machine's process."""
        host, _, rest = holder.partition(" ")
        boot, _, process = rest.partition(" ")
        if host != socket.gethostname():
            return None
        if f"{host} {boot}" != self._place:
            return False  # this machine was started anew since
        pid, _, started = process.partition(" ")
        return pid.isdigit() and self._started(int(pid)) == started

    def _boot(self) -> str:
        try:
            return (self._proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        except OSError:
            return "boot-unknown"

    def _started(self, pid: int) -> str:
        """Start time in clock ticks since boot, from /proc; `gone` for none, `here` without a /proc."""
        try:
            line = (self._proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return self._signalled(pid) if not self._proc.exists() else "gone"
        fields = line.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
        return "gone" if fields[0] in {"Z", "X"} else fields[19]

    @staticmethod
    def _signalled(pid: int) -> str:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return "gone"
        except PermissionError:
            return "here"
        return "here"


def this_process() -> str:
    """This process for people: `ada@host, process 4711`."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user id without a name, as in many containers
        user = f"user {os.getuid()}"
    return f"{user}@{socket.gethostname()}, process {os.getpid()}"
