"""Finding out by trying how containers can be confined on this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from berth.yard.engines.held import interpreter, memory_file
from berth.yard.engines.sandbox import (
    ETC_FILES,
    IMAGES,
    INIT,
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
    """What confines containers here: bubblewrap if it really works, else nothing, with the reason.

    Without bubblewrap a yard that is root still gives each container a uid of its own, if such a uid can run
    this Python (it cannot where the interpreter lies below a folder that is closed to others).
    """
    uids = unprivileged_uids(os.getuid(), Path("/proc/self/uid_map").read_text(encoding="ascii"))
    program = find_bubblewrap()
    if program is None:
        reason = "bubblewrap is not installed"
    else:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        confinement = Confinement(program, told.stdout.strip().removeprefix("bubblewrap "), uids)
        problem = why_not(confinement, grants)
        if problem is None:
            return confinement
        reason = f"bubblewrap does not work: {problem}"
    unconfined = Confinement(None, uids=uids, why_not=reason)
    return (
        unconfined if uids is None or why_not(unconfined, grants) is None else replace(unconfined, uids=None)
    )


def why_not(confinement: Confinement, grants: Grants) -> str | None:
    """Start a process that looks around, as a container starts; what is wrong, None when all is well."""
    with tempfile.TemporaryDirectory(prefix="berth-probe-") as made:
        folder = Path(made)
        for name, text in {**ETC_FILES, "hosts": "127.0.0.1 localhost\n"}.items():
            (folder / name).write_text(text, encoding="ascii")
            (folder / name).chmod(0o644)
        init = [interpreter(), "-I", "-S", str(INIT)]
        if confinement.bubblewrap is not None:
            room = Room(None, "model", folder / "hosts", folder)
            init = [*bubblewrap_arguments(confinement, grants, room), *init[:-1], INIT_INSIDE]
        with (folder / "out").open("wb") as out, (folder / "errors").open("wb") as errors:
            status = _run(init, confinement, out.fileno(), errors.fileno())
        if status != 0:
            complaint = (folder / "errors").read_text(encoding="utf-8", errors="replace").strip()
            return (complaint.splitlines() or [f"exit code {status}"])[-1][:300]
        inside = json.loads((folder / "out").read_bytes())
    return None if confinement.bubblewrap is None else _missing(inside, grants)


def _missing(inside: Mapping[str, str], grants: Grants) -> str | None:
    wanted = [name for name in NAMESPACES if name != "net" or not grants.network]
    shared = [name for name in wanted if inside[name] == os.readlink(f"/proc/self/ns/{name}")]
    return f"it leaves these namespaces shared: {', '.join(shared)}" if shared else None


def _run(init: list[str], confinement: Confinement, out: int, errors: int) -> int:
    """Run the look around under `init`; its exit status."""
    user = None
    if confinement.uids is not None:
        user = {"outside": confinement.uids[-1], "inside": UID_INSIDE if confinement.bubblewrap else None}
    argv = [sys.executable, "-I", "-c", LOOK_AROUND]
    config = memory_file({"argv": argv, "env": {}, "cwd": "/", "user": user, "rlimits": {}})
    listener, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # init wants one; nobody calls
    nobody = listener.fileno()
    try:
        process = subprocess.Popen(
            [*init, str(config), str(nobody)],
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
