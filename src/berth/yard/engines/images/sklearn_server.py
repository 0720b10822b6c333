"""Serves a scikit-learn model under SageMaker's inference contract.

The model is the one file in the model's folder that ends in `.joblib` or `.pkl` (`model.joblib` if there are
several), dumped by joblib or pickle. Loading it runs what is in it: that is why it runs in a container.

`POST /invocations` takes `text/csv` (a row a line, numbers) or `application/json` (a list of rows, or an
object with `instances`), and answers JSON: `{"predictions": [...]}`. Needs scikit-learn (extra `demo`).
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

# Each thread of the linear algebra reserves address space, which may be what limits a container; must be
# set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(min(4, os.cpu_count() or 1)))

import joblib
import numpy as np

MODEL_DIR = Path(os.environ.get("SM_MODEL_DIR", "/opt/ml/model"))
PORT = int(os.environ.get("SAGEMAKER_BIND_TO_PORT", "8080"))
BODY_BYTES_MAX = 6_291_456


class Refused(Exception):
    """What the caller sent cannot be predicted from; the message says why."""


def model_file(folder: Path) -> Path:
    """The model in `folder`. Raises FileNotFoundError that says what would be right."""
    found = sorted(file for file in folder.rglob("*") if file.suffix in (".joblib", ".pkl"))
    named = [file for file in found if file.name == "model.joblib"]
    if len(found) != 1 and len(named) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise FileNotFoundError(
            f"{folder} must hold one .joblib or .pkl file or one model.joblib; it holds {names}"
        )
    return (named or found)[0]


def rows_of(content_type: str, body: bytes) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The rows in a request. Raises Refused."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind in ("text/csv", ""):
            lines = body.decode("utf-8").split("\n")
            rows = [[float(cell) for cell in line.split(",")] for line in lines if line.strip()]
        elif kind == "application/json":
            told = json.loads(body)
            rows = told["instances"] if isinstance(told, dict) else told
        else:
            raise Refused(f"content type {kind!r}: send text/csv or application/json")
        table = np.asarray(rows, dtype=np.float64)
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise Refused(f"the body is no table of numbers: {problem}") from problem
    if table.ndim != 2 or table.size == 0:
        raise Refused(f"the body is no table of numbers: its shape is {table.shape}")
    return table


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    model: ClassVar[Any]

    def do_GET(self) -> None:
        """`/ping`: the model is loaded before the port opens, so whoever gets here is well served."""
        self.answer(200 if self.path == "/ping" else 404, b"")

    def do_POST(self) -> None:
        """`/invocations`."""
        try:
            body = self.body()
            if self.path != "/invocations":
                self.answer(404, b"")
                return
            rows = rows_of(self.headers.get("content-type", ""), body)
            predictions = self.model.predict(rows).tolist()
        except (
            Refused,
            ValueError,
        ) as refusal:  # ValueError: scikit-learn's word for a wrong number of columns
            self.answer(400, json.dumps({"error": str(refusal)}).encode())
        else:
            self.answer(200, json.dumps({"predictions": predictions}).encode())

    def body(self) -> bytes:
        """The whole body. Raises Refused."""
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            raise Refused(f"a content-length of at most {BODY_BYTES_MAX} is needed")
        return self.rfile.read(int(length))

    def answer(self, status: int, body: bytes) -> None:
        """Send one answer."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name for it
        """Pings come every few seconds; only faults are worth a line, and they print themselves."""


def main() -> None:
    """Load the model, then serve for ever."""
    Handler.model = joblib.load(model_file(MODEL_DIR))
    sys.stdout.write(f"{type(Handler.model).__name__} loaded, port {PORT}\n")
    sys.stdout.flush()
    ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()


if __name__ == "__main__":
    main()
