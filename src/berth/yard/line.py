"""The line to a client: it can be cut without an answer, and it sends an answer's head and body at once."""

from __future__ import annotations

from asyncio import Transport
from typing import Any


class Line:
    """Stands between the HTTP server and the socket's transport, whose other methods it passes on.

    The server writes the head of an answer and then its body. Sent apart they are two system calls and two
    packets, and wake the client twice: a tenth of the cost of a whole answer (docs/performance.md).
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._held: list[bytes] | None = None
        self.is_closing = transport.is_closing  # asked with every answer
        self.cut = transport.abort

    def hold(self) -> None:
        """Keep what is written from now on."""
        self._held = []

    def release(self) -> None:
        """Send what was kept, in one piece; from now on what is written is sent."""
        held, self._held = self._held, None
        if held:
            self._transport.writelines(held)

    def write(self, data: bytes) -> None:
        """Send, or keep."""
        if self._held is None:
            self._transport.write(data)
        else:
            self._held.append(data)

    def close(self) -> None:
        """Send what was kept, then close."""
        self.release()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
