"""A process that a supervisor holds for the yard: start it, ask it to end, learn how it ended."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from berth.yard.engines.limits import Cgroup

SUPERVISOR = Path(__file__).with_name("supervisor.py")
LOG_LIMIT_BYTES = 2 * 1024 * 1024


def interpreter() -> str:
    """The Python of supervisor and init: the real file, without the virtual environment around it."""
    return os.path.realpath(sys.executable)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a held process ended. `status` is as a shell tells it: the exit code, or 128 and the signal.

    `out_of_memory` is true when the kernel killed something in its cgroup for that; `problem` is what the
    supervisor has to say (it could not start the process, or not write its log), None when nothing.
    """

    status: int
    out_of_memory: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """What to hold. `log` grows to `LOG_LIMIT_BYTES` over two files.

    `pass_fds` are inherited under the same numbers; `keep_fds` are held by the supervisor while the process
    lives and by nobody else; `lifeline` says that the process is an `init.py` and follows its standard input.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    log: Path
    pass_fds: Sequence[int] = ()
    keep_fds: Sequence[int] = ()
    lifeline: bool = False
    cgroups: Sequence[Cgroup] = field(default_factory=tuple)


class Held:
    """One held process. It dies with the yard, however the yard dies; any thread may start it."""

    def __init__(self, command: Command) -> None:
        """Start the supervisor. Raises OSError when not even that can be started."""
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config = memory_file(_config(command))
        try:
            with command.log.open("ab") as complaints:
                self.supervisor = subprocess.Popen(
                    [
                        interpreter(),
                        "-I",
                        "-S",
                        str(SUPERVISOR),
                        str(theirs.fileno()),
                        str(config),
                        command.name,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=complaints,
                    env={},
                    cwd="/",
                    pass_fds=[theirs.fileno(), config, *command.pass_fds, *command.keep_fds],
                    start_new_session=True,  # Ctrl-C in the yard's terminal is for the yard
                )
        except BaseException:
            self.control.close()
            raise
        finally:
            theirs.close()
            os.close(config)

    def stop(self, grace_s: float) -> None:
        """Ask the process to end (SIGTERM) and have it killed after `grace_s` seconds."""
        self._say(f"stop {grace_s}")

    def kill(self) -> None:
        """Have the process killed now."""
        self._say("kill")

    def alive(self) -> bool:
        """Whether its supervisor still holds it."""
        return self.supervisor.poll() is None

    def wait(self) -> Ended:
        """Wait until nothing of the process is left."""
        self.control.setblocking(True)
        return self._ended(self.control.recv(65536))

    async def ended(self) -> Ended:
        """As `wait`, in the running event loop; call it once."""
        self.control.setblocking(False)
        return self._ended(await asyncio.get_running_loop().sock_recv(self.control, 65536))

    def _ended(self, answer: bytes) -> Ended:
        self.control.close()
        self.supervisor.wait()
        if not answer:
            return Ended(128 + 9, problem="its supervisor was killed")
        told = json.loads(answer)
        return Ended(told["exit"], told["out_of_memory"], told["problem"])

    def _say(self, order: str) -> None:
        try:
            self.control.send(order.encode("ascii"))
        except OSError:
            # The process has ended: the answer is on its way or was read, which closed the socket.
            return


def memory_file(content: Mapping[str, Any]) -> int:
    """A descriptor that reads `content` as JSON: no secret on a command line, no file to clean up."""
    descriptor = os.memfd_create("berth", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(json.dumps(content).encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _config(command: Command) -> dict[str, Any]:
    return {
        "argv": list(command.argv),
        "env": dict(command.env),
        "log": str(command.log),
        "log_limit": LOG_LIMIT_BYTES,
        "pass_fds": list(command.pass_fds),
        "keep_fds": list(command.keep_fds),
        "lifeline": command.lifeline,
        "cgroups": [{"folder": str(group.folder), "values": list(group.values)} for group in command.cgroups],
        "oom_file": next((str(group.oom_file) for group in command.cgroups if group.oom_file), None),
        "yard_pid": os.getpid(),
    }
