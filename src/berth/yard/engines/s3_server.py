"""The process of the companion S3: moto's S3, and nothing else of moto, on an inherited socket.

Run by file path, as `python -I s3_server.py LISTENER_FD`. Only the S3 application is mounted: whatever a
client sends here, no other service of AWS's is imitated.
"""

from __future__ import annotations

import socket
import sys

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    """Writes no line for each request: the log is for faults."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


def main(listener_fd: int) -> None:
    """Serve until the process is ended."""
    listener = socket.socket(fileno=listener_fd)
    host, port = listener.getsockname()
    application = create_backend_app("s3")
    make_server(host, port, application, threaded=True, fd=listener_fd, request_handler=Quiet).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
