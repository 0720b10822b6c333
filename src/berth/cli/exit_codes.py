"""The exit codes of `berth`, each in a sentence: one table for help, documentation and tests."""

from __future__ import annotations

from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode, Spending, Spent

__all__ = ["MEANINGS", "NEXT_STEPS", "NOTHING_SPENT", "BerthError", "ExitCode", "Spending", "Spent", "table"]

MEANINGS: dict[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.INTERNAL_ERROR: "internal error: a fault of berth itself",
    ExitCode.USAGE: "usage: the command line cannot be read",
    ExitCode.NO_CAPACITY: "no capacity: every place answered, none has what fits",
    ExitCode.QUOTA: "quota: the account may not hold as much",
    ExitCode.THROTTLED: "throttled: asked too often, ask again later",
    ExitCode.CREDENTIALS: "credentials: missing, expired, not allowed, or for another account",
    ExitCode.INCOMPLETE: "incomplete: some place did not answer in full",
    ExitCode.DECISION_NEEDED: "a decision is needed: the offer changed, or nobody could be asked",
    ExitCode.BAD_REQUEST: "bad request: the need or a file says something that cannot be",
    ExitCode.BOUGHT_NOT_LAUNCHED: "bought, but what should run in it does not",
    ExitCode.CLEANED_STILL_PAID: "cleaned up, and the reservation is still paid until its end",
    ExitCode.SOMETHING_LEFT: "something still runs, is armed or is waited for: `berth leave` lists it",
    ExitCode.OUTCOME_UNKNOWN: "outcome unknown: do not buy by hand, run `berth show`",
    ExitCode.INTERRUPTED: "interrupted",
}

NEXT_STEPS: dict[ExitCode, str] = {
    ExitCode.DONE: "nothing",
    ExitCode.INTERNAL_ERROR: "mend what is named, and run it again; it looks before it pays",
    ExitCode.USAGE: "put --help behind the verb: it lists what may be written",
    ExitCode.NO_CAPACITY: "berth plan the need again: later, elsewhere, or with another type",
    ExitCode.QUOTA: "berth doctor NEED names the quota and how to ask for more",
    ExitCode.THROTTLED: "run it again in a minute",
    ExitCode.CREDENTIALS: "berth doctor NEED says what lacks; --profile, --buyer-profile take other logins",
    ExitCode.INCOMPLETE: "run it again; what did not answer may answer then",
    ExitCode.DECISION_NEEDED: "decide, and run it again with what was decided",
    ExitCode.BAD_REQUEST: "change what is named, and run it again",
    ExitCode.BOUGHT_NOT_LAUNCHED: "berth show the order, then run it again",
    ExitCode.CLEANED_STILL_PAID: "nothing: it ends by itself",
    ExitCode.SOMETHING_LEFT: "berth leave",
    ExitCode.OUTCOME_UNKNOWN: "berth show the order with --wait",
    ExitCode.INTERRUPTED: "run it again; it looks before it does anything",
}
"""What to do after a failure that says nothing of its own about that."""


def table() -> str:
    """The codes as lines, for the help text."""
    return "\n".join(f"{code.value:>4}  {meaning}" for code, meaning in MEANINGS.items())
