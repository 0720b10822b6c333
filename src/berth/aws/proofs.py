"""Proof of who somebody is: a presigned GetCallerIdentity that carries what it proves in a signed header.

Whoever holds an identity signs `GET /?Action=GetCallerIdentity` with a header of ours among the signed ones,
and hands the URL over; whoever has to know sends it to STS, which answers with the signer's ARN. The header's
value comes from the verifier's own records, never from the proof: another value, and the signature fails.

A proof is a secret for 15 minutes. It is sent to the STS of the declared world and nowhere else, it is never
kept, and no message holds any part of it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.parsers import create_parser

from berth.aws.credentials import check_world
from berth.aws.policies import partition_of
from berth.aws.refusals import CALL_ERRORS, KINDS, Kind
from berth.aws.worlds import origin
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

if TYPE_CHECKING:
    from berth.aws.session import Door

SCHEMA = "berth.approval-proof/1"
HEADER = "x-berth-approval"
LIFE = timedelta(minutes=15)
"""How long after signing a proof may be verified: as long as STS takes a presigned request at most."""
CLOCKS_DIFFER = timedelta(minutes=5)
LARGEST = 16_384
"""Characters that a proof may have; a session token has some two thousand."""

_MEMBERS = {"schema", "hash", "url"}
_VERSION = "2011-06-15"
_SIGNED = "host;x-berth-approval"
_PARAMETERS = {
    "Action",
    "Version",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
}
_TOKEN = "X-Amz-Security-Token"  # noqa: S105 - the parameter's name
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d{1,2}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
# AWS's old endpoint for all Regions signs as this one (botocore's endpoints of STS).
_GLOBAL = "sts.amazonaws.com"
_GLOBAL_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Proof:
    """A presigned request about the thing of that hash. `repr` shows no URL."""

    hash: str
    url: str = field(repr=False)

    def text(self) -> str:
        """The proof as one line of JSON, to hand over."""
        return json.dumps({"schema": SCHEMA, "hash": self.hash, "url": self.url})


@dataclass(frozen=True, slots=True)
class Proven:
    """Who signed, as STS told, and when."""

    account: str
    arn: str
    signed_at: datetime


def read_proof(text: str) -> Proof:
    """The proof that `Proof.text` wrote. Raises BerthError (bad request), without a word of what it holds."""
    try:
        if len(text) > LARGEST:
            raise ValueError
        value = json.loads(text)
        if not isinstance(value, dict) or set(value) != _MEMBERS or value["schema"] != SCHEMA:
            raise ValueError
        if not isinstance(value["url"], str) or not _HASH.fullmatch(value["hash"]):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"this is no proof of an approval ({SCHEMA}: schema, hash, url and nothing else); a request that"
            " says of itself that it is approved approves nothing",
            "berth approve HASH makes one",
        ) from None
    return Proof(value["hash"], value["url"])


def make_proof(door: Door, hash_: str, header: str) -> Proof:
    """Sign, with the caller's keys, that they approve what the header says. Sends nothing."""
    sts, keys = door.sts(), door.keys()
    endpoint = sts.meta.endpoint_url
    url = f"{origin(endpoint)}/?Action=GetCallerIdentity&Version={_VERSION}"
    request = AWSRequest(method="GET", url=url, headers={HEADER: header})
    signer = SigV4QueryAuth(
        Credentials(str(keys.access_key), str(keys.secret_key), keys.token),
        "sts",
        _signing_region(sts),
        expires=int(LIFE.total_seconds()),
    )
    signer.add_auth(request)
    return Proof(hash_, str(request.url))


def verify_proof(door: Door, proof: Proof, header: str) -> Proven:
    """Ask STS who signed the proof of what `header` says.

    Raises BerthError: bad request (it is none, or for another world), decision needed (its 15 minutes are
    over), credentials (STS does not bear it out), incomplete (STS could not be asked).
    """
    said = _parameters(proof.url)
    key, region = _scope(said["X-Amz-Credential"])
    check_world(key, door.identity.rehearsal.yard if door.identity.rehearsal else None)
    signed_at = _check_time(said, door.clock.real_now())
    sts = door.sts(region)
    where = _place(door, sts, proof.url, region)
    url = f"{where}/?{urlencode(said, quote_via=quote)}"
    try:
        status, body = door.fetch(url, {HEADER: header})
        answer = _parsed(sts, status, body)
    except (*CALL_ERRORS, LookupError, TypeError, ValueError) as problem:  # words that may hold the URL
        raise _unverified(type(problem).__name__) from None
    if status == 200:
        account, arn = answer.get("Account"), answer.get("Arn")
        if account and arn:
            return Proven(str(account), str(arn), signed_at)
        raise _unverified("STS did not say who signed")
    raise _refused(status, plain(answer.get("Error", {}).get("Code", ""), 60))


