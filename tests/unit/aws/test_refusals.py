"""What an error of AWS means, from real codes (field fault 45)."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from berth.aws.refusals import CALL_ERRORS, EXIT_CODES, KINDS, Kind, refusal_of
from berth.terms.outcomes import ExitCode


def error(code: str, status: int = 400, message: str = "") -> ClientError:
    """An error as botocore raises it."""
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "CreateTrainingPlan",
    )


CODES = [
    ("InsufficientInstanceCapacity", 500, Kind.NO_CAPACITY, 10),
    ("InsufficientCapacity", 400, Kind.NO_CAPACITY, 10),
    ("ResourceLimitExceeded", 400, Kind.QUOTA, 11),
    ("VcpuLimitExceeded", 400, Kind.QUOTA, 11),
    ("CapacityBlockDescribeLimitExceeded", 400, Kind.QUOTA, 11),
    ("InstanceLimitExceeded", 400, Kind.QUOTA, 11),
    ("ThrottlingException", 400, Kind.THROTTLED, 12),
    ("RequestLimitExceeded", 503, Kind.THROTTLED, 12),
    ("ExpiredTokenException", 400, Kind.CREDENTIALS, 13),
    ("AuthFailure", 401, Kind.CREDENTIALS, 13),
    ("UnauthorizedOperation", 403, Kind.NOT_ALLOWED, 13),
    ("AccessDeniedException", 400, Kind.NOT_ALLOWED, 13),
    ("ValidationException", 400, Kind.BAD_REQUEST, 20),
    ("UnknownOperationException", 400, Kind.UNKNOWN_OPERATION, 20),
    ("InvalidCapacityReservationId.NotFound", 400, Kind.NOT_FOUND, 20),
    ("InternalFailure", 500, Kind.SERVER, 14),
    ("SomethingNew", 400, Kind.UNCLASSIFIED, 14),
]


@pytest.mark.parametrize(("code", "status", "kind", "exit_code"), CODES, ids=[c[0] for c in CODES])
def test_real_codes_have_their_kind_and_exit_code(code: str, status: int, kind: Kind, exit_code: int) -> None:
    """An unknown code is unclassified, never "no capacity"."""
    refusal = refusal_of(error(code, status))
    assert (refusal.kind, refusal.exit_code) == (kind, ExitCode(exit_code))


def test_every_kind_has_an_exit_code() -> None:
    """The table is complete, and success is in none of its rows."""
    assert set(EXIT_CODES) == set(Kind)
    assert ExitCode.DONE not in EXIT_CODES.values()
    assert set(KINDS.values()) <= set(Kind)


@pytest.mark.parametrize(
    ("problem", "open_question"),
    [
        (error("ValidationException"), False),
        (error("ThrottlingException"), False),
        (error("InternalFailure", 500), True),
        (error("SomethingNew", 503), True),
        (error("", 0), True),
        (ReadTimeoutError(endpoint_url="http://x"), True),
        (ConnectionClosedError(endpoint_url="http://x"), True),
        (EndpointConnectionError(endpoint_url="http://x"), False),
        (ConnectTimeoutError(endpoint_url="http://x"), False),
        (NoCredentialsError(), False),
        (BotoCoreError(), True),
    ],
)
def test_whether_it_may_have_happened(problem: ClientError | BotoCoreError, open_question: bool) -> None:
    """Only what certainly did not reach the service, or was refused by it, counts as not done."""
    assert refusal_of(problem).may_have_happened is open_question


def test_an_answer_that_cannot_be_parsed_is_no_botocore_error() -> None:
    """It is raised outside botocore's own family, so CALL_ERRORS names it; the call may have happened."""
    assert not issubclass(ResponseParserError, BotoCoreError)
    assert issubclass(ResponseParserError, CALL_ERRORS)
    assert refusal_of(ResponseParserError("garbage")).may_have_happened
    said = "Unable to parse response (line 2), invalid XML received. Further retries may succeed: b'<a><b>'"
    assert refusal_of(ResponseParserError(said)).message == said.partition(" Further")[0], (
        "not the answer itself"
    )


def test_remote_text_is_made_safe() -> None:
    """Codes and messages of a service may hold anything."""
    refusal = refusal_of(error("Bad\x1b[31m", message="line\nline\x07\u202eevil"))
    assert str(refusal) == "Bad [31m: line line evil"
