"""The accounts over which a need of several pieces may be spread: the tables `[[accounts]]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.terms.settings import Section

_ID = r"\d{12}|\d{4}-\d{4}-\d{4}"
_PROFILE = r"[^\s\[\]]{1,128}"
# A role's ARN, and an external id, as IAM's and STS's own patterns have them.
_ROLE = r"arn:aws[a-z-]*:iam::\d{12}:role/(?:[\x21-\x7e]{1,510}/)?[\w+=,.@-]{1,64}"
_EXTERNAL_ID = r"[\w+=,.@:/-]{2,1224}"


@dataclass(frozen=True, slots=True)
class NeedAccount:
    """An account that may hold pieces: its 12 digits, and with what keys one searches and pays there.

    `profile` is a profile of AWS's configuration (which may name a role itself, `role_arn`); None: the
    caller's own keys. `role` is the ARN of a role of the account that those keys assume, with `external_id`
    where it asks for one; None: none.
    """

    id: str
    profile: str | None = None
    role: str | None = None
    external_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON. AWS treats an external id as no secret (IAM user guide, read 2026-11)."""
        plain = {"id": self.id, "profile": self.profile}
        more = {"role": self.role, "external_id": self.external_id}
        return {**plain, **{name: value for name, value in more.items() if value is not None}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NeedAccount:
        """The account that `to_json` wrote, of this version or an older one."""
        return cls(value["id"], value["profile"], value.get("role"), value.get("external_id"))


def read_accounts(sections: Sequence[Section], pinned: str | None) -> tuple[NeedAccount, ...]:
    """The tables `[[accounts]]`, in the order in which they are filled."""
    made: list[NeedAccount] = []
    for section in sections:
        account = _account(section)
        if account.id in {other.id for other in made}:
            section.complain("id", f"account {account.id} is named twice")
        made.append(account)
    if made and pinned is not None and pinned != made[0].id:
        sections[0].complain("id", f"the need is pinned to account {pinned}: name that one first")
    return tuple(made)


def _account(section: Section) -> NeedAccount:
    """One table. A role's ARN says the account; `id` is then needless, and must agree."""
    role = section.text("role", "", pattern=_ROLE, hint="like arn:aws:iam::444455556666:role/buyer")
    said = role.split(":")[4] if role else ""
    needed = {"default": said} if role else {}
    written = section.text("id", pattern=_ID, hint="an account has twelve digits, in quotes", **needed)
    account_id = written.replace("-", "")
    if role and account_id != said:
        section.complain("role", f"the role is of account {said}, and the id is {account_id}")
    profile = section.text("profile", "", pattern=_PROFILE, hint="a profile of AWS's configuration")
    external_id = section.text(
        "external_id", "", pattern=_EXTERNAL_ID, hint="2 to 1,224 letters, digits and _+=,.@:/-"
    )
    if external_id and not role:
        section.complain("external_id", "an external id goes with a role")
    return NeedAccount(account_id, profile or None, role or None, external_id or None)
