"""Operating a yard over HTTP: a Starlette application on a unix socket in the data folder.

Clock and faults exist in rehearsals only. The OpenAPI description is at `/openapi.json`, made from the
docstrings below.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.schemas import SchemaGenerator

from berth.yard.admin.desk import Desk, Refused

Handler = Callable[[Request], Awaitable[Response]]
Work = Callable[[Desk, Request, dict[str, Any]], Any]
BODY_MAX = 1_000_000


async def _body(request: Request) -> dict[str, Any]:
    raw = await request.body()
    if len(raw) > BODY_MAX:
        raise Refused("the body is larger than a megabyte")
    try:
        found = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        raise Refused("the body is not JSON") from None
    if not isinstance(found, dict):
        raise Refused("the body must be a JSON object")
    return found


def _answering(desk: Desk, work: Work) -> Handler:
    """Run `work` in a thread (it waits for the writer); what it refuses is a 400 with the reason."""

    async def handle(request: Request) -> Response:
        try:
            body = await _body(request) if request.method == "POST" else {}
            return JSONResponse(await run_in_threadpool(work, desk, request, body))
        except (Refused, ValueError, OverflowError, TimeoutError) as problem:
            return JSONResponse({"error": str(problem)}, status_code=400)

    handle.__doc__ = work.__doc__
    return handle


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isdecimal():
        raise Refused(f"{name} must be a whole number")
    return int(text)


def status(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: What this yard is, where it listens, how it confines containers, what its clock says.
    responses: {200: {description: the status}}
    """
    return desk.status()


def environment(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: The variables that make an AWS client talk to this yard.
    parameters:
      - {name: account, in: query, schema: {type: string}}
      - {name: user, in: query, schema: {type: string}}
    responses: {200: {description: names and values}, 400: {description: no such account or user}}
    """
    return desk.environment(request.query_params.get("account"), request.query_params.get("user"))


def accounts(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: The accounts, without secrets.
    responses: {200: {description: a list}}
    """
    return desk.accounts()


def add_account(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: Add an account; body {"name", "policy"} (IAM policy as text, '' for all); the answer has keys.
    responses: {200: {description: account id and keys}, 400: {description: bad name or policy}}
    """
    return desk.add_account(str(body.get("name", "")), str(body.get("policy", "")))


def add_user(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: Give an account a further user, body {"account", "name", "policy"}, the answer has the keys.
    responses: {200: {description: the keys}, 400: {description: no such account, bad name or policy}}
    """
    return desk.add_user(str(body.get("account", "")), str(body.get("name", "")), str(body.get("policy", "")))


def roles(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: The roles of all accounts, and whom they trust.
    responses: {200: {description: a list}}
    """
    return desk.roles()


def put_role(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: Give an account a role or change it; body {"account", "name", "trust", "external_id", "policy"}.
    responses: {200: {description: the role}, 400: {description: no such account, bad trust or policy}}
    """
    return desk.put_role(body)


def clock(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: The yard's clock.
    responses: {200: {description: now, and whether it stands still}}
    """
    return desk.clock()


def move_clock(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: Move a stopped clock; body {"to"} an instant or {"advance"} like "7d"; every timer is played.
    responses: {200: {description: the new time}, 400: {description: a real clock, or a step back}}
    """
    return desk.move_clock(body)


def faults(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: The armed faults.
    responses: {200: {description: a list}}
    """
    return desk.armed_faults()


def arm_fault(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: Arm a fault; body {"kind", "operation", "account", "times", "amount"}.
    responses: {200: {description: the fault}, 400: {description: unknown kind, or not a rehearsal}}
    """
    return desk.arm_fault(body)


def clear_faults(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: Disarm all faults.
    responses: {200: {description: how many there were}}
    """
    return desk.clear_faults()


def events(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: What happened, oldest first, after event number `after`, at most `limit` (1000).
    parameters: [{name: after, in: query, schema: {type: integer}}]
    responses: {200: {description: a list}}
    """
    return desk.events(_number(request, "after", 0), _number(request, "limit", 1000))


def calls(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: The calls that the yard accepted, oldest first, after call number `after`.
    parameters: [{name: after, in: query, schema: {type: integer}}]
    responses: {200: {description: a list}}
    """
    return desk.calls(
        _number(request, "after", 0), _number(request, "limit", 1000), request.query_params.get("operation")
    )


def ledger(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: What the yard billed.
    parameters: [{name: account, in: query, schema: {type: string}}]
    responses: {200: {description: a list of entries}}
    """
    return desk.ledger(request.query_params.get("account"))


def seed_plan(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: Put a training plan of any state into a rehearsal, for tests.
    responses: {200: {description: its name and ARN}, 400: {description: not possible}}
    """
    return desk.seed_plan(body)


def seed_block(desk: Desk, request: Request, body: dict[str, Any]) -> Any:
    """
    summary: Put a Capacity Block of any state into a rehearsal, for tests.
    responses: {200: {description: its ids and ARN}, 400: {description: not possible}}
    """
    return desk.seed_block(body)


ROUTES: tuple[tuple[str, str, Work], ...] = (
    ("GET", "/status", status),
    ("GET", "/environment", environment),
    ("GET", "/accounts", accounts),
    ("POST", "/accounts", add_account),
    ("POST", "/users", add_user),
    ("GET", "/roles", roles),
    ("POST", "/roles", put_role),
    ("GET", "/clock", clock),
    ("POST", "/clock", move_clock),
    ("GET", "/faults", faults),
    ("POST", "/faults", arm_fault),
    ("DELETE", "/faults", clear_faults),
    ("GET", "/events", events),
    ("GET", "/calls", calls),
    ("GET", "/ledger", ledger),
    ("POST", "/seed/plans", seed_plan),
    ("POST", "/seed/blocks", seed_block),
)


def make_admin(desk: Desk, stop: Callable[[], None]) -> Starlette:
    """The admin application over a `desk`. `stop` begins the yard's orderly end."""
    schemas = SchemaGenerator(
        {"openapi": "3.0.0", "info": {"title": "Berth yard administration", "version": "1"}}
    )

    async def stop_yard(request: Request) -> Response:
        """
        summary: Stop the yard in order.
        responses: {202: {description: it is stopping}}
        """
        asyncio.get_running_loop().call_later(0.02, stop)
        return JSONResponse({"stopping": True}, status_code=202)

    async def schema(request: Request) -> Response:
        return JSONResponse(schemas.get_schema(routes=request.app.routes))

    return Starlette(
        routes=[
            *(Route(path, _answering(desk, work), methods=[method]) for method, path, work in ROUTES),
            Route("/stop", stop_yard, methods=["POST"]),
            Route("/openapi.json", schema, methods=["GET"], include_in_schema=False),
        ]
    )
