"""Who and where: the one door to AWS, or to the yard that plays it.

`open_door` decides the world, builds clients, compares where they would go, and only then asks for keys and
for the caller's identity. A `Door` hands out clients by what they may do: read, launch, or buy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, InvalidRegionError, ProfileNotFound
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from berth.aws.credentials import check_world, login_error, resolve, stay_offline
from berth.aws.guards import Power, guard
from berth.aws.identity import Identity, Rehearsal
from berth.aws.refusals import CALL_ERRORS, Kind, refusal_of
from berth.aws.roles import RoleToAssume, assume_through, check_answer, take_role
from berth.aws.worlds import Yard, check_endpoints, check_environment, declared_yard, is_aws, origin
from berth.aws.yard_clock import HEADER, SCALE_HEADER, FollowingClock
from berth.terms.clock import Clock
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials

SERVICES = ("sts", "ec2", "sagemaker", "sagemaker-runtime", "s3")
# Services that are asked in one Region of their own, whatever Regions a need names.
PLACED = (("pricing", "us-east-1"),)

HearDate = Callable[[str, str], None]
"""Hears a service and the `Date` header of one of its answers."""

_CONFIGS: dict[Power, dict[str, Any]] = {
    Power.ASSUME: {"retries": {"mode": "standard", "total_max_attempts": 3}, "read_timeout": 20},
    Power.READ: {"retries": {"mode": "standard", "total_max_attempts": 3}, "read_timeout": 60},
    Power.LAUNCH: {"retries": {"mode": "standard", "total_max_attempts": 3}, "read_timeout": 60},
    # One attempt, and a long wait for its answer: a paid call that is sent again may be paid again.
    Power.BUY: {"retries": {"mode": "standard", "total_max_attempts": 1}, "read_timeout": 300},
}


class Door:
    """The way out to one world, for one caller, in a set of Regions.

    `identity` says who and where, `payer` whose credentials pay (the caller's, unless `pay_with` was asked).
    `clock` is this machine's, or follows the yard's. Clients are boto clients, made once for each service,
    Region and power; they may be used from several threads.
    """

    def __init__(self, clients: _Clients, identity: Identity, clock: FollowingClock, home: str) -> None:
        self.profile: str | None = None
        """The profile whose keys were asked for by name."""
        self._clients = clients
        self._paying = clients
        self._home = home
        self.identity = identity
        self.payer = identity
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
        return self._paying.client(service, region, Power.BUY)

    def pay_with(self, profile: str) -> None:
        """Let paid calls, and nothing else, use another profile's keys.

        Raises BerthError (credentials): the profile has no usable keys, or they are of another account than
        the caller's, which would put a reservation where nobody looks for it.
        """
        session = _session(profile)
        clients = _Clients.beside(self._clients, session, self._home)
        clients.compare(tuple(dict.fromkeys((*self.regions, self._home))))
        resolve(session, clients.yard, profile)
        account, arn = _caller(clients, self._home, profile)
        if account != self.identity.account:
            raise BerthError(
                ExitCode.CREDENTIALS,
                f"the buyer profile {profile} is of account {account}, and the order of"
                f" {self.identity.account}",
                "name a profile of the order's account with --buyer-profile",
            )
        self._paying, self.payer = clients, replace(self.identity, arn=arn)

    def sts(self, region: str | None = None) -> Any:
        """A client of STS that reads, in the session's own Region (None) or another."""
        return self._clients.client("sts", region or self._home, Power.READ)

    def keys(self) -> ReadOnlyCredentials:
        """The caller's keys, to sign a proof of who they are (`aws.proofs`), and for nothing else."""
        return self._clients.keys()

    def fetch(self, url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """One GET inside the declared world, redirects off; status and body. Raises what botocore raises."""
        return self._clients.fetch(url, headers)

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
    hear_date: HearDate | None = None,
    role: RoleToAssume | None = None,
) -> Door:
    """Open the way to AWS, or to the yard that BERTH_YARD declares.

    `regions` empty means the session's own Region. `environ` must be the process's environment: botocore
    reads that one. The only call made is GetCallerIdentity, after all clients were built and compared; and
    AssumeRole before it where the profile names a role, or `role` is one to act in.
    `hear_date` hears the `Date` header of every answer, refusals too, from whichever thread heard it.

    Raises BerthError: bad request for mixed or undeclared endpoints, an unknown profile or no Region;
    credentials for missing, expired or foreign keys; incomplete where the service cannot be reached.
    """
    yard = declared_yard(environ)
    check_environment(environ, yard)
    session = _session(profile)
    own = environ.get("AWS_REGION") or session.get_config_variable("region")
    places = tuple(dict.fromkeys(regions)) or ((own,) if own else ())
    if not places:
        raise _no_region()
    # Asked in the session's own Region: a Region of the need may not be enabled for the account.
    home = own or places[0]
    clients = _Clients(session, yard, FollowingClock(clock), home)
    if role is not None:
        take_role(session, clients.assumer, role)
    clients.hear_date = hear_date
    clients.compare(tuple(dict.fromkeys((*places, home))))
    resolve(session, yard, profile, role.arn if role else None)
    account, arn = _caller(clients, home, profile)
    rehearsal = Rehearsal(yard, clients.clock.told) if yard else None
    door = Door(clients, Identity(account, arn, places, rehearsal), clients.clock, home)
    door.profile = profile
    return door


class _Clients:
    """Builds clients, each with its guard, and keeps them."""

    def __init__(
        self, session: botocore.session.Session, yard: Yard | None, clock: FollowingClock, home: str
    ) -> None:
        """`home` is the Region whose STS is asked for roles."""
        self._session = session
        self._yard = yard
        self._home = home
        self.clock = clock
        self.hear_date: HearDate | None = None
        self._made: dict[tuple[str, str, Power], Any] = {}
        self._lock = threading.Lock()
        if yard is not None:
            stay_offline(session)
        assume_through(session, self.assumer, offline=yard is not None)

    @classmethod
    def beside(cls, other: _Clients, session: botocore.session.Session, home: str) -> _Clients:
        """Clients of another session in the world of `other`, on its clock."""
        return cls(session, other.yard, other.clock, home)

    @property
    def yard(self) -> Yard | None:
        """The yard that was declared."""
        return self._yard

    def keys(self) -> ReadOnlyCredentials:
        """The session's keys, of the right world. Raises BerthError."""
        return resolve(self._session, self._yard, None)

    def fetch(self, url: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """See `Door.fetch`."""
        self._check_place("sts", url)
        proxies = {} if self._yard else get_environ_proxies(url)
        verify = self._session.get_config_variable("ca_bundle") or True
        web = URLLib3Session(timeout=10, proxies=proxies, verify=verify)  # follows no redirect
        try:
            answer = web.send(AWSRequest(method="GET", url=url, headers=dict(headers)).prepare())
            if self._yard is not None:
                self._hear(response_dict={"headers": answer.headers})
            return answer.status_code, answer.content
        finally:
            web.close()

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

    def assumer(self, service: str, **keys: Any) -> Any:
        """A client with the keys of whoever assumes a role, which sends that one call. For botocore's
        providers, which ask it anew for each session."""
        client = self._create(service, self._home, Power.ASSUME, **keys)
        check_endpoints({(service, self._home): client.meta.endpoint_url}, self._yard)
        client.meta.events.register("after-call", check_answer)
        return client

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
        events.register("response-received", self._hear)
        if self.hear_date is not None:
            events.register("response-received", _date_to(self.hear_date, service))
        return client

    def _same_world(self, service: str) -> Callable[..., None]:
        """The last look at a signed request: its host and its key are of the one world that was declared."""

        def look(*, request: Any, **_: Any) -> None:
            self._check_place(service, request.url)
            credential = _signing_key(request)
            if credential:
                check_world(credential, self._yard)

        return look

    def _check_place(self, service: str, url: str) -> None:
        if not (is_aws(url) if self._yard is None else self._yard.expects(service, url)):
            raise BerthError(
                ExitCode.BAD_REQUEST,
                f"a request was about to go to {origin(url)}, outside the declared world; it was not sent",
            )

    def _hear(self, *, response_dict: Mapping[str, Any] | None = None, **_: Any) -> None:
        headers = (response_dict or {}).get("headers") or {}
        told = headers.get(HEADER) or headers.get(HEADER.title())
        if told and self._yard is not None:
            self.clock.hear(told)
            self.clock.hear_scale(headers.get(SCALE_HEADER) or headers.get(SCALE_HEADER.title()) or "1")
        if date := headers.get("date") or headers.get("Date"):
            self.clock.hear_date(date)


def _date_to(hear: HearDate, service: str) -> Callable[..., None]:
    def tell(*, response_dict: Mapping[str, Any] | None = None, **_: Any) -> None:
        headers = (response_dict or {}).get("headers") or {}
        date = headers.get("date") or headers.get("Date")
        if date:
            hear(service, str(date))

    return tell


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
