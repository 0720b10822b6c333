"""IAM policies for what Berth sends, and the organisation's policy that leaves paying to one role. Pure.

Which action knows which resource and condition key: service authorization reference for EC2, and the managed
policy AmazonSageMakerTrainingPlanCreateAccess v6 (read 2026-10). SageMaker's own page of condition keys was
not read; what follows from that is in docs/howto/least-privilege.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.aws.permissions import ASSUME, FOUR_PAID, Role, sent_by

VERSION = "2012-10-17"  # of the policy language
MARK = "berth:order"
# Size limits without white space (IAM and Organizations quotas): a managed policy, a service control policy.
LARGEST_POLICY = 6144
LARGEST_CONTROL_POLICY = 5120

_PLANS = "sagemaker:{region}:{account}:training-plan/*"
_RESERVED = "sagemaker:{region}:{account}:reserved-capacity/*"
_MODELS = "sagemaker:{region}:{account}:model/*"
_CONFIGS = "sagemaker:{region}:{account}:endpoint-config/*"
_ENDPOINTS = "sagemaker:{region}:{account}:endpoint/*"
_BLOCKS = "ec2:{region}:{account}:capacity-reservation/*"
_BLOCKS_THEMSELVES = "ec2:{region}:{account}:capacity-block/*"
_INSTANCES = "ec2:{region}:{account}:instance/*"
_ROLES = "iam::{account}:role/*"
_USERS = "iam::{account}:user/*"
_BUCKET = "s3:::{bucket}"
_ARTEFACTS = "s3:::{bucket}/*"
# What RunInstances touches beside the instance. Images and snapshots have no account in their ARN.
_BESIDE_INSTANCES = (
    _BLOCKS,
    "ec2:{region}::image/*",
    "ec2:{region}::snapshot/*",
    *(
        f"ec2:{{region}}:{{account}}:{kind}/*"
        for kind in ("key-pair", "launch-template", "network-interface", "security-group", "subnet", "volume")
    ),
)

Condition = Mapping[str, Mapping[str, str | Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Grant:
    """One IAM action that a sent operation needs, in the statement `sid`.

    `action` None: the operation's own name. Grants of one `sid` have the same condition, and share resources:
    an action matches only ARNs of the kinds that it knows. `resources` are ARNs
    without `arn:PARTITION:`; `*` alone where the action knows none.
    """

    sid: str
    resources: tuple[str, ...]
    action: str | None = None
    condition: Condition = field(default_factory=dict)


_ANYWHERE = (Grant("NoResourceKnown", ("*",)),)


def _read(*resources: str) -> tuple[Grant, ...]:
    return (Grant("ReadSageMaker", resources),)


def _s3(action: str, *resources: str) -> tuple[Grant, ...]:
    return (Grant("KeepModels", resources, f"s3:{action}"),)


def _made(*resources: str, tagged: str) -> tuple[Grant, ...]:
    """Making something of SageMaker's with tags needs AddTags, for that making alone."""
    making = {"sagemaker:TaggingAction": ["CreateEndpoint", "CreateEndpointConfig", "CreateModel"]}
    return (
        Grant("ServeModels", resources),
        Grant("MarkWhatServes", (tagged,), "sagemaker:AddTags", {"StringEquals": making}),
    )


def _serving(resource: str) -> tuple[Grant, ...]:
    return (Grant("ServeModels", (resource,)),)


def _quota(action: str) -> tuple[Grant, ...]:
    """IAM's name of Service Quotas is not botocore's."""
    return (Grant("NoResourceKnown", ("*",), f"servicequotas:{action}"),)


def _adopted(*resources: str) -> tuple[Grant, ...]:
    """Marking what was bought elsewhere: only with an order's mark among the tags."""
    return (Grant("MarkAdopted", resources, condition={"Null": {f"aws:RequestTag/{MARK}": "false"}}),)


