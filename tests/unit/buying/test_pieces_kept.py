"""Pieces in the journal: older journals stay valid, a lost one is made anew, history is whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from berth.orders.audit import read_audit
from berth.orders.journal import open_journal
from berth.orders.journal_file import place_of
from berth.orders.names import PIECES_TAG, WHOLE_TAG
from berth.orders.order import Approval, OrderState
from berth.orders.pieces.book import WholeBook
from berth.orders.pieces.whole import made_anew
from berth.orders.pieces.wording import whole_lines
from berth.orders.rebuild import Fate, marked_in, restore
from berth.storage.migrations import migrations

from .fake_aws import ACCOUNT, KEY, START
from .fake_shelf import Shopping, Stock

MIGRATIONS = "berth.orders.migrations"
BEFORE = 6


@pytest.fixture
def buyer(tmp_path: Path) -> Iterator[Shopping]:
    """A buyer of two blocks."""
    made = Shopping(tmp_path / "journal.sqlite", "blocks", Stock("100.00"), Stock("200.00", after=1, count=2))
    yield made
    made.journal.close()


def test_a_journal_of_the_release_before_keeps_its_orders(buyer: Shopping, tmp_path: Path) -> None:
    """Orders, attempts, events and steps of a journal without pieces read as before, and go on."""
    old = tmp_path / "old.sqlite"
    with sqlite3.connect(old) as db:
        db.execute("PRAGMA foreign_keys=ON")
        for number, script in migrations(MIGRATIONS):
            if number <= BEFORE:
                db.executescript(script)
        db.execute(f"PRAGMA user_version={BEFORE:d}")
        offer, now = buyer.wanted[0], 1
        db.execute(
            "INSERT INTO orders (order_id, realm, account, need, sequence, state, reservation_name, offer,"
            " context, created_at, changed_at) VALUES (?, 'aws', ?, 'eval', 1, 'buying', 'n', ?, '{}', ?, ?)",
            (f"aws {KEY.mark}", ACCOUNT, json.dumps(offer.to_json()), now, now),
        )
        db.execute(
            "INSERT INTO attempts (order_id, number, intent_id, offering_id, fee_micros, currency, holder,"
            " started_at, detail) VALUES (?, 1, 'i', 'o', 1000000, 'USD', 'p', ?, '')",
            (f"aws {KEY.mark}", now),
        )
    journal = open_journal(old, "aws")
    order = journal.order(KEY)
    assert order is not None
    assert (order.key, order.state, len(order.attempts)) == (KEY, OrderState.BUYING, 1)
    settled = journal.settle(order, OrderState.REFUSED, now=START, detail="seen nowhere")
    again = journal.intend(KEY, Approval(offer), intent_id="x", holder="p", now=START)
    assert (settled.state, len(again.attempts)) == (OrderState.REFUSED, 2)
    journal.close()
    with sqlite3.connect(old) as db:
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def test_pieces_of_a_lost_journal_become_orders_again(buyer: Shopping, tmp_path: Path) -> None:
    """Each by its mark; buying the plan again finds all of it and pays nothing. Here they were bought by a
    program that wrote on none of them how many there are."""
    buyer.buy_all()
    for block in buyer.aws.blocks.values():
        block["Tags"] = [tag for tag in block["Tags"] if tag["Key"] not in {WHOLE_TAG, PIECES_TAG}]
    journal = open_journal(tmp_path / "new.sqlite", "aws")
    nothing: Any = type("Nothing", (), {"list_training_plans": lambda self, **request: {}})()
    seen = marked_in("us-east-1", buyer.aws, nothing, ACCOUNT)
    told = restore(journal, ACCOUNT, seen.found, buyer.clock.now)
    assert sorted((one.fate, str(one.order)) for one in told) == [
        (Fate.RESTORED, "eval/1.1"),
        (Fate.RESTORED, "eval/1.2"),
    ]
    whole = made_anew(KEY, journal.orders(ACCOUNT))
    assert whole is not None
    assert [piece.fee.amount for piece in whole.pieces] == [100, 200]
    lines = whole_lines(whole, WholeBook(journal).orders(whole), buyer.clock.now())
    assert lines[0] == "order    eval: bought, as far as is known, 2 pieces"
    assert made_anew(replace(KEY, sequence=2), journal.orders(ACCOUNT)) is None
    buyer.journal.close()
    buyer.journal = journal
    bought = buyer.buy_all()
    assert bought.now == ()
    assert len(buyer.aws.ledger) == 2


def test_the_history_is_that_of_whole_and_pieces(buyer: Shopping, tmp_path: Path) -> None:
    """The whole is agreed to before any piece is intended; the audit names each."""
    buyer.buy_all()
    entries = read_audit(place_of(tmp_path / "journal.sqlite"))
    told = [(str(entry.key), entry.kind) for entry in entries]
    assert told[0] == ("eval", "agreed")
    assert {name for name, kind in told if kind == "intended"} == {"eval/1.1", "eval/1.2"}
    assert replace(KEY, piece=2) in {entry.key for entry in entries}
