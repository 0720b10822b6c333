"""Another emulator beside the yard (`--rest URL`): it answers what a yard does not serve.

It must listen on this machine: any address but loopback is refused, so a rehearsal cannot reach AWS through
it. Requests go there as they came, signature and all; redirects are not followed and no proxy is asked. VPCs,
subnets, security groups and images are read from it when a Region is first asked for, and again after each
change to EC2 that went there. It knows nothing of a yard's accounts: what it holds, all of them share.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping, Set
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from berth.yard.fleet.fleet import Fleet
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.surroundings import Surroundings
from berth.yard.wire.http import Request, Response

PATIENCE_S = 60.0
ANSWER_MAX = 67_108_864
FORWARDED = "x-yard-forwarded"
_NOT_PASSED_ON = frozenset(
    {"connection", "content-length", "date", "expect", "keep-alive", "server", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
_ONLY_READ = ("Describe", "Get", "List", "Search")
_WINDOWS, _LINUX = "Windows", "Linux/UNIX"


class RestRefused(ValueError):
    """There can be no such emulator beside a yard, or it does not answer."""


@dataclass(frozen=True, slots=True)
class RestAddress:
    """Where the other emulator listens: an address of loopback."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Its base URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def read_address(url: str) -> RestAddress:
    """`http://127.0.0.1:5000`, or the same with `localhost` or `[::1]`. Raises RestRefused for all else."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise RestRefused(f"not a URL: {url!r}") from None
    if host == "localhost":
        host = "127.0.0.1"  # whatever the name is made to mean elsewhere
    if parts.scheme != "http" or parts.path not in ("", "/") or parts.query or parts.username or port is None:
        raise RestRefused(f"--rest takes a URL like http://127.0.0.1:5000, not {url!r}")
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise RestRefused(f"--rest takes an emulator on this machine (127.0.0.1 or [::1]), never {host!r}")
    return RestAddress(host, port)


class Rest:
    """The other emulator. Its methods block; a server calls them in threads."""

    def __init__(self, address: RestAddress, fleet: Fleet) -> None:
        self.address = address
        self._fleet = fleet
        self._lock = threading.Lock()
        self._known: dict[str, Surroundings] = {}

    # -- passing on --------------------------------------------------------------------------------------
    def check(self) -> None:
        """Raises RestRefused when nothing speaks HTTP there."""
        try:
            self.forward(Request("GET", "/", "", {"host": f"{self.address.host}:{self.address.port}"}, b""))
        except (OSError, http.client.HTTPException) as problem:
            raise RestRefused(f"no emulator answers at {self.address.url}: {problem}") from None

    def forward(self, request: Request) -> Response:
        """Its answer to `request`. Raises OSError, http.client.HTTPException."""
        line = http.client.HTTPConnection(self.address.host, self.address.port, timeout=PATIENCE_S)
        try:
            target = (request.path or "/") + (f"?{request.query}" if request.query else "")
            line.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                if name.lower() not in _NOT_PASSED_ON:
                    line.putheader(name, value)
            line.putheader(FORWARDED, "1")
            line.putheader("content-length", str(len(request.body)))
            line.endheaders(request.body)
            answer = line.getresponse()
            body = answer.read(ANSWER_MAX + 1)
            if len(body) > ANSWER_MAX:
                raise http.client.HTTPException(f"an answer of more than {ANSWER_MAX} bytes")
            headers = {n.lower(): v for n, v in answer.getheaders() if n.lower() not in _NOT_PASSED_ON}
            return Response(answer.status, headers, body)
        finally:
            line.close()

    def forward_call(self, service: str, operation: str, region: str, request: Request) -> Response:
        """Pass a call on; after a change to EC2 what surrounds instances in the Region is read again."""
        answer = self.forward(request)
        if service == "ec2" and not operation.startswith(_ONLY_READ):
            with self._lock:
                self._known.pop(region, None)
        return answer

    def knows(self, region: str) -> bool:
        """Whether the Region's network and images have been read."""
        return region in self._known

    # -- reading -----------------------------------------------------------------------------------------
    def surroundings(self, account_id: str, region: str) -> Surroundings:
        """VPCs, subnets, groups and images of the Region: the same for every account. Raises RestRefused."""
        with self._lock:
            found = self._known.get(region)
            if found is None:
                found = self._known[region] = self._read(region)
            return found

    def _read(self, region: str) -> Surroundings:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        client = boto3.client(
            "ec2", endpoint_url=self.address.url, region_name=region,
            aws_access_key_id="YARD", aws_secret_access_key="YARD",  # noqa: S106 - the emulator takes anybody
            config=Config(retries={"total_max_attempts": 2}, read_timeout=PATIENCE_S, proxies={}),
        )  # fmt: skip
        try:
            return self._gather(client, {zone.id for zone in self._fleet.regions[region].zones})
        except (BotoCoreError, ClientError) as problem:
            raise RestRefused(f"{self.address.url} does not tell its network and images: {problem}") from None

    def _gather(self, client: Any, zones: Set[str]) -> Surroundings:
        subnets = _all(client, "describe_subnets", "Subnets")
        return Surroundings(
            vpcs=tuple(_all(client, "describe_vpcs", "Vpcs")),
            subnets=tuple(one for one in subnets if one.get("AvailabilityZoneId") in zones),
            groups=tuple(_all(client, "describe_security_groups", "SecurityGroups")),
            images=tuple(map(_with_platform, _all(client, "describe_images", "Images"))),
        )


def _all(client: Any, call: str, member: str) -> list[Shape]:
    return [one for page in client.get_paginator(call).paginate() for one in page[member]]


def _with_platform(image: Mapping[str, Any]) -> Shape:
    """With PlatformDetails, which some emulators leave out: Linux unless it says Windows."""
    known = _WINDOWS if str(image.get("Platform", "")).lower() == "windows" else _LINUX
    return {"PlatformDetails": known, **image}
