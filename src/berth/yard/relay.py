"""Passing requests on to the emulator beside the yard, from the event loop."""

from __future__ import annotations

import asyncio
import http.client
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from berth.yard.errors import ServiceError
from berth.yard.identity.accounts import AccessKey
from berth.yard.rest import FORWARDED, Rest, RestRefused
from berth.yard.services.operation import find
from berth.yard.wire.http import Request, Response
from berth.yard.wire.service import ServiceWire
from berth.yard.wire.sigv4 import Claim, SignatureFault, SignatureProblem, Verifier

PASSED_ON = "passed on"  # how the log of calls tells it
TOLERANCE = timedelta(minutes=5)
log = logging.getLogger(__name__)

T = TypeVar("T")


async def relayed(
    rest: Rest, wire: ServiceWire, service: str, region: str, request: Request
) -> Response | None:
    """The emulator's answer to an operation that the yard does not serve; None for one that it serves.

    For EC2 what surrounds instances is then read, if it is not known yet, so that nothing waits for it later.
    Raises ServiceError: for an operation that does not exist, and when the emulator does not answer.
    """
    operation = wire.operation_name(request)
    if find(service, operation) is None:
        return await passed_on(rest, request, service, operation, region)
    if service == "ec2" and not rest.knows(region):
        await _in_thread(lambda: rest.surroundings("", region))
    return None


async def relay_stranger(
    rest: Rest, request: Request, claim: Claim, *, key: AccessKey | None, verifier: Verifier, now: datetime
) -> Response:
    """A request to a service that the yard knows nothing of: passed on for whoever has a key of the yard."""
    try:
        if key is None:
            raise SignatureProblem(SignatureFault.UNKNOWN_KEY, "no such access key in this yard")
        verifier.check(request, claim, key.secret, now, TOLERANCE)
        if key.until is not None and now >= key.until:
            raise SignatureProblem(SignatureFault.TOKEN_EXPIRED, "the session is over")
        return await passed_on(rest, request)
    except SignatureProblem as found:
        return _plain(403, found.detail)
    except ServiceError as error:
        return _plain(error.status, error.message)


def _plain(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain"}, f"{text}\n".encode())


async def passed_on(
    rest: Rest, request: Request, service: str = "", operation: str = "", region: str = ""
) -> Response:
    """The emulator's answer. Raises ServiceError when it does not answer, or the request has come round."""
    if FORWARDED in request.headers:
        raise ServiceError(
            "ServiceUnavailable", "The request came back to the yard that sent it on.", status=503
        )
    return await _in_thread(lambda: rest.forward_call(service, operation, region, request))


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except (OSError, http.client.HTTPException, RestRefused) as problem:
        log.warning("the emulator beside the yard failed: %s", problem)
        raise ServiceError(
            "ServiceUnavailable", f"The emulator beside this yard does not answer: {problem}", status=503
        ) from None
