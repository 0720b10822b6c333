"""Where the client keeps what it must remember: its journal, and the traces of its own faults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def berth_home(environ: Mapping[str, str]) -> Path:
    """The client's folder: `$BERTH_HOME`, else `$XDG_STATE_HOME/berth`, else `~/.local/state/berth`.

    The folder may not exist yet; whoever writes into it makes it with mode 0700.
    """
    if environ.get("BERTH_HOME"):
        return Path(environ["BERTH_HOME"])
    state = environ.get("XDG_STATE_HOME")
    base = Path(state) if state else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return base / "berth"
