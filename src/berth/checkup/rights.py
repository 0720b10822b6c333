"""The rights that the verbs of a need take, as questions for IAM, and what its answers mean. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from berth.aws.permissions import ASSUME, FOUR_PAID, VERBS
from berth.aws.policies import GRANTS, MARK, Grant, partition_of
from berth.checkup.findings import Finding, State, Topic
from berth.planner.need import Need
from berth.terms.ways import Target

Context = tuple[tuple[str, tuple[str, ...]], ...]
"""Condition keys with the values that Berth's calls have."""

# Nothing is needed to ask who one is; roles are tried themselves (checkup/accounts.py).
_NO_QUESTION = frozenset({"sts:GetCallerIdentity", ASSUME})
_BLOCKS_ONLY = frozenset(
    {
        "ec2:DescribeCapacityBlockOfferings",
        "ec2:DescribeSpotPriceHistory",
        "ec2:PurchaseCapacityBlock",
        "ec2:TerminateInstances",
        "ec2:DescribeInstances",
    }
)
_TAGGING = frozenset({"ec2:CreateTags", "sagemaker:AddTags"})
_PASS_ROLE = "iam:PassRole"  # noqa: S105 - an action, no secret
# Which printed policy has the rights of a verb.
_POLICY = {
    "plan": "read",
    "buy": "buy",
    "launch": "deploy",
    "deploy": "deploy",
    "show": "watch",
    "clean": "deploy",
}


class Say(StrEnum):
    """What is known of one right."""

    ALLOWED = "allowed"
    DENIED = "denied"
    DEPENDS = "depends"  # on condition keys that nobody can tell beforehand
    NOT_ASKED = "not-asked"


@dataclass(frozen=True, slots=True)
class Right:
    """One action on one resource in one Region, as Berth's call asks for it; `verbs` are those that do.

    `pays`: the paid call itself asks, which another profile's keys may send (`--buyer-profile`).
    """

    action: str
    resource: str
    context: Context
    region: str
    verbs: tuple[str, ...]
    pays: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of one right, and how: `why` is '' where there is nothing to add."""

    right: Right
    say: Say
    why: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """Rights that one simulation can answer together: of one resource and context."""

    region: str
    resource: str
    context: Context
    rights: tuple[Right, ...]

    @property
    def pays(self) -> bool:
        """Whether it is about who pays, all of it."""
        return self.rights[0].pays


def verbs_of(need: Need) -> tuple[str, ...]:
    """The verbs that this need goes through, in their order: plan, buy, run, watch, clean."""
    runs = {Target.INSTANCES: ("launch",), Target.ENDPOINT: ("deploy",)}.get(need.target, ())
    return ("plan", "buy", *runs, "show", *(("clean",) if runs else ()))


def rights_of(need: Need, account: str, region: str, uploads: bool) -> tuple[Right, ...]:
    """Every right that the need's verbs take in a Region. `uploads`: an artefact is brought to S3."""
    found: dict[tuple[str, str, Context, bool], list[str]] = {}
    for verb in verbs_of(need):
        for operation in sorted(VERBS[verb] - _NO_QUESTION):
            if not _concerns(operation, need, uploads):
                continue
            for grant in GRANTS.get(operation, (Grant("", ("*",)),)):
                for resource in _resources(grant, account, region):
                    context = _context(grant, region, account)
                    key = (grant.action or operation, resource, context, operation in FOUR_PAID)
                    found.setdefault(key, []).append(verb)
    for role, service in _passed_roles(need):
        key = (_PASS_ROLE, role, (("iam:PassedToService", (service,)),), False)
        found.setdefault(key, []).append("deploy" if need.is_endpoint else "launch")
    return tuple(
        Right(action, resource, context, region, tuple(dict.fromkeys(verbs)), pays)
        for (action, resource, context, pays), verbs in found.items()
    )


def questions(rights: Iterable[Right]) -> tuple[Question, ...]:
    """The rights in as few simulations as answer each by itself."""
    grouped: dict[tuple[str, str, Context, bool], list[Right]] = {}
    for right in rights:
        grouped.setdefault((right.region, right.resource, right.context, right.pays), []).append(right)
    return tuple(Question(*key[:3], tuple(asked)) for key, asked in grouped.items())


def judged(question: Question, results: Sequence[Mapping[str, Any]]) -> tuple[Answer, ...]:
    """What the results of a simulation say of each right of its question; one that is not among them was not
    answered."""
    return tuple(_judged(right, results) for right in question.rights)


def right_findings(need: Need, answers: Sequence[Answer], no_simulation: str) -> list[Finding]:
    """One line a verb. `no_simulation` says why IAM could not be asked, '' where it was."""
    found = []
    if no_simulation:
        found.append(
            Finding(
                Topic.RIGHTS,
                State.UNKNOWN,
                "simulation",
                f"IAM did not say what these keys may do: {no_simulation}",
                "let somebody give these keys iam:SimulatePrincipalPolicy (berth policy read has it)",
                {"right": "iam:SimulatePrincipalPolicy"},
            )
        )
    return [*found, *(_of_verb(need, verb, answers) for verb in verbs_of(need))]


# -- what is asked ---------------------------------------------------------------------------------------
def _concerns(operation: str, need: Need, uploads: bool) -> bool:
    """Whether a verb sends the operation for a need like this one."""
    service = operation.partition(":")[0]
    if service == "s3":
        return uploads
    if need.target is Target.INSTANCES:
        return service != "sagemaker"
    return operation not in _BLOCKS_ONLY


