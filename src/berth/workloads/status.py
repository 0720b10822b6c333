"""What runs for an order as it stands, for those who only look."""

from __future__ import annotations

from typing import Any

from berth.orders.order import Order
from berth.orders.shops.capacity_blocks import id_of
from berth.orders.steps import NOTHING_LEFT, Step, StepKind
from berth.terms.text import plain
from berth.workloads.endpoint import stray_variants
from berth.workloads.instances import instances_of
from berth.workloads.resources import find
from berth.workloads.sites import Site


def endpoint_step(site: Site, order: Order) -> Step | None:
    """The endpoint that was made for the order and not removed; None when there is none."""
    step = site.journal.steps(order.key).get(StepKind.ENDPOINT)
    return None if step is None or step.state in NOTHING_LEFT else step


def instances_now(site: Site, order: Order) -> list[dict[str, Any]]:
    """The order's instances as EC2 describes them, ended ones left out; [] and a warning when unreadable.

    `stray` says why one does not run in a block of the order's, '' when it does; `ending` that it is going.
    """
    if order.reservation_arn is None:
        return []
    found, stopped = instances_of(site, order)
    if stopped is not None:
        site.warn(f"what runs could not all be read: {stopped}")
    blocks = [id_of(order.reservation_arn), *(one.block for one in site.journal.launches(order.key))]
    return [
        {**one.to_json(), "ending": one.is_ending, "stray": one.strays(blocks)}
        for one in found
        if not one.is_ended
    ]


def endpoint_now(site: Site, order: Order) -> dict[str, Any] | None:
    """Name, status, reason and strays of the order's endpoint, read and not changed; None: there is none.

    `status` is SageMaker's word, `absent` when it is not there (any more), `unreadable: ...` when it could
    not be read. `strays` names variants that do not run on the reservation.
    """
    step = endpoint_step(site, order)
    if step is None:
        return None
    found = find(site, order, StepKind.ENDPOINT, step.name)
    if found.answer is None:
        status = f"unreadable: {found.trouble}" if found.trouble else "absent"
        return {"name": step.name, "status": status, "reason": None, "strays": []}
    reason = found.answer.get("FailureReason")
    return {
        "name": step.name,
        "status": plain(found.answer.get("EndpointStatus") or "unknown", 64),
        "reason": None if reason is None else plain(reason, 1024),
        "strays": stray_variants(found.answer, order.reservation_arn or ""),
    }
