"""The yard's server: one request, one readable list of steps.

    read -> authenticate -> find the operation -> parse and validate -> authorise -> run -> serialise -> send

Bare ASGI: a framework would cost more than the whole answer (docs/performance.md). Reads run on the event
loop against one snapshot; writes are handed to the writer and awaited; what talks to containers is awaited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

from berth.terms.ids import IdSource
from berth.terms.instants import iso, to_micros
from berth.yard.assembly import Yard
from berth.yard.calls import CallLog, CallRecord
from berth.yard.errors import ServiceError
from berth.yard.faults import Fault, FaultKind
from berth.yard.identity.accounts import AccessKey
from berth.yard.identity.authorisation import authorise
from berth.yard.identity.sessions import Roles, key_of_session
from berth.yard.line import Line
from berth.yard.relay import PASSED_ON, relay_stranger, relayed
from berth.yard.rest import Rest
from berth.yard.services.operation import Call, Kind, Operation, find
from berth.yard.store.transaction import Reader, Transaction
from berth.yard.store.writer import NotStored, Writer
from berth.yard.throttles import Throttles, throttling_error
from berth.yard.wire.http import Request, Response
from berth.yard.wire.refusals import refusal
from berth.yard.wire.service import ServiceWire, guess_service, load
from berth.yard.wire.sigv4 import Claim, SignatureFault, SignatureProblem, Verifier, read_claim

log = logging.getLogger(__name__)

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY_MAX = 8_388_608  # InvokeEndpoint takes 6,291,456 bytes; nothing served takes more
_SIGNING_NAMES = {
    "ec2": "ec2",
    "sagemaker": "sagemaker",
    "sagemaker-runtime": "sagemaker",
    "sts": "sts",
    "pricing": "pricing",
    "service-quotas": "servicequotas",
    "iam": "iam",
}
# IAM is one for all Regions and signed for this one, whether the fleet has it or not.
_GLOBAL = {"iam": "us-east-1"}
_TOLERANCE = {"ec2": timedelta(minutes=15)}
_TOLERANCE_ELSE = timedelta(minutes=5)
_NOT_AWS = Response(404, {"content-type": "text/plain"}, b"This is a yard: it speaks AWS's APIs only.\n")


class TooLarge(Exception):
    """The body is larger than anything served. `request` is the request without it."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"a body of more than {BODY_MAX} bytes")
        self.request = request


class Gone(Exception):
    """The client went away before its request was whole."""


@dataclass(slots=True)
class Exchange:
    """What is known of the request so far; later steps fill in more."""

    request: Request
    request_id: str
    service: str = ""
    operation: str = ""
    call: Call | None = None
    cut: bool = False


class RequestIds:
    """Ids of requests, in the shape of a random UUID and never the same: a random start and a running number.

    A random number for each would be a system call for each.
    """

    def __init__(self, ids: IdSource) -> None:
        digits = ids.hex(18)
        self._start = f"{digits[:8]}-{digits[8:12]}-4{digits[12:15]}-a{digits[15:18]}-"
        self._numbers = count(int(ids.hex(11), 16))

    def next(self) -> str:
        """The next id."""
        return f"{self._start}{next(self._numbers):012x}"


