"""From a bought block to running instances: one launch a block, read back, gone on with after a crash.

A launch is in the journal before it is called, with its client token and its parameters to the letter; so a
launch whose answer was lost is repeated and gives the same instances. What already runs is counted first.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.orders.calls import asked
from berth.orders.journal import LostRace
from berth.orders.launches import Launch as Launched
from berth.orders.looks import SETTLING_TIME
from berth.orders.names import launch_token
from berth.orders.order import Order
from berth.orders.seen import SeenReservation
from berth.orders.steps import StepState
from berth.planner.launch import Launch
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode
from berth.watch.waiting import wait_for
from berth.workloads.blocks import block_by_id
from berth.workloads.instances import Instance, instances_of, not_shown_yet, read_instances
from berth.workloads.launch_preflight import closed, misfits, not_shown, reclaimed_from, too_many
from berth.workloads.launch_recipe import read_recipe, subnet_for
from berth.workloads.launch_shape import Recipe, Subnet, launch_request
from berth.workloads.preflight import check_order
from berth.workloads.sites import Site

TRIES = 5
"""How many tokens that EC2 remembers for ended instances are passed over, as after a lost journal."""
LONGEST_S = 1800.0
"""Real seconds until an instance must run."""
READ_BACKS = 6
READ_BACK_S = 1.0
NOT_STARTED = "InvalidCapacityReservationState.PendingActivation"
TOKEN_ENDED = "IdempotentInstanceTerminated"  # noqa: S105 - a code of EC2's
TOKEN_OTHER = "IdempotentParameterMismatch"  # noqa: S105 - a code of EC2's


@dataclass(frozen=True, slots=True)
class Running:
    """What runs for the order after a launch: `wanted` instances, those there, how many were started now."""

    wanted: int
    instances: tuple[Instance, ...]
    started: int


@dataclass(frozen=True, slots=True)
class Target:
    """A block that is open, and the subnet in its zone (None: EC2 takes the zone's default one)."""

    block: SeenReservation
    subnet: Subnet | None


def launch(
    site: Site,
    order: Order,
    seen: SeenReservation | None,
    said: Launch,
    *,
    wanted: int | None = None,
    others: Sequence[str] = (),
) -> Running:
    """Bring the order's instances up to `wanted` (None: all that was bought); what runs afterwards.

    `others` are ids of further blocks of the account, used in turn when the order's own is full (field fault
    35). Raises BerthError: bad request for what cannot fit, 30 when the block is bought and less runs in it
    than wanted. Nothing is called to launch before everything has been checked.
    """
    check_order(order)
    count = wanted or order.offer.count
    if seen is None:
        raise _not_launched(site, order, not_shown(order, site.clock.now()))
    blocks = [seen, *(block_by_id(site, order, one) for one in others if one != seen.name)]
    opened = _opened(site, order, blocks)
    recipe = read_recipe(site, order, said)
    targets = [Target(block, subnet_for(site, order, said, recipe, block)) for block in opened]
    _check_fit(site, order, targets, recipe, count)
    alive = _alive(site, order)
    before = len(alive)
    alive = _finish_begun(site, order, alive)
    for target in targets:
        if len(alive) < count:
            alive = [*alive, *_launch_into(site, order, target, recipe, count - len(alive))]
    alive = _read_back(site, order, alive, [block.name for block in blocks])
    if len(alive) < count:
        raise _not_launched(
            site, order, f"{len(alive)} of {count} instances run: the blocks have no more places free now"
        )
    return Running(count, tuple(alive), max(0, len(alive) - before))


def until_running(site: Site, order: Order, running: Running) -> Running:
    """Wait until every instance runs. Raises BerthError (30) when one ends instead."""
    wanted = {one.id for one in running.instances}

    def look() -> list[Instance]:
        found, _ = instances_of(site, order)
        return [one for one in found if one.id in wanted]

    def settled(found: Sequence[Instance]) -> bool:
        return any(one.is_ending for one in found) or (
            len(found) == len(wanted) and all(one.state == "running" for one in found)
        )

    def standing(found: Sequence[Instance]) -> None:
        site.talk(f"the yard's clock stands still at {iso(site.clock.now())}: berth yard clock advance 2m")

    last = wait_for(
        look,
        settled,
        site.clock,
        known=lambda found: (site.clock.now(),),
        standing=standing,
        limit_s=LONGEST_S,
    )
    bad = [f"{one.id} is {one.state} ({one.reason or 'no reason shown'})" for one in last if one.is_ending]
    if bad or not settled(last):
        raise _not_launched(
            site, order, "; ".join(bad) or f"not all instances run after {LONGEST_S / 60:.0f} minutes"
        )
    return Running(running.wanted, tuple(last), running.started)


def _opened(site: Site, order: Order, blocks: Sequence[SeenReservation]) -> list[SeenReservation]:
    """The blocks that are open now. Raises when none is."""
    now = site.clock.now()
    reasons = {block.name: closed(block, now) for block in blocks}
    opened = [block for block in blocks if not reasons[block.name]]
    if not opened:
        raise _not_launched(site, order, "\n".join(filter(None, reasons.values())))
    for reason in filter(None, reasons.values()):
        site.warn(reason)
    return opened


def _check_fit(site: Site, order: Order, targets: Sequence[Target], recipe: Recipe, count: int) -> None:
    """Raise with every reason why the launch cannot fit, one sentence each."""
    findings = [
        sentence
        for target in targets
        for sentence in misfits(
            target.block, recipe, target.subnet,
            instance_type=order.offer.instance_type, account=site.account,
        )
    ]  # fmt: skip
    findings.append(too_many(count, [target.block for target in targets]))
    told = list(dict.fromkeys(filter(None, findings)))
    if told:
        raise BerthError(ExitCode.BAD_REQUEST, "\n".join(told), None, order.spending)
    if recipe.placement_group is not None:
        site.warn(f"placement group {recipe.placement_group} is left out: a Capacity Block has none")


def _alive(site: Site, order: Order) -> list[Instance]:
    """Our instances that run or start. Raises when they cannot all be read: then more might be launched."""
    found, stopped = instances_of(site, order)
    if stopped is not None:
        raise BerthError(
            stopped.exit_code,
            f"what runs already could not be read, so nothing is launched: {stopped}",
            f"berth launch {order.key}",
            order.spending,
        )
    unseen = _not_shown_yet(site, order, {one.id for one in found})
    return [one for one in found if not one.is_ending] + unseen


def _not_shown_yet(site: Site, order: Order, shown: Set[str]) -> list[Instance]:
    """What was launched so short a time ago that EC2 may not show it; older ones not shown are gone."""
    since = site.clock.now() - SETTLING_TIME
    return [
        not_shown_yet(one, record.block, record.token)
        for record in site.journal.launches(order.key)
        if record.state is StepState.MADE and record.made_at is not None and record.made_at > since
        for one in record.instance_ids
        if one not in shown
    ]


def _finish_begun(site: Site, order: Order, alive: list[Instance]) -> list[Instance]:
    """Go on with launches that were begun and have no answer, with their token and parameters."""
    for record in site.journal.launches(order.key):
        if record.state is not StepState.BEGUN:
            continue
        known = [one for one in alive if one.token == record.token]
        if known:
            _made(site, order, record, known)
            continue
        alive = [*alive, *_call(site, order, record)]
    return alive


def _launch_into(site: Site, order: Order, target: Target, recipe: Recipe, missing: int) -> list[Instance]:
    """One launch of up to `missing` instances into the block; what it started, [] when it is full."""
    free = target.block.instances_free
    # None free may be what was seen last, of a block that cannot be read now: EC2 knows.
    most = min(missing, free) if free else missing
    for _ in range(TRIES):
        number = len(site.journal.launches(order.key)) + 1
        token = launch_token(order.key, target.block.name, number)
        request = launch_request(
            order.key, target.block, recipe, target.subnet, count=most, token=token
        )  # fmt: skip
        now = site.clock.now()
        record = Launched(number, target.block.name, token, most, StepState.BEGUN, request, (), now)
        try:
            site.journal.put_launch(order.key, record, now)
        except LostRace:
            raise _not_launched(site, order, f"another process launches for order {order.key} now") from None
        started = _call(site, order, record)
        if started or _last(site, order).state is StepState.REFUSED:
            return started
    raise _not_launched(
        site, order, f"EC2 remembers {TRIES} ended launches into {target.block.name}; try again"
    )


def _call(site: Site, order: Order, record: Launched) -> list[Instance]:
    """RunInstances, harmless to repeat: what it started. [] when the block is full, or the token was used."""
    site.talk(f"launching up to {record.count} x {order.offer.instance_type} into {record.block}")
    answer = asked(lambda: site.ec2.run_instances(**record.request))
    if not isinstance(answer, Refusal):
        return _made(site, order, record, read_instances(answer.get("Instances"), order.key))
    if answer.code in {TOKEN_ENDED, TOKEN_OTHER}:
        _put(site, order, record, StepState.REMOVED)  # launched before, by a journal that is gone
        return []
    if answer.may_have_happened:
        raise _not_launched(
            site,
            order,
            f"whether EC2 launched into {record.block} is not known ({answer}); running the same command"
            " again is safe: it repeats the launch by its token",
        )
    _put(site, order, record, StepState.REFUSED)
    if answer.kind is Kind.NO_CAPACITY:
        site.talk(f"{record.block} is full ({answer.code})")
        return []
    if answer.code == NOT_STARTED:
        raise _not_launched(
            site, order, f"AWS has not opened {record.block} yet, its start has come: {answer}"
        )
    raise _not_launched(site, order, f"EC2 refused the launch into {record.block}: {answer}")


def _made(site: Site, order: Order, record: Launched, found: Sequence[Instance]) -> list[Instance]:
    ids = tuple(one.id for one in found)
    now = site.clock.now()
    site.journal.put_launch(order.key, record.made(ids, now), now)
    return list(found)


def _put(site: Site, order: Order, record: Launched, state: StepState) -> None:
    now = site.clock.now()
    site.journal.put_launch(order.key, record.to(state, now), now)


def _last(site: Site, order: Order) -> Launched:
    return site.journal.launches(order.key)[-1]


def _read_back(site: Site, order: Order, alive: Sequence[Instance], named: Sequence[str]) -> list[Instance]:
    """The instances as EC2 describes them, compared with the blocks that they were launched into.

    `named` are the blocks of this run. Raises an ALARM for what runs elsewhere, after ending what this
    journal has launched of it: it would be billed on demand (field fault 11). What EC2 does not describe yet
    is judged by what RunInstances answered.
    """
    wanted = {one.id: one for one in alive}
    blocks = [*named, *(record.block for record in site.journal.launches(order.key))]
    said_before: dict[str, str] = {}
    for look in range(READ_BACKS):
        described, stopped = instances_of(site, order)
        shown = {one.id: one for one in described if one.id in wanted}
        found = list((wanted | shown).values())
        said = {one.id: why for one in found if (why := one.strays(blocks))}
        settled = stopped is None and len(shown) == len(wanted) and said in ({}, said_before)
        if settled or look == READ_BACKS - 1:
            break
        said_before = said
        site.clock.sleep(READ_BACK_S)
    if len(shown) < len(wanted):
        site.warn(f"EC2 describes {len(shown)} of {len(wanted)} instances so far; writes may show late")
    # One answer may be garbled: what is ended was told to run elsewhere by two in a row.
    strays = {one: why for one, why in said.items() if said_before.get(one) == why}
    if strays:
        raise _alarm(site, order, strays)
    return [one for one in found if not one.is_ending]


def _alarm(site: Site, order: Order, strays: dict[str, str]) -> BerthError:
    said = "; ".join(strays.values())
    site.journal.note(order.key, "alarm", said, site.clock.now())
    launched = {one for record in site.journal.launches(order.key) for one in record.instance_ids}
    ours = [one for one in strays if one in launched]
    ended = "this journal did not launch them, so they are left as they are: look at them now"
    if ours:
        answer = asked(lambda: site.ec2.terminate_instances(InstanceIds=ours))
        failed = f" could not be ended: {answer}" if isinstance(answer, Refusal) else " are being ended"
        ended = ", ".join(ours) + failed
    return _not_launched(
        site, order, f"ALARM: instances do not run in the block and may be billed on demand ({said}); {ended}"
    )


def _not_launched(site: Site, order: Order, why: str) -> BerthError:
    """Bought, and less runs than wanted; once AWS takes the block back, launching again can never work."""
    now = site.clock.now()
    next_step = f"berth launch {order.key}"
    if now < order.window.start:
        next_step = f"wait until {iso(order.window.start)}, then berth launch {order.key}; --wait waits"
    if reclaimed_from(order) <= now:
        next_step = f"berth clean {order.key}"
    return BerthError(ExitCode.BOUGHT_NOT_LAUNCHED, why, next_step, order.spending)


def described(running: Running) -> list[dict[str, Any]]:
    """The instances as plain values for JSON."""
    return [one.to_json() for one in running.instances]
