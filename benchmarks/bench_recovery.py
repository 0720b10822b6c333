"""B6: a yard with 100,000 live reservations and 1,000,000 past events is killed and started again.

Filled by SQL while no yard runs. The clock is real. After the kill, two kinds of blocks are added whose time
comes: some while the yard is down, and several hundred at whole seconds soon after, where one block ends and
another starts at the same instant. Measured: from the start of the process to the first answer and to ready;
how late starts were played, whether ends came before the starts of their instant, and whether any is missing.
"""

from __future__ import annotations

import argparse
import itertools
import random
import socket
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from berth.terms.instants import to_micros
from berth.yard.testing.process import YardProcess
from filling import HOUR_US, FilledBlock, fill
from harness import ROOT, Verdicts, machine, spread, versions
from servers import Server

SEED = 20261130
FLEET = ROOT / "tests" / "simulation" / "rush.toml"
DAY_US = 24 * HOUR_US
STARTS = 3
MISSED_DOWN = 200  # starts that fall due while no yard runs
SOON = 300  # pairs of an end and a start at one instant
SOON_AFTER_S, SOON_WITHIN_S = 12, 10
READY_S, LATE_S = 2.0, 1.0


def now_us() -> int:
    """The present."""
    return to_micros(datetime.now(UTC))


def live(many: int, present: int) -> Iterator[FilledBlock]:
    """Blocks over the next 182 days, one in twenty of them begun; no timer of theirs is due today."""
    draw = random.Random(SEED)
    for number in range(many):
        start = present + (
            draw.randrange(2, 56) * DAY_US if number % 20 else -draw.randrange(1, 20) * HOUR_US
        )
        end = start + draw.randrange(2, 120) * DAY_US
        yield FilledBlock(number, f"{number % 500:012d}", f"use1-az{1 + number % 2}", start, end, present)


def due(first: int, present: int) -> Iterator[FilledBlock]:
    """Blocks that should have begun a moment ago, and pairs whose time comes in a few seconds."""
    for number in range(MISSED_DOWN):
        start = present - 1_000 * (1 + number)
        yield FilledBlock(first + number, "due", "use1-az1", start, start + DAY_US, start - 1)
    draw = random.Random(SEED)
    for number in range(SOON):
        instant = present + (SOON_AFTER_S + draw.randrange(SOON_WITHIN_S)) * 1_000_000 + number * 7_000
        base = first + MISSED_DOWN + 2 * number
        yield FilledBlock(base, "starts", "use1-az1", instant, instant + DAY_US, present)
        yield FilledBlock(base + 1, "ends", "use1-az1", instant - DAY_US, instant, present)


