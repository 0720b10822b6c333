"""Instances of an order as EC2 describes them: found by the order's mark, each with its block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from berth.aws.refusals import Refusal
from berth.orders.calls import pages
from berth.orders.names import ORDER_TAG, is_ours
from berth.orders.order import Order, OrderKey
from berth.orders.seen import instant, listed, text
from berth.terms.instants import iso
from berth.workloads.sites import Site

OTHER_LIFECYCLES = frozenset({"spot", "scheduled"})
"""EC2's words for instances that were bought otherwise than from a block (API reference, read 2026-11)."""
ENDED = frozenset({"terminated"})
ENDING = frozenset({"shutting-down"}) | ENDED
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance. None: EC2 did not show it. `state` is EC2's word, "unknown" where it shows none.

    `block` is the Capacity Reservation that it runs in, `lifecycle` EC2's word for how it is bought; EC2
    shows neither for an instance on demand.
    """

    id: str
    state: str
    block: str | None
    lifecycle: str | None
    instance_type: str | None
    zone: str | None
    token: str | None
    launched_at: datetime | None
    reason: str | None
    ours: bool

    @property
    def is_ended(self) -> bool:
        """Whether it is gone for good and its host is cleaned."""
        return self.state in ENDED

    @property
    def is_ending(self) -> bool:
        """Whether it is gone, or going and not to be stopped."""
        return self.state in ENDING

    def strays(self, blocks: Sequence[str]) -> str:
        """Why it does not run in one of `blocks`; '' when it does, or when nothing proves that it does not.

        What is left out of two members proves nothing, nor does a word that EC2 is not known to use.
        """
        if self.block is not None and self.block.startswith("cr-") and self.block not in blocks:
            return f"{self.id} runs in {self.block}"
        if self.lifecycle in OTHER_LIFECYCLES:
            return f"{self.id} is a {self.lifecycle} instance"
        if self.block is None and self.lifecycle is None:
            return f"{self.id} shows no block, as an instance on demand does"
        return ""

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "id": self.id,
            "state": self.state,
            "block": self.block,
            "lifecycle": self.lifecycle,
            "instance_type": self.instance_type,
            "zone": self.zone,
            "launched_at": iso(self.launched_at) if self.launched_at else None,
            "reason": self.reason,
        }


def not_shown_yet(instance_id: str, block: str, token: str) -> Instance:
    """An instance that was launched and that EC2 does not describe yet, from what the journal knows."""
    return Instance(
        id=instance_id, state="not shown yet", block=block, lifecycle=None, instance_type=None, zone=None,
        token=token, launched_at=None, reason=None, ours=True,
    )  # fmt: skip


def read_instances(found: object, key: OrderKey) -> list[Instance]:
    """The instances of a list as RunInstances and DescribeInstances give it; those without an id left out."""
    read = (_instance(one, key) for one in listed(found) if isinstance(one, Mapping))
    return [one for one in read if one is not None]


def instances_of(site: Site, order: Order) -> tuple[list[Instance], Refusal | None]:
    """Every instance with the order's mark, ended ones while EC2 shows them; and what stopped the reading.

    DescribeInstances documents the filter `tag:<key>` (API reference, read 2026-11).
    """
    mine = [{"Name": f"tag:{ORDER_TAG}", "Values": [order.key.mark]}]
    found, stopped = _described(site, order, mine)
    return [one for one in found if one.ours], stopped


def instances_by_id(site: Site, order: Order, ids: Sequence[str]) -> tuple[list[Instance], Refusal | None]:
    """Those of `ids` that EC2 shows, whoever's mark they carry. A filter finds less where an id fails."""
    if not ids:
        return [], None
    return _described(site, order, [{"Name": "instance-id", "Values": list(ids)}])


def _described(
    site: Site, order: Order, filters: list[dict[str, Any]]
) -> tuple[list[Instance], Refusal | None]:
    groups, stopped = pages(site.ec2.describe_instances, "Reservations", Filters=filters, MaxResults=_PAGE)
    found = [
        one
        for group in groups
        if isinstance(group, Mapping)
        for one in read_instances(group.get("Instances"), order.key)
    ]
    return found, stopped


def _instance(answer: Mapping[str, Any], key: OrderKey) -> Instance | None:
    instance_id = text(answer.get("InstanceId"))
    if instance_id is None:
        return None
    return Instance(
        id=instance_id,
        state=text(_within(answer, "State").get("Name")) or "unknown",
        block=text(answer.get("CapacityReservationId")),
        lifecycle=text(answer.get("InstanceLifecycle")),
        instance_type=text(answer.get("InstanceType")),
        zone=text(_within(answer, "Placement").get("AvailabilityZone")),
        token=text(answer.get("ClientToken")),
        launched_at=instant(answer.get("LaunchTime")),
        reason=text(_within(answer, "StateReason").get("Message")),
        ours=is_ours(_tags(answer.get("Tags")), key),
    )


def _within(answer: Mapping[str, Any], member: str) -> Mapping[str, Any]:
    value = answer.get(member)
    return value if isinstance(value, Mapping) else {}


def _tags(value: object) -> dict[str, str]:
    return {str(tag.get("Key")): str(tag.get("Value")) for tag in listed(value) if isinstance(tag, Mapping)}
