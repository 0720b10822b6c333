"""`berth invoke`: ask the endpoint of an order. The answer goes to stdout, the latency to stderr."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Annotated

import typer

from berth.cli.desks import counter
from berth.cli.named import order_named
from berth.cli.options import Json, Name, Profile
from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode

Text = str | None


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("invoke")(invoke)


def invoke(
    name: Name,
    body: Annotated[Text, typer.Argument(metavar="BODY", help="The request itself.")] = None,
    *,
    data: Annotated[Text, typer.Option("--data", help="File that holds the request; - is stdin.")] = None,
    content_type: Annotated[
        str, typer.Option("--content-type", help="Media type of the request.")
    ] = "application/json",
    accept: Annotated[Text, typer.Option("--accept", help="Media type wanted back.")] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Send one request to order NAME's endpoint. Prints the answer."""
    from berth.workloads.invoke import invoke as ask
    from berth.workloads.status import endpoint_step

    output = Output(as_json=as_json)
    content = read_body(body, data)
    with counter(output, profile=profile, need=name.partition("/")[0]) as at:
        order = order_named(at, name, "berth invoke {}")
        step = endpoint_step(at.site(order.offer.region), order)
        if step is None:
            raise BerthError(
                ExitCode.BAD_REQUEST,
                f"order {order.key} has no endpoint",
                f"berth deploy {order.key}",
                order.spending,
            )
        runtime = at.door.reader("sagemaker-runtime", order.offer.region)
        reply = ask(
            runtime, at.door.clock, step.name, content,
            content_type=content_type, accept=accept, spent=order.spending,
        )  # fmt: skip
        output.document(
            {
                "schema": "berth.reply/1",
                "endpoint": step.name,
                "variant": reply.variant,
                "content_type": reply.content_type,
                "milliseconds": round(reply.seconds * 1000, 1),
                "body_base64": base64.b64encode(reply.body).decode("ascii"),
            }
        )
        if not as_json:
            _print(reply.body)
        output.talk(f"{reply.variant} answered {len(reply.body):,} bytes in {reply.seconds * 1000:.1f} ms")
    return ExitCode.DONE


def read_body(body: Text, data: Text) -> bytes:
    """The request: the argument, a file, or stdin. Raises BerthError (usage, or bad request for a file)."""
    if body is not None and data is not None:
        raise BerthError(ExitCode.USAGE, "say the request once: as an argument or with --data")
    if body is not None:
        return body.encode()
    if data is None and sys.stdin.isatty():
        raise BerthError(ExitCode.USAGE, "no request: give it as an argument, with --data, or on stdin")
    if data is None or data == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(data).read_bytes()
    except OSError as problem:
        raise BerthError(ExitCode.BAD_REQUEST, f"{data} cannot be read: {problem.strerror}") from None


def _print(body: bytes) -> None:
    """The answer as it came; on a terminal, without control characters and ended by a line end."""
    from berth.terms.text import plain

    if sys.stdout.isatty():
        text = body.decode("utf-8", "replace")
        sys.stdout.write("\n".join(plain(line, 100_000) for line in text.splitlines()) + "\n")
        sys.stdout.flush()
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()
