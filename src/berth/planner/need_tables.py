"""The tables of a need file: what SageMaker runs, how instances are launched, whose need, subnets, rates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from berth.facts.instance_types import ML_PREFIX
from berth.planner.acceptable import check_ec2_name
from berth.planner.launch import Launch
from berth.planner.need import Deployment, Subnet
from berth.planner.own_rates import OwnRates
from berth.terms.durations import parse_duration
from berth.terms.money import Money
from berth.terms.settings import Section

_SAGEMAKER_NAME = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
# EC2 API Reference, CreateLaunchTemplate: 3 to 128 of these.
_TEMPLATE = r"[a-zA-Z0-9().\-/_]{3,128}"
_PROFILE = r"arn:aws[a-z-]*:iam::\d{12}:instance-profile/\S+|[\w+=,.@-]{1,128}"
_SUBNET = r"subnet-[0-9a-f]{8,17}"
_ZONE_ID = r"[a-z0-9]+(-[a-z0-9]+)*-az\d+"


def read_zone_ids(section: Section, key: str) -> tuple[str, ...]:
    """Zone ids; the names of zones are refused, since they mean another zone in every account."""
    found = section.texts(key, ())
    for zone_id in found:
        if "-az" not in zone_id:
            section.complain(
                key,
                f"{zone_id!r} is no zone id; write ids like use1-az6 (names like us-east-1a mean "
                "another zone in every account)",
            )
    return found


def read_subnets(sections: Sequence[Section]) -> tuple[Subnet, ...]:
    """The tables `[[subnets]]`: a zone id, and the subnet there if it has one already."""
    made: list[Subnet] = []
    for section in sections:
        zone_id = section.text("zone_id", pattern=_ZONE_ID, hint="an id like use1-az6")
        subnet = section.text("id", "", pattern=_SUBNET, hint="like subnet-0123abcd")
        if subnet and subnet in {other.id for other in made}:
            section.complain("id", f"{subnet} is named twice")
        made.append(Subnet(zone_id, subnet or None))
    return tuple(made)


def read_rates(section: Section) -> OwnRates:
    """The table `[rates]`: a percentage off list prices, and hourly rates of a Savings Plan by type."""
    percent = section.decimal("edp_percent", Decimal(0))
    if section.has("edp_percent") and not 0 < percent < 100:
        section.complain("edp_percent", f"must be over 0 and under 100 per cent, not {percent}")
    savings = section.table("savings_plan")
    made = []
    for name in savings.keys() if savings else ():
        assert savings is not None
        try:
            check_ec2_name(name.removeprefix(ML_PREFIX))
            hourly = read_money(savings.raw(name))
            made.append((name.removeprefix(ML_PREFIX), hourly))
        except ValueError as problem:
            savings.complain(name, str(problem))
    if not section.keys():
        section.complain(None, "is empty: write edp_percent, or a table [rates.savings_plan]")
    return OwnRates(percent or None, tuple(sorted(made)))


def read_money(value: Any) -> Money:
    """An amount over zero: a number (US dollars) or text like "500 EUR". Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError('must be an amount like 500, or "500 EUR"')
    try:
        money = Money.parse(value) if isinstance(value, str) else Money(Decimal(value))
    except (TypeError, InvalidOperation) as problem:
        raise ValueError(str(problem)) from None
    if money.amount <= 0:
        raise ValueError("must be more than zero")
    return money


def read_launch(section: Section) -> Launch:
    """The table `[launch]`."""
    template = section.text("template", "", pattern=_TEMPLATE, hint="a launch template's id or name")
    version = section.text(
        "template_version", "", pattern=r"\d{1,9}|\$Latest|\$Default", hint='"3", "$Latest" or "$Default"'
    )
    image = section.text("image", "", pattern=r"ami-[0-9a-f]{8,17}", hint="an image id like ami-0123abcd")
    role = section.text("role", "", pattern=_PROFILE, hint="name or ARN of an instance profile")
    subnet = section.text("subnet", "", pattern=_SUBNET, hint="like subnet-0123abcd")
    if not template and not image:
        section.complain(None, "write a template, or an image to launch from")
    if version and not template:
        section.complain("template_version", "names a version of no template: add template")
    return Launch(template or None, version or None, image or None, role or None, subnet or None)


def read_tags(section: Section) -> tuple[tuple[str, str], ...]:
    """The table `[tags]`: text to text, keys not of AWS's own prefix."""
    keys = section.keys()
    for key in keys:
        if key.lower().startswith("aws:"):
            section.complain(key, "tags that begin with aws: are AWS's own")
    return tuple(sorted((key, section.text(key)) for key in keys))


def read_deployment(section: Section) -> Deployment:
    """The table `[deployment]`."""
    model = section.text("model", "", pattern=_SAGEMAKER_NAME, hint="a SageMaker model name")
    image = section.text("image", "", pattern=r"\S{1,255}", hint="a container image without spaces")
    data = section.text("data", "")
    role = section.text("role", "", pattern=r"arn:aws[a-z-]*:iam::\d{12}:role/\S+", hint="an IAM role ARN")
    if bool(model) == bool(image):
        section.complain(None, "write either model (one that exists) or image, data and role (to make one)")
    if image and not role:
        section.complain(None, "role is missing: an IAM role ARN that SageMaker takes on")
    if model and (data or role or section.has("environment")):
        section.complain(None, "model names one that exists: leave out data, role and environment")
    return Deployment(
        model_name=model or None,
        image=image or None,
        data=data or None,
        role=role or None,
        environment=_environment(section),
        startup_timeout=_startup(section),
        endpoint_name=section.text("endpoint", "", pattern=_SAGEMAKER_NAME) or None,
    )


def _environment(section: Section) -> tuple[tuple[str, str], ...]:
    table = section.table("environment")
    if table is None:
        return ()
    keys = table.keys()
    return tuple(sorted((key, table.text(key)) for key in keys))


def _startup(section: Section) -> timedelta | None:
    text = section.text("startup_timeout", "")
    if not text:
        return None
    try:
        span = parse_duration(text)
        # ContainerStartupHealthCheckTimeoutInSeconds takes 60 to 3600 (botocore model of SageMaker).
        if not timedelta(seconds=60) <= span <= timedelta(hours=1):
            raise ValueError(f"must be from 60 s to 1 h, not {text}")
        return span
    except ValueError as problem:
        section.complain("startup_timeout", str(problem))
        return None
