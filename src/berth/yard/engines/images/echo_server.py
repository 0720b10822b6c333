"""A model that answers what it is asked, in some 60 ms from its start: for trying a yard out, and for tests.

Standard library only. The environment makes it misbehave: `ECHO_PING_STATUS` (what /ping answers),
`ECHO_READY_AFTER_S`, `ECHO_ANSWER_AFTER_S`, `ECHO_EXIT_AFTER` (ends with code 3 at that many invocations),
`ECHO_EXIT_AT_ONCE` (its exit code), `ECHO_IGNORE_TERM`. A body that starts with `eval ` is evaluated as a
Python expression if `ECHO_EVAL` is set, so that one can look around inside.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

STARTED = time.monotonic()
ENV = os.environ


def say(line: str) -> None:
    """Into the container's log."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def read_request(line: socket.socket) -> tuple[str, str, dict[str, str], bytes] | None:
    """(method, path, headers, body) of one request; None when the caller hung up."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = line.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rest)}
    length = int(headers.get("content-length", 0))
    while len(body) < length:
        piece = line.recv(length - len(body))
        if not piece:
            return None
        body += piece
    method, path, _ = first.split(" ", 2)
    return method, path, headers, body


def answer(
    line: socket.socket, status: int, body: bytes, content_type: str = "application/octet-stream"
) -> None:
    """Send one whole answer."""
    head = f"HTTP/1.1 {status} .\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
    line.sendall(head.encode("latin-1") + body)


def invoke(line: socket.socket, headers: dict[str, str], body: bytes, count: int) -> None:
    """Answer one invocation, as the environment says."""
    if count == int(ENV.get("ECHO_EXIT_AFTER", 0)):
        say("this was one too many")
        os._exit(3)
    time.sleep(float(ENV.get("ECHO_ANSWER_AFTER_S", 0)))
    if ENV.get("ECHO_EVAL") and body.startswith(b"eval "):
        body = repr(eval(body[5:].decode())).encode()  # noqa: S307 - asked for by whoever started it
    answer(line, 200, body, headers.get("content-type", "application/octet-stream"))


def serve(line: socket.socket, count: int) -> int:
    """One connection; the number of invocations so far."""
    request = read_request(line)
    if request is None:
        return count
    method, path, headers, body = request
    if (method, path) == ("GET", "/ping"):
        early = time.monotonic() - STARTED < float(ENV.get("ECHO_READY_AFTER_S", 0))
        answer(line, 503 if early else int(ENV.get("ECHO_PING_STATUS", 200)), b"")
    elif (method, path) == ("POST", "/invocations"):
        count += 1
        invoke(line, headers, body, count)
    else:
        answer(line, 404, b"")
    return count


def main() -> None:
    """Serve for ever."""
    if "ECHO_EXIT_AT_ONCE" in ENV:
        say("no: I was told not to")
        sys.exit(int(ENV["ECHO_EXIT_AT_ONCE"]))
    if ENV.get("ECHO_IGNORE_TERM"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    port = int(ENV.get("SAGEMAKER_BIND_TO_PORT", 8080))
    with socket.create_server(("127.0.0.1", port), backlog=128) as listener:
        say(f"echo serves on port {port}, arguments {sys.argv[1:]}")
        count = 0
        while True:
            line, _ = listener.accept()
            with line:
                try:
                    count = serve(line, count)
                except ConnectionError:
                    say("a caller hung up")


if __name__ == "__main__":
    main()
