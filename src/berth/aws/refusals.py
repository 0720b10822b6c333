"""What an AWS error means for us: one table from vendor codes, one function for exceptions (field fault 45).

An unknown code is "unclassified", never "no capacity".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError

from berth.terms.outcomes import ExitCode
from berth.terms.text import plain

CALL_ERRORS = (ClientError, BotoCoreError, ResponseParserError)
"""Everything that a call through botocore raises; the last is outside botocore's own family."""


class Kind(StrEnum):
    """What a refusal calls for."""

    NO_CAPACITY = "no-capacity"
    QUOTA = "quota"
    THROTTLED = "throttled"
    CREDENTIALS = "credentials"
    NOT_ALLOWED = "not-allowed"
    NOT_FOUND = "not-found"
    BAD_REQUEST = "bad-request"
    UNKNOWN_OPERATION = "unknown-operation"
    SERVER = "server"
    UNREACHABLE = "unreachable"
    UNCLASSIFIED = "unclassified"


KINDS: dict[str, Kind] = {
    "InsufficientInstanceCapacity": Kind.NO_CAPACITY,
    "InsufficientCapacity": Kind.NO_CAPACITY,
    "InsufficientCapacityError": Kind.NO_CAPACITY,
    "InsufficientHostCapacity": Kind.NO_CAPACITY,
    "InsufficientReservedInstanceCapacity": Kind.NO_CAPACITY,
    "InsufficientCapacityOnOutpost": Kind.NO_CAPACITY,
    "SpotMaxPriceTooLow": Kind.NO_CAPACITY,
    "CapacityError": Kind.NO_CAPACITY,
    "ReservationCapacityExceeded": Kind.NO_CAPACITY,
    "ResourceLimitExceeded": Kind.QUOTA,
    "InstanceLimitExceeded": Kind.QUOTA,
    "VcpuLimitExceeded": Kind.QUOTA,
    "MaxSpotInstanceCountExceeded": Kind.QUOTA,
    "CapacityReservationLimitExceeded": Kind.QUOTA,
    "CapacityBlockDescribeLimitExceeded": Kind.QUOTA,  # or asked too fast: see sources/capacity_blocks.py
    "ServiceQuotaExceededException": Kind.QUOTA,
    "LimitExceededException": Kind.QUOTA,
    "TagLimitExceeded": Kind.QUOTA,
    "Throttling": Kind.THROTTLED,
    "ThrottlingException": Kind.THROTTLED,
    "ThrottledException": Kind.THROTTLED,
    "RequestThrottled": Kind.THROTTLED,
    "RequestThrottledException": Kind.THROTTLED,
    "RequestLimitExceeded": Kind.THROTTLED,
    "TooManyRequestsException": Kind.THROTTLED,
    "SlowDown": Kind.THROTTLED,
    "AuthFailure": Kind.CREDENTIALS,
    "ExpiredToken": Kind.CREDENTIALS,
    "ExpiredTokenException": Kind.CREDENTIALS,
    "RequestExpired": Kind.CREDENTIALS,
    "InvalidClientTokenId": Kind.CREDENTIALS,
    "InvalidAccessKeyId": Kind.CREDENTIALS,
    "UnrecognizedClientException": Kind.CREDENTIALS,
    "SignatureDoesNotMatch": Kind.CREDENTIALS,
    "InvalidSignatureException": Kind.CREDENTIALS,
    "IncompleteSignature": Kind.CREDENTIALS,
    "IncompleteSignatureException": Kind.CREDENTIALS,
    "MissingAuthenticationToken": Kind.CREDENTIALS,
    "MissingAuthenticationTokenException": Kind.CREDENTIALS,
    "OptInRequired": Kind.NOT_ALLOWED,
    "AccessDenied": Kind.NOT_ALLOWED,
    "AccessDeniedException": Kind.NOT_ALLOWED,
    "UnauthorizedOperation": Kind.NOT_ALLOWED,
    "UnauthorizedAccess": Kind.NOT_ALLOWED,
    "Blocked": Kind.NOT_ALLOWED,
    "PendingVerification": Kind.NOT_ALLOWED,
    "NotAuthorized": Kind.NOT_ALLOWED,
    "ResourceNotFound": Kind.NOT_FOUND,
    "ResourceNotFoundException": Kind.NOT_FOUND,
    "InvalidCapacityBlockOfferingIdExpired": Kind.NOT_FOUND,
    "InvalidCapacityBlockOfferingIdNotFound": Kind.NOT_FOUND,
    "NoSuchResourceException": Kind.NOT_FOUND,  # Service Quotas
    "NoSuchEntity": Kind.NOT_FOUND,  # IAM
    "NoSuchBucket": Kind.NOT_FOUND,
    "NoSuchKey": Kind.NOT_FOUND,
    "404": Kind.NOT_FOUND,
    "ValidationException": Kind.BAD_REQUEST,
    "ValidationError": Kind.BAD_REQUEST,
    "InvalidParameterValue": Kind.BAD_REQUEST,
    "InvalidParameterCombination": Kind.BAD_REQUEST,
    "InvalidParameter": Kind.BAD_REQUEST,
    "MissingParameter": Kind.BAD_REQUEST,
    "UnknownParameter": Kind.BAD_REQUEST,
    "MalformedQueryString": Kind.BAD_REQUEST,
    "SerializationException": Kind.BAD_REQUEST,
    "ResourceInUse": Kind.BAD_REQUEST,
    "ConflictException": Kind.BAD_REQUEST,
    "Unsupported": Kind.BAD_REQUEST,
    "UnsupportedOperation": Kind.BAD_REQUEST,
    "IncorrectState": Kind.BAD_REQUEST,
    "InvalidCapacityBlockOfferingIdMalformed": Kind.BAD_REQUEST,
    "InvalidCapacityReservationState": Kind.BAD_REQUEST,
    "InvalidCapacityReservationState.PendingActivation": Kind.BAD_REQUEST,
    "InvalidCapacityReservationState.Unavailable": Kind.BAD_REQUEST,
    "InvalidLaunchTargets": Kind.BAD_REQUEST,
    "IdempotentParameterMismatch": Kind.BAD_REQUEST,
    "IdempotentInstanceTerminated": Kind.BAD_REQUEST,
    "InsufficientFreeAddressesInSubnet": Kind.BAD_REQUEST,
    "MissingInput": Kind.BAD_REQUEST,
    "TagPolicyViolation": Kind.BAD_REQUEST,
    "InvalidAction": Kind.UNKNOWN_OPERATION,
    "UnknownOperationException": Kind.UNKNOWN_OPERATION,
    "InternalError": Kind.SERVER,
    "InternalFailure": Kind.SERVER,
    "InternalServerError": Kind.SERVER,
    "InternalServiceError": Kind.SERVER,
    "ServiceUnavailable": Kind.SERVER,
    "ServiceUnavailableException": Kind.SERVER,
    "Unavailable": Kind.SERVER,
    "500": Kind.SERVER,
    "502": Kind.SERVER,
    "503": Kind.SERVER,
    "504": Kind.SERVER,
}

