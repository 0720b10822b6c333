"""Keys: found by AWS's own chain, and never shown to the wrong world.

A yard is only ever sent keys of its own prefix, and AWS is never sent a yard's keys. Where a yard is
declared, keys come from the environment or the configuration files alone, and roles from the yard: the
instance metadata service and single sign-on would have to be asked over a network, and in a rehearsal nothing
but the yard is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, ProfileNotFound, SSOError, TokenRetrievalError
from botocore.parsers import ResponseParserError

from berth.aws.refusals import CALL_ERRORS, Kind, Refusal, refusal_of
from berth.aws.worlds import Yard
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials
    from botocore.session import Session

YARD_PREFIX = "YARD"
OFFLINE_PROVIDERS = frozenset({"env", "shared-credentials-file", "config-file", "assume-role"})
"""Those of botocore's that read environment and files; the last asks STS, in the declared world alone."""


def stay_offline(session: Session) -> None:
    """Take every provider that asks a network or a program out of the session's credential chain."""
    chain = session.get_component("credential_provider")
    chain.providers = [p for p in chain.providers if p.METHOD in OFFLINE_PROVIDERS]


def resolve(
    session: Session, yard: Yard | None, profile: str | None, role: str | None = None
) -> ReadOnlyCredentials:
    """The session's keys, of the right world. `role` is the one that the session is to act in, by its ARN.

    Raises BerthError: credentials (none found, an expired login with the command that renews it, a role that
    cannot be assumed, keys of the other world), or what stopped STS from being asked.
    """
    try:
        found = session.get_credentials()
        keys = found.get_frozen_credentials() if found is not None else None
    except ProfileNotFound as problem:
        raise _no_login(plain(problem), "aws configure list-profiles") from None
    except CALL_ERRORS as problem:
        raise login_error(problem, profile, role or _role_of(session)) from None
    if keys is None or not keys.access_key:
        raise _no_keys(yard, profile)
    check_world(keys.access_key, yard)
    return keys


def check_world(access_key: str, yard: Yard | None) -> None:
    """Raise BerthError when a key of one world is about to be used in the other."""
    of_a_yard = access_key.startswith(YARD_PREFIX)
    if yard is not None and not of_a_yard:
        raise _no_login(
            f"the keys in use are not the yard's (a yard's begin with {YARD_PREFIX}); the yard "
            f"{yard.address} is never shown keys of AWS; nothing was sent",
            'eval "$(berth yard env)"',
        )
    if yard is None and of_a_yard:
        raise _no_login(
            "the keys in use belong to a yard, and BERTH_YARD declares none; nothing was sent",
            'eval "$(berth yard env)" for the rehearsal, or use keys of AWS',
        )


def _role_of(session: Session) -> str | None:
    """The role that the session's profile names."""
    named = session.get_scoped_config().get("role_arn")
    return str(named) if named else None


def login_error(
    problem: BotoCoreError | ClientError | ResponseParserError,
    profile: str | None,
    role: str | None = None,
) -> BerthError:
    """What to tell a person whose keys could not be had, with the command that renews the login.

    `role` is the ARN of the role that was to be assumed for them, None where there is none."""
    refusal = refusal_of(problem)
    if isinstance(problem, ClientError) and problem.operation_name == "AssumeRole":
        return _not_assumed(refusal, role)
    return _no_login(f"no usable AWS login: {refusal}", _renewal(problem, refusal.code, profile))


def _not_assumed(refusal: Refusal, role: str | None) -> BerthError:
    """A role that STS gave no keys of. Who lacks what, it does not say: the doctor asks."""
    said = f"the role {plain(role, 200)} could not be assumed: {refusal}" if role else str(refusal)
    if refusal.kind is not Kind.NOT_ALLOWED:
        return BerthError(refusal.exit_code, said)
    return BerthError(
        ExitCode.CREDENTIALS,
        said,
        "the role's trust policy must name the caller, with the external id that it asks for, and the"
        " caller's own policy allow sts:AssumeRole on it; of a need's accounts berth doctor NEED tells which"
        " is missing",
    )


def _renewal(problem: Exception, code: str, profile: str | None) -> str:
    named = f" --profile {profile}" if profile else ""
    if isinstance(problem, SSOError | TokenRetrievalError):
        return f"aws sso login{named}"
    if type(problem).__name__.startswith("Login"):
        return f"aws login{named}"
    if code in {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}:
        return f"aws sso login{named}, or fetch new temporary keys the way you got these"
    return f"aws sts get-caller-identity{named} shows what the AWS CLI makes of it"


def _no_keys(yard: Yard | None, profile: str | None) -> BerthError:
    if yard is not None:
        return _no_login("no keys for the yard were found; nothing was sent", 'eval "$(berth yard env)"')
    where = f"in profile {profile}" if profile else "(environment, configuration files, roles)"
    return _no_login(
        f"no AWS credentials were found {where}",
        "aws configure, aws sso login, or name one with --profile",
    )


def _no_login(message: str, next_step: str) -> BerthError:
    return BerthError(ExitCode.CREDENTIALS, message, next_step)
