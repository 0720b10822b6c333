"""How a command ends: its exit code, and what is known about money at that moment.

Both the library and the command line speak these words, so they live here. Every failure of every verb ends
with exactly one of three lines about money (`Spending.line`); there is no fourth.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from berth.terms.money import Money


class ExitCode(IntEnum):
    """What the process says to its caller. `berth.cli.exit_codes` tells each in a sentence."""

    DONE = 0
    INTERNAL_ERROR = 1
    USAGE = 2
    NO_CAPACITY = 10
    QUOTA = 11
    THROTTLED = 12
    CREDENTIALS = 13
    INCOMPLETE = 14
    DECISION_NEEDED = 15
    BAD_REQUEST = 20
    BOUGHT_NOT_LAUNCHED = 30
    CLEANED_STILL_PAID = 31
    SOMETHING_LEFT = 32
    OUTCOME_UNKNOWN = 40
    INTERRUPTED = 130


class Spent(Enum):
    """What is known about money."""

    NOTHING = "nothing"
    PAID = "paid"
    NOT_KNOWN = "not-known"


@dataclass(frozen=True, slots=True)
class Spending:
    """What a command has spent so far. Made by `nothing`, `paid` or `not_known`, never by hand.

    `amount` is what was paid, or what may have been (None only for NOTHING). `order` is the order's handle
    as `berth show` takes it.
    """

    spent: Spent
    amount: Money | None = None
    order: str = ""

    @classmethod
    def nothing(cls) -> Spending:
        """Nothing was spent, and that is known."""
        return cls(Spent.NOTHING)

    @classmethod
    def paid(cls, amount: Money, order: str) -> Spending:
        """`amount` was paid for `order`, and that is known."""
        return cls(Spent.PAID, amount, order)

    @classmethod
    def not_known(cls, amount: Money, order: str) -> Spending:
        """A paid call for `order` was sent, and how it ended is not known."""
        return cls(Spent.NOT_KNOWN, amount, order)

    def line(self) -> str:
        """The last line of a failure."""
        if self.spent is Spent.NOTHING:
            return "nothing was spent"
        if self.spent is Spent.PAID:
            return f"paid {self.amount}, order {self.order}"
        return (
            f"not known whether {self.amount} was paid, order {self.order}: "
            f"do not buy by hand, run `berth show {self.order}`"
        )


NOTHING_SPENT = Spending.nothing()


class BerthError(Exception):
    """Something that a person must be told, with the exit code that says what kind it is.

    `message` says what went wrong and what would be right. `next_step` is one thing to do, often a command;
    None when there is none. `spent` says what is known about money; the default is for code that cannot pay.
    """

    def __init__(
        self,
        exit_code: ExitCode,
        message: str,
        next_step: str | None = None,
        spent: Spending = NOTHING_SPENT,
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.message = message
        self.next_step = next_step
        self.spent = spent
