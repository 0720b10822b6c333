"""Bounds on what a container may use: by cgroup where the yard may write one, else by rlimits inside it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """What one container may use: bytes of memory, and processes with all their threads; None is no limit.

    Without a cgroup the memory bound is on the address space of each process, which is coarser.
    """

    memory_bytes: int | None = 2 * 1024**3
    processes: int | None = 256


@dataclass(frozen=True, slots=True)
class Cgroup:
    """One cgroup of a container: the folder to make, what to write there, the file that counts kills."""

    folder: Path
    values: Sequence[tuple[str, str]]
    oom_file: Path | None = None


@dataclass(frozen=True, slots=True)
class CgroupHome:
    """Where the yard may make cgroups: under version 1 a folder for each controller, under 2 one for both.

    `swap` says whether swap is bounded too; where it is not, memory that was swapped out does not count.
    """

    version: int
    memory: Path
    pids: Path
    swap: bool

    def of_container(self, name: str, limits: Limits) -> tuple[Cgroup, ...]:
        """The cgroups of the container whose cgroups are called `name`."""
        memory, pids = self.memory / name, self.pids / name
        unlimited = "-1" if self.version == 1 else "max"
        bytes_max = unlimited if limits.memory_bytes is None else str(limits.memory_bytes)
        processes = ("pids.max", "max" if limits.processes is None else str(limits.processes))
        if self.version == 1:
            bounds = [("memory.limit_in_bytes", bytes_max)]
            if self.swap:
                # Memory and swap together, so the same figure leaves no swap; only after the plain limit.
                bounds.append(("memory.memsw.limit_in_bytes", bytes_max))
            return (Cgroup(memory, bounds, memory / "memory.oom_control"), Cgroup(pids, [processes]))
        bounds = [("memory.max", bytes_max), processes]
        if self.swap:
            bounds.append(("memory.swap.max", "0"))
        return (Cgroup(memory, bounds, memory / "memory.events"),)

    def sweep(self, prefix: str) -> None:
        """Remove empty cgroups named `prefix`...: what a yard leaves that was killed with its supervisors."""
        for parent in {self.memory, self.pids}:
            for folder in parent.glob(f"{prefix}*"):
                # One that is not empty belongs to a container that lives.
                with contextlib.suppress(OSError):
                    folder.rmdir()


def prefix_of(engine_folder: Path) -> str:
    """How the names of an engine's cgroups start: two yards on one machine never share one."""
    return f"berth-{hashlib.sha256(os.fsencode(engine_folder.resolve())).hexdigest()[:10]}-"


def candidates(cgroup_text: str, mountinfo_text: str) -> list[CgroupHome]:
    """Where cgroups might be made, best first, from the texts of /proc/self/cgroup and /proc/self/mountinfo.

    Version 1: in the yard's own cgroup of each controller. Version 2: there or in one of its parents, as a
    cgroup with processes in it (the yard's own) may not hand controllers on to cgroups below it.
    """
    own = {
        controller: path for _, names, path in _cgroup_lines(cgroup_text) for controller in names.split(",")
    }
    first: dict[str, Path] = {}
    second: list[Path] = []
    for root, point, kind, options in _cgroup_mounts(mountinfo_text):
        if kind == "cgroup2" and "" in own:
            second = _upwards(root, point, own[""])
        for controller in {"memory", "pids"} & options & own.keys():
            first[controller] = _upwards(root, point, own[controller])[0]
    found = []
    if first.keys() == {"memory", "pids"}:
        found.append(CgroupHome(1, first["memory"], first["pids"], swap=False))
    found.extend(CgroupHome(2, folder, folder, swap=False) for folder in second)
    return found


def _cgroup_lines(text: str) -> list[tuple[str, str, str]]:
    return [
        (number, names, path) for number, names, path in (line.split(":", 2) for line in text.splitlines())
    ]


def _cgroup_mounts(text: str) -> list[tuple[str, Path, str, set[str]]]:
    """(root, mount point, kind, options) of each mounted cgroup hierarchy (proc(5), mountinfo)."""
    mounts = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, point = before.split(" ")[3:5]
            mounts.append((root, Path(_unescaped(point)), kind, set(options.split(","))))
    return mounts


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _upwards(root: str, point: Path, own: str) -> list[Path]:
    """The yard's own cgroup below `point`, then its parents. `root` is what is mounted there."""
    inside = own.removeprefix(root.rstrip("/")) if own.startswith(root) else "/"
    folder = point / inside.strip("/")
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(point))]


def find_cgroups(limits: Limits, prefix: str) -> CgroupHome | None:
    """The first place where a cgroup can really be made, limited and joined; None when there is none."""
    try:
        texts = Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
    except OSError:
        return None
    for home in candidates(*texts):
        for swap in (True, False):
            tried = CgroupHome(home.version, home.memory, home.pids, swap)
            if _works(tried, limits, f"{prefix}probe-{os.getpid()}"):
                return tried
    return None


def _works(home: CgroupHome, limits: Limits, name: str) -> bool:
    """Whether a process can be put into cgroups made there; leaves nothing behind."""
    groups = home.of_container(name, limits)
    victim = subprocess.Popen(["/bin/sleep", "60"], env={})
    try:
        for group in groups:
            group.folder.mkdir()
            for file, value in group.values:
                (group.folder / file).write_text(value)
            (group.folder / "cgroup.procs").write_text(str(victim.pid))
    except OSError:
        return False
    finally:
        victim.kill()
        victim.wait()
        # The kernel lets go of a cgroup a moment after its last process.
        patient_until = time.monotonic() + 2
        while any(group.folder.exists() for group in groups) and time.monotonic() < patient_until:
            home.sweep(name)
            time.sleep(0.001)
    return True


def rlimits_of(limits: Limits, *, own_user: bool) -> Mapping[str, int]:
    """The rlimits that stand in for a cgroup, by their names in `resource`.

    RLIMIT_NPROC counts all processes of a user, so it is set only where the container has a user to itself
    (a uid or a user namespace of its own).
    """
    bounds = {"RLIMIT_CORE": 0}
    if limits.memory_bytes is not None:
        bounds["RLIMIT_AS"] = limits.memory_bytes
    if own_user and limits.processes is not None:
        bounds["RLIMIT_NPROC"] = limits.processes
    return bounds


def in_words(limits: Limits, home: CgroupHome | None, *, own_user: bool) -> str:
    """The limits for `status`."""
    memory = "not limited" if limits.memory_bytes is None else f"{limits.memory_bytes / 1024**3:g} GiB"
    processes = "not limited" if limits.processes is None else str(limits.processes)
    if home is not None:
        swap = "" if home.swap else " (swap not counted)"
        return f"cgroup v{home.version}: memory {memory}{swap}, processes {processes}"
    if not own_user:
        processes = "not limited"
    return f"rlimits: address space of a process {memory}, processes {processes}"
