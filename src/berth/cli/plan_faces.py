"""The faces of a plan: text, every offer, the ways side by side, rows, a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class Faces:
    """What of a plan is shown: its text, and whatever else was asked for. `plot` None: no picture.
    `profile` is the one that was named to ask with; None: none was."""

    ways: bool = False
    offers: bool = False
    compare: bool = False
    rows: bool = False
    plot: Path | None = None
    explain: bool = False
    profile: str | None = None

    def show(self, output: Output, header: str, made: Plan, **beside: Any) -> None:
        """Answer with the plan. `beside` are further members of the JSON document."""
        from berth.planner.costs.document import true_cost_json

        output.document({**made.to_json(), "true_cost": true_cost_json(made), **beside})
        if output.as_json or self.rows:
            output.talk(header)
        output.answer("\n\n".join(self._texts(header, made)))
        if self.plot is not None:
            from berth.cli.plot import draw

            output.talk(draw(made, self.plot))

    def _texts(self, header: str, made: Plan) -> Iterator[str]:
        if self.rows:
            from berth.planner.csv_text import csv_text

            yield csv_text(made).rstrip("\r\n")
            return
        from berth.planner.wording import plan_text

        yield plan_text(made, header, self.profile)
        if self.offers:
            from berth.planner.offers_text import offers_text

            yield offers_text(made)
        if self.compare:
            from berth.planner.compare_text import compare_text

            yield compare_text(made)
        if self.explain:
            from berth.planner.best.wording import explained

            yield explained(
                made.combination, compared=made.best is not None and made.best.cost.total is not None
            )
        if self.ways:
            from berth.planner.framework.wording import terms_text

            yield terms_text(made.verdicts, made.steps)


def read_faces(
    *, ways: bool, offers: bool, compare: bool, rows: bool, plot: str | None, as_json: bool
) -> Faces:
    """The faces that were typed. Raises BerthError (usage), before anything is asked."""
    from berth.cli.plot import check_plot

    if rows and (as_json or ways or offers or compare):
        raise BerthError(
            ExitCode.USAGE, "--csv is an answer of its own: leave --json, --ways, --offers and --compare out"
        )
    return Faces(ways, offers, compare, rows, check_plot(plot) if plot else None)
