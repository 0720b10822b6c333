"""The process of the companion S3: moto's S3, and nothing else of moto, on an inherited socket.

Run by file path, as `python -I s3_server.py LISTENER_FD`. Only the S3 application is mounted, and what was
meant for another service is refused: S3 answers some of it with an empty 200, which looks like success.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

ASTRAY = b"This is the S3 of a rehearsal and nothing else."
ASTRAY_JSON = b'{"__type": "UnknownOperationException", "message": "%b"}' % ASTRAY
ASTRAY_XML = (
    b"<Response><Errors><Error><Code>InvalidAction</Code><Message>%b</Message></Error></Errors></Response>"
) % ASTRAY


class Quiet(WSGIRequestHandler):
    """Writes no line for each request: the log is for faults."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


def is_astray(environ: Environ) -> bool:
    """Whether a request is for another service: by its JSON target, or by the scope that it is signed for."""
    if "HTTP_X_AMZ_TARGET" in environ:
        return True
    _, credential, scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")
    parts = scope.partition(",")[0].split("/")
    return bool(credential) and parts[-2:-1] != ["s3"]


def only_s3(application: Application) -> Application:
    """`application`, which sees no request that is astray."""

    def answer(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if is_astray(environ):
            # The query protocols (EC2, STS) send forms and read XML, the others read JSON.
            query = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
            start_response("400 Bad Request", [("content-type", f"application/{'xml' if query else 'json'}")])
            return [ASTRAY_XML if query else ASTRAY_JSON]
        return application(environ, start_response)

    return answer


def main(listener_fd: int) -> None:
    """Serve until the process is ended."""
    listener = socket.socket(fileno=listener_fd)
    host, port = listener.getsockname()
    application = only_s3(create_backend_app("s3"))
    make_server(host, port, application, threaded=True, fd=listener_fd, request_handler=Quiet).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