def _resources(grant: Grant, account: str, region: str) -> tuple[str, ...]:
    """ARNs of one example each: IAM compares them as they are."""
    bucket = f"sagemaker-{region}-{account}"
    partition = partition_of(region)
    made = []
    for one in grant.resources:
        filled = one.format(region=region, account=account, bucket=bucket)
        made.append("*" if one == "*" else f"arn:{partition}:" + filled.replace("*", "berth-doctor"))
    return tuple(made)


def _context(grant: Grant, region: str, account: str) -> Context:
    """The values that Berth's own call has for the keys of a statement, and the tag that it sets."""
    mark = f"{account}/berth-doctor/1"
    found: dict[str, tuple[str, ...]] = {"aws:RequestedRegion": (region,)}
    if grant.action in _TAGGING:
        found[f"aws:RequestTag/{MARK}"] = (mark,)
    for keys in grant.condition.values():
        for key, value in keys.items():
            own = mark if MARK in key else value
            found[key] = (own,) if isinstance(own, str) else (own[0],)
    return tuple(sorted(found.items()))


def _passed_roles(need: Need) -> list[tuple[str, str]]:
    if need.deployment is not None and need.deployment.role:
        return [(need.deployment.role, "sagemaker.amazonaws.com")]
    return []


# -- what is answered ------------------------------------------------------------------------------------
def _judged(right: Right, results: Sequence[Mapping[str, Any]]) -> Answer:
    said = [_flat(one, right.resource) for one in results if one.get("EvalActionName") == right.action]
    fitting = [one for one in said if one is not None]
    if not fitting:
        return Answer(right, Say.NOT_ASKED, "the simulation did not answer for it")
    one = fitting[0]
    decision, missing = str(one.get("EvalDecision")), _texts(one.get("MissingContextValues"))
    if decision == "allowed" and not missing:
        return Answer(right, Say.ALLOWED)
    keys = f"depends on {', '.join(missing)}, which nobody can tell beforehand"
    if decision in {"allowed", "implicitDeny"} and missing:
        return Answer(right, Say.DEPENDS, keys)
    if decision == "explicitDeny":
        return Answer(right, Say.DENIED, _denier(one) or "denied by a policy")
    if decision == "implicitDeny":
        return Answer(right, Say.DENIED, _denier(one) or "no policy allows it")
    return Answer(right, Say.NOT_ASKED, f"the simulation says {decision!r}, which this program does not know")


def _flat(result: Mapping[str, Any], resource: str) -> Mapping[str, Any] | None:
    """The part of a result that is about the resource; the whole where it has no parts."""
    parts = result.get("ResourceSpecificResults") or ()
    for part in parts:
        if part.get("EvalResourceName") == resource:
            return {
                **result,
                "EvalDecision": part.get("EvalResourceDecision"),
                "MissingContextValues": part.get("MissingContextValues")
                or result.get("MissingContextValues"),
            }
    return result if result.get("EvalResourceName", resource) == resource or not parts else None


def _denier(one: Mapping[str, Any]) -> str:
    above = one.get("OrganizationsDecisionDetail") or {}
    if above.get("AllowedByOrganizations") is False:
        return "the organisation's policy does not allow it"
    bound = one.get("PermissionsBoundaryDecisionDetail") or {}
    return (
        "the permissions boundary does not allow it"
        if bound.get("AllowedByPermissionsBoundary") is False
        else ""
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list | tuple) else ()


# -- what is said ----------------------------------------------------------------------------------------
def _of_verb(need: Need, verb: str, answers: Sequence[Answer]) -> Finding:
    ours = [one for one in answers if verb in one.right.verbs]
    denied = [one for one in ours if one.say is Say.DENIED]
    doubtful = [one for one in ours if one.say in {Say.DEPENDS, Say.NOT_ASKED}]
    facts = {"verb": verb, "rights": [_json(one) for one in ours]}
    role = _POLICY[verb]
    places = " ".join(f"--region {region}" for region in need.regions)
    if denied:
        said = f"{len(denied)} of {len(ours)} rights are missing: {_listed(denied)}"
        todo = f"ask for the rights of: berth policy {role} {places}".rstrip()
        return Finding(Topic.RIGHTS, State.MISSING, verb, said, todo, facts)
    if doubtful or not ours:
        said = f"{len(doubtful)} of {len(ours)} rights are not known: {_listed(doubtful)}"
        todo = f"compare your rights with: berth policy {role} {places}".rstrip()
        return Finding(Topic.RIGHTS, State.UNKNOWN, verb, said, todo, facts)
    return Finding(Topic.RIGHTS, State.OK, verb, f"all {len(ours)} rights", None, facts)


def _listed(answers: Sequence[Answer]) -> str:
    """Actions, each once, with the Regions or reasons that set them apart."""
    said: dict[str, None] = {}
    for one in answers:
        why = f" ({one.why})" if one.say is not Say.NOT_ASKED and one.why != "no policy allows it" else ""
        said[f"{one.right.action}{why}"] = None
    return ", ".join(said)


def _json(answer: Answer) -> dict[str, Any]:
    return {
        "action": answer.right.action,
        "resource": answer.right.resource,
        "region": answer.right.region,
        "say": answer.say.value,
        "why": answer.why,
    }
