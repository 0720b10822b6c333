"""Money in the journal's tables: what counts against caps, requests for approval, approvals."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Protocol

from berth.orders.approvals import ApprovalRequest, GivenApproval, canonical, request_from
from berth.orders.order import IN_DOUBT, OrderKey, OrderState
from berth.orders.pieces.rows import Agreed, agreed, whole_id_of
from berth.orders.spending import Booked
from berth.storage.database import Answer
from berth.terms.instants import from_micros, to_micros
from berth.terms.money import Money


class Reads(Protocol):
    """What runs a statement (`storage.database.Database`)."""

    def execute(self, sql: str, values: Any = (), /) -> Answer:
        """Run one statement."""
        ...


COUNTS = frozenset({*IN_DOUBT, OrderState.BOUGHT, OrderState.DISPUTED})
"""States of an order whose money was spent, or may have been."""

_STATES = ", ".join(f"'{state}'" for state in sorted(COUNTS))

# What a piece costs is its whole's.
_WHOSE = "COALESCE(orders.whole, orders.order_id)"

# Of an order only the latest attempt can have spent: a further one is made when the one before is known to
# have bought nothing. Each statement takes realm, instant and order, and names the same columns.
_ORDERS = (
    f"SELECT {_WHOSE} AS order_id, orders.team AS team, attempts.started_at AS at,"  # noqa: S608 - constants
    " attempts.fee_micros AS micros, attempts.currency AS currency"
    " FROM orders JOIN attempts ON attempts.order_id = orders.order_id"
    f" WHERE orders.realm = ? AND orders.state IN ({_STATES})"
    f" AND (attempts.started_at >= ? OR {_WHOSE} = ?)"
    " AND attempts.number = (SELECT MAX(number) FROM attempts latest"
    " WHERE latest.order_id = orders.order_id)"
)
_EXTENSIONS = (
    f"SELECT {_WHOSE} AS order_id, orders.team AS team, extensions.started_at AS at,"  # noqa: S608 - constants
    " extensions.fee_micros AS micros, extensions.currency AS currency"
    " FROM orders JOIN extensions ON extensions.order_id = orders.order_id"
    " WHERE orders.realm = ? AND extensions.state IN ('buying', 'unknown', 'bought')"
    f" AND (extensions.started_at >= ? OR {_WHOSE} = ?)"
)
SPENT = (_ORDERS, _EXTENSIONS)
"""One statement for each table that holds paid intents; whoever adds such a table adds its statement."""

# Pieces that somebody is about to buy: agreed to, and not intended yet. `piece` tells which.
_AGREED = (
    "SELECT pieces.whole AS order_id, wholes.team AS team, wholes.changed_at AS at,"  # noqa: S608 - constants
    " pieces.fee_micros AS micros, pieces.currency AS currency, pieces.order_id AS piece"
    " FROM pieces JOIN wholes ON wholes.order_id = pieces.whole"
    " WHERE wholes.realm = ? AND wholes.state = 'buying'"
    " AND (wholes.changed_at >= ? OR wholes.order_id = ?)"
    " AND NOT EXISTS (SELECT 1 FROM pieces later WHERE later.whole = pieces.whole"
    " AND later.instead_of = pieces.number)"
    " AND NOT EXISTS (SELECT 1 FROM orders WHERE orders.order_id = pieces.order_id"
    f" AND orders.state IN ({_STATES}))"
)


class JournalLedger:
    """The ledger of one realm, read through `db`; inside of a write it reads what that write stands on."""

    def __init__(self, db: Reads, realm: str) -> None:
        self._db = db
        self._realm = realm

    def booked(
        self, since: datetime | None, order: str, about: frozenset[str] = frozenset()
    ) -> tuple[Booked, ...]:
        """See `spending_gate.Ledger`."""
        values = (self._realm, 0 if since is None else to_micros(since), f"{self._realm} {order}")
        rows = [row for sql in SPENT for row in self._db.execute(sql, values).fetchall()]
        own = {f"{self._realm} {mark}" for mark in about}
        rows += [row for row in self._db.execute(_AGREED, values).fetchall() if row["piece"] not in own]
        return tuple(
            Booked(
                from_micros(row["at"]),
                Money.from_micros(row["micros"], row["currency"]),
                row["order_id"].removeprefix(f"{self._realm} "),
                row["team"],
            )
            for row in rows
        )

    def whole_of(self, order: str) -> str:
        """See `spending_gate.Ledger`."""
        whole = whole_id_of(self._db, f"{self._realm} {order}")
        return order if whole is None else whole.removeprefix(f"{self._realm} ")

    def agreed(self, key: OrderKey) -> Agreed | None:
        """See `spending_gate.Ledger`."""
        return agreed(self._db, self._realm, key)

    def requests(self, key: OrderKey | None = None) -> tuple[ApprovalRequest, ...]:
        """The requests of the order (None: of every order), the latest first."""
        found = self._db.execute(
            "SELECT document, asked_at FROM approval_requests WHERE realm = ? AND order_id LIKE ?"
            " ORDER BY asked_at DESC, hash",
            (self._realm, "%" if key is None else f"{self._realm} {key.mark}"),
        ).fetchall()
        return tuple(request_from(json.loads(row["document"]), from_micros(row["asked_at"])) for row in found)

    def given(self, request: ApprovalRequest) -> tuple[GivenApproval, ...]:
        """See `spending_gate.Ledger`. An approval of another amount than the request's is none."""
        rows = self._db.execute(
            "SELECT approver, approved_at, amount_micros, currency FROM approvals"
            " WHERE realm = ? AND hash = ? ORDER BY approved_at, approver",
            (self._realm, request.hash),
        ).fetchall()
        found = (
            GivenApproval(
                request.hash,
                row["approver"],
                from_micros(row["approved_at"]),
                Money.from_micros(row["amount_micros"], row["currency"]),
            )
            for row in rows
        )
        return tuple(one for one in found if one.amount == request.amount)

    def alarmed(self, request: ApprovalRequest) -> bool:
        """Whether somebody was told of the request."""
        row = self._db.execute(
            "SELECT alarmed_at FROM approval_requests WHERE realm = ? AND hash = ?",
            (self._realm, request.hash),
        ).fetchone()
        return row is not None and row["alarmed_at"] is not None


def insert_request(db: Reads, request: ApprovalRequest, alarm: bool) -> None:
    """Keep a request; `alarm`: it is told aloud."""
    asked_at = to_micros(request.asked_at)
    db.execute(
        "INSERT INTO approval_requests (realm, hash, order_id, document, asked_at, alarmed_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (request.realm, request.hash, f"{request.realm} {request.key.mark}", canonical(request.document()),
         asked_at, asked_at if alarm else None),
    )  # fmt: skip


def insert_approval(db: Reads, realm: str, given: GivenApproval) -> None:
    """Keep an approval; one that is kept already stays as it was."""
    known = db.execute(
        "SELECT approver FROM approvals WHERE realm = ? AND hash = ? AND approver = ?",
        (realm, given.hash, given.approver),
    ).fetchone()
    if known is None:
        db.execute(
            "INSERT INTO approvals (realm, hash, approver, approved_at, amount_micros, currency)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (realm, given.hash, given.approver, to_micros(given.at), given.amount.micros,
             given.amount.currency),
        )  # fmt: skip
