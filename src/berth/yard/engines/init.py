"""The first process of a container: takes its user, starts the container's command, hands out sockets.

Run by file path, as `python -I -S init.py CONFIG_FD LISTENER_FD`, so that it starts in some 15 ms and needs
nothing but the standard library. Inside bubblewrap it is process 1 of its own pid namespace: when it ends,
the kernel ends everything in there. It reads three things:

- CONFIG_FD: one JSON object, written by `launch.py`: `argv`, `env`, `cwd`, `user`, `rlimits`.
- LISTENER_FD: a unix socket. Who connects gets one fresh, unconnected TCP socket of this network namespace
  (SCM_RIGHTS) and connects it to the container's port by itself. So no byte of a request passes through here.
- standard input: the supervisor's lifeline. The byte `t` means SIGTERM to the container; its end means that
  the supervisor is gone, and then so is the container.

Its exit status is the container's: the exit code, or 128 and the number of the signal.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
from typing import Any, NoReturn

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
LAST_CAPABILITY = 63
NO_COMMAND = 127  # what shells answer when a command cannot be started

LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Linux's prctl for options of one argument. Raises OSError."""
    if LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")


def become(outside: int, inside: int | None) -> None:
    """Leave root for the unprivileged uid `outside`, seen as uid `inside` in a user namespace of its own.

    None for `inside` means no user namespace. The namespace is made while still root: some distributions
    forbid it to unprivileged processes. Its map must then be written by a process that stayed outside.
    """
    os.setgroups([])
    if inside is not None:
        enter_user_namespace(outside, inside)
    seen = outside if inside is None else inside
    os.setresgid(seen, seen, seen)
    os.setresuid(seen, seen, seen)


def enter_user_namespace(outside: int, inside: int) -> None:
    """Make a user namespace that knows one uid and one gid: `outside`, called `inside` in there."""
    ours = os.getpid()
    go_read, go_write = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(go_write)
        os._exit(write_maps(go_read, ours, f"{inside} {outside} 1\n"))
    os.close(go_read)
    if LIBC.unshare(CLONE_NEWUSER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare(CLONE_NEWUSER): {os.strerror(number)}")
    os.write(go_write, b"g")
    os.close(go_write)
    _, status = os.waitpid(helper, 0)
    if status != 0:
        raise OSError("the uid map of the container's user namespace could not be written")


def write_maps(go: int, pid: int, line: str) -> int:
    """In the helper: once `go` says so, write the maps of process `pid`; the helper's exit code."""
    if os.read(go, 1) != b"g":
        return 1
    for name, text in (("uid_map", line), ("setgroups", "deny"), ("gid_map", line)):
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
            file.write(text)
    return 0


def launch(config: dict[str, Any]) -> int:
    """Start the container's command; its pid."""
    pid = os.fork()
    if pid == 0:
        run_command(config)
    return pid


def run_command(config: dict[str, Any]) -> NoReturn:
    """In the child: set the limits, drop what is left of privilege, become the command."""
    try:
        prctl(PR_SET_DUMPABLE, 1)  # inherited from init, and in the way of writing to one's own /proc files
        # The kernel, short of memory, shall take the container's command before its init.
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(config["cwd"])
        for name, limit in config["rlimits"].items():
            resource.setrlimit(getattr(resource, name), (limit, limit))
        if config["user"] is not None and config["user"]["inside"] is not None:
            drop_bounding_set()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvpe(config["argv"][0], config["argv"], config["env"])  # noqa: S606 - no shell is wanted
    except (OSError, ValueError, TypeError) as problem:
        os.write(2, f"cannot start {config['argv'][0]!r}: {problem}\n".encode())
    os._exit(NO_COMMAND)


def drop_bounding_set() -> None:
    """Give up every capability for good, also those of a user namespace that the command may make."""
    for capability in range(LAST_CAPABILITY + 1):
        # The kernel answers EINVAL beyond the last capability that it knows.
        if LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            return


def hand_out_socket(listener: socket.socket) -> None:
    """Give whoever connected a TCP socket that lives in this network namespace."""
    # One caller that went away, or one moment without descriptors, is that caller's loss and not ours.
    with contextlib.suppress(OSError):
        caller, _ = listener.accept()
        with caller, socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
            socket.send_fds(caller, [b"s"], [line.fileno()])


def reap(command: int) -> int | None:
    """Collect ended processes; the exit status of the container's command once it has ended, else None."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == 0:
            return None
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def watch(command: int, listener: socket.socket, wakeup: socket.socket) -> int:
    """Serve until the command ends or the supervisor is gone; the exit status."""
    poll = select.poll()
    for source in (0, listener.fileno(), wakeup.fileno()):
        poll.register(source, select.POLLIN)
    while True:
        ready = {source for source, _ in poll.poll()}
        if wakeup.fileno() in ready:
            wakeup.recv(4096)
        ended = reap(command)
        if ended is not None:
            return ended
        if listener.fileno() in ready:
            hand_out_socket(listener)
        if 0 in ready:
            if os.read(0, 1) == b"":
                os.kill(command, signal.SIGKILL)
                return 128 + signal.SIGKILL
            os.kill(command, signal.SIGTERM)


def main(config_fd: int, listener_fd: int) -> int:
    """Be the container's first process; the exit status."""
    for inherited in (config_fd, listener_fd):
        os.set_inheritable(inherited, False)
    with os.fdopen(config_fd, "rb") as file:
        config = json.load(file)
    listener = socket.socket(fileno=listener_fd)
    listener.setblocking(False)
    wakeup, alarm = socket.socketpair()
    alarm.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(alarm.fileno(), warn_on_full_buffer=False)
    if config["user"] is not None:
        become(**config["user"])
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    # A change of user clears it, so it is set after `become`: no init outlives what holds it.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The command runs under the same uid: it shall not trace its own init or read its memory.
    prctl(PR_SET_DUMPABLE, 0)
    return watch(launch(config), listener, wakeup)


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), int(sys.argv[2])))
