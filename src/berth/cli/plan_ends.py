"""How `berth plan` ends: done, or with the exit code and the words for why nothing can be bought."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.planner.plan import Plan


def end(made: Plan) -> int:
    """The exit code: done, or a failure that says which kind."""
    if made.best or made.reuse or made.mix:
        return _end_of_choice(made)
    raise why_nothing(made)


def why_nothing(made: Plan) -> BerthError:
    """Why the plan has nothing that can be bought, with the exit code for that reason."""
    from berth.planner.choose import doubtful_regions, places_asked, unanswered

    if made.choices:
        return BerthError(
            ExitCode.INCOMPLETE,
            "what fits is on sale, and no price of it is known: unknown never leads and is never bought",
            "ask again",
        )
    if not made.answers:
        return _nothing_to_ask(made)
    if not unanswered(made):
        return _nothing_fits(made)
    mistyped = doubtful_regions(made)
    if mistyped and {a.region for a in made.answers} == {a.region for a in unanswered(made)}:
        return BerthError(ExitCode.BAD_REQUEST, "\n".join(mistyped), "write Regions like us-east-1")
    code = _one_refusal(made)
    if code is not None:
        return BerthError(code, "no place answered the question", next_of_unanswered(made))
    asked, places = places_asked(made)
    return BerthError(
        ExitCode.INCOMPLETE,
        f"{asked} of {places} places searched: whether something fits elsewhere is not known",
        next_of_unanswered(made),
    )


def next_of_unanswered(made: Plan) -> str:
    """What to do about the places that did not answer in full: asking again helps against some reasons."""
    from berth.planner.choose import refusals, unanswered

    if refusals(made) and refusals(made) == unanswered(made):
        return "the plan says why, place by place; `berth doctor NEED` says what to ask for, and of whom"
    return "the plan says which; ask again"


_WIDEN = "widen the need: other Regions, a later end, another start, a higher budget"


def _nothing_fits(made: Plan) -> BerthError:
    """Every place answered: nothing is on sale, or nothing that holds all of the need."""
    from berth.planner.fit import is_piece
    from berth.planner.smaller import smaller_text

    changes = made.combination.changes if made.combination else ()
    told = "take a change that the lines `if` above name" if changes else ""
    pieces = [rejected for rejected in made.rejected if is_piece(rejected.offer, made.need)]
    if pieces:
        return BerthError(
            ExitCode.NO_CAPACITY,
            f"no single offer holds all of it; {len(pieces)} that hold a part of it are on sale",
            told or "the lines NONE and SPLIT above say which parts; plan each by a need of its own",
        )
    priced_in = _other_currency(made)
    if priced_in:
        return BerthError(
            ExitCode.NO_CAPACITY,
            "every place answered, and no price is in the currency of the budget: none is compared with it",
            f"write the budget in {priced_in}",
        )
    return BerthError(
        ExitCode.NO_CAPACITY,
        "every place answered, and nothing that fits is on sale",
        told or "; or ".join(filter(None, (smaller_text(made.need), _WIDEN))),
    )


def _other_currency(made: Plan) -> str:
    """The one currency of all offers, where the budget is in another; else empty."""
    fees = {rejected.offer.fee.currency for rejected in made.rejected if rejected.offer.fee is not None}
    budget = made.need.budget
    return fees.pop() if budget is not None and len(fees) == 1 and budget.currency not in fees else ""


def _end_of_choice(made: Plan) -> int:
    from berth.planner.choose import unanswered

    if not made.incomplete:
        return ExitCode.DONE
    if unanswered(made):
        raise BerthError(
            ExitCode.INCOMPLETE,
            "not every place answered in full, so a better offer may exist",
            next_of_unanswered(made),
        )
    raise BerthError(
        ExitCode.INCOMPLETE,
        "what the account owns could not be read everywhere, so this may be owned already",
        "the plan says where; ask again, or look there before you buy",
    )


def _one_refusal(made: Plan) -> ExitCode | None:
    """The exit code of the one reason for which every place refused; None when they differ."""
    from berth.planner.choose import only_outcome
    from berth.planner.offers import PlaceOutcome

    by_outcome = {
        PlaceOutcome.NO_QUOTA: ExitCode.QUOTA,
        PlaceOutcome.THROTTLED: ExitCode.THROTTLED,
        PlaceOutcome.NOT_ALLOWED: ExitCode.CREDENTIALS,
    }
    outcome = only_outcome(made)
    return by_outcome.get(outcome) if outcome is not None else None


def _nothing_to_ask(made: Plan) -> BerthError:
    """No way that can be bought ahead fits the need: why, and what is left."""
    from berth.terms.ways import Target, Way

    way = Way.CAPACITY_BLOCK if made.need.target is Target.INSTANCES else Way.TRAINING_PLAN
    why = next(v.why_not for v in made.verdicts if v.way is way)
    left = [v.way.value for v in made.verdicts if v.fits]
    return BerthError(
        ExitCode.NO_CAPACITY,
        f"nothing can be bought ahead for this need: {way.value}: {why}",
        f"what is left: {', '.join(left)}" if left else "change the need",
    )
