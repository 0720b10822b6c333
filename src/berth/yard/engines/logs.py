"""Reading what a held process printed: a file that continues from an older one beside it."""

from __future__ import annotations

import os
from pathlib import Path


def tail(log: Path, last_bytes: int) -> str:
    """The last `last_bytes` bytes of `log` and of what went before it; empty when there is none."""
    text = b""
    for file in (log, log.with_name(log.name + ".1")):
        if len(text) < last_bytes and file.exists():
            with file.open("rb") as source:
                source.seek(max(0, os.fstat(source.fileno()).st_size - (last_bytes - len(text))))
                text = source.read(last_bytes) + text
    return text[-last_bytes:].decode("utf-8", "replace")


def last_line(log: Path, longest: int = 300) -> str:
    """The last line that is not blank, without control characters; empty when there is none."""
    lines = [line for line in tail(log, 4096).splitlines() if line.strip()]
    return (
        "".join(sign if sign.isprintable() else "?" for sign in lines[-1].strip())[:longest] if lines else ""
    )