def _parameters(url: str) -> dict[str, str]:
    """The parameters of a presigned GetCallerIdentity that signs our header, and nothing besides."""
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)
        said = dict(pairs)
        alike = (
            len(said) == len(pairs)
            and set(said) - {_TOKEN} == _PARAMETERS
            and all(value.isascii() for value in said.values())
            and parts.path in {"", "/"}
            and not parts.fragment
            and (said["Action"], said["Version"]) == ("GetCallerIdentity", _VERSION)
            and said["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
        )
    except ValueError:
        alike = False
    if not alike:
        raise BerthError(ExitCode.BAD_REQUEST, "the proof holds no presigned GetCallerIdentity, and no more")
    if said["X-Amz-SignedHeaders"] != _SIGNED:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"the proof does not sign {HEADER}, so it says who somebody is and not what they approve",
        )
    return said


def _scope(credential: str) -> tuple[str, str]:
    key, *scope = credential.split("/")
    if len(scope) != 4 or not _REGION.fullmatch(scope[1]) or scope[2:] != ["sts", "aws4_request"]:
        raise BerthError(ExitCode.BAD_REQUEST, "the proof is not signed for STS")
    return key, scope[1]


def _check_time(said: dict[str, str], now: datetime) -> datetime:
    try:
        signed_at = datetime.strptime(said["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        life = timedelta(seconds=int(said["X-Amz-Expires"]))
    except (ValueError, OverflowError):
        raise BerthError(ExitCode.BAD_REQUEST, "the proof does not say when it was signed") from None
    if signed_at > now + CLOCKS_DIFFER:
        raise BerthError(
            ExitCode.BAD_REQUEST, "the proof was signed in the future: one of the two clocks is wrong"
        )
    if now - signed_at >= min(life, LIFE):
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            "the proof was not verified within 15 minutes of its signing, so it proves nothing any more",
            "ask the approver again: berth approve HASH",
        )
    return signed_at


def _place(door: Door, sts: Any, url: str, region: str) -> str:
    """The origin of the STS that the proof was signed for, if that is the declared world's own."""
    own = partition_of(door.regions[0])
    if door.identity.rehearsal is None and partition_of(region) != own:
        raise BerthError(ExitCode.BAD_REQUEST, f"the proof is signed for another partition than {own}")
    allowed = {origin(sts.meta.endpoint_url)}
    if door.identity.rehearsal is None and own == "aws" and region == _GLOBAL_REGION:
        allowed.add(f"https://{_GLOBAL}")
    if origin(url) not in allowed:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"the proof is for {plain(origin(url), 100)}, and is verified at {min(allowed)} alone; it was not"
            " sent anywhere",
            "the approver must use the same world (BERTH_YARD) as whoever pays",
        )
    return origin(url)


def _signing_region(sts: Any) -> str:
    host = urlsplit(sts.meta.endpoint_url).hostname
    return _GLOBAL_REGION if host == _GLOBAL else str(sts.meta.region_name)


def _parsed(sts: Any, status: int, body: bytes) -> dict[str, Any]:
    shape = sts.meta.service_model.operation_model("GetCallerIdentity").output_shape
    answer = {"body": body, "headers": {}, "status_code": status}
    found: dict[str, Any] = create_parser("query").parse(answer, shape)
    return found


def _refused(status: int, code: str) -> BerthError:
    if status >= 500 or KINDS.get(code) is Kind.THROTTLED:
        return _unverified(code or f"HTTP status {status}")
    return BerthError(
        ExitCode.CREDENTIALS,
        f"STS does not bear the proof out ({code or status}): it is for another order or amount, altered, or"
        " its keys are not valid",
        "ask the approver again: berth approve HASH",
    )


def _unverified(why: str) -> BerthError:
    return BerthError(
        ExitCode.INCOMPLETE,
        f"the approval could not be verified, so it does not count: {why}",
        "try again within 15 minutes of the signing; then ask the approver again",
    )
