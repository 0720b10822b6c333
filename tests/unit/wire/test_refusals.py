"""The table of signature codes: complete, and the same in code and docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.yard.wire.refusals import REFUSALS, refusal
from berth.yard.wire.service import SERVICES
from berth.yard.wire.sigv4 import SignatureFault, SignatureProblem

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "signatures.md"


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("fault", SignatureFault)
def test_every_fault_has_an_answer_in_every_service(service: str, fault: SignatureFault) -> None:
    """A client error with a text, never a blank."""
    error = refusal(service, SignatureProblem(fault, "because"))
    assert error.code
    assert error.message
    assert error.status in {400, 401, 403}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("fault", SignatureFault)
def test_the_docs_show_every_entry(service: str, fault: SignatureFault) -> None:
    """One row a service and fault, with code and status."""
    entry = REFUSALS[service][fault]
    row = f"| {service} | {fault} | `{entry.code}` | {entry.status} |"
    assert row in DOCS.read_text(encoding="utf-8")
