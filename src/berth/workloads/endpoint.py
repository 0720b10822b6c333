"""Deploying: model, configuration, endpoint; each step is in the journal before and after it is made.

Killed anywhere and run again it goes on: what exists and carries the order's mark is taken over, what exists
and does not is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from berth.aws.refusals import Refusal
from berth.orders.order import Order
from berth.orders.steps import Step, StepKind, StepState
from berth.terms.outcomes import BerthError, ExitCode
from berth.workloads.resources import OPERATIONS, create, delete, find, is_absent, is_taken
from berth.workloads.sites import Site

VARIANT = "AllTraffic"
RESERVED_ONLY = "capacity-reservations-only"
CONFIGURATION_LAG_S = 30.0
"""How long CreateEndpoint may fail to find a configuration that was just made (the look-up is late)."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to deploy, all names settled.

    `existing_model` names a model that is used and never deleted; None: one is made from `image`, `data_url`
    (None: the image holds its model), `role` and `environment`. `startup_limit` None is SageMaker's own.
    """

    existing_model: str | None
    image: str | None
    data_url: str | None
    role: str | None
    environment: Mapping[str, str]
    startup_limit: timedelta | None
    endpoint_name: str
    name: str

    @property
    def model_name(self) -> str:
        """The model that the endpoint runs."""
        return self.existing_model or self.name


def make_model(site: Site, order: Order, recipe: Recipe) -> Step:
    """The model, made or found."""
    if recipe.existing_model is not None:
        found = find(site, order, StepKind.MODEL, recipe.existing_model)
        if found.answer is None:
            why = found.trouble or "there is no model of that name in this account and Region"
            raise _not_launched(order, f"model {recipe.existing_model}: {why}", ExitCode.BAD_REQUEST)
        step = site.step(order, StepKind.MODEL)
        if step is not None and step.name != recipe.existing_model:
            raise _other(order, StepKind.MODEL, step, recipe.existing_model)
        if step is None:
            step = site.begin(order, StepKind.MODEL, recipe.existing_model, ours=False, detail="existing")
        return step if step.state is StepState.MADE else site.put(order, step, StepState.MADE)
    container: dict[str, Any] = {"Image": recipe.image, "Environment": dict(recipe.environment)}
    if recipe.data_url is not None:
        container["ModelDataUrl"] = recipe.data_url
    request = {
        "ModelName": recipe.name,
        "PrimaryContainer": container,
        "ExecutionRoleArn": recipe.role,
    }
    step = _ensure(site, order, StepKind.MODEL, recipe.name, request, detail=_what(recipe))
    _check_model(site, order, step, recipe)
    return step


def make_configuration(site: Site, order: Order, recipe: Recipe) -> Step:
    """The configuration that ties the model to the reservation, read back before anything runs on it."""
    variant: dict[str, Any] = {
        "VariantName": VARIANT,
        "ModelName": recipe.model_name,
        "InitialInstanceCount": order.offer.count,
        "InstanceType": order.offer.instance_type,
        "CapacityReservationConfig": {
            "CapacityReservationPreference": RESERVED_ONLY,
            "MlReservationArn": order.reservation_arn,
        },
    }
    if recipe.startup_limit is not None:
        variant["ContainerStartupHealthCheckTimeoutInSeconds"] = int(recipe.startup_limit.total_seconds())
    request = {"EndpointConfigName": recipe.name, "ProductionVariants": [variant]}
    step = _ensure(site, order, StepKind.CONFIGURATION, recipe.name, request, detail=recipe.model_name)
    _check_configuration(site, order, step, recipe)
    return step


def make_endpoint(site: Site, order: Order, recipe: Recipe) -> Step:
    """The endpoint, accepted by SageMaker but not in service yet; the step stays BEGUN until it is."""
    request = {"EndpointName": recipe.endpoint_name, "EndpointConfigName": recipe.name}
    step = site.step(order, StepKind.ENDPOINT)
    if step is not None and step.state is StepState.MADE:
        return step
    return _ensure(
        site, order, StepKind.ENDPOINT, recipe.endpoint_name, request, detail=recipe.name, accepted_only=True
    )


def endpoint_status(site: Site, order: Order, name: str) -> tuple[str, Mapping[str, Any]]:
    """The endpoint's status and description; ("absent", {}) or ("unreadable: ...", {}) when there is none.

    Raises after stopping the endpoint when it turns out not to run on the reservation (field fault 11).
    """
    found = find(site, order, StepKind.ENDPOINT, name)
    if found.answer is None:
        return (f"unreadable: {found.trouble}" if found.trouble else "absent"), {}
    strays = stray_variants(found.answer, order.reservation_arn or "")
    if strays:
        refusal = delete(site, StepKind.ENDPOINT, name)
        stopped = f"it could not be deleted: {refusal}" if refusal else "it is being deleted"
        raise _not_launched(
            order,
            f"ALARM: endpoint {name} does not run on the reservation ({'; '.join(strays)});"
            f" it would be billed on demand, so {stopped}",
        )
    return str(found.answer.get("EndpointStatus") or "unknown"), found.answer


def stray_variants(endpoint: Mapping[str, Any], reservation_arn: str) -> list[str]:
    """Which variants run on something else than the reservation.

    What is not shown, or is no ARN, proves nothing: an endpoint is deleted for what this finds.
    """
    said = []
    for variant in endpoint.get("ProductionVariants") or []:
        shown = variant.get("CapacityReservationConfig") if isinstance(variant, Mapping) else None
        arn = shown.get("MlReservationArn") if isinstance(shown, Mapping) else None
        if str(arn or "").startswith("arn:") and arn != reservation_arn:
            said.append(f"variant {variant.get('VariantName')} uses {arn}")
    return said


def _check_model(site: Site, order: Order, step: Step, recipe: Recipe) -> None:
    """A model of our mark that an earlier run made otherwise must not pass for this one."""
    found = find(site, order, StepKind.MODEL, recipe.name)
    shown = (found.answer or {}).get("PrimaryContainer") or {}
    image, url = shown.get("Image"), shown.get("ModelDataUrl")
    if (image and image != recipe.image) or (url and url != recipe.data_url):
        raise _other(order, StepKind.MODEL, replace(step, detail=f"{image} with {url}"), _what(recipe))


def _check_configuration(site: Site, order: Order, step: Step, recipe: Recipe) -> None:
    name = recipe.name
    found = find(site, order, StepKind.CONFIGURATION, name)
    if found.answer is None:
        site.warn(f"the configuration {name} is made and not shown yet; its endpoint will be checked")
        return
    for variant in found.answer.get("ProductionVariants") or []:
        shown = variant.get("CapacityReservationConfig") or {}
        asked_for = (order.reservation_arn, RESERVED_ONLY)
        if (shown.get("MlReservationArn"), shown.get("CapacityReservationPreference")) != asked_for:
            raise _not_launched(
                order,
                f"ALARM: the configuration {name} lost the reservation (AWS shows {shown or 'none'});"
                " nothing was launched on it, since it would be billed on demand",
            )
        model = variant.get("ModelName")
        if model and model != recipe.model_name:
            raise _other(order, StepKind.CONFIGURATION, replace(step, detail=model), recipe.model_name)


def _ensure(
    site: Site,
    order: Order,
    kind: StepKind,
    name: str,
    request: Mapping[str, Any],
    *,
    detail: str,
    accepted_only: bool = False,
) -> Step:
    step = site.step(order, kind)
    if step is not None and (step.name, step.detail) != (name, detail):
        raise _other(order, kind, step, detail)
    if step is not None and step.state is StepState.REMOVING:
        why = f"{OPERATIONS[kind].word} {step.name} is half removed: an earlier `berth clean` did not finish"
        raise BerthError(ExitCode.BAD_REQUEST, why, f"berth clean {order.key}", order.spending)
    if step is not None and step.state is StepState.MADE:
        return step
    begun_before = step is not None
    step = site.begin(order, kind, name, ours=True, detail=detail)
    found = find(site, order, kind, name)
    if found.answer is None and found.trouble is not None:
        raise _not_launched(order, f"{OPERATIONS[kind].word} {name} could not be read: {found.trouble}")
    if found.answer is not None:
        _check_mark(site, order, step, found.ours)
    else:
        _create(site, order, step, request, begun_before=begun_before)
    return step if accepted_only else site.put(order, step, StepState.MADE)


def _create(site: Site, order: Order, step: Step, request: Mapping[str, Any], *, begun_before: bool) -> None:
    refusal = _retried(site, step.kind, lambda: create(site, order, step.kind, request))
    if refusal is None:
        return
    if not (is_taken(refusal) or refusal.may_have_happened):
        site.put(order, step, StepState.REFUSED)
        raise _not_launched(order, f"SageMaker refused the {OPERATIONS[step.kind].word}: {refusal}")
    found = find(site, order, step.kind, step.name)
    if found.answer is not None:
        _check_mark(site, order, step, found.ours)
    elif not (is_taken(refusal) and begun_before):
        # Taken, not shown, and begun by an earlier run: its write shows late. Else it is not ours to assume.
        raise _not_launched(
            order, f"whether the {OPERATIONS[step.kind].word} {step.name} was made is not known: {refusal}"
        )


def _retried(site: Site, kind: StepKind, call: Callable[[], Refusal | None]) -> Refusal | None:
    started = site.clock.elapsed()
    while True:
        refusal = call()
        late = kind is StepKind.ENDPOINT and refusal is not None and is_absent(refusal)
        if not late or site.clock.elapsed() - started >= CONFIGURATION_LAG_S:
            return refusal
        site.clock.sleep(2.0)


def _check_mark(site: Site, order: Order, step: Step, ours: bool | None) -> None:
    if ours:
        return
    word = OPERATIONS[step.kind].word
    if ours is None:
        raise _not_launched(order, f"{word} {step.name} exists, and whether it is ours could not be read")
    site.put(order, step, StepState.REFUSED)
    raise _not_launched(
        order, f"{word} {step.name} exists and does not carry the mark of order {order.key}: left alone"
    )


def _other(order: Order, kind: StepKind, step: Step, detail: str) -> BerthError:
    return BerthError(
        ExitCode.BAD_REQUEST,
        f"order {order.key} has the {OPERATIONS[kind].word} {step.name} ({step.detail}), not {detail}",
        f"berth clean {order.key}, then deploy again",
        order.spending,
    )


def _what(recipe: Recipe) -> str:
    return f"{recipe.image} with {recipe.data_url or 'no data'}"


def _not_launched(order: Order, why: str, code: ExitCode = ExitCode.BOUGHT_NOT_LAUNCHED) -> BerthError:
    return BerthError(code, why, f"berth show {order.key}", order.spending)
