"""The accounts over which a need of several pieces may be spread: the tables `[[accounts]]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.terms.settings import Section

_ID = r"\d{12}|\d{4}-\d{4}-\d{4}"
_PROFILE = r"[^\s\[\]]{1,128}"


@dataclass(frozen=True, slots=True)
class NeedAccount:
    """An account that may hold pieces: its 12 digits, and the profile whose keys search and pay there.

    A profile of AWS's configuration may name a role (`role_arn`), which is then assumed. None: the caller's
    own keys.
    """

    id: str
    profile: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"id": self.id, "profile": self.profile}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NeedAccount:
        """The account that `to_json` wrote."""
        return cls(value["id"], value["profile"])


def read_accounts(sections: Sequence[Section], pinned: str | None) -> tuple[NeedAccount, ...]:
    """The tables `[[accounts]]`, in the order in which they are filled."""
    made: list[NeedAccount] = []
    for section in sections:
        written = section.text("id", pattern=_ID, hint="an account has twelve digits, in quotes")
        profile = section.text("profile", "", pattern=_PROFILE, hint="a profile of AWS's configuration")
        account = NeedAccount(written.replace("-", ""), profile or None)
        if account.id in {other.id for other in made}:
            section.complain("id", f"account {account.id} is named twice")
        made.append(account)
    if made and pinned is not None and pinned != made[0].id:
        sections[0].complain("id", f"the need is pinned to account {pinned}: name that one first")
    return tuple(made)
