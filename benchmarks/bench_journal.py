"""What the journal costs an order: in a SQLite file, and in PostgreSQL over a unix socket, both to the disk.

    python benchmarks/bench_journal.py

The server is a private one of this machine, with fsync on, and the file lies beside its data. Rounds of both
take turns. `intend` is the commit before the paid call, with its reading back; `whole order` is intend,
settle and what is seen afterwards; `open` is what a command pays before it does anything. Over a network the
round trips of an intent are added, which are counted.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from berth.orders.journal import Journal, open_journal
from berth.orders.order import Approval, OrderKey, OrderState
from berth.planner.offers import Offer, Query, Segment
from berth.storage.postgresql import PostgreSQL
from berth.storage.postgresql_address import parse_address
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window
from harness import ROOT, Verdicts, machine, table, versions

sys.path.insert(0, str(ROOT / "tests"))
import postgresql_server

ROUNDS, ORDERS = 6, 50
AT = datetime(2027, 3, 1, 12, tzinfo=UTC)
WINDOW = Window(datetime(2027, 3, 2, 11, 30, tzinfo=UTC), datetime(2027, 3, 3, 11, 30, tzinfo=UTC))
QUERY = Query(
    way=Way.CAPACITY_BLOCK, region="us-east-1", instance_type="p5.48xlarge", count=1, duration_hours=24,
    target=Target.INSTANCES,
)  # fmt: skip
OFFER = Offer(
    way=Way.CAPACITY_BLOCK, region="us-east-1", offering_id="cb-0123456789abcdef0",
    segments=(Segment(WINDOW, "use1-az4", "us-east-1d", "p5.48xlarge", 1),), count=1, seen_at=AT,
    instance_type="p5.48xlarge", fee=Money(Decimal("1146.17")), targets=("instances",), query=QUERY,
)  # fmt: skip


def timed(into: list[float], call: Callable[[], Any]) -> Any:
    """Run, and add how long it took in milliseconds."""
    began = time.perf_counter()
    answer = call()
    into.append((time.perf_counter() - began) * 1000)
    return answer


def order_once(journal: Journal, key: OrderKey, intends: list[float], wholes: list[float]) -> None:
    """One order from its intent to bought and read back."""

    def whole() -> None:
        order = timed(
            intends,
            lambda: journal.intend(key, Approval(OFFER), intent_id="i", holder="p", now=AT),
        )
        order = journal.settle(order, OrderState.BOUGHT, now=AT, detail="answered", arn="cr-1")
        journal.note_seen(order, {"state": "payment-pending"}, AT)

    timed(wholes, whole)


def round_trips(url: str) -> int:
    """How many statements one intent sends, each of which waits for its answer."""
    sent: list[str] = []
    db = PostgreSQL(parse_address(url))
    run, connection = db._connection.execute, db._connection
    connection.execute = lambda sql, *values: (sent.append(str(sql)), run(sql, *values))[1]
    Journal(db, "aws").intend(
        OrderKey("111122223333", "trips", 1), Approval(OFFER), intent_id="i", holder="p", now=AT
    )
    db.close()
    return len(sent)


def figures(values: list[float]) -> list[str]:
    """Median and 99th percentile."""
    ordered = sorted(values)
    return [f"{ordered[len(ordered) // 2]:.2f}", f"{ordered[int(len(ordered) * 0.99)]:.2f}"]


def main() -> None:
    """Both stores in turn, one table, one pass line."""
    print(machine())
    server = postgresql_server.start(fsync="on", full_page_writes="on", autovacuum="on")
    try:
        (version,) = server.execute("postgres", "SHOW server_version")[0]
        print(f"{versions('psycopg')}, PostgreSQL {version}, {ROUNDS} rounds of {ORDERS} orders each")
        with tempfile.TemporaryDirectory(dir=server.folder.parent) as folder:
            measured = measure(
                {"SQLite": Path(folder) / "journal.sqlite", "PostgreSQL": server.url(server.empty())}
            )
    finally:
        server.stop()
    rows = [
        [name, *figures(found["intend"]), *figures(found["whole"]), *figures(found["open"])]
        for name, found in measured.items()
    ]
    print(table(["ms", "intend p50", "p99", "whole order p50", "p99", "open p50", "p99"], rows))
    verdicts = Verdicts("journal")
    worst = max(sorted(found["whole"])[len(found["whole"]) // 2] for found in measured.values())
    verdicts.check(
        worst < 250, f"an order's commits take less than a quarter of a second in either: {worst:.1f} ms"
    )
    verdicts.finish()


def measure(places: dict[str, Path | str]) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of each step, by store."""
    found: dict[str, dict[str, list[float]]] = {
        name: {"intend": [], "whole": [], "open": []} for name in places
    }
    for place in places.values():
        open_journal(place, "aws").close()
    print(f"round trips of one intent: {round_trips(str(places['PostgreSQL']))}")
    for round_number in range(ROUNDS):
        for name, place in places.items():
            one = found[name]
            for _ in range(5):
                timed(one["open"], lambda place=place: open_journal(place, "aws")).close()
            journal = open_journal(place, "aws")
            for number in range(1, ORDERS + 1):
                key = OrderKey("111122223333", f"r{round_number}", number)
                order_once(journal, key, one["intend"], one["whole"])
            journal.close()
    return found


if __name__ == "__main__":
    main()
