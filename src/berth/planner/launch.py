"""How instances are launched into what was bought: the part of a need that concerns instances alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Launch:
    """What an instance is made from. None always means: not said.

    `template` is a launch template's id (`lt-...`) or name, and `template_version` its version (a number,
    `$Latest` or `$Default`; None: `$Default`). What is said beside it stands over the template: `image`
    (`ami-...`, of the need's platform), `role` (name or ARN of an instance profile), `subnet`
    (`subnet-...`, in the zone of what was bought). Without a template, `image` is required.
    """

    template: str | None = None
    template_version: str | None = None
    image: str | None = None
    role: str | None = None
    subnet: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "template": self.template,
            "template_version": self.template_version,
            "image": self.image,
            "role": self.role,
            "subnet": self.subnet,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Launch:
        """The launch that `to_json` wrote."""
        return cls(
            value["template"], value["template_version"], value["image"], value["role"], value["subnet"]
        )
