"""Who and where: the one door to AWS, or to the yard that plays it.

`open_door` decides the world, builds clients, compares where they would go, and only then asks for keys and
for the caller's identity. A `Door` hands out clients by what they may do: read, launch, or buy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, InvalidRegionError, ProfileNotFound

from berth.aws.credentials import check_world, login_error, resolve, stay_offline
from berth.aws.guards import Power, guard
from berth.aws.identity import Identity, Rehearsal
from berth.aws.refusals import CALL_ERRORS, Kind, refusal_of
from berth.aws.worlds import Yard, check_endpoints, check_environment, declared_yard, is_aws
from berth.aws.yard_clock import HEADER, FollowingClock
from berth.terms.clock import Clock
from berth.terms.outcomes import BerthError, ExitCode

SERVICES = ("sts", "ec2", "sagemaker", "sagemaker-runtime", "s3")
# Services that are asked in one Region of their own, whatever Regions a need names.
PLACED = (("pricing", "us-east-1"),)

_CONFIGS: dict[Power, dict[str, Any]] = {
    Power.READ: {"retries": {"mode": "standard", "total_max_attempts": 3}, "read_timeout": 60},
    Power.LAUNCH: {"retries": {"mode": "standard", "total_max_attempts": 3}, "read_timeout": 60},
    # One attempt, and a long wait for its answer: a paid call that is sent again may be paid again.
    Power.BUY: {"retries": {"mode": "standard", "total_max_attempts": 1}, "read_timeout": 300},
}


class Door:
    """The way out to one world, for one caller, in a set of Regions.

    `identity` says who and where. `clock` is this machine's, or follows the yard's. Clients are boto clients,
    made once for each service, Region and power; they may be used from several threads.
    """

    def __init__(self, clients: _Clients, identity: Identity, clock: FollowingClock) -> None:
        self._clients = clients
        self.identity = identity
        self.clock = clock

    @property
    def regions(self) -> tuple[str, ...]:
        """The Regions that were opened, in the order asked."""
        return self.identity.regions

    def reader(self, service: str, region: str) -> Any:
        """A client that can read, search and invoke; everything else it refuses before sending."""
        return self._clients.client(service, region, Power.READ)

    def launcher(self, region: str, service: str = "sagemaker") -> Any:
        """A client that also creates and deletes what carries no fee up front (models, endpoints)."""
        return self._clients.client(service, region, Power.LAUNCH)

    def buyer(self, region: str, service: str = "sagemaker") -> Any:
        """A client that can pay: one attempt only, and 5 minutes for the answer. For `berth.orders` alone."""
        return self._clients.client(service, region, Power.BUY)

    def check_account(self, wanted: str | None) -> None:
        """Raise BerthError (credentials) when the need is pinned to another account."""
        if wanted is not None and wanted != self.identity.account:
            raise BerthError(
                ExitCode.CREDENTIALS,
                f"the need is for account {wanted}, and these keys are for {self.identity.account}",
                "choose the right keys with --profile",
            )


def open_door(
    *,
    profile: str | None,
    regions: Sequence[str],
    environ: Mapping[str, str],
    clock: Clock,
) -> Door:
    """Open the way to AWS, or to the yard that BERTH_YARD declares.

    `regions` empty means the session's own Region. `environ` must be the process's environment: botocore
    reads that one. The only call made is GetCallerIdentity, after all clients were built and compared.

    Raises BerthError: bad request for mixed or undeclared endpoints, an unknown profile or no Region;
    credentials for missing, expired or foreign keys; incomplete where the service cannot be reached.
    """
    yard = declared_yard(environ)
    check_environment(environ, yard)
    session = _session(profile)
    if yard is not None:
        stay_offline(session)
    own = environ.get("AWS_REGION") or session.get_config_variable("region")
    places = tuple(dict.fromkeys(regions)) or ((own,) if own else ())
    if not places:
        raise _no_region()
    # Asked in the session's own Region: a Region of the need may not be enabled for the account.
    home = own or places[0]
    clients = _Clients(session, yard, FollowingClock(clock))
    clients.compare(tuple(dict.fromkeys((*places, home))))
    resolve(session, yard, profile)
    account, arn = _caller(clients, home, profile)
    rehearsal = Rehearsal(yard, clients.clock.told) if yard else None
    return Door(clients, Identity(account, arn, places, rehearsal), clients.clock)


class _Clients:
    """Builds clients, each with its guard, and keeps them."""

    def __init__(self, session: botocore.session.Session, yard: Yard | None, clock: FollowingClock) -> None:
        self._session = session
        self._yard = yard
        self.clock = clock
        self._made: dict[tuple[str, str, Power], Any] = {}
        self._lock = threading.Lock()

    def compare(self, regions: Sequence[str]) -> None:
        """Build a client of every service in every Region, with placeholder keys, and compare endpoints.

        Placeholders keep the credential chain, parts of which ask a network, from running before the check.
        """
        keys = {"aws_access_key_id": "-", "aws_secret_access_key": "-"}
        try:
            everywhere = ((service, region) for service in SERVICES for region in regions)
            found = {
                (service, region): self._create(service, region, Power.READ, **keys).meta.endpoint_url
                for service, region in (*everywhere, *PLACED)
            }
        except (InvalidRegionError, ValueError, BotoCoreError) as problem:
            raise BerthError(ExitCode.BAD_REQUEST, f"{problem}; nothing was sent") from None
        check_endpoints(found, self._yard)

    def client(self, service: str, region: str, power: Power) -> Any:
        """The client for that service, Region and power, made at the first asking, checked like all."""
        with self._lock:
            key = (service, region, power)
            if key not in self._made:
                client = self._create(service, region, power)
                check_endpoints({(service, region): client.meta.endpoint_url}, self._yard)
                self._made[key] = client
            return self._made[key]

    def _create(self, service: str, region: str, power: Power, **keys: Any) -> Any:
        client = self._session.create_client(
            service,
            region_name=region,
            config=Config(
                connect_timeout=10,
                user_agent_extra="berth",
                # A proxy is part of a network; what is meant for a yard goes to the yard alone.
                proxies={} if self._yard else None,
                s3={"addressing_style": "path"} if self._yard else None,
                **_CONFIGS[power],
            ),
            **keys,
        )
        events = client.meta.events
        events.register("before-parameter-build", guard(power))
        events.register("before-send", self._same_world(service))
        if self._yard is not None:
            events.register("response-received", self._hear)
        return client

    def _same_world(self, service: str) -> Callable[..., None]:
        """The last look at a signed request: its host and its key are of the one world that was declared."""

        def look(*, request: Any, **_: Any) -> None:
            yard = self._yard
            if not (is_aws(request.url) if yard is None else yard.expects(service, request.url)):
                raise BerthError(
                    ExitCode.BAD_REQUEST,
                    f"a request was about to go to {request.url.split('?')[0]}, outside the declared world; "
                    "it was not sent",
                )
            credential = _signing_key(request)
            if credential:
                check_world(credential, yard)

        return look

    def _hear(self, *, response_dict: Mapping[str, Any] | None = None, **_: Any) -> None:
        headers = (response_dict or {}).get("headers") or {}
        told = headers.get(HEADER) or headers.get(HEADER.title())
        if told:
            self.clock.hear(told)


def _signing_key(request: Any) -> str:
    """The access key id in the Authorization header of a signed request, '' when there is none."""
    header = request.headers.get("Authorization", b"")
    text = header.decode("ascii", "replace") if isinstance(header, bytes) else str(header)
    _, found, rest = text.partition("Credential=")
    return rest.partition("/")[0] if found else ""


def _session(profile: str | None) -> botocore.session.Session:
    session = botocore.session.Session(profile=profile)
    try:
        session.get_scoped_config()
    except ProfileNotFound as problem:
        raise BerthError(ExitCode.CREDENTIALS, str(problem), "aws configure list-profiles") from None
    return session


def _no_region() -> BerthError:
    return BerthError(
        ExitCode.BAD_REQUEST,
        "no Region is named",
        "name one in the need (regions), with --region, or in AWS_REGION",
    )


def _caller(clients: _Clients, region: str, profile: str | None) -> tuple[str, str]:
    try:
        answer = clients.client("sts", region, Power.READ).get_caller_identity()
    except CALL_ERRORS as problem:
        refusal = refusal_of(problem)
        if refusal.kind in {Kind.CREDENTIALS, Kind.NOT_ALLOWED}:
            raise login_error(problem, profile) from None
        raise BerthError(refusal.exit_code, f"the caller's identity could not be asked: {refusal}") from None
    account, arn = answer.get("Account"), answer.get("Arn")
    if not account or not arn:
        raise BerthError(ExitCode.INCOMPLETE, "the service did not say who the caller is")
    return str(account), str(arn)
