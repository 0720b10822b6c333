"""One call to AWS, with everything that can go wrong turned into a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from berth.aws.refusals import Kind, Refusal, refusal_of
from berth.terms.text import plain


def asked(call: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | Refusal:
    """The answer of `call`, or what its failure means."""
    try:
        return call()
    except (ClientError, BotoCoreError) as problem:
        return refusal_of(problem)
    except Exception as problem:  # noqa: BLE001 - an answer that is damaged may raise anything while it is read
        name = type(problem).__name__
        return Refusal(Kind.UNCLASSIFIED, name, plain(problem), may_have_happened=True)


def pages(
    call: Callable[..., Mapping[str, Any]], members: str, **request: Any
) -> tuple[list[Any], Refusal | None]:
    """Every element of a paged answer, and what stopped the reading before its end (None: it is whole)."""
    found: list[Any] = []
    token: str | None = None
    seen: set[str] = set()
    while True:
        more = {} if token is None else {"NextToken": token}
        answer = asked(lambda more=more: call(**request, **more))  # type: ignore[misc]
        if isinstance(answer, Refusal):
            return found, answer
        page = answer.get(members)
        if not isinstance(page, list):
            return found, Refusal(Kind.UNCLASSIFIED, "no list", f"an answer without {members}", False)
        found.extend(page)
        token = answer.get("NextToken")
        if not token:
            return found, None
        if token in seen:
            return found, Refusal(Kind.UNCLASSIFIED, "endless", "a page that leads to itself", False)
        seen.add(token)
