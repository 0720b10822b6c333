"""Signature Version 4 from the server's side: read what a request claims, check that its signature holds.

After AWS's "Create a signed AWS API request" (IAM User Guide, reference_sigv-create-signed-request), for
services other than S3: the path is encoded twice. Two forms: the Authorization header, and query parameters
(presigned). Checked are signatures of boto3, which signs content-type, host, x-amz-date and x-amz-target, and
of the JavaScript SDK, which signs amz-sdk-*, content-length, x-amz-content-sha256 and x-amz-user-agent too.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import lru_cache

from .canonical import canonical_request, query_pairs
from .http import Request

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
EXPIRES_MAX_S = 604_800  # seven days, AWS's bound for presigned requests
DAY_KEYS_MAX = 1_024

MISMATCH_TEXT = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. Consult the service documentation for details."
)

_STAMP = re.compile(r"[0-9]{8}T[0-9]{6}Z", re.ASCII)
_SIGNATURE = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SCOPE_PART = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_KEY_ID = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,128}", re.ASCII)
_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)
_SIGNED_HEADERS_MAX = 100
_AUTHORIZATION_MAX = 16_384


class SignatureFault(StrEnum):
    """Why a signature is not accepted."""

    MISSING = "missing"  # the request carries no signature at all
    INCOMPLETE = "incomplete"  # a part is missing or cannot be read, or another algorithm is named
    SCOPE = "scope"  # the credential's date, Region or service is not the request's
    UNKNOWN_KEY = "unknown-key"  # nobody has this access key, or its session token is not valid
    MISMATCH = "mismatch"  # the signature does not cover this request, or another secret made it
    SKEWED = "skewed"  # signed too long ago or too far ahead of the server's clock
    EXPIRED = "expired"  # a presigned request after its time
    TOKEN_EXPIRED = "token-expired"  # noqa: S105 - a session's keys after their time


class SignatureProblem(Exception):
    """A signature that is not accepted; `detail` is a sentence for the caller, free of secrets."""

    def __init__(self, fault: SignatureFault, detail: str) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says about its signer. Nothing in it is to be believed before `Verifier.check`.

    `date` is the scope's day as YYYYMMDD, `timestamp` the time of signing (UTC, whole seconds), `expires_s`
    how long a presigned request may be used (None for the header form), `security_token` the session token
    of temporary credentials, None without.
    """

    access_key_id: str
    date: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str
    timestamp: datetime
    presigned: bool
    expires_s: int | None = None
    security_token: str | None = None


def read_claim(request: Request) -> Claim:
    """Read the claim of a request, from its Authorization header or its query.

    Raises SignatureProblem: MISSING, INCOMPLETE, SCOPE.
    """
    authorization = request.headers.get("authorization")
    parameters = _presigned_parameters(request.query)
    if authorization is not None and parameters:
        raise _incomplete("The request is signed twice, in the Authorization header and in the query string.")
    if authorization is not None:
        return _header_claim(request.headers, authorization)
    if parameters:
        return _query_claim(parameters)
    raise SignatureProblem(SignatureFault.MISSING, "Missing Authentication Token")


def _presigned_parameters(query: str) -> dict[str, str]:
    if "X-Amz-" not in query:
        return {}
    found = {}
    for name, value in query_pairs(query):
        if name.startswith(b"X-Amz-"):
            text = name.decode("latin-1")
            if text in found:
                raise _incomplete(f"The query parameter {text[:64]} is given more than once.")
            found[text] = value.decode("utf-8", "replace")
    # A lone X-Amz-Security-Token or the like is no signature.
    return found if found.keys() & {"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature"} else {}


def _header_claim(headers: Mapping[str, str], authorization: str) -> Claim:
    if len(authorization) > _AUTHORIZATION_MAX:
        raise _incomplete("The Authorization header is too long.")
    algorithm, _, rest = authorization.strip().partition(" ")
    if algorithm != ALGORITHM:
        raise _incomplete(f"The Authorization header must begin with {ALGORITHM}.")
    parts = _authorization_parts(rest)
    missing = [name for name in ("Credential", "Signature", "SignedHeaders") if not parts.get(name)]
    stamp = _header_stamp(headers)
    if missing or stamp is None:
        needs = [f"Authorization header requires '{name}' parameter." for name in missing]
        if stamp is None:
            needs.append(
                "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
            )
        raise _incomplete(" ".join(needs))
    return _claim(
        credential=parts["Credential"],
        signed_headers=parts["SignedHeaders"],
        signature=parts["Signature"],
        timestamp=stamp,
        security_token=headers.get("x-amz-security-token"),
    )


