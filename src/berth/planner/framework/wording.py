"""The framework's word on a need as lines of 80 columns: what to try first, and every rule that spoke."""

from __future__ import annotations

from collections.abc import Sequence

from berth.planner.framework.advice import Step
from berth.planner.phrases import hung, label, wrapped
from berth.planner.verdicts import WayVerdict
from berth.terms.ways import Way


def try_lines(steps: Sequence[Step], best: Way | None) -> list[str]:
    """What to try in which order, where that does not begin with the best offer's own way.

    Beside an offer of the way that is advised first nothing is said but what is easily overlooked.
    """
    if not steps:
        return []
    if best is not None and steps[0].way is best:
        early = [step for step in steps if step.rule == "begin-three-weeks-ahead"]
        return [line for step in early for line in hung(step.sentence, "TRY")]
    lines: list[str] = []
    for number, step in enumerate(steps, start=1):
        lines += hung(f"{number} {_named(step)}{step.sentence}", "TRY" if number == 1 else "")
    return lines


def _named(step: Step) -> str:
    return f"{label(step.way)}: " if step.way else ""


def terms_text(verdicts: Sequence[WayVerdict], steps: Sequence[Step] = ()) -> str:
    """Every way in full: verdict, rules with their sources, and its terms. For `berth plan --ways`."""
    lines: list[str] = []
    for verdict in verdicts:
        lines.append(f"{'FITS' if verdict.fits else 'NO':<7}{verdict.way.value}")
        for reason in verdict.reasons:
            word = "  but" if reason.against else "  and"
            lines += hung(f"{reason.sentence} ({reason.rule}; {reason.source})", word)
        terms = verdict.terms
        told = (
            ("launch", terms.who_launches), ("buys", terms.who_buys), ("paid", terms.when_paid),
            ("cancel", terms.can_cancel), ("end", terms.at_the_end),
        )  # fmt: skip
        for word, sentence in told:
            lines += wrapped(f"  {word:<8}{sentence}", hang=10)
    for number, step in enumerate(steps, start=1):
        said = f"{number} {_named(step)}{step.sentence} ({step.rule}; {step.source})"
        lines += hung(said, "TRY" if number == 1 else "")
    return "\n".join(lines)
