"""InvokeEndpoint: a request to a container and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.engines.engine import Answer, ContainerUnreachable, Invocation
from berth.yard.errors import ServiceError
from berth.yard.services.operation import Call, relays
from berth.yard.store.transaction import Reading, Row

# The headers that SageMaker hands on to a container (Developer Guide, "Use your own inference code").
_HANDED_ON = {
    "ContentType": "content-type",
    "Accept": "accept",
    "CustomAttributes": "x-amzn-sagemaker-custom-attributes",
    "TargetModel": "x-amzn-sagemaker-target-model",
    "InferenceId": "x-amzn-sagemaker-inference-id",
}
_SHOWN_MAX = 1024


def _find(call: Call, rows: Reading) -> Row:
    name = call.params["EndpointName"]
    row = rows.one(
        "SELECT * FROM endpoints WHERE account_id = ? AND region = ? AND name_folded = ? AND name = ?",
        call.account.account_id, call.region, name.lower(), name,
    )  # fmt: skip
    if row is None:
        raise ServiceError(
            "ValidationError", f"Endpoint {name} of account {call.account.account_id} not found."
        )
    return row


def _log_address(call: Call) -> str:
    group = f"/aws/sagemaker/Endpoints/{call.params['EndpointName']}"
    return f"logs of this yard: group {group} in account {call.account.account_id}"


def _model_error(call: Call, status: int, shown: str, message: str) -> ServiceError:
    return ServiceError(
        "ModelError",
        message,
        status=424,
        members={
            "OriginalStatusCode": status,
            "OriginalMessage": shown,
            "LogStreamArn": f"arn:aws:logs:{call.region}:{call.account.account_id}:log-group:"
            f"/aws/sagemaker/Endpoints/{call.params['EndpointName']}",
        },
    )


def _choose(call: Call, variants: list[Row], draw: float) -> Row:
    """The named variant, else one by weight. `draw` is from [0, 1)."""
    wanted = call.params.get("TargetVariant")
    if wanted is not None:
        for row in variants:
            if row["name"] == wanted:
                return row
        raise ServiceError("ValidationError", f"Variant {wanted} not found for the request.")
    total = sum(row["weight"] for row in variants)
    for row in variants:
        draw -= row["weight"] / total if total else 1.0
        if draw < 0:
            return row
    return variants[-1]


@relays("sagemaker-runtime", "InvokeEndpoint")
async def invoke_endpoint(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Relays the body to the variant's container; what the container refuses is a ModelError (424)."""
    row = _find(call, rows)
    if row["status"] == "OutOfService":
        raise _model_error(
            call, 0, "", "Endpoint capacity reservation has expired. Please update endpoint configuration."
        )
    variants = rows.all(
        "SELECT * FROM variants WHERE endpoint_arn = ? AND state = 'ready' ORDER BY name", row["arn"]
    )
    if not variants:
        raise ServiceError(
            "ValidationError", f"Endpoint {row['name']} is {row['status']} and cannot serve requests."
        )
    variant = _choose(call, variants, int(yard.ids.hex(8), 16) / 2**32)
    headers = {to: call.params[member] for member, to in _HANDED_ON.items() if call.params.get(member)}
    try:
        answer = await yard.engine.invoke(
            variant["container_key"], Invocation(call.params.get("Body", b""), headers)
        )
    except ContainerUnreachable as problem:
        message = (
            'Received server error (0) from primary with message "Your invocation timed out while waiting'
            " for a response from container primary. Review the latency metrics for each container in Amazon"
            f' CloudWatch, resolve the issue, and try again.". {problem}. See {_log_address(call)}.'
        )
        raise _model_error(call, 0, str(problem), message) from None
    return _shape(call, variant, answer)


def _shape(call: Call, variant: Row, answer: Answer) -> dict[str, Any]:
    if answer.status >= 400:
        shown = answer.body[:_SHOWN_MAX].decode("utf-8", "replace")
        side = "client" if answer.status < 500 else "server"
        raise _model_error(
            call, answer.status, shown,
            f'Received {side} error ({answer.status}) from primary with message "{shown}".'
            f" See {_log_address(call)}.",
        )  # fmt: skip
    headers: Mapping[str, str] = answer.headers
    result: dict[str, Any] = {
        "Body": answer.body,
        "ContentType": headers.get("content-type", "application/octet-stream"),
        "InvokedProductionVariant": variant["name"],
    }
    custom = headers.get("x-amzn-sagemaker-custom-attributes")
    if custom:
        result["CustomAttributes"] = custom
    return result
