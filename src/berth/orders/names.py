"""Names that derive from an order, so that the name is the lock wherever the order is known."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from berth.orders.order import OrderKey

ORDER_TAG = "berth:order"
INTENT_TAG = "berth:intent"
FEE_TAG = "berth:fee"
"""What was paid, as `1146.17 USD`: AWS shows the fee of a Capacity Block to nobody."""
WHOLE_TAG = "berth:whole"
"""On a piece: the mark of the order of several pieces that it is of, which may be another account's."""
PIECES_TAG = "berth:pieces"
"""On a piece: how many pieces that order has."""

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: read aloud without mistakes
_LONGEST = 63  # endpoints, configurations and models allow 63 characters, training plans 64


def _check_word(key: OrderKey) -> str:
    seed = f"{key.account}\n{key.need}\n{_number(key, '.')}".encode()
    number = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big")
    return "".join(_DIGITS[(number >> shift) & 31] for shift in (15, 10, 5, 0))


def _number(key: OrderKey, between: str) -> str:
    return f"{key.sequence}{between}{key.piece}" if key.piece else str(key.sequence)


def reservation_name(key: OrderKey) -> str:
    """The training plan's name, such as `eval-1-7k2m`: need, sequence, and a check word of all three parts.

    A piece's has its number too, `eval-1-2-9x4d`, and the check word is over all four.

    It fits `[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}` in lower case, whatever the need is called; the check word
    keeps needs apart whose names look alike once cut to these characters, and the same need of two accounts.
    """
    tail = f"-{_number(key, '-')}-{_check_word(key)}"
    bare = re.sub(r"[^a-z0-9]+", "-", key.need.lower()).strip("-") or "need"
    return bare[: _LONGEST - len(tail)].rstrip("-") + tail


def workload_name(key: OrderKey) -> str:
    """Name of the endpoint, its configuration and a model that Berth makes for the order."""
    return reservation_name(key)


def launch_token(key: OrderKey, reservation_id: str, number: int) -> str:
    """The client token of launch `number` (from 1) of the order into a block: the same at every try.

    EC2 takes up to 64 ASCII characters; a token launches once.
    """
    seed = f"{key.mark}\n{reservation_id}\n{number}".encode()
    return f"berth-{hashlib.sha256(seed).hexdigest()[:40]}"


def is_ours(tags: Mapping[str, str], key: OrderKey) -> bool:
    """Whether a resource with these tags carries the mark of this very order."""
    return tags.get(ORDER_TAG) == key.mark
