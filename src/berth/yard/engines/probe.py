"""Finding out by trying how containers can be confined on this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from berth.yard.engines.held import interpreter, memory_file
from berth.yard.engines.sandbox import (
    ETC_FILES,
    IMAGES,
    INIT_INSIDE,
    UID_INSIDE,
    Confinement,
    Grants,
    Room,
    bubblewrap_arguments,
    find_bubblewrap,
    unprivileged_uids,
)

PATIENCE_S = 20.0
NAMESPACES = ("user", "mnt", "pid", "ipc", "uts", "net")
LOOK_AROUND = f"""
import json, os
os.listdir({str(IMAGES)!r})
print(json.dumps({{name: os.readlink("/proc/self/ns/" + name) for name in {NAMESPACES!r}}}))
"""


def find_confinement(grants: Grants) -> Confinement:
    """What confines containers here: bubblewrap if it really works, else nothing, with the reason."""
    program = find_bubblewrap()
    if program is None:
        return Confinement(None, why_not="bubblewrap is not installed")
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    uids = unprivileged_uids(os.getuid(), Path("/proc/self/uid_map").read_text(encoding="ascii"))
    confinement = Confinement(program, told.stdout.strip().removeprefix("bubblewrap "), uids)
    problem = why_not(confinement, grants)
    return (
        confinement if problem is None else Confinement(None, why_not=f"bubblewrap does not work: {problem}")
    )


def why_not(confinement: Confinement, grants: Grants) -> str | None:
    """Confine a process that looks around; what is wrong, None when all is as it should be."""
    with tempfile.TemporaryDirectory(prefix="berth-probe-") as made, open(f"{made}/out", "wb") as out:
        folder = Path(made)
        for name, text in {**ETC_FILES, "hosts": "127.0.0.1 localhost\n"}.items():
            (folder / name).write_text(text, encoding="ascii")
        room = Room(None, "model", folder / "hosts", folder)
        with open(f"{made}/errors", "wb") as errors:
            status = _run(
                bubblewrap_arguments(confinement, grants, room), confinement, out.fileno(), errors.fileno()
            )
        if status != 0:
            complaint = (folder / "errors").read_text(encoding="utf-8", errors="replace").strip()
            return (complaint.splitlines() or [f"exit code {status}"])[-1][:300]
        return _missing(json.loads((folder / "out").read_bytes()), grants)


def _missing(inside: Mapping[str, str], grants: Grants) -> str | None:
    wanted = [name for name in NAMESPACES if name != "net" or not grants.network]
    shared = [name for name in wanted if inside[name] == os.readlink(f"/proc/self/ns/{name}")]
    return f"it leaves these namespaces shared: {', '.join(shared)}" if shared else None


def _run(sandbox: list[str], confinement: Confinement, out: int, errors: int) -> int:
    """Run the look around in the sandbox; its exit status."""
    user = {"outside": confinement.uids[-1], "inside": UID_INSIDE} if confinement.uids else None
    argv = [sys.executable, "-I", "-c", LOOK_AROUND]
    config = memory_file({"argv": argv, "env": {}, "cwd": "/", "user": user, "rlimits": {}})
    listener, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # init wants one; nobody calls
    nobody = listener.fileno()
    try:
        process = subprocess.Popen(
            [*sandbox, interpreter(), "-I", "-S", INIT_INSIDE, str(config), str(nobody)],
            stdin=subprocess.PIPE,  # open for as long as the process may live
            stdout=out,
            stderr=errors,
            env={},
            pass_fds=(config, nobody),
        )
    finally:
        os.close(config)
        listener.close()
    with process, other:
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return -1
