"""States as tables, and the one function that makes a move.

A move names the state it expects: the write fails when somebody else moved first. Every move leaves an event.
The states and their meaning are AWS's (API references; docs/reference/states.md draws them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from berth.yard.store.transaction import Row, Transaction


@dataclass(frozen=True, slots=True)
class States:
    """The moves of one kind of resource: `moves[from]` is the set of states it may go to."""

    table: str
    kind: str
    moves: Mapping[str, frozenset[str]]

    def may(self, from_state: str, to_state: str) -> bool:
        """Whether the table has this move."""
        return to_state in self.moves.get(from_state, frozenset())


TRAINING_PLAN = States(
    table="training_plans",
    kind="training-plan",
    moves={
        "Pending": frozenset({"Scheduled", "Failed"}),
        "Scheduled": frozenset({"Active"}),
        "Active": frozenset({"Scheduled", "Expired"}),
        "Failed": frozenset(),
        "Expired": frozenset(),
    },
)

ENDPOINT = States(
    table="endpoints",
    kind="endpoint",
    moves={
        "Creating": frozenset({"InService", "Failed"}),
        "InService": frozenset({"Updating", "OutOfService", "Failed", "Deleting"}),
        # Updating: the yard came back and starts the container again; or its container died and is replaced.
        "Updating": frozenset({"InService", "OutOfService", "Failed"}),
        "OutOfService": frozenset({"Deleting"}),
        "Failed": frozenset({"Deleting"}),
        "Deleting": frozenset(),
    },
)


# EC2's: the eight states of the CapacityBlock object. Nothing public tells what leads to `unavailable`,
# `cancelled` and `failed`, so nothing in a yard does; a test can put a block into them.
CAPACITY_BLOCK = States(
    table="capacity_reservations",
    kind="capacity-block",
    moves={
        "payment-pending": frozenset({"scheduled", "active", "payment-failed"}),
        "scheduled": frozenset({"active"}),
        "active": frozenset({"expired"}),
        "expired": frozenset(),
        "payment-failed": frozenset(),
        "unavailable": frozenset(),
        "cancelled": frozenset(),
        "failed": frozenset(),
    },
)


# An extension of a block (EC2: CapacityBlockExtensionStatus) and of a plan (SageMaker: free text; these five
# are in its Developer Guide).
BLOCK_EXTENSION = States(
    table="extensions",
    kind="capacity-block-extension",
    moves={
        "payment-pending": frozenset({"payment-succeeded", "payment-failed"}),
        "payment-succeeded": frozenset(),
        "payment-failed": frozenset(),
    },
)

PLAN_EXTENSION = States(
    table="extensions",
    kind="training-plan-extension",
    moves={
        "Pending": frozenset({"Scheduled", "Failed"}),
        "Scheduled": frozenset({"Active"}),
        "Active": frozenset({"Expired"}),
        "Failed": frozenset(),
        "Expired": frozenset(),
    },
)


# EC2's without `stopping` and `stopped`: a yard's instances cannot be stopped. An instance `shutting-down`
# still holds its host, which is being cleaned.
INSTANCE = States(
    table="instances",
    kind="instance",
    moves={
        "pending": frozenset({"running", "shutting-down"}),
        "running": frozenset({"shutting-down"}),
        "shutting-down": frozenset({"terminated"}),
        "terminated": frozenset(),
    },
)


# A request to raise a quota. AWS's other words (CASE_OPENED and the like) are its support's; a yard has none.
QUOTA_REQUEST = States(
    table="quota_requests",
    kind="quota-request",
    moves={
        "PENDING": frozenset({"APPROVED", "DENIED"}),
        "APPROVED": frozenset(),
        "DENIED": frozenset(),
    },
)


class MoveLost(RuntimeError):
    """The resource was not in the expected state any more, or is gone."""


def move(tx: Transaction, states: States, row: Row, to_state: str, reason: str, **columns: str | int) -> None:
    """Bring the resource of `row` (which has arn, status, account_id, region) to `to_state`.

    Further `columns` are written in the same statement. Raises ValueError for a move that the table lacks,
    MoveLost when the row changed since it was read.
    """
    from_state = row["status"]
    if not states.may(from_state, to_state):
        raise ValueError(f"{states.kind} {row['arn']}: no move from {from_state} to {to_state}")
    sets = "".join(f", {name} = ?" for name in columns)
    touched = tx.run(
        f"UPDATE {states.table} SET status = ?{sets} WHERE arn = ? AND status = ?",  # noqa: S608 - literals
        to_state, *columns.values(), row["arn"], from_state,
    )  # fmt: skip
    if touched != 1:
        raise MoveLost(f"{states.kind} {row['arn']} is not {from_state} any more")
    tx.event(
        row["arn"], states.kind, reason,
        account_id=row["account_id"], region=row["region"], from_state=from_state, to_state=to_state,
    )  # fmt: skip
