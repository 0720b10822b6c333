"""What becomes of an endpoint by itself: containers report, its plan is reclaimed, the yard comes back."""

from __future__ import annotations

from berth.yard.assembly import Yard
from berth.yard.engines.engine import Report, ReportKind
from berth.yard.lifecycle.moves import ENDPOINT, move
from berth.yard.services.sagemaker.tags import untag_all
from berth.yard.store.transaction import Row, Transaction

DEATHS_MAX = 5
REASON_MAX = 1024
_RECLAIMED = "The training plan's capacity was reclaimed: it ends 30 minutes from the plan's end."


def _endpoint(tx: Transaction, arn: str) -> Row | None:
    return tx.one("SELECT * FROM endpoints WHERE arn = ?", arn)


def delete_endpoint_row(tx: Transaction, arn: str) -> None:
    """The endpoint is gone; what it held of its plan is free."""
    row = _endpoint(tx, arn)
    if row is None:
        return
    tx.run("DELETE FROM endpoints WHERE arn = ?", arn)
    untag_all(tx, arn)
    tx.event(
        arn, "endpoint", "deleted",
        account_id=row["account_id"], region=row["region"], from_state=row["status"], to_state="Deleted",
    )  # fmt: skip


def fail_endpoint(tx: Transaction, yard: Yard, arn: str, reason: str) -> None:
    """The endpoint is Failed for good: its containers are ended and its instances given back."""
    row = _endpoint(tx, arn)
    if row is None or not ENDPOINT.may(row["status"], "Failed"):
        return
    move(tx, ENDPOINT, row, "Failed", reason, failure_reason=reason[:REASON_MAX], modified_us=tx.now_us)
    _release(tx, yard, arn)


def _release(tx: Transaction, yard: Yard, arn: str) -> None:
    keys = [row["container_key"] for row in tx.all("SELECT * FROM variants WHERE endpoint_arn = ?", arn)]
    tx.run("DELETE FROM variants WHERE endpoint_arn = ?", arn)
    tx.afterwards(lambda: yard.provisioner.stop_all(keys))


def reclaim_plan(tx: Transaction, yard: Yard, plan_arn: str) -> None:
    """Thirty minutes before its end the plan takes its instances back: its endpoints stop serving."""
    tx.run("UPDATE training_plans SET reclaimed = 1 WHERE arn = ?", plan_arn)
    arns = tx.all("SELECT DISTINCT endpoint_arn FROM variants WHERE plan_arn = ?", plan_arn)
    for found in arns:
        row = _endpoint(tx, found["endpoint_arn"])
        if row is None or row["status"] == "Deleting":
            continue
        if ENDPOINT.may(row["status"], "OutOfService"):
            move(
                tx, ENDPOINT, row, "OutOfService", _RECLAIMED,
                failure_reason=_RECLAIMED, modified_us=tx.now_us,
            )  # fmt: skip
            _release(tx, yard, row["arn"])
        else:
            fail_endpoint(tx, yard, row["arn"], _RECLAIMED)


def take_report(tx: Transaction, yard: Yard, report: Report) -> None:
    """A container said something; late news of a container that nobody knows any more is ignored."""
    variant = tx.one("SELECT * FROM variants WHERE container_key = ?", report.key)
    if variant is None:
        if report.kind is not ReportKind.READY:
            tx.afterwards(lambda: yard.provisioner.forget(report.key))
        return
    row = _endpoint(tx, variant["endpoint_arn"])
    assert row is not None
    if row["status"] == "Deleting":
        if report.kind is not ReportKind.READY:
            _ended(tx, yard, row, report.key)
    elif report.kind is ReportKind.READY:
        _ready(tx, row, report.key)
    elif report.kind is ReportKind.FAILED:
        fail_endpoint(tx, yard, row["arn"], report.reason)
    elif report.kind is ReportKind.DIED:
        _died(tx, yard, row, variant, report.reason)


def _ended(tx: Transaction, yard: Yard, row: Row, key: str) -> None:
    """A container of an endpoint that is being deleted is gone; with the last one the endpoint goes."""
    tx.run("DELETE FROM variants WHERE container_key = ?", key)
    tx.afterwards(lambda: yard.provisioner.forget(key))
    if tx.one("SELECT 1 FROM variants WHERE endpoint_arn = ?", row["arn"]) is None:
        delete_endpoint_row(tx, row["arn"])


def _ready(tx: Transaction, row: Row, key: str) -> None:
    tx.run("UPDATE variants SET state = 'ready' WHERE container_key = ?", key)
    waiting = tx.one("SELECT 1 FROM variants WHERE endpoint_arn = ? AND state != 'ready'", row["arn"])
    if waiting is None and row["status"] in ("Creating", "Updating"):
        move(tx, ENDPOINT, row, "InService", "ping answered 200", failure_reason="", modified_us=tx.now_us)


def _died(tx: Transaction, yard: Yard, row: Row, variant: Row, reason: str) -> None:
    """SageMaker replaces an unhealthy instance by itself; at the fifth death this yard gives up."""
    if variant["deaths"] + 1 >= DEATHS_MAX:
        fail_endpoint(tx, yard, row["arn"], f"{reason} (died {DEATHS_MAX} times)")
        return
    tx.run(
        "UPDATE variants SET state = 'starting', deaths = deaths + 1 WHERE container_key = ?",
        variant["container_key"],
    )
    if row["status"] == "InService":
        move(
            tx, ENDPOINT, row, "Updating", reason,
            failure_reason=reason[:REASON_MAX], modified_us=tx.now_us,
        )  # fmt: skip
    tx.afterwards(lambda: yard.provisioner.launch(row["arn"]))


def come_back(tx: Transaction, yard: Yard) -> list[str]:
    """After a start of the yard: what was serving is Updating until its container answers again.

    The ARNs of the endpoints whose containers must be started. Deleting endpoints are gone: nothing of them
    runs any more.
    """
    for row in tx.all("SELECT * FROM endpoints WHERE status = 'Deleting'"):
        delete_endpoint_row(tx, row["arn"])
    for row in tx.all("SELECT * FROM endpoints WHERE status = 'InService'"):
        move(tx, ENDPOINT, row, "Updating", "the yard was started again", modified_us=tx.now_us)
    tx.run("UPDATE variants SET state = 'starting' WHERE state = 'ready'")
    alive = tx.all("SELECT arn FROM endpoints WHERE status IN ('Creating', 'Updating') ORDER BY arn")
    return [row["arn"] for row in alive]
