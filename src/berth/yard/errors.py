"""The one way a service operation says no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class ServiceError(Exception):
    """An answer that is an error, in AWS's terms; the wire turns it into each protocol's body.

    `code` is AWS's error code, `message` what a person reads, `status` the HTTP status (400 unless AWS
    is known to use another), `members` further members of a modelled error, such as OriginalStatusCode.
    """

    code: str
    message: str
    status: int = 400
    members: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
