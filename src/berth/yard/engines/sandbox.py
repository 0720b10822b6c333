"""How a container is shut in: bubblewrap's arguments, uids of its own, and finding out what works here."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from berth.yard.engines.held import interpreter

INIT = Path(__file__).with_name("init.py")
IMAGES = Path(__file__).with_name("images")
INIT_INSIDE = "/run/berth/init.py"
MODEL_INSIDE = "/opt/ml/model"
UID_INSIDE = 1000
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
ETC_WITH_NETWORK = ("/etc/hosts", "/etc/resolv.conf", "/etc/ssl", "/etc/ca-certificates", "/etc/pki")
# The made-up part of a container's /etc: who it is.
ETC_FILES = {
    "passwd": f"root:x:0:0::/:/sbin/nologin\nmodel:x:{UID_INSIDE}:{UID_INSIDE}::/tmp:/sbin/nologin\n",
    "group": f"root:x:0:\nmodel:x:{UID_INSIDE}:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
TMP_BYTES, SHM_BYTES = 1024**3, 256 * 1024**2

# Users beyond what distributions hand out to people, services, subordinate ids (login.defs: up to
# 600,100,000) and systemd's containers (up to 1,879,048,191: systemd.io/UIDS-GIDS), and below 2^31.
FIRST_UID, UIDS = 2_000_000_000, 65_536


@dataclass(frozen=True, slots=True)
class Grants:
    """What the fleet file lets containers have beyond their own: the yard's network (and with it the
    machine's loopback), more folders to read, devices such as /dev/nvidia0."""

    network: bool = False
    readable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Confinement:
    """What shuts containers in.

    `bubblewrap` is the path of the program, None when containers run unconfined, and then `why_not` says
    why. `version` is bubblewrap's. `uids` are those that containers get, None for the yard's own.
    """

    bubblewrap: str | None
    version: str = ""
    uids: range | None = None
    why_not: str = ""

    def in_words(self) -> str:
        """The confinement for `status`."""
        user = f"uid {self.uids.start} and up" if self.uids else f"uid of the yard ({os.getuid()})"
        if self.bubblewrap is None:
            return f"none ({self.why_not}): containers run as plain processes, {user}"
        return f"bubblewrap {self.version}, own user, mount, pid, ipc, uts and network namespaces, {user}"