def _authorization_parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or name in parts:
            raise _incomplete("The Authorization header is not a list of key=value pairs.")
        parts[name] = value.strip()
    return parts


def _header_stamp(headers: Mapping[str, str]) -> datetime | None:
    given = headers.get("x-amz-date")
    if given is not None:
        return _stamp(given.strip())
    given = headers.get("date")
    if given is None:
        return None
    if _STAMP.fullmatch(given.strip()):
        return _stamp(given.strip())
    try:
        parsed = parsedate_to_datetime(given)
    except (ValueError, TypeError, IndexError, OverflowError):
        raise _incomplete("The Date header is not a date of HTTP or of the form YYYYMMDDTHHMMSSZ.") from None
    # A date "-0000" comes without a zone, and means UTC.
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def _query_claim(parameters: Mapping[str, str]) -> Claim:
    if parameters.get("X-Amz-Algorithm") != ALGORITHM:
        raise _incomplete(f"The query parameter X-Amz-Algorithm must be {ALGORITHM}.")
    wanted = ("X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature")
    missing = [name for name in wanted if not parameters.get(name)]
    if missing:
        raise _incomplete(f"AWS query-string parameters must include {', '.join(missing)}.")
    expires = parameters["X-Amz-Expires"]
    if not (
        expires.isascii() and expires.isdigit() and len(expires) <= 6 and 0 < int(expires) <= EXPIRES_MAX_S
    ):
        raise _incomplete(f"X-Amz-Expires must be a number of seconds from 1 to {EXPIRES_MAX_S}.")
    return _claim(
        credential=parameters["X-Amz-Credential"],
        signed_headers=parameters["X-Amz-SignedHeaders"],
        signature=parameters["X-Amz-Signature"],
        timestamp=_stamp(parameters["X-Amz-Date"]),
        security_token=parameters.get("X-Amz-Security-Token"),
        expires_s=int(expires),
    )


def _claim(
    *,
    credential: str,
    signed_headers: str,
    signature: str,
    timestamp: datetime,
    security_token: str | None,
    expires_s: int | None = None,
) -> Claim:
    key_id, date, region, service = _scope(credential)
    if date != f"{timestamp.year:04}{timestamp.month:02}{timestamp.day:02}":
        detail = "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP"
        raise SignatureProblem(SignatureFault.SCOPE, detail)
    return Claim(
        access_key_id=key_id,
        date=date,
        region=region,
        service=service,
        signed_headers=_signed_names(signed_headers),
        signature=signature,
        timestamp=timestamp,
        presigned=expires_s is not None,
        expires_s=expires_s,
        security_token=security_token,
    )


# A client says the same scope all day and signs the same headers always: both are read once.
@lru_cache(maxsize=DAY_KEYS_MAX)
def _scope(credential: str) -> tuple[str, str, str, str]:
    """Access key id, date, Region, service."""
    parts = credential.rsplit("/", 4)
    if len(parts) != 5 or parts[4] != "aws4_request":
        raise _incomplete(
            "Credential must be of the form access-key-id/YYYYMMDD/region/service/aws4_request."
        )
    key_id, date, region, service, _ = parts
    if not (_KEY_ID.fullmatch(key_id) and _SCOPE_PART.fullmatch(region) and _SCOPE_PART.fullmatch(service)):
        raise _incomplete("Credential has characters that no access key, Region or service has.")
    return key_id, date, region, service


@lru_cache(maxsize=256)
def _signed_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(";"))
    if len(names) > _SIGNED_HEADERS_MAX or not all(map(_HEADER_NAME.fullmatch, names)):
        raise _incomplete("SignedHeaders must be header names in lower case, parted by semicolons.")
    if list(names) != sorted(set(names)):
        raise _incomplete("SignedHeaders must be sorted and without repetition.")
    return names


def _stamp(text: str) -> datetime:
    try:
        if not _STAMP.fullmatch(text):
            raise ValueError
        return datetime.fromisoformat(text)
    except ValueError:
        raise _incomplete(f"Date must be in ISO-8601 'basic format'. Got '{text[:64]}'.") from None


def _incomplete(detail: str) -> SignatureProblem:
    return SignatureProblem(SignatureFault.INCOMPLETE, detail)