class App:
    """The AWS side of a yard, as an ASGI application.

    `keys()` gives the access keys by id, `roles()` the roles whose sessions ask; once `stopping` is set
    nobody is kept waiting on purpose. `rest` is the emulator that answers what the yard does not serve;
    None = there is none.
    """

    def __init__(
        self,
        yard: Yard,
        *,
        writer: Writer,
        reader: Reader,
        calls: CallLog,
        throttles: Throttles,
        keys: Callable[[], Mapping[str, AccessKey]],
        stopping: asyncio.Event,
        roles: Callable[[], Roles] = dict,
        rest: Rest | None = None,
    ) -> None:
        self._yard = yard
        self._writer = writer
        self._reader = reader
        self._calls = calls
        self._throttles = throttles
        self._keys = keys
        self._roles = roles
        self._stopping = stopping
        self._rest = rest
        self._verifier = Verifier()
        self._request_ids = RequestIds(yard.ids)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        assert scope["type"] == "http"
        exchange: Exchange | None = None
        try:
            exchange = Exchange(await _read(scope, receive), self._request_ids.next())
            response = await self._answer(exchange)
        except TooLarge as fault:
            response = _too_large(fault.request, self._request_ids.next())
        except Gone:
            return
        line: Line = scope["extensions"]["berth.line"]
        if exchange is not None and exchange.cut:
            line.cut()
            return
        line.hold()
        try:
            await _send(send, response, iso(self._yard.clock.now()), self._throttles.scale)
        finally:
            line.release()

    async def _answer(self, exchange: Exchange) -> Response:
        request = exchange.request
        claim, problem = _claim(request)
        service = guess_service(request) or (claim.service if claim else None)
        if service not in _SIGNING_NAMES:
            return await self._stranger(request, claim)
        exchange.service = service
        wire = load(service)
        try:
            key = self._authenticate(service, request, claim, problem)
            if self._rest is not None and claim is not None:
                answer = await relayed(self._rest, wire, service, claim.region, request)
                if answer is not None:
                    exchange.operation = wire.operation_name(request)
                    self._note(exchange, key, claim.region, PASSED_ON)
                    return answer
            result = await self._accepted(exchange, wire, key, claim.region if claim else "")
            if isinstance(result, ServiceError):
                raise result
            if exchange.cut:
                return _NOT_AWS
            return self._spoil(exchange, wire.serialise(exchange.operation, result, exchange.request_id))
        except ServiceError as error:
            return wire.error(error, exchange.request_id)
        except NotStored:
            log.exception("request %s could not be stored", exchange.request_id)
        except Exception:
            log.exception("request %s failed inside the yard", exchange.request_id)
        return wire.error(
            ServiceError("InternalFailure", "The request processing has failed.", status=500),
            exchange.request_id,
        )

    async def _stranger(self, request: Request, claim: Claim | None) -> Response:
        """The answer to whoever speaks to a service that the yard has no wire for."""
        if self._rest is None or claim is None:
            return _NOT_AWS
        key = self._key_of(claim)
        return await relay_stranger(
            self._rest, request, claim, key=key, verifier=self._verifier, now=self._yard.real.now()
        )

    # -- who ---------------------------------------------------------------------------------------------
    def _authenticate(
        self, service: str, request: Request, claim: Claim | None, problem: SignatureProblem | None
    ) -> AccessKey:
        try:
            if problem is not None:
                raise problem
            assert claim is not None
            key = self._key_of(claim)
            if key is None:
                raise SignatureProblem(SignatureFault.UNKNOWN_KEY, "no such access key in this yard")
            if claim.service != _SIGNING_NAMES[service]:
                raise SignatureProblem(
                    SignatureFault.MISMATCH,
                    f"Credential should be scoped to correct service: '{_SIGNING_NAMES[service]}'.",
                )
            tolerance = _TOLERANCE.get(service, _TOLERANCE_ELSE)
            now = self._yard.real.now()
            self._verifier.check(request, claim, key.secret, now, tolerance)
            if key.until is not None and now >= key.until:
                raise SignatureProblem(SignatureFault.TOKEN_EXPIRED, "the session is over")
        except SignatureProblem as found:
            raise refusal(service, found) from None
        if claim.region not in self._yard.fleet.regions and claim.region != _GLOBAL.get(service):
            # A Region that is not enabled does not know the account's keys.
            raise refusal(
                service,
                SignatureProblem(SignatureFault.UNKNOWN_KEY, f"Region {claim.region} is not in this fleet"),
            )
        return key

    def _key_of(self, claim: Claim) -> AccessKey | None:
        """The key pair that a request says it is signed with; a session's only with the session's token."""
        if claim.security_token is None:
            return self._keys().get(claim.access_key_id)
        return key_of_session(
            self._yard.session_key, claim.access_key_id, claim.security_token, self._roles()
        )

    # -- what --------------------------------------------------------------------------------------------
    async def _accepted(
        self, exchange: Exchange, wire: ServiceWire, key: AccessKey, region: str
    ) -> dict[str, Any] | ServiceError:
        """Everything after the signature; whatever comes of it is in the log of calls."""
        now = self._yard.clock.now()
        exchange.operation = wire.operation_name(exchange.request)
        logged = False
        outcome: dict[str, Any] | ServiceError
        try:
            operation = find(exchange.service, exchange.operation)
            if operation is None:
                raise not_served(exchange.service, exchange.operation)
            self._end_session(exchange, key)
            self._throttle(exchange, key, region)
            params = wire.parse(exchange.operation, exchange.request)
            authorise(key.account, exchange.service, exchange.operation, params, region)
            call = Call(
                key.account, region, exchange.service, exchange.operation, params, exchange.request_id, now,
                self._lag(exchange.operation, key.account.account_id),
            )  # fmt: skip
            exchange.call = call
            outcome = await self._run(operation, call, exchange)
            logged = operation.kind is Kind.WRITE
            outcome = self._distort(exchange.operation, key.account.account_id, outcome)
            await self._after(exchange, key.account.account_id)
        except ServiceError as error:
            outcome = error
        except Exception:
            self._note(exchange, key, region, "InternalFailure")
            raise
        if not logged:
            self._note(exchange, key, region, outcome.code if isinstance(outcome, ServiceError) else "ok")
        return outcome

    def _note(self, exchange: Exchange, key: AccessKey, region: str, code: str) -> None:
        self._calls.note(self._record(exchange, key.account.account_id, region, False, code))

    def _end_session(self, exchange: Exchange, key: AccessKey) -> None:
        """Refuse keys of a session as over, when told so."""
        told = (FaultKind.EXPIRED_SESSION, exchange.operation, key.account.account_id)
        if key.until is not None and self._yard.faults.take(*told) is not None:
            problem = SignatureProblem(SignatureFault.TOKEN_EXPIRED, "the session is over")
            raise refusal(exchange.service, problem)

    def _throttle(self, exchange: Exchange, key: AccessKey, region: str) -> None:
        account_id = key.account.account_id
        told = self._yard.faults.take(FaultKind.THROTTLE, exchange.operation, account_id)
        admitted = self._throttles.admits(
            account_id, region, exchange.service, exchange.operation, self._yard.real.elapsed()
        )
        if told is not None or not admitted:
            code, message, status = throttling_error(exchange.service, exchange.operation, account_id)
            raise ServiceError(code, message, status=status)

    def _lag(self, operation: str, account_id: str) -> timedelta:
        fault = self._yard.faults.standing(FaultKind.LAG, operation, account_id)
        return timedelta(minutes=float(fault.amount or "5")) if fault is not None else timedelta(0)

    async def _run(self, operation: Operation, call: Call, exchange: Exchange) -> dict[str, Any]:
        if operation.kind is Kind.READ:
            with self._reader.snapshot() as rows:
                result: dict[str, Any] = operation.run(call, self._yard, rows)
            return result
        if operation.kind is Kind.RELAY:
            relayed: dict[str, Any] = await operation.run(call, self._yard, self._reader)
            return relayed
        record = self._record(exchange, call.account.account_id, call.region, True, "ok")

        def work(tx: Transaction) -> dict[str, Any]:
            done: dict[str, Any] = operation.run(call, self._yard, tx)
            record.store(tx)
            return done

        return await asyncio.wrap_future(self._writer.submit(work))

    def _record(
        self, exchange: Exchange, account_id: str, region: str, wrote: bool, outcome: str
    ) -> CallRecord:
        return CallRecord(
            at_us=to_micros(self._yard.clock.now()), real_us=to_micros(self._yard.real.now()),
            account_id=account_id, region=region, service=exchange.service, operation=exchange.operation,
            request_id=exchange.request_id,
            invocation_id=exchange.request.headers.get("amz-sdk-invocation-id", ""),
            wrote=wrote, outcome=outcome,
        )  # fmt: skip

    # -- faults ------------------------------------------------------------------------------------------
    async def _after(self, exchange: Exchange, account_id: str) -> None:
        """What a rehearsal does wrong once the work is done and stored."""
        take = self._yard.faults.take
        if take(FaultKind.LOST_REPLY, exchange.operation, account_id):
            exchange.cut = True
        stall = take(FaultKind.STALL, exchange.operation, account_id)
        if stall is not None:
            await self._pause(float(stall.amount or "65"))
            exchange.cut = True
        if take(FaultKind.ERROR_AFTER_COMMIT, exchange.operation, account_id):
            raise ServiceError("InternalFailure", "The request processing has failed.", status=500)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    def _distort(self, operation: str, account_id: str, result: dict[str, Any]) -> dict[str, Any]:
        """Members left out, values that no model knows, when told so."""
        faults = self._yard.faults
        if not faults.armed():
            return result
        kinds = (FaultKind.ABSENT_MEMBERS, FaultKind.UNKNOWN_VALUES)
        found = [faults.take(kind, operation, account_id) for kind in kinds]
        return spoil_result(tuple(fault for fault in found if fault is not None), result)

    def _spoil(self, exchange: Exchange, response: Response) -> Response:
        """A body cut in the middle, when told so."""
        assert exchange.call is not None
        account_id = exchange.call.account.account_id
        if self._yard.faults.take(FaultKind.MALFORMED_BODY, exchange.operation, account_id):
            return Response(response.status, response.headers, response.body[: len(response.body) // 2])
        return response


def spoil_result(faults: tuple[Fault, ...], result: dict[str, Any]) -> dict[str, Any]:
    """`result` without the members, or with the strange values, that the faults name."""
    absent: set[str] = set()
    strange: set[str] = set()
    for fault in faults:
        names = {name.strip() for name in fault.amount.split(",") if name.strip()}
        (absent if fault.kind is FaultKind.ABSENT_MEMBERS else strange).update(names)
    return {
        name: _strange(item) if name in strange else _walk(item, absent, strange)
        for name, item in result.items()
        if name not in absent
    }


def _strange(value: Any) -> Any:
    return "never-heard-of" if isinstance(value, str) else value


def _walk(value: Any, absent: set[str], strange: set[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: "never-heard-of"
            if name in strange and isinstance(item, str)
            else _walk(item, absent, strange)
            for name, item in value.items()
            if name not in absent
        }
    if isinstance(value, list):
        return [_walk(item, absent, strange) for item in value]
    return value


def not_served(service: str, operation: str) -> ServiceError:
    """What AWS answers where an operation does not exist."""
    if service in ("ec2", "sts", "iam"):
        return ServiceError("InvalidAction", f"The action {operation} is not valid for this web service.")
    return ServiceError(
        "UnknownOperationException", "The requested operation is not supported in the called region."
    )


def _claim(request: Request) -> tuple[Claim | None, SignatureProblem | None]:
    try:
        return read_claim(request), None
    except SignatureProblem as problem:
        return None, problem


def _too_large(request: Request, request_id: str) -> Response:
    """The refusal in the language of the service that the headers tell."""
    claim, _ = _claim(request)
    service = guess_service(request) or (claim.service if claim else None)
    if service not in _SIGNING_NAMES:
        return Response(413, {"content-type": "text/plain"}, b"Request entity too large\n")
    message = f"The request is larger than {BODY_MAX} bytes."
    return load(service).error(
        ServiceError("RequestEntityTooLargeException", message, status=413), request_id
    )


async def _read(scope: Message, receive: Receive) -> Request:
    sent = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    headers = dict(sent)
    if len(headers) < len(sent):  # some were sent twice
        headers = {}
        for name, value in sent:
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_MAX:
            raise TooLarge(Request(scope["method"], path, query, headers, b""))
        if not message.get("more_body"):
            break
    return Request(scope["method"], path, query, headers, b"".join(parts))


async def _send(send: Send, response: Response, yard_time: str, throttle_scale: float) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
    headers.append((b"x-yard-time", yard_time.encode()))
    if throttle_scale != 1:
        headers.append((b"x-yard-throttle-scale", f"{throttle_scale:g}".encode()))
    headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
