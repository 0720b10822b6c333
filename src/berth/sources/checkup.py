"""Everything that a checkup asks, in all Regions at once: Regions, rights, quotas, what the need names.

Only read. What refuses to answer is a value that says why; nothing is raised for it, and nothing is asked
that could spend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from berth.aws.identity import Identity
from berth.aws.permissions import ASSUME
from berth.aws.refusals import CALL_ERRORS, Kind, Refusal, refusal_of
from berth.aws.session import Door
from berth.checkup.caller import is_root
from berth.checkup.parts import PartsLook, Seen, absent
from berth.checkup.quotas import QuotaAsked, QuotaSeen, quotas_of
from berth.checkup.regions import RegionLook
from berth.checkup.rights import Answer, Question, Right, Say, judged, questions, rights_of
from berth.planner.need import Need
from berth.sources.asking import Lane, ask_all
from berth.sources.quotas import codes_by_name, quota_value
from berth.sources.reading import every_page, mappings, text
from berth.terms.text import plain
from berth.terms.ways import Target

IAM_HOME = {"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
"""Where a client of IAM is made in each partition: IAM is one for all its Regions."""
PATIENCE, PAUSE_S = 5, 2.0
"""How often, and after how many seconds, IAM is asked once more where it is asked too fast."""
_INTERRUPTED = "interrupted before it answered"


@dataclass(frozen=True, slots=True)
class Statuses:
    """Each Region's opt-in status for the account, or why it is not known."""

    found: Mapping[str, str] | str


@dataclass(frozen=True, slots=True)
class Rights:
    """What is known of the rights in one Region; `no_simulation` is why IAM could not be asked ('')."""

    region: str
    answers: tuple[Answer, ...]
    no_simulation: str = ""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of one Region."""

    region: str
    seen: tuple[QuotaSeen, ...]


Heard = Statuses | RegionLook | Rights | Quotas | PartsLook


@dataclass(slots=True)
class Looked:
    """All that was heard. What is absent was interrupted."""

    statuses: Mapping[str, str] | str = _INTERRUPTED
    regions: dict[str, RegionLook] = field(default_factory=dict)
    rights: dict[str, Rights] = field(default_factory=dict)
    quotas: dict[str, Quotas] = field(default_factory=dict)
    parts: dict[str, PartsLook] = field(default_factory=dict)

    def hear(self, heard: Heard) -> None:
        """Keep one answer."""
        if isinstance(heard, Statuses):
            self.statuses = heard.found
        elif isinstance(heard, RegionLook):
            self.regions[heard.region] = heard
        elif isinstance(heard, Rights):
            self.rights[heard.region] = heard
        elif isinstance(heard, Quotas):
            self.quotas[heard.region] = heard
        else:
            self.parts[heard.region] = heard


def look_over(door: Door, need: Need | None, *, uploads: bool, told: Callable[[str], None]) -> Looked:
    """Ask everything at once; `told` hears, in the caller's thread, what has answered. Ctrl-C keeps that."""
    looked = Looked()

    def hear(heard: Heard) -> None:
        looked.hear(heard)
        if isinstance(heard, RegionLook) and len(door.regions) > 1:
            told(f"asked {heard.region}" + ("" if heard.zones is not None else f": {heard.trouble}"))

    ask_all(list(_lanes(door, need, uploads)), hear)
    return looked


def _lanes(door: Door, need: Need | None, uploads: bool) -> Iterator[Lane[Heard]]:
    yield lambda say: say(Statuses(_statuses(door.reader("ec2", door.regions[0]))))
    for region in door.regions:
        yield _one(door, region, _region)
        if need is not None:
            yield _one(door, region, lambda d, r: _parts(d, r, need))
            yield _one(door, region, lambda d, r: Quotas(r, _quotas(d.reader("service-quotas", r), need, r)))
            yield _one(
                door, region, lambda d, r: _rights(d, r, rights_of(need, d.identity.account, r, uploads))
            )


def _one(door: Door, region: str, ask: Callable[[Door, str], Heard]) -> Lane[Heard]:
    return lambda say: say(ask(door, region))