EXIT_CODES: dict[Kind, ExitCode] = {
    Kind.NO_CAPACITY: ExitCode.NO_CAPACITY,
    Kind.QUOTA: ExitCode.QUOTA,
    Kind.THROTTLED: ExitCode.THROTTLED,
    Kind.CREDENTIALS: ExitCode.CREDENTIALS,
    Kind.NOT_ALLOWED: ExitCode.CREDENTIALS,
    Kind.NOT_FOUND: ExitCode.BAD_REQUEST,
    Kind.BAD_REQUEST: ExitCode.BAD_REQUEST,
    Kind.UNKNOWN_OPERATION: ExitCode.BAD_REQUEST,
    Kind.SERVER: ExitCode.INCOMPLETE,
    Kind.UNREACHABLE: ExitCode.INCOMPLETE,
    Kind.UNCLASSIFIED: ExitCode.INCOMPLETE,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What went wrong with one call.

    `code` is the vendor's code, or the name of the exception where no answer came. `message` is safe to
    print. `may_have_happened` says that the service may have done what was asked: no answer came after the
    request may have left, or the answer is a server's fault. For a paid call that means: outcome unknown.
    """

    kind: Kind
    code: str
    message: str
    may_have_happened: bool

    @property
    def exit_code(self) -> ExitCode:
        """The exit code for a call that cannot have spent."""
        return EXIT_CODES[self.kind]

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


def refusal_of(error: ClientError | BotoCoreError | ResponseParserError) -> Refusal:
    """What an exception of botocore means."""
    if isinstance(error, ClientError):
        return _answered(error)
    return _unanswered(error)


def _answered(error: ClientError) -> Refusal:
    code = str(error.response.get("Error", {}).get("Code", ""))
    message = plain(error.response.get("Error", {}).get("Message", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    kind = KINDS.get(code)
    if kind is None:
        kind = _by_shape(code, status)
    # A refusal in the 4xx range says that nothing was done; anything else leaves it open.
    certain = 400 <= status < 500 or kind in {Kind.THROTTLED, Kind.NO_CAPACITY, Kind.QUOTA}
    return Refusal(kind, plain(code, 100) or "no code", message, may_have_happened=not certain)


def _by_shape(code: str, status: int) -> Kind:
    if code.endswith((".NotFound", "NotFoundException")):
        return Kind.NOT_FOUND
    if code.endswith(".Malformed"):
        return Kind.BAD_REQUEST
    return Kind.SERVER if status >= 500 else Kind.UNCLASSIFIED


_NO_LOGIN = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    SSOError,
    TokenRetrievalError,
)
_NEVER_LEFT = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError, ParamValidationError)


def _unanswered(error: BotoCoreError | ResponseParserError) -> Refusal:
    code, message = type(error).__name__, plain(error)
    if isinstance(error, _NO_LOGIN):
        return Refusal(Kind.CREDENTIALS, code, message, may_have_happened=False)
    if isinstance(error, ParamValidationError):
        return Refusal(Kind.BAD_REQUEST, code, message, may_have_happened=False)
    if isinstance(error, _NEVER_LEFT):
        return Refusal(Kind.UNREACHABLE, code, message, may_have_happened=False)
    if isinstance(error, ReadTimeoutError | ConnectionClosedError | HTTPClientError):
        return Refusal(Kind.UNREACHABLE, code, message, may_have_happened=True)
    if isinstance(error, ResponseParserError):
        message = message.partition(" Further retries may succeed")[0]  # what follows is the whole answer
    # Whatever else botocore raises may come after the request left (an answer that it cannot parse).
    return Refusal(Kind.UNCLASSIFIED, code, message, may_have_happened=True)