def first_answer(port: int, request: bytes, found: list[float]) -> None:
    """Ask until somebody answers; when that was."""
    while not found:
        try:
            with socket.create_connection(("127.0.0.1", port), 30) as line:
                line.sendall(request)
                if line.recv(65_536).startswith(b"HTTP/1.1 "):
                    found.append(time.perf_counter())
        except ConnectionError:
            time.sleep(0.005)


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds on the clock from the process's start to the first answer and to ready; of the processor until
    then."""

    answer: float
    ready: float
    cpu: float


def timed_start(yard: YardProcess) -> Start:
    """Start the yard, and ask until it answers."""
    port = int(yard.url.rsplit(":", 1)[1])
    request = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    answered: list[float] = []
    asking = threading.Thread(target=first_answer, args=(port, request.encode(), answered))
    begun = time.perf_counter()
    asking.start()
    yard.start()
    ready = time.perf_counter() - begun
    assert yard.process is not None
    cpu = Server(port, yard.process.pid).cpu_s()
    asking.join()
    return Start(answered[0] - begun, ready, cpu)


def played(store: Path, present: int) -> tuple[list[float], list[float], int, int]:
    """Lateness in seconds of starts soon after, and of those due while down; ends after the start of their
    instant or an earlier one; starts that are missing."""
    with closing(sqlite3.connect(store)) as rows:
        found = rows.execute(
            "SELECT account, due_us, at_us, event_id FROM (SELECT account_id AS account, arn,"
            " CASE account_id WHEN 'ends' THEN end_us ELSE start_us END AS due_us FROM capacity_reservations"
            " WHERE account_id IN ('due', 'starts', 'ends')) LEFT JOIN events"
            " ON subject = arn AND to_state = CASE account WHEN 'ends' THEN 'expired' ELSE 'active' END"
        ).fetchall()
    late = {name: [(at - due_us) / 1e6 for account, due_us, at, _ in found if account == name and at]
            for name in ("starts", "due")}  # fmt: skip
    missing = sum(1 for account, _, at, _ in found if at is None)
    in_order = sorted((event, due_us, account != "ends") for account, due_us, at, event in found if at)
    keys = [(due_us, is_start) for _, due_us, is_start in in_order]
    wrong = sum(1 for one, other in itertools.pairwise(keys) if other < one)
    return late["starts"], late["due"], wrong, missing


def main() -> None:
    """Fill, kill, start, wait until everything was due, look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--reservations", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    print(f"B6. {machine()}\n{versions('uvicorn', 'numpy')}; SQLite {sqlite3.sqlite_version}; seed {SEED}")
    with (
        tempfile.TemporaryDirectory(prefix="yard-") as name,
        YardProcess(Path(name), fleet=FLEET, clock="real") as yard,
    ):
        store = yard.folder.store
        yard.kill()
        empty = timed_start(yard)
        yard.stop()
        begun, present = time.perf_counter(), now_us()
        fill(store, live(options.reservations, present), options.events)
        size = store.stat().st_size / 1e6
        print(f"filled in {time.perf_counter() - begun:.1f} s: {size:,.0f} MB")
        times = [timed_start(yard)]
        for _ in range(STARTS - 1):
            yard.kill()
            times.append(timed_start(yard))
        yard.kill()
        present = now_us()
        fill(store, due(options.reservations, present))
        times.append(timed_start(yard))
        print(f"from ready to the first pair: {SOON_AFTER_S - (now_us() - present) / 1e6:.1f} s")
        ends = present / 1e6 + SOON_AFTER_S + SOON_WITHIN_S + 0.007 * SOON + 2
        time.sleep(max(0.0, ends - time.time()))
        late, down, wrong, missing = played(store, present)
    report(empty, times, late, down, wrong, missing)


def report(
    empty: Start, times: list[Start], late: list[float], down: list[float], wrong: int, missing: int
) -> None:
    """Figures and pass lines."""
    ready = [one.ready for one in times]
    print(
        f"{len(times)} starts: first answer {spread([one.answer for one in times], 2)} s,"
        f" ready {spread(ready, 2)} s, of the processor {spread([one.cpu for one in times], 2)} s;"
        f" an empty yard: ready {empty.ready:.2f} s, of the processor {empty.cpu:.2f} s"
    )
    p99 = sorted(late)[int(len(late) * 0.99)] if late else float("inf")
    if down:
        print(f"{len(down)} starts due while it was down: played {spread(down, 2)} s after they were due")
    if late:
        print(f"{len(late)} starts due while it ran: late by {statistics.median(late) * 1e3:.1f} ms, p99"
              f" {p99 * 1e3:.1f} ms")  # fmt: skip
    verdicts = Verdicts("B6")
    worst = statistics.median(ready)
    verdicts.check(worst <= READY_S, f"ready after {worst:.2f} s, wanted at most {READY_S:g}")
    verdicts.check(p99 <= LATE_S, f"lateness of a start, p99 {p99:.3f} s, wanted at most {LATE_S:g}")
    verdicts.check(
        not wrong, f"{wrong} of {MISSED_DOWN + 2 * SOON} due events out of order (ends before starts)"
    )
    verdicts.check(not missing, f"{missing} starts or ends missed")
    verdicts.finish()


if __name__ == "__main__":
    main()
