"""B2: eight clients, every second purchase after the same last hosts, each on disk before its answer.

    python benchmarks/bench_admission.py                       # about a minute and a half
    python benchmarks/bench_admission.py --asks 14000 --kills 50

Plans and Capacity Blocks in turn. Four parts: in process through the writer's thread; over HTTP against a
yard process without throttles; kill -9 at random moments of a rush, start again; a disk that is full. After
each, all rows are counted again without the yard's code: every acknowledged purchase is there, none twice,
no half hour over capacity. The rush is that of tests/simulation.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness import ROOT, Verdicts, machine, spread, table, versions
from load import send as send_over_http

sys.path.insert(0, str(ROOT / "tests"))

from simulation.rush import Ask, asks, recount, rush_fleet
from simulation.rush_clients import CLIENTS, InsideYard, send_all
from simulation.rush_yard import RushYard

SEED = 20261130
BUYERS = 64
ROUNDS = 3
INSIDE_MIN, HTTP_MIN, HTTP_P99_MS = 2000, 500, 20
DISK_MB = 4


class Tally:
    """What was done and found wrong, over all parts."""

    def __init__(self) -> None:
        self.operations = 0
        self.faults: list[str] = []
        self.rows: list[list[str]] = []


def sync_ms(folder: Path) -> str:
    """Median and p99 of 200 syncs of one page: what the disk lets a commit cost."""
    spent = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(os.urandom(4096))
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            spent.append((time.perf_counter() - begun) * 1e3)
    return f"{statistics.median(spent):.2f} ms, p99 {sorted(spent)[197]:.1f} ms"


def inside(folder: Path, many: int, tally: Tally) -> tuple[float, float]:
    """In process: acknowledged a second, median of the rounds; processor microseconds of an answer."""
    rates, decided, p50, p99, cpu = [], [], [], [], []
    for number in range(ROUNDS):
        yard = InsideYard(folder / f"in-{number}", BUYERS, SEED + number)
        sent = asks(many, yard.buyers, SEED + number)
        yard.prepare(sent)
        begun, before = time.perf_counter(), time.process_time()
        told = send_all(sent, yard.client)
        elapsed = time.perf_counter() - begun
        cpu.append((time.process_time() - before) / told.answers * 1e6)
        rates.append(len(told.acknowledged) / elapsed)
        decided.append(told.answers / elapsed)
        p50.append(told.percentile_ms(0.5))
        p99.append(told.percentile_ms(0.99))
        memory = yard.committed()
        yard.close()
        tally.operations += told.answers
        tally.faults += told.unexpected + recount(yard.store, rush_fleet()).against(told.acknowledged, sent)
        again = InsideYard(folder / f"in-{number}", 0, SEED)
        if again.committed() != memory:
            tally.faults.append("in process: the calendar in memory is not that of the rows")
        again.close()
    tally.rows.append(
        ["in process", spread(rates), spread(decided), f"{statistics.median(p50):.1f}", spread(p99, 1),
         f"{statistics.median(cpu):.0f}"]
    )  # fmt: skip
    return statistics.median(rates), statistics.median(cpu)


def over_http(folder: Path, many: int, tally: Tally) -> tuple[float, float]:
    """Over HTTP from a load generator of its own: the same, and the p99 in milliseconds."""
    rates, decided, p50, p99, cpu = [], [], [], [], []
    for number in range(ROUNDS):
        rush = RushYard(folder / f"http-{number}", BUYERS, SEED + number)
        assert rush.yard.process is not None
        try:
            rush.warm()
            sent = rush.next_asks(many)
            requests = rush.requests(sent)
            before = _cpu_s(rush.yard.process.pid)
            outcome = send_over_http(rush.port, [requests[ask.name] for ask in sent], CLIENTS, None)
            cpu.append((_cpu_s(rush.yard.process.pid) - before) / outcome.answers * 1e6)
            rush.tried += sent
            sold = recount(rush.yard.folder.store, rush_fleet())
            accepted = outcome.answers - outcome.refused
            tally.faults += sold.against(rush.acknowledged, rush.tried)
            in_rows = sold.sold.total() - len(rush.acknowledged)
            if in_rows != accepted:
                tally.faults.append(f"HTTP: {accepted} acknowledged, {in_rows} in the rows")
        finally:
            rush.close()
        tally.operations += outcome.answers
        rates.append(accepted / outcome.elapsed_s)
        decided.append(outcome.rate)
        p50.append(outcome.p50_us / 1e3)
        p99.append(outcome.p99_us / 1e3)
    tally.rows.append(
        ["over HTTP", spread(rates), spread(decided), f"{statistics.median(p50):.1f}", spread(p99, 1),
         f"{statistics.median(cpu):.0f}"]
    )  # fmt: skip
    return statistics.median(rates), statistics.median(p99)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def killed(folder: Path, kills: int, tally: Tally) -> None:
    """Kill -9 at random moments, each looked over after the start."""
    rush, draw = RushYard(folder / "killed", BUYERS, SEED), random.Random(SEED)
    unanswered = 0
    try:
        for number in range(kills):
            told = rush.kill_once(250, draw)
            tally.faults += told.unexpected + [f"kill {number}: {fault}" for fault in rush.faults()]
            tally.operations += told.answers
            unanswered += 250 - told.answers
    finally:
        rush.close()
    print(
        f"{kills} kills -9: {len(rush.acknowledged):,} purchases acknowledged before one, {unanswered:,} asks"
        " unanswered or not sent; all rows counted again after each start"
    )


# -- a full disk -----------------------------------------------------------------------------------------
@contextmanager
def small_disk() -> Iterator[Path | None]:
    """A file system of a few megabytes in memory; None where this user may mount none."""
    with tempfile.TemporaryDirectory(prefix="disk-") as name:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "berth-bench", name],
            capture_output=True, check=False,
        )  # fmt: skip
        if made.returncode:
            yield None
            return
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", name], check=True)


def full_disk(folder: Path, tally: Tally) -> None:
    """Buy until nothing fits; then make room, and buy on."""
    with small_disk() as disk:
        rush = RushYard((disk or folder) / "full", 16, SEED)
        try:
            if disk is None:
                print("full disk: this user cannot mount one, so the size of files is limited instead")
                with rush.full_disk():
                    failed = _until_full(rush)
            else:
                failed = _until_full(rush)
                grown = ["mount", "-o", "remount,size=256m", str(disk)]
                subprocess.run(grown, check=True, capture_output=True)
            before = len(rush.acknowledged)
            rush.until(lambda told: not told.failed, 32)
            tally.faults += [f"full disk: {fault}" for fault in rush.faults()]
            sold = recount(rush.yard.folder.store, rush_fleet()).sold
            tally.faults += [f"{ask.name} was refused with 500 and sold" for ask in failed if sold[ask.name]]
            tally.faults += _sold_out(rush, failed)
            tally.operations += len(rush.tried)
            print(
                f"full disk ({'tmpfs' if disk else 'limit of file size'}): {before:,} acknowledged before and"
                f" while it was full, {len(failed):,} answered InternalFailure (500), none of those sold;"
                f" {len(rush.acknowledged) - before:,} acknowledged once there was room"
            )
        finally:
            rush.close()


def _until_full(rush: RushYard) -> list[Ask]:
    failed: list[Ask] = []

    def full(told: object) -> bool:
        failed.extend(told.failed)  # type: ignore[attr-defined]
        return len(told.failed) == 64  # type: ignore[attr-defined]

    rush.until(full, 64, rushes=80)
    return failed


def _sold_out(rush: RushYard, failed: Sequence[Ask]) -> list[str]:
    """A purchase that failed must have left its host free: the window of most failures sells to the last."""
    rush.rush(768)
    start = max(ask.start for ask in failed if ask.contested)
    wanted = [ask for ask in rush.tried if ask.contested and ask.start == start and ask not in failed]
    found = []
    for kind in ("plan", "block"):
        asked = sum(ask.kind == kind for ask in wanted)
        sold = sum(a.contested and a.start == start and a.kind == kind for a in rush.acknowledged)
        if sold != min(asked, 64):
            found.append(f"full disk: {sold} of 64 {kind} hosts sold to {asked} who asked")
    return found


def main() -> None:
    """All four, then the pass lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--asks", type=int, default=3000, help="purchases in a round, at most 28,000")
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()
    print(f"B2. {machine()}\n{versions('uvicorn', 'uvloop', 'httptools')}; seed {SEED}; {CLIENTS} clients")
    tally, verdicts = Tally(), Verdicts("B2")
    with tempfile.TemporaryDirectory(prefix="rush-") as name:
        folder = Path(name)
        print(f"one sync of 4 KiB: {sync_ms(folder)}")
        rate, cpu = inside(folder, options.asks, tally)
        http, p99 = over_http(folder, options.asks, tally)
        killed(folder, options.kills, tally)
        full_disk(folder, tally)
    head = ["where", "acknowledged/s", "answered/s", "p50 ms", "p99 ms", "CPU us an answer"]
    print(table(head, tally.rows))
    verdicts.check(rate >= INSIDE_MIN, f"in process {rate:,.0f} acknowledged a second, wanted {INSIDE_MIN:,};"
                   f" {cpu:.0f} us of the processor each, clients included")  # fmt: skip
    verdicts.check(http >= HTTP_MIN, f"over HTTP {http:,.0f} acknowledged a second, wanted {HTTP_MIN}")
    verdicts.check(p99 <= HTTP_P99_MS, f"over HTTP p99 {p99:.1f} ms, wanted at most {HTTP_P99_MS}")
    for fault in tally.faults[:20]:
        print(f"WRONG {fault}")
    verdicts.check(not tally.faults, f"{len(tally.faults)} violations in {tally.operations:,} operations")
    verdicts.finish()


if __name__ == "__main__":
    main()
