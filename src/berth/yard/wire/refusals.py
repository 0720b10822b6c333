"""What each service answers to a signature that it does not accept.

`docs/reference/signatures.md` shows this table with the source of each entry, and which entries have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from ..errors import ServiceError
from .sigv4 import MISMATCH_TEXT, SignatureFault, SignatureProblem

_TOLERANCE = timedelta(minutes=5)
_TOLERANCES = {"ec2": timedelta(minutes=15)}

_TOKEN_INVALID = "The security token included in the request is invalid."  # noqa: S105 - a sentence, no secret
_TOKEN_EXPIRED = "The security token included in the request is expired"  # noqa: S105 - a sentence, no secret


@dataclass(frozen=True, slots=True)
class Refusal:
    """One answer: AWS's code, HTTP status, and text; None takes the text of the problem itself."""

    code: str
    status: int
    message: str | None = None


_EC2_INVALID = Refusal("AuthFailure", 401, "AWS was not able to validate the provided access credentials")
_EC2_EXPIRED = Refusal("RequestExpired", 400, "Request has expired.")
_STS_MISMATCH = Refusal("SignatureDoesNotMatch", 403)


def _json_refusals(status: int) -> dict[SignatureFault, Refusal]:
    """AWS JSON answers with 400, SageMaker's runtime with 403, as REST services do; the codes are the
    same."""
    mismatch = Refusal("InvalidSignatureException", status)
    return {
        SignatureFault.MISSING: Refusal(
            "MissingAuthenticationTokenException", status, "Missing Authentication Token"
        ),
        SignatureFault.INCOMPLETE: Refusal("IncompleteSignatureException", status),
        SignatureFault.UNKNOWN_KEY: Refusal("UnrecognizedClientException", status, _TOKEN_INVALID),
        SignatureFault.SCOPE: mismatch,
        SignatureFault.MISMATCH: Refusal("InvalidSignatureException", status, MISMATCH_TEXT),
        SignatureFault.SKEWED: mismatch,
        SignatureFault.EXPIRED: mismatch,
        SignatureFault.TOKEN_EXPIRED: Refusal("ExpiredTokenException", status, _TOKEN_EXPIRED),
    }


_QUERY: dict[SignatureFault, Refusal] = {
    SignatureFault.MISSING: Refusal(
        "MissingAuthenticationToken", 403, "Request is missing Authentication Token"
    ),
    SignatureFault.INCOMPLETE: Refusal("IncompleteSignature", 400),
    SignatureFault.UNKNOWN_KEY: Refusal("InvalidClientTokenId", 403, _TOKEN_INVALID),
    SignatureFault.SCOPE: _STS_MISMATCH,
    SignatureFault.MISMATCH: Refusal("SignatureDoesNotMatch", 403, MISMATCH_TEXT),
    SignatureFault.SKEWED: _STS_MISMATCH,
    SignatureFault.EXPIRED: _STS_MISMATCH,
    SignatureFault.TOKEN_EXPIRED: Refusal("ExpiredToken", 403, _TOKEN_EXPIRED),
}

REFUSALS: Mapping[str, Mapping[SignatureFault, Refusal]] = {
    "ec2": {
        SignatureFault.MISSING: Refusal(
            "MissingParameter", 400, "The request must contain the parameter AWSAccessKeyId"
        ),
        SignatureFault.INCOMPLETE: _EC2_INVALID,
        SignatureFault.UNKNOWN_KEY: _EC2_INVALID,
        SignatureFault.SCOPE: _EC2_INVALID,
        SignatureFault.MISMATCH: _EC2_INVALID,
        SignatureFault.SKEWED: _EC2_EXPIRED,
        SignatureFault.EXPIRED: _EC2_EXPIRED,
        SignatureFault.TOKEN_EXPIRED: _EC2_EXPIRED,
    },
    "sts": _QUERY,
    "iam": _QUERY,
    "sagemaker": _json_refusals(400),
    "sagemaker-runtime": _json_refusals(403),
    "pricing": _json_refusals(400),
    "service-quotas": _json_refusals(400),
}


def refusal(service: str, problem: SignatureProblem) -> ServiceError:
    """The error that a service answers with. Raises KeyError for a service that is not served."""
    entry = REFUSALS[service][problem.fault]
    return ServiceError(entry.code, entry.message or problem.detail, entry.status)


def tolerance_of(service: str) -> timedelta:
    """How far a signer's clock may be off, either way: 15 minutes for EC2, 5 for the others."""
    return _TOLERANCES.get(service, _TOLERANCE)
