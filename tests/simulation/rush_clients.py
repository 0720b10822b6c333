"""Clients of a rush: threads that send asks and keep what they were told. In process, and over HTTP."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np

from berth.terms.clock import SystemClock
from berth.terms.ids import SeededIds
from berth.terms.instants import to_micros
from berth.yard.calls import CallRecord
from berth.yard.data_folder import DataFolder
from berth.yard.engines.engine import Answer, Container, Invocation, Report, ReportKind
from berth.yard.engines.provisioner import ArtefactProblem, Order
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendar import HORIZON_DAYS, day_at
from berth.yard.identity.accounts import Account, add_account
from berth.yard.opening import Doors, open_yard
from berth.yard.services.operation import Call, find
from berth.yard.store.transaction import Transaction

from .rush import OPERATIONS, REGION, Ask, Buyer, Market, rush_fleet

CLOCK = "2026-12-01T09:00:00Z"
CLIENTS = 8
PATIENCE_S = 60.0
GONE = {"ResourceNotFound", "InvalidCapacityBlockOfferingIdExpired"}  # somebody else took the last hosts


@dataclass
class Told:
    """What clients were told. An ask that is in no list was sent and never answered, or not sent."""

    acknowledged: list[Ask] = field(default_factory=list)
    refused: list[Ask] = field(default_factory=list)
    failed: list[Ask] = field(default_factory=list)  # told that nothing was stored
    seconds: list[float] = field(default_factory=list)  # of every answer
    unexpected: list[str] = field(default_factory=list)

    @property
    def answers(self) -> int:
        """How many asks were answered, whatever the answer."""
        return len(self.acknowledged) + len(self.refused) + len(self.failed)

    def percentile_ms(self, share: float) -> float:
        """The latency that `share` of the answers did not exceed, in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3


