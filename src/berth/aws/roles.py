"""Roles: assumed and renewed by botocore's own providers, through clients of the declared world alone.

botocore reads `role_arn` of profiles, follows their sources, keeps what STS gave in memory, and asks again
15 minutes before it ends. Ours is only the client through which it asks: guarded, compared, and able to send
nothing but AssumeRole. Where a yard is declared, sources are read from environment and files alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    AssumeRoleProvider,
    CanonicalNameCredentialSourcer,
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
    EnvProvider,
    ProfileProviderBuilder,
)
from botocore.exceptions import CredentialRetrievalError

from berth.aws.credentials import OFFLINE_PROVIDERS

if TYPE_CHECKING:
    from botocore.session import Session

SESSION_NAME = "berth"
"""What a session is called whose role a need names; a profile may say `role_session_name`."""
_METHOD = str(AssumeRoleProvider.METHOD)
_SOURCES = frozenset({"container-role", "iam-role"})  # what a profile's `credential_source` may name
_MEMBERS = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")

MakeClient = Callable[..., Any]
"""Makes the client that AssumeRole goes through: `(service, **keys)`."""


@dataclass(frozen=True, slots=True)
class RoleToAssume:
    """A role by its ARN, and the external id that it asks for (None: none)."""

    arn: str
    external_id: str | None = None


def assume_through(session: Session, make_client: MakeClient, *, offline: bool) -> None:
    """Let the roles that profiles name be assumed through clients of ours. `offline`: sources that would ask
    a network or a program are left out."""
    chain = session.get_component("credential_provider")
    own = _of_profiles(session, make_client, chain.providers, offline=offline)
    chain.providers = [own if one.METHOD == _METHOD else one for one in chain.providers]


def take_role(session: Session, make_client: MakeClient, role: RoleToAssume) -> None:
    """Let the session act in `role`, which whoever it was before assumes."""
    chain = session.get_component("credential_provider")
    chain.providers = [_Taken(chain.providers, make_client, role)]


def check_answer(parsed: Mapping[str, Any], **_: Any) -> None:
    """Hears STS's answers (`after-call`): one that lacks what botocore counts on, or is over already, is told
    as such. Raises CredentialRetrievalError, which holds nothing of the answer."""
    if "Error" in parsed:
        return
    keys = parsed.get("Credentials")
    missing = [name for name in _MEMBERS if not isinstance(keys, Mapping) or not keys.get(name)]
    if missing:
        raise CredentialRetrievalError(
            provider=_METHOD, error_msg=f"STS answered without {', '.join(missing)}"
        )
    assert isinstance(keys, Mapping)
    until = keys["Expiration"]
    if isinstance(until, datetime) and until <= datetime.now(UTC):
        raise CredentialRetrievalError(
            provider=_METHOD, error_msg="the keys that STS gave are over by this machine's clock"
        )


def _of_profiles(
    session: Session, make_client: MakeClient, providers: list[CredentialProvider], *, offline: bool
) -> AssumeRoleProvider:
    """botocore's provider for `role_arn`, as its own chain has it but for the client."""
    cache: dict[str, Any] = {}
    builder: Any = ProfileProviderBuilder(session, cache=cache)
    sources = [EnvProvider(), *(one for one in providers if one.METHOD in _SOURCES)]
    return AssumeRoleProvider(
        load_config=lambda: session.full_config,
        client_creator=make_client,
        cache=cache,
        profile_name=session.get_config_variable("profile") or "default",
        credential_sourcer=CanonicalNameCredentialSourcer(sources),
        profile_provider_builder=_Offline(builder) if offline else builder,
    )


class _Offline(ProfileProviderBuilder):
    """Of a profile's providers only those that read environment and files."""

    def __init__(self, builder: ProfileProviderBuilder) -> None:
        self._all = builder

    def providers(self, profile_name: str, disable_env_vars: bool = False) -> list[Any]:
        """The providers of a source profile."""
        found = self._all.providers(profile_name, disable_env_vars)
        return [one for one in found if one.METHOD in OFFLINE_PROVIDERS]


class _Taken(CredentialProvider):
    """A role over whatever the chain finds."""

    METHOD = _METHOD

    def __init__(
        self, sources: list[CredentialProvider], make_client: MakeClient, role: RoleToAssume
    ) -> None:
        super().__init__()
        self._sources = CredentialResolver(sources)
        self._make_client = make_client
        self._role = role

    def load(self) -> DeferredRefreshableCredentials | None:
        """Credentials that are fetched when first needed, and renewed in time; None without a source."""
        source = self._sources.load_credentials()
        if source is None:
            return None
        external = {"ExternalId": self._role.external_id} if self._role.external_id else {}
        fetcher = AssumeRoleCredentialFetcher(
            client_creator=self._make_client,
            source_credentials=source,
            role_arn=self._role.arn,
            extra_args={"RoleSessionName": SESSION_NAME, **external},
        )
        return DeferredRefreshableCredentials(method=self.METHOD, refresh_using=fetcher.fetch_credentials)
