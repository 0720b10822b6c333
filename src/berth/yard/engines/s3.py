"""The S3 that a rehearsal runs beside itself: moto's, as a child process that dies with the yard.

Its buckets are shared by all accounts and live in memory: they are gone when the yard stops.
"""

from __future__ import annotations

import http.client
import socket
import sys
import threading
from pathlib import Path

from berth.yard.engines.held import Command, Ended, Held
from berth.yard.engines.logs import last_line

SERVER = Path(__file__).with_name("s3_server.py")
READY_WITHIN_S = 30.0
STOP_GRACE_S = 1.0


class S3Unavailable(Exception):
    """The companion S3 did not come up, or has died; the message says why."""


class S3Companion:
    """A running companion S3.

    Its port is open from the first moment, as the socket is made here and handed to the process: requests
    that come while it still starts (some 0.7 s) wait in the socket's queue. So nobody needs to wait for it.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        """Start it on 127.0.0.1, on `port` or a free one (0). `folder` gets its log. Raises OSError."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log = folder / "s3.log"
        with socket.create_server(("127.0.0.1", port), backlog=1024) as listener:
            self.port: int = listener.getsockname()[1]
            argv = [sys.executable, "-I", str(SERVER), str(listener.fileno())]
            environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(folder)}
            command = Command("companion-s3", argv, environment, self.log, pass_fds=(listener.fileno(),))
            self._held = Held(command)
        self._ended: Ended | None = None
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it is: `http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self.port}"

    def wait_ready(self, within_s: float = READY_WITHIN_S) -> None:
        """Wait until it answers. Raises S3Unavailable."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=within_s)
        try:
            line.request("GET", "/")
            line.getresponse().read()
        except (OSError, http.client.HTTPException) as problem:
            raise S3Unavailable(
                f"the rehearsal's S3 does not answer at {self.url}: {problem}. {last_line(self.log)}"
            ) from problem
        finally:
            line.close()

    def alive(self) -> bool:
        """Whether it still runs; nobody starts it again, as its buckets are gone with it."""
        return self._ended is None and self._held.alive()

    def close(self) -> None:
        """End it and wait until it is gone; again is fine."""
        with self._lock:
            if self._ended is None:
                self._held.stop(STOP_GRACE_S)
                self._ended = self._held.wait()