def _asked(call: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | Refusal:
    try:
        return call()
    except CALL_ERRORS as problem:
        return refusal_of(problem)


# -- Regions ---------------------------------------------------------------------------------------------
def _statuses(ec2: Any) -> Mapping[str, str] | str:
    answer = _asked(lambda: ec2.describe_regions(AllRegions=True))
    if isinstance(answer, Refusal):
        return plain(str(answer), 200)
    rows = (
        (text(row.get("RegionName")), text(row.get("OptInStatus"))) for row in mappings(answer.get("Regions"))
    )
    return {name: status or "unknown" for name, status in rows if name}


def _region(door: Door, region: str) -> RegionLook:
    ec2 = door.reader("ec2", region)
    answer = _asked(ec2.describe_availability_zones)
    if isinstance(answer, Refusal):
        if answer.code == "UnauthorizedOperation":  # the Region answers; what is lacking is among the rights
            return RegionLook(region, frozenset())
        return RegionLook(region, None, answer)
    ids = (text(row.get("ZoneId")) for row in mappings(answer.get("AvailabilityZones")))
    return RegionLook(region, frozenset(one for one in ids if one))


# -- what the need names ---------------------------------------------------------------------------------
def _parts(door: Door, region: str, need: Need) -> PartsLook:
    if need.target is not Target.INSTANCES:
        model = need.deployment.model_name if need.deployment is not None else None
        return PartsLook(region, model=_model(door, region, model) if model else None)
    ec2, said = door.reader("ec2", region), need.launch
    if said is None:
        return PartsLook(region)
    named = bool(said.subnet)
    zones = _subnets(ec2, said.subnet)
    return PartsLook(
        region,
        image=_there(lambda: ec2.describe_images(ImageIds=[said.image]), "Images") if said.image else None,
        template=_template(ec2, said.template) if said.template else None,
        subnet_zones=zones if named else None,
        default_zones=None if named else (zones if isinstance(zones, Refusal) else frozenset(zones.values())),
    )


def _model(door: Door, region: str, name: str) -> Seen:
    sagemaker = door.reader("sagemaker", region)
    return _there(lambda: sagemaker.describe_model(ModelName=name), "ModelArn")


def _template(ec2: Any, named: str) -> Seen:
    key = "LaunchTemplateId" if named.startswith("lt-") else "LaunchTemplateName"
    request = {key: named, "Versions": ["$Default"]}
    return _there(lambda: ec2.describe_launch_template_versions(**request), "LaunchTemplateVersions")


def _there(call: Callable[[], Mapping[str, Any]], member: str) -> Seen:
    answer = _asked(call)
    if isinstance(answer, Refusal):
        return False if absent(answer) else answer
    return bool(answer.get(member))


def _subnets(ec2: Any, named: str | None) -> Mapping[str, str] | Refusal:
    """The named subnet, or the default ones, each with its zone id."""
    if named:
        answer = _asked(lambda: ec2.describe_subnets(SubnetIds=[named]))
        if isinstance(answer, Refusal) and absent(answer):
            return {}
    else:
        filters = [{"Name": "default-for-az", "Values": ["true"]}]
        answer = _asked(lambda: ec2.describe_subnets(Filters=filters))
    if isinstance(answer, Refusal):
        return answer
    rows = (
        (text(row.get("SubnetId")), text(row.get("AvailabilityZoneId")))
        for row in mappings(answer.get("Subnets"))
    )
    return {subnet: zone for subnet, zone in rows if subnet and zone}


# -- rights ----------------------------------------------------------------------------------------------
def _rights(door: Door, region: str, rights: Sequence[Right]) -> Rights:
    if is_root(door.identity.arn):
        why = "IAM simulates no root user; only an organisation's policies bind one"
        return Rights(region, tuple(Answer(right, Say.NOT_ASKED, why) for right in rights), why)
    iam = door.reader("iam", _iam_home(door.identity))
    caller = _source(iam, door.identity.arn)
    payer = caller if door.payer == door.identity else _source(iam, door.payer.arn)
    answers: list[Answer] = []
    for question in questions(rights):
        source = payer if question.pays else caller
        results, stopped = _simulated(iam, source, question, door.clock.sleep)
        if stopped is not None:
            return Rights(region, _tried(door, region, rights), plain(str(stopped), 300))
        answers += judged(question, results)
    return Rights(region, tuple(answers))


def may_assume(door: Door, role: str) -> Say:
    """What the caller's own policies say of assuming the role (an ARN); whom the role trusts is not asked."""
    if is_root(door.identity.arn):
        return Say.NOT_ASKED
    iam = door.reader("iam", _iam_home(door.identity))
    (question,) = questions([Right(ASSUME, role, (), door.regions[0], ())])
    results, stopped = _simulated(iam, _source(iam, door.identity.arn), question, door.clock.sleep)
    return Say.NOT_ASKED if stopped is not None else judged(question, results)[0].say


def may_pay(door: Door, need: Need, region: str, paid: str) -> Answer:
    """What the caller's own policies say of the paid call `paid` for the need. Asked but once."""
    right = next(
        right
        for right in rights_of(need, door.identity.account, region, uploads=False)
        if right.pays and right.action == paid
    )
    if is_root(door.identity.arn):
        return Answer(right, Say.NOT_ASKED, "IAM simulates no root user")
    iam = door.reader("iam", _iam_home(door.identity))
    (question,) = questions([right])
    results, stopped = _simulated(iam, _source(iam, door.identity.arn), question, None)
    if stopped is not None:
        return Answer(right, Say.NOT_ASKED, plain(str(stopped), 300))
    return judged(question, results)[0]


def _iam_home(identity: Identity) -> str:
    partition = identity.arn.split(":")[1] if identity.arn.count(":") >= 5 else "aws"
    return IAM_HOME.get(partition, identity.regions[0])


def _source(iam: Any, arn: str) -> str:
    """The identity whose policies count: of a session, its role. A role's path is not in the session's ARN,
    so IAM is asked; where that may not be asked, the path is taken to be empty."""
    resource = arn.rpartition(":")[2]
    kind, _, rest = resource.partition("/")
    if kind != "assumed-role":
        return arn
    name = rest.partition("/")[0]
    answer = _asked(lambda: iam.get_role(RoleName=name))
    role = answer.get("Role") if isinstance(answer, Mapping) else None
    known = text(role.get("Arn"), 2048) if isinstance(role, Mapping) else None
    parts = arn.split(":")
    return known or f"arn:{parts[1]}:iam::{parts[4]}:role/{name}"


def _patiently(
    call: Callable[[], Mapping[str, Any]], sleep: Callable[[float], None] | None
) -> Mapping[str, Any] | Refusal:
    """Ask again where IAM, which is one for all Regions, says it is asked too fast; `sleep` None: do not."""
    for _ in range(PATIENCE if sleep else 0):
        answer = _asked(call)
        if not isinstance(answer, Refusal) or answer.kind is not Kind.THROTTLED:
            return answer
        if sleep:
            sleep(PAUSE_S)
    return _asked(call)


def _simulated(
    iam: Any, source: str, question: Question, sleep: Callable[[float], None] | None
) -> tuple[list[Mapping[str, Any]], Refusal | None]:
    """Every result of one question, and what stopped the reading (None: it is whole)."""
    request: dict[str, Any] = {
        "PolicySourceArn": source,
        "ActionNames": sorted({right.action for right in question.rights}),
        "ResourceArns": [question.resource],
        "ContextEntries": [
            {"ContextKeyName": key, "ContextKeyValues": list(values), "ContextKeyType": "string"}
            for key, values in question.context
        ],
    }
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while True:
        answer = _patiently(lambda: iam.simulate_principal_policy(**request), sleep)
        if isinstance(answer, Refusal):
            return found, answer
        found += mappings(answer.get("EvaluationResults"))
        marker = text(answer.get("Marker"), 4096)
        if not answer.get("IsTruncated") or marker is None or marker in seen:
            return found, None
        seen.add(marker)
        request["Marker"] = marker


# EC2 says without doing anything whether it would (DryRun); only reads are tried so.
_DRY: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ec2:DescribeAvailabilityZones": ("describe_availability_zones", {}),
    "ec2:DescribeCapacityReservations": ("describe_capacity_reservations", {}),
    "ec2:DescribeImages": ("describe_images", {"Owners": ["self"]}),
    "ec2:DescribeInstances": ("describe_instances", {}),
    "ec2:DescribeSpotPriceHistory": ("describe_spot_price_history", {}),
    "ec2:DescribeSubnets": ("describe_subnets", {}),
}


