"""The listener for proofs: one kind of request, from this machine, and nothing of it kept or told."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from berth.aws.proofs import LARGEST, Proof
from berth.cli.approvals_wire import MEDIA_TYPE, Place, hand_over, serve
from berth.terms.outcomes import BerthError, ExitCode

PROOF = Proof("ab" * 32, "http://127.0.0.1:1/?secret")


@dataclass
class Listener:
    """A listener on a port, and what it took."""

    port: int = 0
    taken: list[Proof] = field(default_factory=list)
    refuses: BerthError | None = None

    def take(self, proof: Proof) -> dict[str, Any]:
        """Keep the proof, or refuse it."""
        if self.refuses is not None:
            raise self.refuses
        self.taken.append(proof)
        return {"hash": proof.hash, "state": "approved", "approvals": [{"approver": "arn:aws:iam::1:user/x"}]}

    def post(self, body: bytes, **headers: str) -> tuple[int, str]:
        """Send a body; status and what was said."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {
            "Content-Type": MEDIA_TYPE,
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        connection.request("POST", "/", body, sent)
        answer = connection.getresponse()
        said = json.loads(answer.read())["message"]
        connection.close()
        return answer.status, said


@pytest.fixture
def listener() -> Iterator[Listener]:
    """One that ends after its first approval."""
    made, ready = Listener(), threading.Event()

    def told(where: str) -> None:
        made.port = int(where.split()[1])
        ready.set()

    thread = threading.Thread(
        target=serve, args=(Place(0, None), made.take), kwargs={"once": True, "ready": told}
    )
    thread.start()
    assert ready.wait(20)
    yield made
    if thread.is_alive() and not made.taken:
        made.refuses = None
        made.post(PROOF.text().encode())
    thread.join(20)
    assert not thread.is_alive()


def test_a_proof_is_handed_over(listener: Listener) -> None:
    """By its port; what the listener says names request and approver, and nothing of the proof."""
    said = hand_over(str(listener.port), PROOF.text())
    assert said == "taken: request abababababab is approved (arn:aws:iam::1:user/x)"
    assert listener.taken == [PROOF]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {}, 403),
        (b'{"approval": true}', {}, 403),
        (b"\xff\xfe", {}, 403),
        (PROOF.text().encode(), {"Content_Type": "application/json"}, 415),
        (PROOF.text().encode(), {"Host": "evil.example"}, 415),
        (b"x" * (LARGEST + 1), {}, 413),
        (b"", {"Content_Length": "-1"}, 413),
    ],
    ids=["empty", "approval", "no text", "a browser's type", "another host", "too large", "no length"],
)
def test_nothing_else_is_taken(listener: Listener, body: bytes, headers: dict[str, str], status: int) -> None:
    """No proof, a page in a browser, another host's name, too much: refused, and the listener goes on."""
    assert listener.post(body, **headers)[0] == status
    assert listener.taken == []


def test_a_refused_approval_is_told_and_the_listener_goes_on(listener: Listener) -> None:
    """Whatever the verifier says comes back; the approver's command ends with exit 13."""
    listener.refuses = BerthError(ExitCode.CREDENTIALS, "this approves nothing")
    with pytest.raises(BerthError, match="this approves nothing") as caught:
        hand_over(str(listener.port), PROOF.text())
    assert caught.value.exit_code is ExitCode.CREDENTIALS
    listener.refuses = None
    assert "is approved" in hand_over(str(listener.port), PROOF.text())


def test_a_client_that_drips_does_not_hold_it_up() -> None:
    """A letter now and then is no request: after its time the next one is served."""
    made, ready = Listener(), threading.Event()

    def told(where: str) -> None:
        made.port = int(where.split()[1])
        ready.set()

    options = {"once": True, "ready": told, "patience_s": 0.5}
    thread = threading.Thread(target=serve, args=(Place(0, None), made.take), kwargs=options)
    thread.start()
    assert ready.wait(20)
    dripping, over = socket.create_connection(("127.0.0.1", made.port)), threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            while not over.wait(0.1):
                dripping.sendall(b"P")

    thread_of_drops = threading.Thread(target=drip)
    thread_of_drops.start()
    assert "is approved" in hand_over(str(made.port), PROOF.text())
    over.set()
    thread_of_drops.join(20)
    dripping.close()
    thread.join(20)
    assert not thread.is_alive()


def test_a_socket_that_a_killed_listener_left_is_taken_over(tmp_path: Path) -> None:
    """Nobody listens on it, so it is in nobody's way; one with a listener, or another file, is left alone."""
    place, ready = tmp_path / "s", threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as killed:
        killed.bind(str(place))
    made = Listener()
    thread = threading.Thread(
        target=serve,
        args=(Place(None, place), made.take),
        kwargs={"once": True, "ready": lambda _: ready.set()},
    )
    thread.start()
    assert ready.wait(20)
    with pytest.raises(BerthError, match="in use"):
        serve(Place(None, place), made.take, once=True, ready=lambda _: None)
    assert "is approved" in hand_over(str(place), PROOF.text())
    thread.join(20)
    place.write_text("a file")
    with pytest.raises(BerthError, match="in use"):
        serve(Place(None, place), made.take, once=True, ready=lambda _: None)
    assert place.read_text() == "a file"


def test_a_client_that_leaves_does_not_end_it(listener: Listener) -> None:
    """Gone before it has said anything, and gone in the middle."""
    for sent in (b"", b"POST / HTTP/1.1\r\nContent-Le"):
        with socket.create_connection(("127.0.0.1", listener.port)) as line:
            line.sendall(sent)
    assert "is approved" in hand_over(str(listener.port), PROOF.text())


def test_nobody_there_is_said(tmp_path: Path) -> None:
    """Neither at a port nor at a path: exit 14, and no word of the proof."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for place in (str(port), str(tmp_path / "nobody"), "99999"):
        with pytest.raises(BerthError, match="it was not handed over") as caught:
            hand_over(place, PROOF.text())
        assert "secret" not in f"{caught.value.message}{caught.value.next_step}"


def test_a_place_that_is_taken_is_said() -> None:
    """A port that somebody has: exit 20, before anything is listened to."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = Place(taken.getsockname()[1], None)
        with pytest.raises(BerthError, match="cannot listen on port"):
            serve(place, lambda proof: {}, once=True, ready=lambda where: None)
