"""The folder of a yard: where everything is, and who may use it. One process at a time."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOCKET_PATH_MAX = 107  # bytes of a unix socket's path (unix(7): sun_path has 108 with its end)


class FolderInUse(RuntimeError):
    """Another yard runs on this folder."""


class FolderUnusable(RuntimeError):
    """The folder cannot hold a yard; the text says why."""


def default_folder(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/berth/yard`, else `~/.local/state/berth/yard`."""
    state = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME") or "/tmp") / ".local/state")  # noqa: S108
    return Path(state) / "berth" / "yard"


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Paths inside a yard's data folder."""

    path: Path

    @property
    def store(self) -> Path:
        """The database."""
        return self.path / "yard.sqlite"

    @property
    def fleet(self) -> Path:
        """The fleet file that this yard was started with last."""
        return self.path / "fleet.toml"

    @property
    def admin_socket(self) -> Path:
        """The unix socket of the admin interface."""
        return self.path / "admin.sock"

    @property
    def models(self) -> Path:
        """The yard's own copies of artefacts."""
        return self.path / "models"

    @property
    def containers(self) -> Path:
        """The engine's folder: logs, sockets."""
        return self.path / "containers"

    @property
    def log(self) -> Path:
        """What a detached yard prints."""
        return self.path / "yard.log"

    @property
    def running(self) -> Path:
        """Where a running yard says how it is reached; gone when it stopped in order."""
        return self.path / "running.json"

    def prepare(self) -> None:
        """Make the folder, for this user only. Raises FolderUnusable."""
        socket = os.fsencode(self.admin_socket.absolute())
        if len(socket) > SOCKET_PATH_MAX:
            raise FolderUnusable(
                f"the path of {self.path} is too long for a unix socket ({len(socket)} bytes, at most"
                f" {SOCKET_PATH_MAX}); choose a shorter one with --data"
            )
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.models.mkdir(mode=0o755, exist_ok=True)
        except OSError as problem:
            raise FolderUnusable(f"cannot use {self.path}: {problem}") from None

    def keep_fleet(self, text: str) -> None:
        """Keep a fleet file, all at once and for this user only: it may hold keys."""
        draft = self.fleet.with_suffix(".new")
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        draft.write_text(text, encoding="utf-8")
        draft.replace(self.fleet)

    def lock(self) -> int:
        """Claim the folder for this process until the returned descriptor closes. Raises FolderInUse.

        The lock is the kernel's: it goes with the process, however it ends.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise FolderInUse(
                f"a yard is running on {self.path}; stop it with: berth yard stop --data {self.path}"
            ) from None
        return descriptor

    def announce(self, facts: Mapping[str, Any]) -> None:
        """Write how the running yard is reached, all at once."""
        draft = self.running.with_suffix(".new")
        draft.write_text(json.dumps(facts, indent=1))
        draft.replace(self.running)

    def withdraw(self) -> None:
        """The yard stopped in order."""
        self.running.unlink(missing_ok=True)
        self.admin_socket.unlink(missing_ok=True)
