"""Amazon Resource Names of what a yard keeps."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ARN = re.compile(r"arn:(aws[a-z-]*):([a-z0-9-]+):([a-z0-9-]*):(\d{12}):([a-z-]+)/(.+)")


def partition_of(region: str) -> str:
    """The partition of a Region by its name (botocore's partition table has the same prefixes)."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def sagemaker_arn(region: str, account_id: str, kind: str, name: str) -> str:
    """`arn:aws:sagemaker:us-east-1:111122223333:training-plan/eval-1`.

    Endpoint ARNs carry the name in lower case while EndpointName keeps its case
    (https://github.com/aws/amazon-sagemaker-examples/issues/293); the same is done for all kinds but plans.
    """
    return f"arn:{partition_of(region)}:sagemaker:{region}:{account_id}:{kind}/{name}"


def ec2_arn(region: str, account_id: str, kind: str, resource_id: str) -> str:
    """`arn:aws:ec2:us-east-2:111122223333:capacity-reservation/cr-0123456789abcdef0`."""
    return f"arn:{partition_of(region)}:ec2:{region}:{account_id}:{kind}/{resource_id}"


@dataclass(frozen=True, slots=True)
class Arn:
    """The parts of an ARN."""

    partition: str
    service: str
    region: str
    account_id: str
    kind: str
    name: str


def read_arn(text: str) -> Arn | None:
    """The parts, or None when `text` is not an ARN with `kind/name`."""
    found = _ARN.fullmatch(text)
    return Arn(*found.groups()) if found else None
