"""Who acts, and where: the first line of every command."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime

from berth.aws.worlds import Yard
from berth.terms.text import plain


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The yard that plays AWS. `clock_at` is its clock as first heard, None where it told none."""

    yard: Yard
    clock_at: datetime | None

    @property
    def url(self) -> str:
        """The yard's origin."""
        return self.yard.url

    @property
    def s3_url(self) -> str | None:
        """The origin of its S3, None where it has none."""
        return self.yard.s3_url


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller, as STS told it. `rehearsal` is None on AWS."""

    account: str
    arn: str
    regions: tuple[str, ...]
    rehearsal: Rehearsal | None

    @property
    def realm(self) -> str:
        """`aws`, or the yard's address: what is remembered of one world is never used in another."""
        return self.rehearsal.yard.address if self.rehearsal else "aws"

    @property
    def account_shown(self) -> str:
        """`1111-2222-3333`: twelve digits in fours."""
        digits = plain(self.account, 40)
        if len(digits) != 12 or not digits.isdigit():
            return digits
        return f"{digits[:4]}-{digits[4:8]}-{digits[8:]}"

    @property
    def role(self) -> str:
        """`role planner-readonly`, `user ada`, `root`: who the ARN names."""
        resource = plain(self.arn.rsplit(":", 1)[-1], 200)
        kind, _, rest = resource.partition("/")
        if kind == "assumed-role":
            return f"role {rest.partition('/')[0]}"
        if kind in {"user", "federated-user"}:
            return f"user {rest.rpartition('/')[2]}"
        return resource

    def header(self, width: int = 80) -> str:
        """The first line (or two) of every command."""
        if self.rehearsal is None:
            text = f"AWS  account {self.account_shown}, {self.role}, {', '.join(self.regions)}"
            return "\n".join(textwrap.wrap(text, width, subsequent_indent="     ", break_on_hyphens=False))
        clock = self.rehearsal.clock_at
        told = f"its clock {clock.astimezone(UTC):%a %Y-%m-%d %H:%M}Z" if clock else "its clock not told"
        text = (
            f"REHEARSAL  yard {self.rehearsal.yard.address}, {told}. Stock is made up, "
            "fees follow list rates; nothing can be charged."
        )
        return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False))
