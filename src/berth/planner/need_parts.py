"""The tables of a need file: what SageMaker runs, how instances are launched, whose need it is."""

from __future__ import annotations

from datetime import timedelta

from berth.planner.launch import Launch
from berth.planner.need import Deployment
from berth.terms.durations import parse_duration
from berth.terms.settings import Section

_SAGEMAKER_NAME = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
# EC2 API Reference, CreateLaunchTemplate: 3 to 128 of these.
_TEMPLATE = r"[a-zA-Z0-9().\-/_]{3,128}"
_PROFILE = r"arn:aws[a-z-]*:iam::\d{12}:instance-profile/\S+|[\w+=,.@-]{1,128}"


def read_launch(section: Section) -> Launch:
    """The table `[launch]`."""
    template = section.text("template", "", pattern=_TEMPLATE, hint="a launch template's id or name")
    version = section.text(
        "template_version", "", pattern=r"\d{1,9}|\$Latest|\$Default", hint='"3", "$Latest" or "$Default"'
    )
    image = section.text("image", "", pattern=r"ami-[0-9a-f]{8,17}", hint="an image id like ami-0123abcd")
    role = section.text("role", "", pattern=_PROFILE, hint="name or ARN of an instance profile")
    subnet = section.text("subnet", "", pattern=r"subnet-[0-9a-f]{8,17}", hint="like subnet-0123abcd")
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
