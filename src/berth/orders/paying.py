"""Paying: the only place of the program that does, for purchases and extensions alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.orders.calls import asked


def pay(
    client: Any,
    operation: str,
    request: Mapping[str, Any],
    named: Callable[[Mapping[str, Any]], str | None],
) -> str | Refusal:
    """One paid call, never repeated: what was bought, as `named` reads it from the answer, or why not.

    `client` sends each call once (`Door.buyer`); `operation` is boto's name of the call. The intent has to be
    committed before. An answer that names nothing may have bought all the same.
    """
    answer = asked(lambda: getattr(client, operation)(**request))
    if isinstance(answer, Refusal):
        return answer
    name = named(answer)
    if name is not None:
        return name
    return Refusal(Kind.UNCLASSIFIED, "no name", "the answer names nothing bought", may_have_happened=True)
