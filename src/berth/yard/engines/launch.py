"""From a container as a value to the process that is held for it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.yard.engines.contract import PORT, Address
from berth.yard.engines.engine import Container
from berth.yard.engines.held import Command, Held, interpreter, memory_file
from berth.yard.engines.limits import CgroupHome, Limits, find_cgroups, in_words, prefix_of, rlimits_of
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
    claim_uid,
)

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


FLEET_FILE_IMAGES = "[engine.images]"  # where the fleet file maps image names to commands


class CannotStart(Exception):
    """The container cannot even be tried; the message is for FailureReason."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A container's process and where to reach it."""

    held: Held
    address: Address
    log: Path


class ProcessLauncher:
    """Starts containers, all in the same manner. `folder` is the engine's own, made with mode 0700.

    `images` maps an image name to its command; in it `{python}` is this Python and `{images}` the folder of
    the images that are shipped. `hidden` are folders that no container may see, even if it is shown a parent.
    """

    def __init__(
        self,
        folder: Path,
        images: Mapping[str, Sequence[str]],
        confinement: Confinement,
        *,
        limits: Limits | None = None,
        grants: Grants | None = None,
        hidden: Sequence[Path] = (),
        use_cgroups: bool = True,
    ) -> None:
        """Prepare `folder`, and find out whether cgroups can be made. Raises OSError."""
        self.folder = folder.resolve()
        self.confinement = confinement
        self._images = {name: tuple(command) for name, command in images.items()}
        self._limits, self._grants = limits or Limits(), grants or Grants()
        self._hidden = (self.folder, *(path.resolve() for path in hidden))
        self._prefix = prefix_of(self.folder)
        self._prepare()
        self._cgroups: CgroupHome | None = find_cgroups(self._limits, self._prefix) if use_cgroups else None
        if self._cgroups is not None:
            self._cgroups.sweep(self._prefix)
        self._remove_copies("")
        self._sockets = os.open(self.folder / "run", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def _prepare(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("run", "logs", "etc"):
            (self.folder / name).mkdir(mode=0o755, exist_ok=True)
        for name, text in ETC_FILES.items():
            _write_readable(self.folder / "etc" / name, text)

    def close(self) -> None:
        """Give back the descriptor that addresses go through; nothing may be started or reached any more."""
        os.close(self._sockets)

    def log_of(self, key: str) -> Path:
        """Where the container `key` prints to."""
        return self.folder / "logs" / f"{key}.log"

    def describe(self) -> Mapping[str, str]:
        """Confinement, limits and network in words."""
        own_network = self.confinement.bubblewrap is not None and not self._grants.network
        return {
            "confinement": self.confinement.in_words(),
            "limits": in_words(self._limits, self._cgroups, own_user=self._own_user),
            "network": "none but the container's own loopback" if own_network else "that of the machine",
        }

    @property
    def _own_user(self) -> bool:
        return self.confinement.bubblewrap is not None or self.confinement.uids is not None

    def launch(self, container: Container) -> Launched:
        """Start the process of `container`. Raises CannotStart, OSError."""
        argv = self._command(container)
        name = hashlib.sha256(container.key.encode()).hexdigest()[:16]
        with ExitStack() as stack:
            user, claim = self._user(stack)
            model_dir = self._reachable(container.model_dir, user, name)
            address = Address(self._sockets, f"{name}.sock", self._port())
            listener = stack.enter_context(_listener(address))
            config = memory_file(
                {
                    "argv": argv,
                    "env": self._environment(container, model_dir, address.port),
                    "cwd": "/tmp",  # noqa: S108 - inside; and outside a place where anybody may write
                    "user": user,
                    "rlimits": {} if self._cgroups else rlimits_of(self._limits, own_user=self._own_user),
                }
            )
            stack.callback(os.close, config)
            inherited = (config, listener.fileno())
            command = Command(
                name=container.key,
                argv=[*self._init(container, name), *map(str, inherited), *self._mark(container)],
                env={},
                log=self.log_of(container.key),
                pass_fds=inherited,
                keep_fds=claim,
                lifeline=True,
                cgroups=self._cgroups.of_container(self._prefix + name, self._limits)
                if self._cgroups
                else (),
            )
            return Launched(Held(command), address, command.log)

    def forget(self, launched: Launched) -> None:
        """Remove what the ended container leaves in the folder: its socket and hosts file, not its log."""
        stem = launched.address.name.removesuffix(".sock")
        for name in (launched.address.name, f"{stem}.hosts"):
            (self.folder / "run" / name).unlink(missing_ok=True)
        self._remove_copies(stem)
        if self._cgroups is not None:
            self._cgroups.sweep(self._prefix + stem)  # there is none but when the supervisor was killed

    def _reachable(self, model_dir: Path | None, user: dict[str, Any] | None, name: str) -> Path | None:
        """The model where the container can read it.

        An unprivileged uid without a mount namespace cannot pass the yard's closed folders: it gets a copy of
        its own among the temporary files.
        """
        if model_dir is None or user is None or self.confinement.bubblewrap is not None:
            return model_dir
        copy = Path(tempfile.mkdtemp(prefix=f"{self._prefix}{name}-")) / "model"
        shutil.copytree(model_dir, copy, symlinks=True)
        os.chown(copy.parent, user["outside"], user["outside"])
        return copy

    def _remove_copies(self, name: str) -> None:
        """Remove the copies of models made for `name`, or, when it is empty, those of all containers."""
        if self.confinement.bubblewrap is None and self.confinement.uids is not None:
            for copy in Path(tempfile.gettempdir()).glob(f"{self._prefix}{name}*"):
                shutil.rmtree(copy)

    def _command(self, container: Container) -> list[str]:
        command = self._images.get(container.image)
        if command is None:
            known = ", ".join(sorted(self._images)) or "none"
            raise CannotStart(
                f"This yard has no image {container.image!r}. Map it to a command in the fleet file, in "
                f"{FLEET_FILE_IMAGES}. Known: {known}."
            )
        places = {"{python}": sys.executable, "{images}": str(IMAGES)}
        return [*(_filled(word, places) for word in command), "serve"]

    def _environment(self, container: Container, model_dir: Path | None, port: int) -> dict[str, str]:
        environment = {"PATH": PATH, "HOME": "/tmp", "LANG": "C.UTF-8", **container.environment}  # noqa: S108
        if port != PORT:
            environment["SAGEMAKER_BIND_TO_PORT"] = str(port)
        if self.confinement.bubblewrap is None and model_dir is not None:
            environment["SM_MODEL_DIR"] = str(model_dir)
        return environment

    def _port(self) -> int:
        """8080 in a network of its own, else a port that is free on the machine's loopback now."""
        if self.confinement.bubblewrap is not None and not self._grants.network:
            return PORT
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as free:
            free.bind(("127.0.0.1", 0))
            return int(free.getsockname()[1])

    def _user(self, stack: ExitStack) -> tuple[dict[str, Any] | None, tuple[int, ...]]:
        """The user that init becomes, and the descriptors that keep its uid claimed."""
        if self.confinement.uids is None:
            return None, ()
        claimed = claim_uid(self.confinement.uids)
        stack.enter_context(claimed.lock)
        inside = UID_INSIDE if self.confinement.bubblewrap else None
        return {"outside": claimed.uid, "inside": inside}, (claimed.lock.fileno(),)

    def _mark(self, container: Container) -> list[str]:
        """What makes init known in `ps`; not inside, where only the container would read it."""
        return [container.key] if self.confinement.bubblewrap is None else []

    def _init(self, container: Container, name: str) -> list[str]:
        """The command line that becomes init, up to its two descriptors."""
        if self.confinement.bubblewrap is None:
            return [interpreter(), "-I", "-S", str(INIT)]
        hostname = container.hostname or "model"
        hosts = self.folder / "run" / f"{name}.hosts"
        _write_readable(hosts, f"127.0.0.1 localhost {hostname}\n")
        room = Room(container.model_dir, hostname, hosts, self.folder / "etc", self._hidden)
        sandbox = bubblewrap_arguments(self.confinement, self._grants, room)
        return [*sandbox, interpreter(), "-I", "-S", INIT_INSIDE]


def _filled(word: str, places: Mapping[str, str]) -> str:
    for placeholder, value in places.items():
        word = word.replace(placeholder, value)
    return word


def _listener(address: Address) -> socket.socket:
    """The socket on which init hands out connections; in place of one left by a container before."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(address.path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address.path)
    listener.listen(1024)
    return listener


def _write_readable(path: Path, text: str) -> None:
    """A small file that a container's own uid can read, whatever the yard's umask."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
