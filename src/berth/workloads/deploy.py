"""From an order and a deployment to an endpoint in service, or to a plain account of why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from berth.orders.calls import pages
from berth.orders.names import workload_name
from berth.orders.order import Order
from berth.orders.seen import SeenReservation, Stage
from berth.orders.shops.training_plans import seen_plan
from berth.orders.steps import StepKind, StepState
from berth.planner.need import Deployment
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain
from berth.terms.ways import Target
from berth.watch.waiting import wait_for
from berth.workloads.artefact import bring_to_s3, packed, with_spending
from berth.workloads.endpoint import Recipe, endpoint_status, make_configuration, make_endpoint, make_model
from berth.workloads.preflight import check_order, check_target, check_window
from berth.workloads.sites import Site

STARTING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack", "absent"})
SETTLED = frozenset({"InService", "Failed", "OutOfService", "Deleting", "UpdateRollbackFailed"})
"""The other words of SageMaker's EndpointStatus (API reference, DescribeEndpoint, read 2026-11)."""
_USELESS = frozenset({"Failed", "OutOfService", "Deleting"})
_ENDED = frozenset({Stage.OVER, Stage.FAILED})
UNCLEAR_S = 60.0
"""Real seconds for which an endpoint's state is looked for while no answer can be understood."""
LONGEST_S = 3 * 3600.0
"""Real seconds until an endpoint must be in service: an hour of start-up limit, and what comes before it."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Where local artefacts go: an S3 client that may write, the bucket, and the Region to make it in."""

    s3: Any
    bucket: str
    region: str


def deploy(
    site: Site,
    order: Order,
    seen: SeenReservation | None,
    deployment: Deployment,
    storage: Callable[[], Storage],
) -> str:
    """Put the deployment into the order's reservation; the endpoint's name once it is in service.

    Each step is committed before and after it is made, so that a run which was killed is gone on with. Raises
    BerthError: bad request for what cannot be, 30 when the reservation is bought and nothing serves in it.
    """
    check_order(order)
    check_target(order, seen, reservations_for(site, Target.ENDPOINT))
    check_window(order, seen, site.clock.now())
    recipe = _recipe(site, order, deployment, storage)
    make_model(site, order, recipe)
    make_configuration(site, order, recipe)
    step = make_endpoint(site, order, recipe)
    status, answer = _until_settled(site, order, recipe.endpoint_name)
    if status != "InService":
        raise _not_serving(order, recipe.endpoint_name, status, answer)
    if step.state is not StepState.MADE:
        site.put(order, step, StepState.MADE)
    _say_what_it_runs_on(site, answer)
    return recipe.endpoint_name


def reservations_for(site: Site, target: Target) -> list[SeenReservation]:
    """The account's training plans of this Region that serve `target` and are not over; [] if unreadable."""
    found, stopped = pages(site.sagemaker.list_training_plans, "TrainingPlanSummaries", MaxResults=100)
    if stopped is not None:
        site.warn(f"the account's training plans could not all be read: {stopped}")
    plans = [seen_plan(summary, "") for summary in found if isinstance(summary, Mapping)]
    return [one for one in plans if one and target in one.targets and one.stage not in _ENDED]


def _recipe(site: Site, order: Order, deployment: Deployment, storage: Callable[[], Storage]) -> Recipe:
    name = workload_name(order.key)
    return Recipe(
        existing_model=deployment.model_name,
        image=deployment.image,
        data_url=_data_url(site, order, deployment.data, storage),
        role=deployment.role,
        environment=dict(deployment.environment),
        startup_limit=deployment.startup_timeout,
        endpoint_name=deployment.endpoint_name or name,
        name=name,
    )


def _data_url(site: Site, order: Order, data: str | None, storage: Callable[[], Storage]) -> str | None:
    """Where the artefact lies in S3: as named, or brought there now."""
    if data is None or "://" in data:
        return data
    try:
        with packed(Path(data)) as archive:
            place = storage()
            url = bring_to_s3(
                place.s3,
                archive,
                bucket=place.bucket,
                prefix=f"berth/{workload_name(order.key)}",
                region=place.region,
                talk=site.talk,
            )
    except BerthError as error:
        raise with_spending(error, order.spending) from None
    step = site.step(order, StepKind.DATA)
    if step is None or step.name != url:
        site.put(order, site.begin(order, StepKind.DATA, url, ours=True, detail=str(data)), StepState.MADE)
    return url


def _not_serving(order: Order, name: str, status: str, answer: Mapping[str, Any]) -> BerthError:
    """Why the endpoint is not known to serve. Clearing up is advised only where nothing can be serving."""
    if status not in SETTLED | STARTING:
        return BerthError(
            ExitCode.INCOMPLETE,
            f"endpoint {name} was accepted, and its state could not be read ({status}): it may be in service",
            f"berth show {order.key} looks again; so does the same command, which makes nothing twice",
            order.spending,
        )
    reason = plain(answer.get("FailureReason") or "no reason given", 1024)
    clear = f"berth clean {order.key}, then deploy again"
    return BerthError(
        ExitCode.BOUGHT_NOT_LAUNCHED,
        f"endpoint {name} is {status}: {reason}",
        clear if status in _USELESS else f"berth show {order.key}: it may serve yet, so nothing is removed",
        order.spending,
    )


def _until_settled(site: Site, order: Order, name: str) -> tuple[str, Mapping[str, Any]]:
    """The endpoint's status once it is settled; what no answer told within UNCLEAR_S is returned as it is."""
    told: set[str] = set()
    clear_at = site.clock.elapsed()

    def look() -> tuple[str, Mapping[str, Any]]:
        nonlocal clear_at
        status, answer = endpoint_status(site, order, name)
        if status in SETTLED | STARTING:
            clear_at = site.clock.elapsed()
        if status not in told:
            site.talk(f"endpoint {name}: {status}")
            told.add(status)
        return status, answer

    def settled(seen: tuple[str, Mapping[str, Any]]) -> bool:
        return seen[0] in SETTLED or site.clock.elapsed() - clear_at >= UNCLEAR_S

    def standing(seen: tuple[str, Mapping[str, Any]]) -> None:
        if seen[0] == "absent":
            site.talk(
                f"the yard's clock stands still at {iso(site.clock.now())}: `berth yard clock advance 6m`"
            )

    def known(seen: tuple[str, Mapping[str, Any]]) -> tuple[datetime, ...]:
        return (site.clock.now(),)  # a start takes minutes: look tightly all the time

    return wait_for(look, settled, site.clock, known=known, standing=standing, limit_s=LONGEST_S)


def _say_what_it_runs_on(site: Site, answer: Mapping[str, Any]) -> None:
    for variant in answer.get("ProductionVariants") or []:
        shown = variant.get("CapacityReservationConfig") or {}
        used, total = shown.get("UsedByCurrentEndpoint"), shown.get("TotalInstanceCount")
        if used is None or total is None:
            site.warn("the endpoint is in service; AWS does not show how much of the reservation it uses")
        else:
            site.talk(f"reserved: {used} of {total} instances of the training plan in use by this endpoint")