class Verifier:
    """Checks claims. Keeps the day keys of the signatures that held, at most `DAY_KEYS_MAX` of them."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str, str, str], bytes] = {}
        self._lock = threading.Lock()

    def check(self, request: Request, claim: Claim, secret: str, now: datetime, tolerance: timedelta) -> None:
        """Return if the request was signed as claimed with `secret`, close enough to `now` (real time).

        `tolerance` is how far the signer's clock may be off, either way: `refusals.tolerance_of` has AWS's.
        Raises SignatureProblem: INCOMPLETE, SKEWED, EXPIRED, MISMATCH.
        """
        _check_time(claim, now, tolerance)
        _check_coverage(request, claim)
        payload_hash = _payload_hash(request, claim)
        scope = (secret, claim.date, claim.region, claim.service)
        key = self._keys.get(scope)
        fresh = key is None
        if key is None:
            key = day_key(*scope)
        text = string_to_sign(request, claim, payload_hash)
        # `hmac.digest` would be one call, and takes nearly twice as long (OpenSSL 3 looks the hash up anew).
        expected = hmac.new(key, text.encode("utf-8"), hashlib.sha256).hexdigest()
        given = claim.signature if _SIGNATURE.fullmatch(claim.signature) else ""
        if not hmac.compare_digest(expected, given):
            raise SignatureProblem(SignatureFault.MISMATCH, MISMATCH_TEXT)
        # Kept only now: whoever lacks the secret cannot push the keys of others out.
        if fresh:
            self._keep(scope, key)

    def _keep(self, scope: tuple[str, str, str, str], key: bytes) -> None:
        with self._lock:
            while len(self._keys) >= DAY_KEYS_MAX:
                del self._keys[next(iter(self._keys))]
            self._keys[scope] = key


def _check_time(claim: Claim, now: datetime, tolerance: timedelta) -> None:
    if claim.timestamp > now + tolerance:
        detail = (
            f"Signature not yet current: {_basic(claim.timestamp)} is still later than "
            f"{_basic(now + tolerance)} ({_basic(now)} + {_minutes(tolerance)})"
        )
        raise SignatureProblem(SignatureFault.SKEWED, detail)
    if claim.expires_s is not None:
        if now > claim.timestamp + timedelta(seconds=claim.expires_s):
            ends = claim.timestamp + timedelta(seconds=claim.expires_s)
            detail = f"Signature expired: {_basic(ends)} is now earlier than {_basic(now)}"
            raise SignatureProblem(SignatureFault.EXPIRED, detail)
    elif claim.timestamp < now - tolerance:
        detail = (
            f"Signature expired: {_basic(claim.timestamp)} is now earlier than "
            f"{_basic(now - tolerance)} ({_basic(now)} - {_minutes(tolerance)})"
        )
        raise SignatureProblem(SignatureFault.SKEWED, detail)


def _minutes(tolerance: timedelta) -> str:
    return f"{tolerance // timedelta(minutes=1)} min."


def _check_coverage(request: Request, claim: Claim) -> None:
    """Host and every x-amz-* header must be signed: an unsigned x-amz-target could be another operation."""
    signed = claim.signed_headers
    if "host" not in signed:
        raise _incomplete("'Host' must be a 'SignedHeader' in the AWS Authorization.")
    for name in request.headers:
        if name.startswith("x-amz-") and name not in signed:
            raise _incomplete(f"'{name[:64]}' must be a 'SignedHeader' in the AWS Authorization.")


def _payload_hash(request: Request, claim: Claim) -> str:
    """The hash that was signed: of the body, or the words that leave the body out. May raise MISMATCH."""
    declared = request.headers.get("x-amz-content-sha256")
    if declared is None and claim.presigned:
        declared = _presigned_parameters(request.query).get("X-Amz-Content-Sha256")
    if declared is not None and declared.strip() == UNSIGNED_PAYLOAD:
        return UNSIGNED_PAYLOAD
    actual = hashlib.sha256(request.body).hexdigest()
    if declared is not None and declared.strip() != actual:
        detail = "The x-amz-content-sha256 that was signed is not the SHA-256 of the request's body."
        raise SignatureProblem(SignatureFault.MISMATCH, detail)
    return actual


def day_key(secret: str, date: str, region: str, service: str) -> bytes:
    """The key that signs one day's requests of one Region and service."""
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode("utf-8"), hashlib.sha256).digest()
    return key


def string_to_sign(request: Request, claim: Claim, payload_hash: str) -> str:
    """The text whose HMAC is the signature."""
    canonical = canonical_request(request, claim.signed_headers, payload_hash)
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
    scope = f"{claim.date}/{claim.region}/{claim.service}/aws4_request"
    return f"{ALGORITHM}\n{_basic(claim.timestamp)}\n{scope}\n{digest}"


def _basic(instant: datetime) -> str:
    utc = instant.astimezone(UTC)  # and no strftime, which takes three times as long
    return f"{utc.year:04}{utc.month:02}{utc.day:02}T{utc.hour:02}{utc.minute:02}{utc.second:02}Z"
