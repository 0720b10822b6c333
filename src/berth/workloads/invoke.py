"""Asking an endpoint: one request, its answer, and how long that took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from berth.aws.refusals import Kind, refusal_of
from berth.terms.clock import Clock
from berth.terms.outcomes import BerthError, ExitCode, Spending
from berth.terms.text import plain

LARGEST_BODY = 6_291_456
"""Bytes that InvokeEndpoint takes (model of the runtime, 2017-05-13)."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answered, and the real seconds from asking to having read it all."""

    body: bytes
    content_type: str
    variant: str
    seconds: float


def invoke(
    runtime: Any,
    clock: Clock,
    name: str,
    body: bytes,
    *,
    content_type: str,
    accept: str | None,
    spent: Spending,
) -> Reply:
    """Send `body` to endpoint `name`. Raises BerthError: bad request, or the endpoint does not serve."""
    if len(body) > LARGEST_BODY:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"the body has {len(body):,} bytes; InvokeEndpoint takes at most {LARGEST_BODY:,}",
            None,
            spent,
        )
    request: dict[str, Any] = {"EndpointName": name, "Body": body, "ContentType": content_type}
    if accept is not None:
        request["Accept"] = accept
    started = clock.elapsed()
    try:
        answer = runtime.invoke_endpoint(**request)
        content = answer["Body"].read()
    except ClientError as problem:
        raise _refused(name, problem, spent) from None
    except BotoCoreError as problem:
        raise BerthError(
            ExitCode.BOUGHT_NOT_LAUNCHED, f"endpoint {name} did not answer: {plain(problem)}", None, spent
        ) from None
    return Reply(
        content,
        str(answer.get("ContentType") or "application/octet-stream"),
        str(answer.get("InvokedProductionVariant") or "variant not shown"),
        clock.elapsed() - started,
    )


def _refused(name: str, problem: ClientError, spent: Spending) -> BerthError:
    refusal = refusal_of(problem)
    members: Mapping[str, Any] = problem.response
    if refusal.code == "ModelError":
        status = members.get("OriginalStatusCode", "no status")
        said = plain(members.get("OriginalMessage") or refusal.message, 2000)
        code = ExitCode.BAD_REQUEST if str(status).startswith("4") else ExitCode.BOUGHT_NOT_LAUNCHED
        return BerthError(code, f"the model of endpoint {name} answered {status}: {said}", None, spent)
    if refusal.kind in {Kind.BAD_REQUEST, Kind.NOT_FOUND, Kind.CREDENTIALS, Kind.NOT_ALLOWED, Kind.THROTTLED}:
        return BerthError(refusal.exit_code, f"endpoint {name}: {refusal}", None, spent)
    return BerthError(ExitCode.BOUGHT_NOT_LAUNCHED, f"endpoint {name} does not serve: {refusal}", None, spent)