def _tried(door: Door, region: str, rights: Sequence[Right]) -> tuple[Answer, ...]:
    ec2 = door.reader("ec2", region)
    return tuple(_dry(ec2, right) for right in rights)


def _dry(ec2: Any, right: Right) -> Answer:
    if right.action not in _DRY or right.resource != "*":
        return Answer(right, Say.NOT_ASKED, "cannot be tried without doing it")
    method, request = _DRY[right.action]
    answer = _asked(lambda: getattr(ec2, method)(DryRun=True, **request))
    if not isinstance(answer, Refusal) or answer.code == "DryRunOperation":
        return Answer(right, Say.ALLOWED, "tried with DryRun")
    if answer.code == "UnauthorizedOperation":
        return Answer(right, Say.DENIED, "refused with DryRun")
    return Answer(right, Say.NOT_ASKED, plain(str(answer), 200))


# -- quotas ----------------------------------------------------------------------------------------------
def _quotas(client: Any, need: Need, region: str) -> tuple[QuotaSeen, ...]:
    asked = quotas_of(need, region)
    named: dict[str, tuple[dict[str, str], str]] = {}
    for service in sorted({one.service for one in asked if one.code is None}):
        named[service] = codes_by_name(client, service, {one.name for one in asked if one.service == service})
    return tuple(_quota(client, one, *named.get(one.service, ({}, ""))) for one in asked)


def _quota(client: Any, asked: QuotaAsked, by_name: Mapping[str, str], trouble: str) -> QuotaSeen:
    code = asked.code or by_name.get(asked.name)
    if code is None:
        return QuotaSeen(asked, None, None, trouble=trouble or "Service Quotas lists none of this name")
    said = quota_value(client, asked.service, code)
    if said.value is None:
        return QuotaSeen(asked, code, None, trouble=said.trouble)
    pending, unread = _pending(client, asked.service, code)
    return QuotaSeen(asked, code, said.value, said.is_default, pending, unread)


def _pending(client: Any, service: str, code: str) -> tuple[tuple[tuple[float, str], ...], str]:
    """Requests to raise a quota, and why they could not be read to the end ('')."""
    rows, stopped = every_page(
        client.list_requested_service_quota_change_history_by_quota,
        "RequestedQuotas", ServiceCode=service, QuotaCode=code,
    )  # fmt: skip
    found = ((row.get("DesiredValue"), text(row.get("Status"))) for row in rows)
    asked = tuple(
        (float(value), status) for value, status in found if status and isinstance(value, int | float)
    )
    return asked, plain(str(stopped), 200) if stopped else ""
