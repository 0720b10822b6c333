"""Holds one process for the yard: starts it, keeps its log, ends it and all that it started.

Run by file path, as `python -I -S supervisor.py CONTROL_FD CONFIG_FD NAME` (NAME only shows in `ps`), on
nothing but the standard library. It is the subreaper of all that it starts: whatever a process does to get
away (fork twice, new session), it ends up as a child of its supervisor, who ends it.

CONFIG_FD holds one JSON object, written by `held.py`:

- `argv`, `env`: what to run. `pass_fds`: descriptors that it inherits, by the same numbers;
  `keep_fds`: what only the supervisor keeps open while the process lives.
- `lifeline`: true when standard input of the process is a pipe on which `t` asks it to end and whose end
  means that the supervisor is gone (`init.py`); false when SIGTERM asks it to end.
- `log`, `log_limit`: where its output goes; at most `log_limit` bytes in the file and one older file.
- `cgroups`: folders to make, with the values to write there. `oom_file`: which counts kills for memory.
- `yard_pid`: whose end ends everything.

CONTROL_FD is a unix socket of packets. The yard says `stop SECONDS` (ask, then kill after that time) or
`kill`; its end means that the yard is dead, and then nothing is left over. The supervisor says one JSON
object, at the very end, when all is gone: `exit` (as of a shell), `out_of_memory`, `problem` (text or null).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)
YARD_GONE = signal.SIGUSR1
CGROUP_PATIENCE_S = 5.0


class Log:
    """What the process prints: a file of half the limit, and one older file of the same size."""

    def __init__(self, path: str, limit: int) -> None:
        self.path, self.half = path, max(1, limit // 2)
        self.file = self.opened()
        self.size = os.fstat(self.file).st_size

    def opened(self) -> int:
        """The file, ready to append to. Raises OSError."""
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, data: bytes) -> None:
        """Append `data`, which is at most 64 KiB. Raises OSError."""
        if self.size + len(data) > self.half:
            os.replace(self.path, self.path + ".1")
            os.close(self.file)
            self.file, self.size = self.opened(), 0
        os.write(self.file, data)
        self.size += len(data)


class Supervisor:
    """One held process, from its start until nothing of it is left."""

    def __init__(self, control: socket.socket, config: dict[str, Any]) -> None:
        self.control, self.config = control, config
        self.child = 0
        self.lifeline: int | None = None
        self.status: int | None = None
        self.kill_at: float | None = None
        self.problem: str | None = None

    def run(self) -> None:
        """Start the process, hold it, clean up, say how it ended."""
        answer: dict[str, Any] = {"exit": 126, "out_of_memory": False, "problem": None}
        try:
            log = Log(self.config["log"], self.config["log_limit"])
            make_cgroups(self.config["cgroups"])
            output = self.start()
        except OSError as problem:
            remove_cgroups(self.config["cgroups"])
            answer["problem"] = str(problem)
        else:
            self.hold(log, output)
            self.end_all()
            self.drain(log, output)
            answer["out_of_memory"] = killed_for_memory(self.config["oom_file"])
            remove_cgroups(self.config["cgroups"])
            answer |= {"exit": self.status, "problem": self.problem}
        # The yard may be gone: then nobody wants to know.
        with contextlib.suppress(OSError):
            self.control.send(json.dumps(answer).encode())

    def start(self) -> int:
        """Start the process; the reading end of its output."""
        output, writer = os.pipe()
        reader, self.lifeline = os.pipe()
        if not self.config["lifeline"]:
            os.close(self.lifeline)
            self.lifeline = None
        self.child = os.fork()
        if self.child == 0:
            become(self.config, reader, writer)
        for ours in (reader, writer, *self.config["pass_fds"]):
            os.close(ours)
        os.set_blocking(output, False)
        return output

    def hold(self, log: Log, output: int) -> None:
        """Until the process has ended: keep its log, follow the yard's orders, reap what is left to us."""
        wakeup, alarm = socket.socketpair()
        for end in (wakeup, alarm):
            end.setblocking(False)
        signal.set_wakeup_fd(alarm.fileno(), warn_on_full_buffer=False)
        poll = select.poll()
        for source in (wakeup.fileno(), self.control.fileno(), output):
            poll.register(source, select.POLLIN)
        self.reap()  # what ended before the alarm was set
        while self.status is None:
            ready = {source for source, _ in poll.poll(self.patience_ms())}
            if wakeup.fileno() in ready:
                wakeup.recv(4096)
            if self.control.fileno() in ready and not self.obey():
                poll.unregister(self.control.fileno())
            if output in ready and not self.copy(log, output):
                poll.unregister(output)
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                self.kill()
            if os.getppid() != self.config["yard_pid"]:
                self.kill()
            self.reap()

    def patience_ms(self) -> int | None:
        """How long the next poll may wait."""
        if self.kill_at is None:
            return None
        return max(0, int((self.kill_at - time.monotonic()) * 1000)) + 1

    def obey(self) -> bool:
        """One order of the yard; False when the yard is gone."""
        try:
            order = self.control.recv(64).decode("ascii").split()
        except ConnectionError:
            order = []
        if order[:1] == ["stop"]:
            self.ask_to_end()
            self.kill_at = time.monotonic() + float(order[1])
        else:
            self.kill()
        return bool(order)

    def ask_to_end(self) -> None:
        """What SIGTERM is to a container."""
        # It may just have ended: then there is nobody to ask.
        with contextlib.suppress(ProcessLookupError, BrokenPipeError):
            if self.lifeline is None:
                os.kill(self.child, signal.SIGTERM)
            else:
                os.write(self.lifeline, b"t")

    def kill(self) -> None:
        """Kill the process; what it started is ended by `end_all`."""
        self.kill_at = None
        if self.status is None:
            os.kill(self.child, signal.SIGKILL)

    def reap(self) -> None:
        """Collect ended children."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self.note(pid, status)

    def note(self, pid: int, status: int) -> None:
        """Remember the exit status if it is that of the process itself."""
        if pid == self.child:
            code = os.waitstatus_to_exitcode(status)
            self.status = code if code >= 0 else 128 - code

    def end_all(self) -> None:
        """Kill whatever the process left behind, until we have no child."""
        if self.lifeline is not None:
            os.close(self.lifeline)
        while True:
            for pid in children_of(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                # Every process below us hangs on some child of ours: while one lives, one was just killed.
                self.note(*os.waitpid(-1, 0))
            except ChildProcessError:
                return

    def copy(self, log: Log, output: int) -> bool:
        """Move what the process printed into the log; False at its end."""
        try:
            data = os.read(output, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        try:
            log.write(data)
        except OSError as problem:
            # A full disk must not block the process on its own output; the yard is told at the end.
            self.problem = f"its log could not be written: {problem}"
        return True

    def drain(self, log: Log, output: int) -> None:
        """The last words, once nobody writes any more."""
        while self.copy(log, output):
            if not select.select([output], [], [], 0)[0]:
                return


def become(config: dict[str, Any], stdin: int, output: int) -> NoReturn:
    """In the child: join the cgroups, take the descriptors, become the command."""
    try:
        os.setsid()
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for cgroup in config["cgroups"]:
            write_text(os.path.join(cgroup["folder"], "cgroup.procs"), "0")
        os.dup2(stdin if config["lifeline"] else os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in (
            signal.SIGINT,
            signal.SIGHUP,
            signal.SIGPIPE,
            signal.SIGCHLD,
            signal.SIGTERM,
            YARD_GONE,
        ):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(config["argv"][0], config["argv"], config["env"])  # noqa: S606 - no shell is wanted
    except (OSError, ValueError) as problem:
        os.write(2, f"cannot start {config['argv'][0]!r}: {problem}\n".encode())
    os._exit(127)


def children_of(pid: int) -> list[int]:
    """The pids of the children of `pid`, ended ones that nobody collected included."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        # It may be gone between the listing and the look.
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            # pid (comm) state ppid ...; comm may hold anything, so split after its last parenthesis.
            if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                found.append(int(name))
    return found


