"""What a need names and the account lacks: image, launch template, subnet, role, model, artefact. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from berth.aws.refusals import Kind, Refusal
from berth.checkup.findings import Finding, State, Topic
from berth.planner.need import Need
from berth.terms.ways import Target

Seen = bool | Refusal
"""Whether something is there; or why that is not known."""


@dataclass(frozen=True, slots=True)
class PartsLook:
    """What one Region shows of what the need names. None: it names none of the kind, or was not asked.

    `subnet_zones` maps each subnet that was seen to its zone id; `default_zones` are those with a default
    subnet.
    """

    region: str
    image: Seen | None = None
    template: Seen | None = None
    model: Seen | None = None
    subnet_zones: Mapping[str, str] | Refusal | None = None
    default_zones: frozenset[str] | Refusal | None = None


def part_findings(
    need: Need, account: str, looks: Sequence[PartsLook], artefact: bool | None
) -> list[Finding]:
    """One line a thing. `artefact`: whether the local artefact that the need names is there (None: it names
    none)."""
    if need.target is Target.INSTANCES:
        return _launch(need, looks)
    found = []
    if need.deployment is None:
        if need.is_endpoint:
            found.append(_warn("deployment", "no [deployment]: berth deploy needs --model or --image", None))
        return found
    for look in looks:
        found += _seen(
            look.region, f"model {need.deployment.model_name}", look.model, "berth deploy --model NAME"
        )
    if artefact is not None:
        there = "is there" if artefact else "is not there"
        said = f"{need.deployment.data} {there}"
        todo = None if artefact else "correct `data` in the need"
        found.append(Finding(Topic.NEED, State.OK if artefact else State.MISSING, "artefact", said, todo))
    return [*found, *_role(need.deployment.role, account)]


def _launch(need: Need, looks: Sequence[PartsLook]) -> list[Finding]:
    said = need.launch
    if said is None or not (said.image or said.template):
        return [_warn("image", "no image and no launch template is named: berth launch needs one", None)]
    found = []
    for look in looks:
        found += _seen(look.region, f"image {said.image}", look.image, "aws ec2 describe-images")
        found += _seen(
            look.region, f"template {said.template}", look.template, "aws ec2 describe-launch-templates"
        )
        found += _subnets(need, look)
    if said.role:
        found.append(
            Finding(
                Topic.NEED,
                State.UNKNOWN,
                f"role {said.role}",
                "whether the role inside this instance profile may be passed is not asked beforehand",
                f"aws iam get-instance-profile --instance-profile-name {said.role.rpartition('/')[2]}",
            )
        )
    return found


def _seen(region: str, what: str, seen: Seen | None, where: str) -> list[Finding]:
    if seen is None:
        return []
    facts = {"region": region}
    if seen is True:
        return [Finding(Topic.NEED, State.OK, what, f"is in {region}", None, facts)]
    if seen is False:
        todo = f"name one that is in {region}: {where} --region {region}"
        return [
            Finding(
                Topic.NEED, State.MISSING, what, f"is not in {region}, or not for this account", todo, facts
            )
        ]
    return [Finding(Topic.NEED, State.UNKNOWN, what, f"not known in {region}: {seen}", None, facts)]


def _subnets(need: Need, look: PartsLook) -> list[Finding]:
    """The subnet that is named and its zone; else whether zones have a default one."""
    named = need.launch.subnet if need.launch else None
    facts = {"region": look.region}
    what, where = f"subnet in {look.region}", f"aws ec2 describe-subnets --region {look.region}"
    asked = look.subnet_zones if named else look.default_zones
    if asked is None:
        return []
    if isinstance(asked, Refusal):
        return [Finding(Topic.NEED, State.UNKNOWN, what, f"not known: {asked}", where, facts)]
    if named and isinstance(asked, Mapping):
        return [_named_subnet(need, named, asked.get(named), look.region)]
    zones = frozenset(asked)
    if not zones:
        said = "no zone has a default subnet: berth launch needs --subnet there"
        return [
            Finding(
                Topic.NEED, State.MISSING, what, said, 'name one: subnet = "subnet-..." in [launch]', facts
            )
        ]
    lacking = sorted(set(need.zone_ids) - zones) if need.zone_ids else []
    if lacking:
        said = f"no default subnet in {', '.join(lacking)}; a block there needs --subnet"
        return [Finding(Topic.NEED, State.WARNING, what, said, where, facts)]
    return [
        Finding(Topic.NEED, State.OK, what, f"default subnets in {', '.join(sorted(zones))}", None, facts)
    ]


def _named_subnet(need: Need, named: str, zone: str | None, region: str) -> Finding:
    facts = {"region": region}
    if zone is None:
        todo = f"aws ec2 describe-subnets --region {region}"
        return Finding(Topic.NEED, State.MISSING, named, f"is not in {region}", todo, facts)
    if need.zone_ids and zone not in need.zone_ids:
        said = f"is in {zone}, and the need asks for {', '.join(need.zone_ids)}"
        return Finding(
            Topic.NEED, State.MISSING, named, said, f'zone_ids = ["{zone}"], or another subnet', facts
        )
    return Finding(
        Topic.NEED, State.OK, named, f"in {zone}; a block in another zone cannot use it", None, facts
    )


def _role(role: str | None, account: str) -> list[Finding]:
    if role is None:
        return []
    parts = role.split(":")
    if len(parts) < 6 or parts[4] == account:
        return []  # its right is among the rights (iam:PassRole)
    said = f"is of account {parts[4]}, and SageMaker takes roles of {account} alone"
    return [Finding(Topic.NEED, State.MISSING, f"role {parts[5]}", said, "name a role of this account")]


def _warn(what: str, said: str, todo: str | None) -> Finding:
    return Finding(Topic.NEED, State.WARNING, what, said, todo)


def absent(refusal: Refusal) -> bool:
    """Whether a refusal says that the thing is not there."""
    words = refusal.message.lower()
    return refusal.kind is Kind.NOT_FOUND or refusal.code.endswith("NotFound") or "could not find" in words
