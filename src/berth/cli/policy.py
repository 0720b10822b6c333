"""`berth policy`: IAM policies for what Berth sends, as JSON. Asks nobody: no keys, no network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.aws.policies import Scope

Several = list[str] | None


class Kind(StrEnum):
    """Whom a policy is for; `org` is for an organisation."""

    READ = "read"
    BUY = "buy"
    WATCH = "watch"
    DEPLOY = "deploy"
    ORG = "org"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("policy")(policy)


def policy(
    kind: Annotated[Kind, typer.Argument(help="Whom it is for; org: all but the buyer.")],
    *,
    account: Annotated[str | None, typer.Option("--account", help="Only this account (12 digits).")] = None,
    region: Annotated[Several, typer.Option("--region", help="Only there; may be repeated.")] = None,
    bucket: Annotated[
        str | None, typer.Option("--bucket", help="deploy: the bucket that artefacts are brought to.")
    ] = None,
    role: Annotated[
        Several,
        typer.Option("--role", metavar="ARN", help="deploy: a role to run as; may be repeated."),
    ] = None,
    assume_role: Annotated[
        Several,
        typer.Option("--assume-role", metavar="ARN", help="A role that may be assumed; may be repeated."),
    ] = None,
    buyer_role: Annotated[
        Several, typer.Option("--buyer-role", metavar="ARN", help="org: who may pay; may be repeated.")
    ] = None,
) -> int:
    """Print the least IAM policy that a group of verbs needs. Needs no keys and no network."""
    _check_options(
        kind,
        {"--bucket": bucket, "--role": role, "--buyer-role": buyer_role, "--assume-role": assume_role,
         "--account and --region": account or region},
    )  # fmt: skip
    output = Output()
    made = _control_policy(buyer_role or []) if kind is Kind.ORG else _policy(
        output, kind, _scope(account, region, bucket, role, assume_role)
    )  # fmt: skip
    output.answer(json.dumps(made, indent=2))
    _say_size(output, kind, made)
    return ExitCode.DONE


def _policy(output: Output, kind: Kind, scope: Scope) -> dict[str, Any]:
    from berth.aws.permissions import Role
    from berth.aws.policies import policy as identity_policy

    if kind is Kind.DEPLOY and not scope.pass_roles:
        output.talk(
            "note: without --role ARN nothing may be run under a role (iam:PassRole):"
            " `berth deploy --image` needs one, `berth launch` only with --role"
        )
    return identity_policy(Role(kind), scope)


def _control_policy(buyers: list[str]) -> dict[str, Any]:
    from berth.aws.policies import control_policy

    if not buyers:
        raise BerthError(
            ExitCode.USAGE,
            "who may pay? an organisation's policy without a buyer would shut everybody out",
            "berth policy org --buyer-role arn:aws:iam::123456789012:role/buyer",
        )
    try:
        return control_policy(buyers)
    except ValueError as problem:
        raise BerthError(ExitCode.USAGE, f"--buyer-role: {problem}") from None


def _scope(
    account: str | None, regions: Several, bucket: str | None, roles: Several, assumed: Several
) -> Scope:
    """Where it holds, checked: a wildcard in a name would make a wider policy than it says."""
    from berth.aws.policies import Scope, check_role

    _check("--account", account, r"\d{12}", "12 digits")
    for region in regions or ():
        _check("--region", region, r"[a-z]{2,4}(-[a-z]+)+-\d{1,2}", "a Region like us-east-1")
    _check("--bucket", bucket, r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "a bucket's name")
    for option, given in (("--role", roles), ("--assume-role", assumed)):
        for role in given or ():
            try:
                check_role(role)
            except ValueError as problem:
                raise BerthError(ExitCode.USAGE, f"{option}: {problem}") from None
    named = (tuple(dict.fromkeys(one or ())) for one in (roles, assumed))
    return Scope(account, tuple(dict.fromkeys(regions or ())), bucket, *named)


def _check(option: str, value: str | None, pattern: str, what: str) -> None:
    if value is not None and not re.fullmatch(pattern, value, re.ASCII):
        raise BerthError(ExitCode.USAGE, f"{option}: {value!r} is not {what}")


_FOR: Mapping[str, frozenset[Kind]] = {
    "--bucket": frozenset({Kind.DEPLOY}),
    "--role": frozenset({Kind.DEPLOY}),
    "--buyer-role": frozenset({Kind.ORG}),
    "--assume-role": frozenset(Kind) - {Kind.ORG},
    "--account and --region": frozenset(Kind) - {Kind.ORG},
}


def _check_options(kind: Kind, given: Mapping[str, object]) -> None:
    """Refuse an option that would say nothing: whoever gives it believes that it does."""
    wrong = [name for name, value in given.items() if value and kind not in _FOR[name]]
    if wrong:
        raise BerthError(
            ExitCode.USAGE, f"berth policy {kind} knows no {', '.join(wrong)}", "berth policy --help"
        )


def _say_size(output: Output, kind: Kind, made: dict[str, Any]) -> None:
    from berth.aws.policies import LARGEST_CONTROL_POLICY, LARGEST_POLICY, size

    most = LARGEST_CONTROL_POLICY if kind is Kind.ORG else LARGEST_POLICY
    if size(made) > most:
        output.talk(
            f"warning: {size(made):,} characters, and AWS takes {most:,}: name fewer Regions or roles"
        )
