"""Training plans put into a rehearsal ready made, for tests: any state, any window, past ones too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from berth.terms.instants import to_micros
from berth.terms.money import Money
from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.assembly import Yard
from berth.yard.fleet.fleet import pools_for
from berth.yard.fleet.pools import SAGEMAKER, Pool
from berth.yard.lifecycle.moves import TRAINING_PLAN
from berth.yard.market.bookings import book
from berth.yard.services.arns import sagemaker_arn
from berth.yard.services.sagemaker.plan_life import arm_window, begin_plan, bill
from berth.yard.store.transaction import Row, Transaction

_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*")  # of the model
NAME_MAX = 64


@dataclass(frozen=True, slots=True)
class PlanSeed:
    """A plan as a test wants it. `state` is one of SageMaker's; `fee` is billed unless Pending or Failed."""

    account: str
    region: str
    name: str
    instance_type: str
    count: int
    target: Target
    window: Window
    fee: Money
    state: str


def seed_training_plan(tx: Transaction, yard: Yard, seed: PlanSeed) -> str:
    """Put the plan in; its ARN. Raises ValueError when the fleet has no room or the values make no sense."""
    if seed.state not in TRAINING_PLAN.moves:
        raise ValueError(f"no state {seed.state!r}; there are {', '.join(TRAINING_PLAN.moves)}")
    if seed.count < 1:
        raise ValueError("count must be at least 1")
    if not _NAME.fullmatch(seed.name) or len(seed.name) > NAME_MAX:
        raise ValueError(
            f"no name for a training plan: {seed.name!r}; letters, digits and - inside, at most 64"
        )
    if seed.fee.amount < 0:
        raise ValueError(f"a fee is not negative: {seed.fee}")
    _check_state(tx, yard, seed)
    arn = sagemaker_arn(seed.region, seed.account, "training-plan", seed.name)
    if tx.one("SELECT 1 FROM training_plans WHERE arn = ?", arn) is not None:
        raise ValueError(f"a plan named {seed.name!r} exists already")
    live = seed.state not in ("Failed", "Expired")
    pool = _pool(yard, seed, live)
    tx.insert(
        "training_plans",
        arn=arn, account_id=seed.account, region=seed.region, name=seed.name, status=seed.state,
        status_message="", targets=seed.target.value, instance_type=seed.instance_type, count=seed.count,
        pool=pool.key, zone_id=pool.zone_id, start_us=to_micros(seed.window.start),
        end_us=to_micros(seed.window.end), fee_micros=seed.fee.micros, currency=seed.fee.currency,
        offering_id="tpo-seeded", created_us=tx.now_us,
    )  # fmt: skip
    if live:
        book(
            tx, yard.calendars, pool=pool.key, face=SAGEMAKER, window=seed.window, count=seed.count,
            holder=arn,
        )  # fmt: skip
    tx.event(arn, "training-plan", "seeded", account_id=seed.account, region=seed.region, to_state=seed.state)
    _arm(tx, yard, seed, arn)
    return arn


def _check_state(tx: Transaction, yard: Yard, seed: PlanSeed) -> None:
    """A state must go with the window, or the timers would ask for moves that the table lacks."""
    begun, over = seed.window.start <= tx.now, seed.window.end <= tx.now
    fits = {
        "Pending": seed.window.start > tx.now + yard.fleet.payment_delay,
        "Scheduled": not begun,
        "Active": begun and not over,
        "Expired": over,
        "Failed": True,
    }
    if not fits[seed.state]:
        raise ValueError(
            f"a plan cannot be {seed.state} with the window {seed.window.start} to {seed.window.end}"
        )


def _pool(yard: Yard, seed: PlanSeed, live: bool) -> Pool:
    pools = pools_for(yard.fleet, seed.region, face=SAGEMAKER, type=seed.instance_type)
    for pool in pools:
        if not live or yard.calendars.fits(pool, SAGEMAKER, seed.window, seed.count):
            return pool
    raise ValueError(f"no room for {seed.count} x {seed.instance_type} in {seed.region} in that window")


def _arm(tx: Transaction, yard: Yard, seed: PlanSeed, arn: str) -> None:
    row: Row | None = tx.one("SELECT * FROM training_plans WHERE arn = ?", arn)
    assert row is not None
    if seed.state == "Pending":
        begin_plan(tx, yard, arn)
    elif seed.state != "Failed":
        arm_window(tx, row)
        bill(tx, row, "training-plan", f"training plan {seed.name}: seeded")