# Operations that are not allowed simply by their own name on `*`.
GRANTS: Mapping[str, tuple[Grant, ...]] = {
    "sagemaker:DescribeTrainingPlan": _read(_PLANS),
    "sagemaker:DescribeEndpoint": _read(_ENDPOINTS),
    "sagemaker:DescribeEndpointConfig": _read(_CONFIGS),
    "sagemaker:DescribeModel": _read(_MODELS),
    "sagemaker:ListTags": _read(_PLANS, _ENDPOINTS, _CONFIGS, _MODELS),
    "sagemaker:CreateTrainingPlan": (
        Grant("BuyTrainingPlans", (_PLANS, _RESERVED)),
        # Permission-only: no such operation exists, and buying a plan needs it.
        Grant("BuyTrainingPlans", (_PLANS, _RESERVED), "sagemaker:CreateReservedCapacity"),
        # In the managed policy's own statement for buying.
        Grant("BuyTrainingPlans", (_PLANS, _RESERVED), "sagemaker:DescribeReservedCapacity"),
        Grant(
            "MarkBoughtTrainingPlans", (_PLANS, _RESERVED), "sagemaker:AddTags",
            {"StringEquals": {"sagemaker:TaggingAction": ["CreateReservedCapacity", "CreateTrainingPlan"]}},
        ),
    ),
    "ec2:PurchaseCapacityBlock": (
        Grant("BuyCapacityBlocks", (_BLOCKS,)),
        Grant(
            "MarkBoughtCapacityBlocks", (_BLOCKS, _BLOCKS_THEMSELVES), "ec2:CreateTags",
            {"StringEquals": {"ec2:CreateAction": "PurchaseCapacityBlock"}},
        ),
    ),
    # The service authorization reference: both act on the reservation, and neither tags anything.
    "ec2:DescribeCapacityBlockExtensionOfferings": (Grant("SearchBlockExtensions", (_BLOCKS,)),),
    "ec2:PurchaseCapacityBlockExtension": (Grant("BuyCapacityBlocks", (_BLOCKS,)),),
    # Newer than the managed policy that was read: the plan is what it acts on.
    "sagemaker:ExtendTrainingPlan": (Grant("BuyTrainingPlans", (_PLANS, _RESERVED)),),
    "sagemaker:DescribeTrainingPlanExtensionHistory": _read(_PLANS),
    "sagemaker:CreateModel": _made(_MODELS, tagged=_MODELS),
    "sagemaker:CreateEndpointConfig": _made(_CONFIGS, _PLANS, tagged=_CONFIGS),
    "sagemaker:CreateEndpoint": _made(_ENDPOINTS, _CONFIGS, _PLANS, tagged=_ENDPOINTS),
    "sagemaker:DeleteEndpoint": _serving(_ENDPOINTS),
    "sagemaker:DeleteEndpointConfig": _serving(_CONFIGS),
    "sagemaker:DeleteModel": _serving(_MODELS),
    "sagemaker:InvokeEndpoint": _serving(_ENDPOINTS),
    "ec2:RunInstances": (
        Grant(
            "LaunchInCapacityBlocksOnly", (_INSTANCES,),
            condition={"StringEquals": {"ec2:InstanceMarketType": "capacity-block"}},
        ),
        Grant("LaunchWith", _BESIDE_INSTANCES),
        Grant(
            "MarkLaunchedInstances", (_INSTANCES,), "ec2:CreateTags",
            {"StringEquals": {"ec2:CreateAction": "RunInstances"}},
        ),
    ),
    "ec2:TerminateInstances": (
        Grant(
            "EndMarkedInstances", (_INSTANCES,),
            condition={"Null": {f"aws:ResourceTag/{MARK}": "false"}},
        ),
    ),
    "iam:GetRole": (Grant("AskForOwnRights", (_ROLES,)),),
    "iam:SimulatePrincipalPolicy": (Grant("AskForOwnRights", (_ROLES, _USERS)),),
    "service-quotas:GetAWSDefaultServiceQuota": _quota("GetAWSDefaultServiceQuota"),
    "service-quotas:GetServiceQuota": _quota("GetServiceQuota"),
    "service-quotas:ListRequestedServiceQuotaChangeHistory": _quota("ListRequestedServiceQuotaChangeHistory"),
    "service-quotas:ListRequestedServiceQuotaChangeHistoryByQuota": _quota(
        "ListRequestedServiceQuotaChangeHistoryByQuota"
    ),
    "service-quotas:ListServiceQuotas": _quota("ListServiceQuotas"),
    "ec2:CreateTags": _adopted(_BLOCKS),
    "sagemaker:AddTags": _adopted(_PLANS),
    # S3 names rights and operations apart; without ListBucket an absent object is answered as forbidden.
    "s3:HeadBucket": _s3("ListBucket", _BUCKET),
    "s3:CreateBucket": _s3("CreateBucket", _BUCKET),
    "s3:HeadObject": _s3("GetObject", _ARTEFACTS),
    "s3:PutObject": _s3("PutObject", _ARTEFACTS),
    "s3:CreateMultipartUpload": _s3("PutObject", _ARTEFACTS),
    "s3:UploadPart": _s3("PutObject", _ARTEFACTS),
    "s3:CompleteMultipartUpload": _s3("PutObject", _ARTEFACTS),
    "s3:AbortMultipartUpload": _s3("AbortMultipartUpload", _ARTEFACTS),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a policy holds. `account` None: any; no `regions`: every one, in the commercial partition.

    `bucket` is where `berth deploy` brings artefacts (None: the bucket that SageMaker's own tools use).
    `pass_roles` are ARNs of the roles that endpoints and instances may run as; none: none. `assume_roles` are
    ARNs of the roles, of other accounts too, that may be assumed; none: none.
    """

    account: str | None = None
    regions: tuple[str, ...] = ()
    bucket: str | None = None
    pass_roles: tuple[str, ...] = ()
    assume_roles: tuple[str, ...] = ()


def policy(role: Role, scope: Scope = Scope()) -> dict[str, Any]:
    """The identity policy that allows exactly what the role's verbs send.

    Roles are assumed with the keys of whoever stands behind them: only for those that `scope` names is there
    a statement.
    """
    statements = _statements(sent_by(role) - {ASSUME})
    made = [_allow(sid, actions, grants, scope) for sid, (actions, grants) in statements.items()]
    if scope.pass_roles and role is Role.DEPLOY:
        made.append(_pass_roles(scope))
    if scope.assume_roles:
        roles = sorted(scope.assume_roles)
        made.append({"Sid": "AssumeRoles", "Effect": "Allow", "Action": ASSUME, "Resource": roles})
    return {"Version": VERSION, "Statement": made}


def control_policy(buyer_roles: Sequence[str]) -> dict[str, Any]:
    """The service control policy that denies the four paid calls to all but the buyer roles.

    `aws:PrincipalArn` of a session is its role's ARN (IAM global condition keys). Raises ValueError for what
    is no ARN of one role, since a wrong one would shut everybody out or nobody.
    """
    for arn in buyer_roles:
        check_role(arn)
    return {
        "Version": VERSION,
        "Statement": [
            {
                "Sid": "OnlyTheBuyerPays",
                "Effect": "Deny",
                "Action": list(FOUR_PAID),
                "Resource": "*",
                "Condition": {"ArnNotEquals": {"aws:PrincipalArn": list(buyer_roles)}},
            }
        ],
    }


def check_role(arn: str) -> None:
    """Raise ValueError unless `arn` is the ARN of one IAM role, without wildcards."""
    if not re.fullmatch(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+", arn, re.ASCII):
        raise ValueError(
            f"not the ARN of one IAM role: {arn!r}; write it like arn:aws:iam::123456789012:role/buyer"
        )


# First letters of Region names, by partition (botocore's partitions.json); the others are commercial.
_PARTITIONS = (
    ("cn-", "aws-cn"),
    ("us-gov-", "aws-us-gov"),
    ("eusc-", "aws-eusc"),
    ("us-isob-", "aws-iso-b"),
    ("us-isof-", "aws-iso-f"),
    ("us-iso-", "aws-iso"),
    ("eu-isoe-", "aws-iso-e"),
)


def partition_of(region: str) -> str:
    """The partition of a Region, by its name."""
    return next((name for start, name in _PARTITIONS if region.startswith(start)), "aws")


def size(document: Mapping[str, Any]) -> int:
    """Characters of a policy as IAM counts them, without white space."""
    return len(json.dumps(document, separators=(",", ":")))


def _statements(sent: Iterable[str]) -> dict[str, tuple[list[str], list[Grant]]]:
    """Actions and grants by statement, what knows no resource first, then in the order of GRANTS."""
    order = {operation: number for number, operation in enumerate(GRANTS)}
    found: dict[str, tuple[list[str], list[Grant]]] = {}
    for operation in sorted(sent, key=lambda one: (order.get(one, -1), one)):
        for grant in GRANTS.get(operation, _ANYWHERE):
            actions, grants = found.setdefault(grant.sid, ([], []))
            actions.append(grant.action or operation)
            grants.append(grant)
    return found


def _allow(sid: str, actions: Sequence[str], grants: Sequence[Grant], scope: Scope) -> dict[str, Any]:
    resources = dict.fromkeys(arn for grant in grants for one in grant.resources for arn in _arns(one, scope))
    statement = {
        "Sid": sid,
        "Effect": "Allow",
        "Action": sorted(set(actions)),
        "Resource": sorted(resources) if len(resources) > 1 else next(iter(resources)),
    }
    condition = grants[0].condition
    return {**statement, "Condition": {k: dict(v) for k, v in condition.items()}} if condition else statement


def _arns(resource: str, scope: Scope) -> Iterator[str]:
    if resource == "*":
        yield resource
        return
    account = scope.account or "*"
    for region in scope.regions or ("*",):
        bucket = scope.bucket or f"sagemaker-{region}-{account}"
        yield f"arn:{partition_of(region)}:" + resource.format(region=region, account=account, bucket=bucket)


def _pass_roles(scope: Scope) -> dict[str, Any]:
    china = any(partition_of(region) == "aws-cn" for region in scope.regions)
    return {
        "Sid": "PassRoles",
        "Effect": "Allow",
        "Action": "iam:PassRole",
        "Resource": sorted(scope.pass_roles),
        "Condition": {
            "StringEquals": {
                "iam:PassedToService": [
                    f"ec2.amazonaws.com{'.cn' if china else ''}", "sagemaker.amazonaws.com",
                ]
            }
        },
    }  # fmt: skip
