"""A server that does nothing: the same uvicorn with the same settings, and a ready-made body.

Arguments: the number of bytes of the body. It prints its port and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def make_app(size: int) -> Any:
    """An ASGI application that reads the whole request and answers `size` bytes."""
    body = b"x" * size
    headers = [
        (b"content-type", b"application/x-amz-json-1.1"),
        (b"content-length", str(size).encode()),
    ]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def main() -> None:
    """Serve on a free port of loopback."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(int(sys.argv[1])), http=HttpToolsProtocol, loop="none", ws="none", lifespan="off",
            log_config=None, access_log=False, server_header=False, date_header=True, timeout_keep_alive=75,
            backlog=1024, proxy_headers=False,
        )
    )  # fmt: skip

    async def serve() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.002)
        print(listening.getsockname()[1], flush=True)
        await serving

    uvloop.run(serve())


if __name__ == "__main__":
    main()