def unprivileged_uids(uid: int, uid_map: str) -> range | None:
    """The uids for containers, from the yard's uid and the text of /proc/self/uid_map.

    None for a yard that is not root (bubblewrap then maps its user) and where no spare uids are mapped.
    A yard in a container with few mapped uids takes the upper half of the largest mapped span.
    """
    if uid != 0:
        return None
    spans = [(int(first), int(count)) for first, _, count in (line.split() for line in uid_map.splitlines())]
    if any(first <= FIRST_UID and first + count >= FIRST_UID + UIDS for first, count in spans):
        return range(FIRST_UID, FIRST_UID + UIDS)
    first, count = max(spans, key=lambda span: span[1], default=(0, 0))
    if count < 1024:
        return None
    return range(first + count // 2, first + count)


@dataclass(frozen=True, slots=True)
class ClaimedUid:
    """A uid that no other container on this machine has; freed when the last copy of `lock` is closed."""

    uid: int
    lock: socket.socket


def claim_uid(uids: Iterable[int]) -> ClaimedUid:
    """The first free uid of `uids`. Raises OSError when all are taken.

    The claim is an abstract unix socket: yards that know nothing of each other see it, and the kernel frees
    it when its holder (the container's supervisor) dies. Nothing on disk is ever owned by such a uid.
    """
    for uid in uids:
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            pwd.getpwuid(uid)
        except KeyError:
            try:
                lock.bind(f"\0berth-container-uid-{uid}")
            except OSError:
                lock.close()  # somebody's container has it
                continue
            return ClaimedUid(uid, lock)
        lock.close()
    raise OSError("every uid for containers is taken")


@dataclass(frozen=True, slots=True)
class Room:
    """What one container finds inside: its model (None: an empty folder), its host name and hosts file.

    `etc` is where the files of `ETC_FILES` lie. `hidden` are folders of the yard's, covered in case they
    lie below something that is shown.
    """

    model_dir: Path | None
    hostname: str
    hosts: Path
    etc: Path
    hidden: Sequence[Path] = ()


def bubblewrap_arguments(
    confinement: Confinement, grants: Grants, room: Room, images: Path = IMAGES
) -> list[str]:
    """The command line of bubblewrap up to `--`. Purely from its arguments and what lies on this disk."""
    assert confinement.bubblewrap is not None
    shown = [*interpreter_paths(sys.executable), images, *grants.readable]
    model = [] if room.model_dir is None else _bound("--ro-bind", room.model_dir, MODEL_INSIDE)
    return [
        confinement.bubblewrap,
        "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        *([] if grants.network else ["--unshare-net"]),
        "--as-pid-1", "--die-with-parent", "--new-session", "--clearenv", "--hostname", room.hostname,
        *_user(confinement),
        *_system(),
        "--proc", "/proc", "--dev", "/dev",
        *_writable(TMP_BYTES, "/tmp"), *_writable(SHM_BYTES, "/dev/shm"),  # noqa: S108 - inside, its own
        *_etc(room, grants),
        *_shown(shown, "--ro-bind"),
        *_shown(grants.devices, "--dev-bind"),
        *_covered(room.hidden, shown),
        *_bound("--ro-bind", INIT, INIT_INSIDE),
        *_folder(MODEL_INSIDE), *model,
        "--remount-ro", "/dev", "--remount-ro", "/",
        "--",
    ]  # fmt: skip


def _bound(how: str, source: Path | str, inside: str) -> list[str]:
    """Show `source` as `inside`, below folders that every uid may pass (bubblewrap's own are 0700)."""
    return [*_folder(os.path.dirname(inside)), how, str(source), inside]


def _folder(inside: str) -> list[str]:
    above = [str(parent) for parent in reversed(Path(inside).parents)][1:]
    return [
        word for folder in (*above, inside) for word in ("--perms", "0755", "--dir", folder) if inside != "/"
    ]


def _user(confinement: Confinement) -> list[str]:
    """A root yard: the mounts are made as root, then `init.py` leaves root. Else bubblewrap maps its user."""
    if confinement.uids is None:
        return ["--unshare-user", "--uid", str(UID_INSIDE), "--gid", str(UID_INSIDE), "--cap-drop", "ALL"]
    keep = ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_ADMIN")
    return ["--cap-drop", "ALL", *(word for name in keep for word in ("--cap-add", name))]


def _system() -> list[str]:
    words: list[str] = []
    for folder in SYSTEM:
        if Path(folder).is_symlink():  # Debian's merged /usr
            words += ["--symlink", str(Path(folder).readlink()), folder]
        elif Path(folder).is_dir():
            words += ["--ro-bind", folder, folder]
    return words


def _writable(size: int, folder: str) -> list[str]:
    return ["--perms", "1777", "--size", str(size), "--tmpfs", folder]


def _etc(room: Room, grants: Grants) -> list[str]:
    words: list[str] = []
    for path in (*ETC, *(ETC_WITH_NETWORK if grants.network else ())):
        words += _bound("--ro-bind-try", path, path)
    for name in ETC_FILES:
        words += _bound("--ro-bind", room.etc / name, f"/etc/{name}")
    if not grants.network:
        words += _bound("--ro-bind", room.hosts, "/etc/hosts")
    return words


def interpreter_paths(executable: str) -> list[Path]:
    """What a process needs to see for `{python}` and `init.py` to start: prefixes, and links on the way."""
    prefixes = (sys.prefix, sys.base_prefix)
    paths = [
        *map(Path, prefixes),
        *(Path(os.path.realpath(prefix)) for prefix in prefixes),
        Path(interpreter()),
    ]
    hop = Path(executable)
    while hop.is_symlink():
        paths.append(hop)
        hop = Path(os.path.normpath(hop.parent / hop.readlink()))
    return [*paths, hop]


def _shown(paths: Iterable[Path], how: str) -> list[str]:
    """Bind each path to where it is, but not again what a folder shown before holds already."""
    shown = [Path(folder) for folder in SYSTEM]
    words: list[str] = []
    for path in sorted(set(paths)):
        if path == Path("/") or any(path.is_relative_to(folder) for folder in shown):
            continue
        words += _bound(how, path, str(path))
        shown.append(path)
    return words


def _covered(hidden: Iterable[Path], shown: Sequence[Path]) -> list[str]:
    words: list[str] = []
    for folder in hidden:
        if folder.exists() and any(folder.is_relative_to(path) for path in (*map(Path, SYSTEM), *shown)):
            words += ["--tmpfs", str(folder)]
    return words


def find_bubblewrap() -> str | None:
    """The path of the program, None when it is not installed."""
    return shutil.which("bwrap")
