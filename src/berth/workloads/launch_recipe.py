"""What the need says about launching, with all that must be read before: image, template, subnet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.orders.calls import asked
from berth.orders.order import Order
from berth.orders.seen import SeenReservation, listed, text
from berth.planner.launch import Launch
from berth.planner.need import Need
from berth.planner.platforms import LINUX
from berth.terms.outcomes import BerthError, ExitCode
from berth.workloads.launch_shape import Recipe, Subnet, Template
from berth.workloads.sites import Site

# EC2 User Guide, "AMI billing information fields": where an image calls a platform otherwise than a
# reservation does.
_PLATFORMS = {
    "Red Hat Enterprise Linux with High Availability": "RHEL with HA",
    "Linux/UNIX": LINUX,
}


def read_recipe(site: Site, order: Order, launch: Launch) -> Recipe:
    """The recipe of `launch`. Raises BerthError (bad request) for what is not there, or cannot be read."""
    template = _template(site, order, launch) if launch.template else None
    image = launch.image or (template.image if template else None)
    if launch.subnet and template and template.interfaces:
        raise _cannot(
            order,
            "the launch template has network interfaces of its own, which name their subnet themselves:"
            " leave out the subnet",
        )
    need = order.context.get("need")
    return Recipe(
        image=launch.image,
        image_platform=_platform(site, order, image) if image else None,
        role=launch.role,
        template=template,
        tags=Need.from_json(need).tags if need else (),
        placement_group=template.placement_group if template else None,
    )


def subnet_for(
    site: Site, order: Order, launch: Launch, recipe: Recipe, block: SeenReservation
) -> Subnet | None:
    """The subnet to launch into: what is said, else the default one of the block's zone.

    None where the template's interfaces leave it to EC2, which then takes the default one of the zone.
    """
    if launch.subnet is not None:
        return _subnet(site, order, launch.subnet)
    if recipe.template is not None and recipe.template.subnet is not None:
        return replace(_subnet(site, order, recipe.template.subnet), templates=True)
    if recipe.template is not None and recipe.template.interfaces:
        return None
    if not block.zone_ids:
        return None
    filters = [
        {"Name": "availability-zone-id", "Values": [block.zone_ids[0]]},
        {"Name": "default-for-az", "Values": ["true"]},
    ]
    found = _read(order, "subnets", lambda: site.ec2.describe_subnets(Filters=filters)).get("Subnets")
    default = next((one for one in listed(found) if isinstance(one, Mapping)), None)
    if default is None or text(default.get("SubnetId")) is None:
        raise _cannot(
            order,
            f"there is no default subnet in {block.zone_ids[0]}, where {block.name} is: name one with"
            " --subnet, or [launch] subnet",
        )
    return Subnet(str(default["SubnetId"]), text(default.get("AvailabilityZoneId")))


def _subnet(site: Site, order: Order, subnet_id: str) -> Subnet:
    answer = _read(order, f"subnet {subnet_id}", lambda: site.ec2.describe_subnets(SubnetIds=[subnet_id]))
    for one in listed(answer.get("Subnets")):
        if isinstance(one, Mapping) and one.get("SubnetId") == subnet_id:
            return Subnet(subnet_id, text(one.get("AvailabilityZoneId")))
    raise _cannot(order, f"there is no subnet {subnet_id} in this account and Region")


def _platform(site: Site, order: Order, image: str) -> str | None:
    """The image's platform. An alias of the parameter store (`resolve:ssm:...`) cannot be looked up here."""
    if not image.startswith("ami-"):
        return None
    answer = _read(order, f"image {image}", lambda: site.ec2.describe_images(ImageIds=[image]))
    for one in listed(answer.get("Images")):
        if isinstance(one, Mapping):
            details = text(one.get("PlatformDetails"))
            return None if details is None else _PLATFORMS.get(details, details)
    raise _cannot(order, f"there is no image {image} that this account and Region can use")


def _template(site: Site, order: Order, launch: Launch) -> Template:
    assert launch.template is not None
    kind = "LaunchTemplateId" if launch.template.startswith("lt-") else "LaunchTemplateName"
    version = launch.template_version or "$Default"
    answer = _read(
        order,
        f"launch template {launch.template}",
        lambda: site.ec2.describe_launch_template_versions(**{kind: launch.template, "Versions": [version]}),
    )
    versions = [one for one in listed(answer.get("LaunchTemplateVersions")) if isinstance(one, Mapping)]
    if not versions:
        raise _cannot(order, f"launch template {launch.template} has no version {version}")
    data = versions[0].get("LaunchTemplateData")
    data = data if isinstance(data, Mapping) else {}
    interfaces = [one for one in listed(data.get("NetworkInterfaces")) if isinstance(one, Mapping)]
    placement = data.get("Placement")
    placement = placement if isinstance(placement, Mapping) else {}
    return Template(
        reference={kind: launch.template, "Version": version},
        image=text(data.get("ImageId")),
        subnet=next(filter(None, (text(one.get("SubnetId")) for one in interfaces)), None),
        interfaces=bool(interfaces),
        tenancy=text(placement.get("Tenancy")),
        placement_group=text(placement.get("GroupName")) or text(placement.get("GroupId")),
    )


def _read(order: Order, what: str, call: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    answer = asked(call)
    if not isinstance(answer, Refusal):
        return answer
    if answer.kind in {Kind.NOT_FOUND, Kind.BAD_REQUEST}:
        raise _cannot(order, f"{what}: {answer}")
    raise BerthError(answer.exit_code, f"{what} could not be read: {answer}", None, order.spending)


def _cannot(order: Order, why: str) -> BerthError:
    return BerthError(ExitCode.BAD_REQUEST, why, f"berth launch {order.key}", order.spending)
