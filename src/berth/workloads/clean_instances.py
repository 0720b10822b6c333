"""Ending an order's instances: those that carry its mark and no others, and waiting until they are gone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from berth.aws.refusals import Kind, Refusal
from berth.orders.calls import asked
from berth.orders.order import Order
from berth.orders.steps import NOTHING_LEFT, StepState
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode
from berth.watch.waiting import wait_for
from berth.workloads.instances import Instance, instances_by_id, instances_of
from berth.workloads.sites import Site

LONGEST_S = 1800.0
"""Real seconds that ending may take: shutting down and cleaning take "several minutes" (EC2 guide, 2026)."""


def clean_instances(site: Site, order: Order, *, wait: bool) -> tuple[str, ...]:
    """End the order's instances and wait until they are terminated; what was ended, in words.

    Running it again does no harm. Where a yard's clock stands still, `wait` False does not wait for it to be
    moved. Raises BerthError (30) for what could not be ended, or is not at its end yet.
    """
    first = _left(site, order)
    if not first:
        _mark(site, order, StepState.REMOVED)
        return ()
    _mark(site, order, StepState.REMOVING)
    site.talk(
        f"ending {', '.join(one.id for one in first)}; AWS cleans the hosts then (minutes), and only after"
        " that their places in the block are free again"
    )

    def standing(left: Sequence[Instance]) -> None:
        site.talk(
            f"the yard's clock stands still at {iso(site.clock.now())}; hosts are cleaned in its time:"
            " berth yard clock advance 10m"
        )

    def known(left: Sequence[Instance]) -> tuple[datetime, ...]:
        return (site.clock.now(),)  # minutes at most: look tightly all the time

    last = wait_for(
        lambda: _end(site, order),
        lambda left: not left,
        site.clock,
        known=known,
        standing=standing,
        limit_s=LONGEST_S,
        stop_standing=not wait,
    )
    if last:
        raise BerthError(
            ExitCode.BOUGHT_NOT_LAUNCHED,
            f"not at their end yet: {', '.join(f'{one.id} ({one.state})' for one in last)}",
            f"berth clean {order.key}",
            order.spending,
        )
    _mark(site, order, StepState.REMOVED)
    return tuple(f"instance {one.id}" for one in first)


def _end(site: Site, order: Order) -> list[Instance]:
    """Ask once more for the end of what is not ending; what is still there."""
    left = _left(site, order)
    ids = [one.id for one in left if not one.is_ending]
    if not ids:
        return left
    answer = asked(lambda: site.ec2.terminate_instances(InstanceIds=ids))
    refused = isinstance(answer, Refusal) and not answer.may_have_happened
    if isinstance(answer, Refusal) and refused and answer.kind not in {Kind.NOT_FOUND, Kind.THROTTLED}:
        raise BerthError(
            ExitCode.BOUGHT_NOT_LAUNCHED,
            f"{', '.join(ids)} could not be ended: {answer}",
            f"berth clean {order.key}",
            order.spending,
        )
    return _left(site, order)


def _left(site: Site, order: Order) -> list[Instance]:
    """Our instances that are not terminated; what the journal knows and has lost its mark is left alone."""
    found, stopped = instances_of(site, order)
    launched = [
        instance_id
        for record in site.journal.launches(order.key)
        if record.state not in NOTHING_LEFT
        for instance_id in record.instance_ids
    ]
    unmarked = sorted(set(launched) - {one.id for one in found})
    others, more = instances_by_id(site, order, unmarked)
    trouble = stopped or more
    if trouble is not None:
        raise BerthError(
            ExitCode.BOUGHT_NOT_LAUNCHED,
            f"what runs could not be read: {trouble}",
            f"berth clean {order.key}",
            order.spending,
        )
    for one in others:
        if not one.ours and not one.is_ending:
            site.warn(f"instance {one.id} does not carry the mark of order {order.key}: left alone")
    return [one for one in found if not one.is_ended]


def _mark(site: Site, order: Order, state: StepState) -> None:
    now = site.clock.now()
    for record in site.journal.launches(order.key):
        if record.state not in NOTHING_LEFT and record.state is not state:
            site.journal.put_launch(order.key, record.to(state, now), now)
