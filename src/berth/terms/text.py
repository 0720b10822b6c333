"""Text from elsewhere, made safe to print."""

from __future__ import annotations

import unicodedata


def plain(text: object, limit: int = 500) -> str:
    """`text` without control characters, escapes or direction marks, at most `limit` characters.

    Names, tags and messages of a service may hold anything; a terminal must not obey them.
    """
    shown = "".join(
        " " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c
        for c in str(text)
        if unicodedata.category(c) not in {"Cf", "Cs", "Co", "Cn"}
    )
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
