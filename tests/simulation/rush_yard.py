"""A yard process under a rush: killed at random moments, and with a disk that is full."""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from berth.yard.testing.process import YardProcess

from .rush import FLEET, Ask, Buyer, Market, asks, recount, rush_fleet
from .rush_clients import CLIENTS, CLOCK, Told, WireClient, send_all

ROOM = 64 * 1024  # what still fits on the disk when it begins to be full


class RushYard:
    """A yard of rush.toml in a process of its own, its buyers, and everything that it ever acknowledged."""

    def __init__(self, path: Path, buyers: int, seed: int) -> None:
        self.yard = YardProcess(path, fleet=FLEET, clock=CLOCK)
        self.seed = seed
        self.buyers = [self._buyer(number) for number in range(buyers)]
        self.market = Market.of_store(self.yard.folder.store, self.yard.clock.now)
        self.acknowledged: list[Ask] = []
        self.tried: list[Ask] = []

    def _buyer(self, number: int) -> Buyer:
        """The first is the account that every yard has; more need an engine that keeps accounts apart."""
        if number == 0:
            found = self.yard.environment
            key, secret = found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"]
            account_id = self.yard.clients.sts.get_caller_identity()["Account"]
            return Buyer(account_id, key, secret)
        added = self.yard.account(f"buyer-{number}")
        return Buyer(added["account"], added["access_key_id"], added["secret_access_key"])

    @property
    def port(self) -> int:
        """Where it listens, the same after every restart."""
        return int(self.yard.url.rsplit(":", 1)[1])

    def next_asks(self, many: int) -> list[Ask]:
        """The next asks, none of which was sent before."""
        return asks(many, self.buyers, self.seed, first=len(self.tried))

    def requests(self, sent: Sequence[Ask]) -> dict[str, bytes]:
        """Their signed requests."""
        host = f"127.0.0.1:{self.port}"
        return {ask.name: self.market.request(ask, host) for ask in sent}

    def rush(self, many: int, clients: int = CLIENTS) -> Told:
        """Send the next `many` asks and keep what was acknowledged."""
        sent = self.next_asks(many)
        return self.send(sent, self.requests(sent), clients)

    def send(
        self,
        sent: list[Ask],
        requests: dict[str, bytes],
        clients: int = CLIENTS,
        midway: tuple[int, Callable[[], None]] | None = None,
    ) -> Told:
        """Send asks whose requests are ready and keep what was acknowledged."""
        self.tried += sent
        told = send_all(sent, lambda: WireClient(self.port, requests), clients, midway)
        self.acknowledged += told.acknowledged
        return told

    def warm(self) -> None:
        """One purchase of each kind: the first of a process reads AWS's models and takes much longer."""
        self.rush(4, clients=1)

    # -- kills -------------------------------------------------------------------------------------------
    def kill_once(self, many: int, draw: random.Random) -> Told:
        """`kill -9` after a random number of answers of a rush, then start again on the same folder."""
        self.warm()
        sent = self.next_asks(many)
        requests = self.requests(sent)
        told = self.send(sent, requests, midway=(draw.randrange(many // 8, many // 2), self.yard.kill))
        self.yard.start()
        return told

    def faults(self) -> list[str]:
        """Everything that is wrong with the rows, after all that was sent."""
        return recount(self.yard.folder.store, rush_fleet()).against(self.acknowledged, self.tried)

    # -- a full disk -------------------------------------------------------------------------------------
    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """No file of the process grows far beyond what the largest has: writes fail as on a full disk."""
        assert self.yard.process is not None
        pid = self.yard.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        largest = max(file.stat().st_size for file in self.yard.folder.path.glob("yard.sqlite*"))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest + ROOM, before[1]))
        try:
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)

    def until(
        self, done: Callable[[Told], bool], many: int, clients: int = CLIENTS, rushes: int = 20
    ) -> Told:
        """Rush after rush of `many` until one satisfies `done`; that one. Raises AssertionError after
        `rushes`."""
        for _ in range(rushes):
            told = self.rush(many, clients)
            if done(told):
                return told
            time.sleep(0.05)
        raise AssertionError(f"not so within {rushes} rushes of {many}")

    def close(self) -> None:
        """Stop the yard."""
        self.yard.stop()