def write_text(path: str, text: str) -> None:
    """Write a file of the kernel's. Raises OSError that names the path."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode("ascii"))
    except OSError as problem:
        raise OSError(problem.errno, f"{path}: {problem.strerror}") from problem
    finally:
        os.close(descriptor)


def make_cgroups(cgroups: list[dict[str, Any]]) -> None:
    """Make each folder and write its limits. Raises OSError."""
    for cgroup in cgroups:
        with contextlib.suppress(FileExistsError):
            os.mkdir(cgroup["folder"])
        for name, value in cgroup["values"]:
            write_text(os.path.join(cgroup["folder"], name), value)


def remove_cgroups(cgroups: list[dict[str, Any]]) -> None:
    """Remove each folder; the kernel may need a moment after the last process has gone."""
    patient_until = time.monotonic() + CGROUP_PATIENCE_S
    for cgroup in cgroups:
        while os.path.isdir(cgroup["folder"]):
            try:
                os.rmdir(cgroup["folder"])
            except OSError:
                if time.monotonic() > patient_until:
                    return  # swept at the next start of the yard (limits.py)
                time.sleep(0.005)


def killed_for_memory(path: str | None) -> bool:
    """Whether the kernel killed something in the container's cgroup for want of memory."""
    if path is None:
        return False
    try:
        with open(path, encoding="ascii") as file:
            counts = dict(line.split() for line in file)
    except OSError:
        return False
    return int(counts.get("oom_kill", "0")) > 0


def main(control_fd: int, config_fd: int) -> None:
    """Hold what the configuration says."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Linux sends this when the *thread* that started us ends. That alone ends nothing: the handler only
    # wakes the loop, which looks whether the yard is still our parent.
    for number in (YARD_GONE, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    LIBC.prctl(PR_SET_PDEATHSIG, YARD_GONE, 0, 0, 0)
    # Signals of a terminal are for the yard, which then tells us.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with os.fdopen(config_fd, "rb") as file:
        config = json.load(file)
    for ours in (control_fd, *config["keep_fds"]):
        os.set_inheritable(ours, False)
    Supervisor(socket.socket(fileno=control_fd), config).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