def send_all(
    sent: Sequence[Ask],
    send: Callable[[], Callable[[Ask], str]],
    clients: int = CLIENTS,
    midway: tuple[int, Callable[[], None]] | None = None,
) -> Told:
    """Send every ask once, from `clients` threads that each take the next; returns when all are through.

    `midway` is (how many answers, what happens then), while the other clients wait for theirs: a moment that
    is in the middle on a fast machine and on a slow one.

    `send()` makes one client: it takes an ask and returns an error code, `ok`, or `lost` (no answer; the
    client then stops). NotStored counts as failed, GONE as refused, all else as unexpected.
    """
    told, waiting, lock = Told(), iter(sent), threading.Lock()

    def work() -> None:
        client = send()
        while True:
            with lock:
                ask = next(waiting, None)
            if ask is None:
                return
            begun = time.perf_counter()
            code = client(ask)
            if code == "lost":
                return
            with lock:
                told.seconds.append(time.perf_counter() - begun)
                _note(told, ask, code)
                due = midway is not None and len(told.seconds) == midway[0]
            if due and midway is not None:
                midway[1]()

    threads = [threading.Thread(target=work, name=f"client-{n}") for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def _note(told: Told, ask: Ask, code: str) -> None:
    if code == "ok":
        told.acknowledged.append(ask)
    elif code in GONE:
        told.refused.append(ask)
    elif code == "InternalFailure":
        told.failed.append(ask)
    else:
        told.unexpected.append(f"{ask.name}: {code}")


# -- in process ------------------------------------------------------------------------------------------
class NoContainers:
    """An engine that is never asked to start anything."""

    name = "none"

    def __init__(self, report: Callable[[Report], None]) -> None:
        self._report = report

    def start(self, container: Container) -> None:
        """A rush deploys nothing."""
        raise AssertionError(f"nothing is deployed here: {container.key}")

    def stop(self, key: str) -> None:
        """Ended at once."""
        self._report(Report(key, ReportKind.STOPPED))

    async def invoke(self, key: str, invocation: Invocation) -> Answer:
        """There is nobody to ask."""
        raise AssertionError(key)

    def settled(self) -> bool:
        """Always."""
        return True

    def describe(self) -> Mapping[str, str]:
        """Nothing to say."""
        return {}

    def allow_accounts(self, count: int) -> None:
        """As many as wanted: nobody's container could read another's."""

    def logs(self, key: str, last_bytes: int = 4096) -> str:
        """Nothing was printed."""
        return ""

    def close(self) -> None:
        """Nothing to end."""


def _no_artefact(order: Order, url: str, into: Path) -> None:
    raise ArtefactProblem(f"there is nothing at {url}")


class InsideYard:
    """A yard in this process, with the writer's thread and the disk of a real one, without the network."""

    def __init__(self, path: Path, buyers: int, seed: int) -> None:
        folder = DataFolder(path)
        folder.prepare()
        self.store = folder.store
        doors = Doors(NoContainers, _no_artefact, SystemClock(), SeededIds(seed))
        self.opened = open_yard(folder, rush_fleet(), CLOCK, doors)
        self.yard = self.opened.yard
        self.buyers = self.opened.writer.submit(lambda tx: _buyers(tx, buyers)).result()
        self.market = Market.of_store(self.store, self.yard.clock.now())
        self._parameters: dict[str, dict[str, object]] = {}

    def prepare(self, sent: Sequence[Ask]) -> None:
        """Write the offering ids beforehand, as somebody's search would have."""
        self._parameters = {ask.name: self.market.parameters(ask) for ask in sent}

    def client(self) -> Callable[[Ask], str]:
        """One client: the operation in a transaction with its record in the log of calls, as the server does
        it; done when it is durable."""
        return self._send

    def _send(self, ask: Ask) -> str:
        service, name = OPERATIONS[ask.kind]
        operation = find(service, name)
        assert operation is not None
        now = self.yard.clock.now()
        account = Account(ask.buyer.account_id, ask.buyer.account_id)
        call = Call(account, REGION, service, name, self._parameters[ask.name], ask.name, now, timedelta(0))
        at = to_micros(now)
        record = CallRecord(at, at, account.account_id, REGION, service, name, ask.name, "", True, "ok")

        def work(tx: Transaction) -> None:
            operation.run(call, self.yard, tx)
            record.store(tx)

        try:
            self.opened.writer.submit(work).result(PATIENCE_S)
        except ServiceError as refused:
            return refused.code
        return "ok"

    def committed(self) -> dict[str, list[int]]:
        """The calendar in memory: the highest committed count of every day, pool by pool."""
        base = day_at(self.yard.clock.now())
        return {
            key: np.asarray(
                self.yard.calendars.pool(key).committed_max_for_days(base, 1, HORIZON_DAYS)
            ).tolist()
            for key in self.yard.fleet.pools
        }

    def close(self) -> None:
        """Close the yard."""
        self.opened.close()


def _buyers(tx: Transaction, many: int) -> list[Buyer]:
    keys = [add_account(tx, f"buyer-{number}") for number in range(many)]
    return [Buyer(key.account.account_id, key.access_key_id, key.secret) for key in keys]


# -- over HTTP -------------------------------------------------------------------------------------------
class WireClient:
    """One connection, one request at a time, requests made beforehand."""

    def __init__(self, port: int, requests: Mapping[str, bytes]) -> None:
        self._requests = requests
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __call__(self, ask: Ask) -> str:
        """`ok`, the error's code, or `lost` when the server went away before its answer was whole."""
        try:
            self._socket.sendall(self._requests[ask.name])
            head, body = self._receive()
        except ConnectionError:
            self._socket.close()
            return "lost"
        return "ok" if head[9:12] == b"200" else _code(body)

    def _receive(self) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._some()
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += self._some()
        return head, body

    def _some(self) -> bytes:
        received = self._socket.recv(65_536)
        if not received:
            raise ConnectionError("closed")
        return received


def _code(body: bytes) -> str:
    """The error's code, in EC2's XML or SageMaker's JSON."""
    text = body.decode("utf-8", "replace")
    for before, after in (("<Code>", "</Code>"), ('"__type":"', '"'), ('"__type": "', '"')):
        if before in text:
            return text.partition(before)[2].partition(after)[0].rpartition("#")[2]
    return f"unreadable: {text[:200]}"
