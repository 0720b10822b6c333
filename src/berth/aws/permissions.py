"""What each verb sends: one table, by which the guards refuse and the policies are printed.

An operation that no verb lists here is refused before it is built (`guards.py`), and no printed policy
allows it (`policies.py`): a new call needs its row. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

ASSUME = "sts:AssumeRole"
# Keys may be those of a role, of a profile or of an account that a need names.
_WHO = frozenset({"sts:GetCallerIdentity", ASSUME})
_SEARCH = frozenset(
    {
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeCapacityBlockOfferings",
        "ec2:DescribeInstanceTypeOfferings",
        "sagemaker:SearchTrainingPlanOfferings",
    }
)
_LOOK = frozenset(
    {
        "ec2:DescribeCapacityReservations",
        "sagemaker:DescribeTrainingPlan",
        "sagemaker:ListTags",
        "sagemaker:ListTrainingPlans",
    }
)
_PRICES = frozenset({"ec2:DescribeSpotPriceHistory", "ec2:GetSpotPlacementScores", "pricing:GetProducts"})
# What bounds the ways that are paid by the hour, and what runs against it now.
_QUOTAS = frozenset(
    {
        "ec2:DescribeInstances",
        "service-quotas:GetAWSDefaultServiceQuota",
        "service-quotas:GetServiceQuota",
        "service-quotas:ListServiceQuotas",
    }
)
_BUY = frozenset({"ec2:PurchaseCapacityBlock", "sagemaker:CreateTrainingPlan"})
_EXTENSIONS = frozenset(
    {"ec2:DescribeCapacityBlockExtensionHistory", "sagemaker:DescribeTrainingPlanExtensionHistory"}
)
_EXTEND = frozenset(
    {
        "ec2:DescribeCapacityBlockExtensionOfferings",
        "ec2:PurchaseCapacityBlockExtension",
        "sagemaker:ExtendTrainingPlan",
        "sagemaker:SearchTrainingPlanOfferings",
    }
)
_SERVING = frozenset(
    {
        "sagemaker:DescribeEndpoint",
        "sagemaker:DescribeEndpointConfig",
        "sagemaker:DescribeModel",
        "sagemaker:ListTags",
    }
)
_SERVE = frozenset({"sagemaker:CreateEndpoint", "sagemaker:CreateEndpointConfig", "sagemaker:CreateModel"})
_UPLOAD = frozenset(
    {
        "s3:AbortMultipartUpload",
        "s3:CompleteMultipartUpload",
        "s3:CreateBucket",
        "s3:CreateMultipartUpload",
        "s3:HeadBucket",
        "s3:HeadObject",
        "s3:PutObject",
        "s3:UploadPart",
    }
)
_LAUNCH = frozenset(
    {
        "ec2:DescribeImages",
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplateVersions",
        "ec2:DescribeSubnets",
        "ec2:RunInstances",
        "ec2:TerminateInstances",
    }
)

# What a checkup asks; EC2's reads also as a DryRun where IAM may not be asked.
_OWN_RIGHTS = frozenset({"iam:GetRole", "iam:SimulatePrincipalPolicy"})
_CHECK = _OWN_RIGHTS | frozenset(
    {
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeImages",
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplateVersions",
        "ec2:DescribeRegions",
        "ec2:DescribeSpotPriceHistory",
        "ec2:DescribeSubnets",
        "sagemaker:DescribeModel",
        "service-quotas:GetAWSDefaultServiceQuota",
        "service-quotas:GetServiceQuota",
        "service-quotas:ListRequestedServiceQuotaChangeHistoryByQuota",
        "service-quotas:ListServiceQuotas",
    }
)
_LIST = frozenset(
    {
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeRegions",
        "sagemaker:DescribeEndpoint",
        "sagemaker:ListEndpoints",
    }
)

_PLAN = _WHO | _SEARCH | _LOOK | _PRICES | _QUOTAS
_PURCHASE = _WHO | _SEARCH | _LOOK | _BUY
# An endpoint that does not run on the reservation is deleted at once.
_DEPLOY = _WHO | _LOOK | _SERVING | _SERVE | _UPLOAD | {"sagemaker:DeleteEndpoint"}
_START = _WHO | _LOOK | _LAUNCH
_CLEAN = (
    _WHO
    | _LOOK
    | _SERVING
    | {"ec2:DescribeInstances", "ec2:TerminateInstances"}
    | {"sagemaker:DeleteEndpoint", "sagemaker:DeleteEndpointConfig", "sagemaker:DeleteModel"}
)

VERBS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "plan": _PLAN | _OWN_RIGHTS,
        "buy": _PURCHASE,
        "extend": _WHO | _LOOK | _EXTENSIONS | _EXTEND,
        "renewal": _PLAN | _EXTENSIONS | {"ec2:DescribeCapacityBlockExtensionOfferings"},
        "show": _WHO | _LOOK | _EXTENSIONS | {"ec2:DescribeInstances", "sagemaker:DescribeEndpoint"},
        "ls": _WHO | _LOOK | _LIST,
        "rebuild": _WHO | _LOOK | _EXTENSIONS | {"ec2:DescribeRegions"},
        "leave": _WHO
        | _LOOK
        | _LIST
        | {"ec2:DescribeInstances", "service-quotas:ListRequestedServiceQuotaChangeHistory"},
        "doctor": _WHO | _CHECK,
        "adopt": _WHO | _LOOK | {"ec2:CreateTags", "sagemaker:AddTags"},
        "deploy": _DEPLOY,
        "launch": _START,
        "invoke": _WHO | {"sagemaker:InvokeEndpoint"},
        "clean": _CLEAN,
        "run": _PLAN | _PURCHASE | _DEPLOY | _START | _CLEAN,
        "approve": _WHO,
        "approvals": _WHO | _SEARCH,
        "audit": frozenset(),
        "history": frozenset(),
        "policy": frozenset(),
    }
)
"""Verb to what it may send, each as `service:Operation` in AWS's words; `s3` operations too are API names."""

SENT = frozenset(row.partition(":")[2] for rows in VERBS.values() for row in rows)
"""Names of all operations that some verb sends."""

FOUR_PAID = (
    "ec2:PurchaseCapacityBlock",
    "ec2:PurchaseCapacityBlockExtension",
    "sagemaker:CreateTrainingPlan",
    "sagemaker:ExtendTrainingPlan",
)
"""IAM actions that commit a reservation's fee, with no way back."""


class Role(StrEnum):
    """Whom a policy is printed for."""

    READ = "read"
    WATCH = "watch"
    BUY = "buy"
    DEPLOY = "deploy"


ROLES: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {
        Role.READ: ("plan", "renewal", "doctor", "show", "ls", "leave", "rebuild"),
        Role.WATCH: ("show", "ls", "approve", "leave"),
        Role.BUY: (
            *("plan", "buy", "approvals", "extend", "renewal", "adopt", "doctor", "show", "ls", "leave"),
            "rebuild",
        ),
        Role.DEPLOY: ("deploy", "launch", "invoke", "clean", "show", "ls", "leave"),
    }
)
"""The verbs that each role runs. `berth run` needs BUY and DEPLOY together."""


def sent_by(role: Role) -> frozenset[str]:
    """All that the role's verbs may send."""
    return frozenset().union(*(VERBS[verb] for verb in ROLES[role]))
