"""What the wire costs: microseconds to parse, serialise and verify one request, and to load and compile.

Run it with `python benchmarks/wire.py`. Figures are the best of several repetitions on one thread; trust
ratios within one run more than the figures themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import timeit
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from berth.yard.wire import sigv4
from berth.yard.wire.http import Request
from berth.yard.wire.service import SERVICES, load

INSTANT = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
RESERVATION: dict[str, Any] = {
    "CapacityReservationId": "cr-0123456789abcdef0",
    "OwnerId": "111122223333",
    "CapacityReservationArn": "arn:aws:ec2:us-east-2:111122223333:capacity-reservation/cr-0123456789abcdef0",
    "AvailabilityZone": "us-east-2a",
    "AvailabilityZoneId": "use2-az1",
    "InstanceType": "p5.48xlarge",
    "InstancePlatform": "Linux/UNIX",
    "Tenancy": "default",
    "TotalInstanceCount": 2,
    "AvailableInstanceCount": 1,
    "EbsOptimized": True,
    "EphemeralStorage": False,
    "State": "active",
    "StartDate": INSTANT,
    "EndDate": INSTANT,
    "EndDateType": "limited",
    "InstanceMatchCriteria": "targeted",
    "CreateDate": INSTANT,
    "ReservationType": "capacity-block",
    "Tags": [{"Key": "purchase-id", "Value": "u1"}],
}
PLAN: dict[str, Any] = {
    "TrainingPlanArn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/plan",
    "TrainingPlanName": "plan",
    "Status": "Active",
    "DurationHours": 24,
    "DurationMinutes": 0,
    "StartTime": INSTANT,
    "EndTime": INSTANT,
    "UpfrontFee": "229.00",
    "CurrencyCode": "USD",
    "TotalInstanceCount": 1,
    "AvailableInstanceCount": 1,
    "InUseInstanceCount": 0,
    "TargetResources": ["endpoint"],
    "ReservedCapacitySummaries": [
        {
            "ReservedCapacityArn": "arn:aws:sagemaker:us-east-1:111122223333:reserved-capacity/plan-rc1",
            "InstanceType": "ml.trn1.32xlarge",
            "TotalInstanceCount": 1,
            "Status": "Active",
            "AvailabilityZone": "us-east-1a",
            "StartTime": INSTANT,
            "EndTime": INSTANT,
        }
    ],
}
FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8", "host": "yard"}
JSON = {
    "content-type": "application/x-amz-json-1.1",
    "x-amz-target": "SageMaker.DescribeTrainingPlan",
    "host": "yard",
}


def micros(call: Callable[[], object], times: int = 2_000) -> float:
    call()
    return min(timeit.repeat(call, number=times, repeat=5)) / times * 1e6


def show(what: str, figure: float, unit: str = "us") -> None:
    print(f"{what:<58}{figure:>12,.1f} {unit}")


def signed(request: Request, secret: str, now: datetime) -> tuple[Request, sigv4.Claim]:
    """The request with a signature of our own making; the tests sign with botocore."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {**request.headers, "x-amz-date": stamp}
    names = tuple(sorted(headers))
    credential = f"YARDKEY/{stamp[:8]}/us-east-1/sagemaker/aws4_request"
    start = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={';'.join(names)}, Signature="
    claim = sigv4.read_claim(replace(request, headers={**headers, "authorization": start + "0" * 64}))
    text = sigv4.string_to_sign(
        replace(request, headers=headers), claim, hashlib.sha256(request.body).hexdigest()
    )
    key = sigv4.day_key(secret, claim.date, claim.region, claim.service)
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    whole = replace(request, headers={**headers, "authorization": start + signature})
    return whole, sigv4.read_claim(whole)


def main() -> None:
    for service in SERVICES:
        started = time.perf_counter()
        load(service)
        show(f"load {service}", (time.perf_counter() - started) * 1e3, "ms")

    ec2, sagemaker = load("ec2"), load("sagemaker")
    fields = {
        "Action": "DescribeCapacityReservations",
        "Version": "2016-11-15",
        "CapacityReservationId.1": "cr-0123456789abcdef0",
        "Filter.1.Name": "state",
        "Filter.1.Value.1": "active",
        "MaxResults": "100",
    }
    query = Request("POST", "/", "", FORM, urlencode(fields).encode())
    document = Request("POST", "/", "", JSON, json.dumps({"TrainingPlanName": "plan"}).encode())

    started = time.perf_counter()
    ec2.parse(
        "RunInstances",
        Request("POST", "/", "", FORM, b"Action=RunInstances&Version=2016-11-15&MinCount=1&MaxCount=1"),
    )
    show("first RunInstances: compiles its shapes", (time.perf_counter() - started) * 1e3, "ms")
    show("EC2 operation name", micros(lambda: ec2.operation_name(query)))
    show(
        "EC2 DescribeCapacityReservations, parse",
        micros(lambda: ec2.parse("DescribeCapacityReservations", query)),
    )
    for count, times in ((1, 2_000), (100, 40), (1_000, 4)):
        result = {"CapacityReservations": [RESERVATION] * count}
        size = len(ec2.serialise("DescribeCapacityReservations", result, "id").body)
        cost = micros(lambda: ec2.serialise("DescribeCapacityReservations", result, "id"), times)  # noqa: B023
        show(f"EC2 DescribeCapacityReservations, serialise {count} ({size:,} bytes)", cost)
    show("SageMaker operation name", micros(lambda: sagemaker.operation_name(document)))
    show(
        "SageMaker DescribeTrainingPlan, parse",
        micros(lambda: sagemaker.parse("DescribeTrainingPlan", document)),
    )
    size = len(sagemaker.serialise("DescribeTrainingPlan", PLAN, "id").body)
    cost = micros(lambda: sagemaker.serialise("DescribeTrainingPlan", PLAN, "id"))
    show(f"SageMaker DescribeTrainingPlan, serialise ({size:,} bytes)", cost)

    now = datetime.now(UTC).replace(microsecond=0)
    request, claim = signed(document, "secret", now)
    verifier, tolerance = sigv4.Verifier(), timedelta(minutes=5)
    show("signature, read the claim", micros(lambda: sigv4.read_claim(request)))
    show(
        "signature, check with the day's key",
        micros(lambda: verifier.check(request, claim, "secret", now, tolerance)),
    )
    show(
        "signature, check without it",
        micros(lambda: sigv4.Verifier().check(request, claim, "secret", now, tolerance)),
    )


if __name__ == "__main__":
    main()
