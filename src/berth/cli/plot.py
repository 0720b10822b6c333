"""`berth plan --plot FILE`: cost against use, drawn by matplotlib as SVG or PNG."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Way

if TYPE_CHECKING:
    from berth.planner.costs.curves import Curves, Line
    from berth.planner.plan import Plan

FORMATS = (".svg", ".png")


def check_plot(file: str) -> Path:
    """The file to draw to. Raises BerthError (usage) for another ending, for a folder that is not there, or
    where matplotlib is missing.

    It is checked before anything is asked, so that a sweep is not in vain.
    """
    path = Path(file)
    if path.suffix not in FORMATS:
        raise BerthError(ExitCode.USAGE, f"--plot {file}: the file must end in {' or '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise BerthError(ExitCode.USAGE, f"--plot {file}: there is no such folder", "make the folder first")
    try:  # imported, not looked for: what it needs itself may be missing
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise BerthError(
            ExitCode.USAGE, "--plot needs matplotlib, which is not installed", "pip install 'gpu-berth[plot]'"
        ) from None
    return path


def draw(plan: Plan, path: Path) -> str:
    """Draw the best choice's cost over use to `path`; a sentence that says what was drawn.

    Raises BerthError when there is nothing to draw or the file cannot be written.
    """
    from berth.planner.costs.curves import curves

    best = plan.best
    picture = curves(best, plan.pay_as_you_go) if best else None
    if best is None or picture is None:
        raise BerthError(ExitCode.NO_CAPACITY, "no choice with a known price, so there is nothing to draw")
    title = f"{plan.need.handle(best.number)}: {best.offer.way.value}, {best.offer.region}"
    try:
        _save(picture, title, path)
    except OSError as problem:
        raise BerthError(ExitCode.USAGE, f"--plot {path}: {problem.strerror or problem}") from None
    left_out = f"; without {'; '.join(picture.left_out)}" if picture.left_out else ""
    return f"drawn: {path}{left_out}"


def _save(picture: Curves, title: str, path: Path) -> None:
    """Without date and random ids inside: the same plan gives the same file."""
    import matplotlib as mpl

    undated = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "berth", "font.size": 10}):
        _figure(picture, title).savefig(path, metadata=undated)


def _figure(picture: Curves, title: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    hours = float(picture.usable_hours)
    for line, look in looks(picture):
        ends = [float(line.at(part).amount) for part in (0 * picture.usable_hours, picture.usable_hours)]
        axes.plot([0, hours], ends, label=_legend(line), **look)
    for meeting in picture.meetings:
        if meeting.after is not None:
            at = meeting.after.total_seconds() / 3600
            axes.axvline(at, color="#888888", linewidth=0.8, linestyle=":")
            axes.annotate(f" {at:.1f} h", (at, 0), fontsize=8, color="#555555", va="bottom")
    axes.set_title(title)
    axes.set_xlabel(f"hours of use of {picture.count} instance{'s' if picture.count > 1 else ''}")
    axes.set_ylabel(f"total, {picture.offer.fixed.currency}")
    axes.set_xlim(0, hours)
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", fontsize=8)
    axes.grid(alpha=0.25)
    return figure


_DASHES: Final = {
    Way.ON_DEMAND: "--",
    Way.SAGEMAKER_ON_DEMAND: "-",
    Way.SPOT: ":",
    Way.ODCR: "-.",
}
_COLOURS: Final = 9


def looks(picture: Curves) -> list[tuple[Line, dict[str, Any]]]:
    """Each line with its look, no two alike: the offer is thick and black, a way has its dashes, its places
    have their colours; where those are used up, the lines get thicker."""
    drawn: list[tuple[Line, dict[str, Any]]] = [(picture.offer, {"color": "black", "linewidth": 2.2})]
    places: Counter[Way] = Counter()
    for line in picture.others:
        number = places[line.way]
        places[line.way] += 1
        look = {
            "color": f"C{number % _COLOURS}",
            "linestyle": _DASHES.get(line.way, "-"),
            "linewidth": 1.4 + number // _COLOURS,
        }
        drawn.append((line, look))
    return drawn


def _legend(line: Line) -> str:
    """The way, and for a rate where and when its price was seen."""
    rate = line.rate
    if rate is None:
        return f"{line.way.value}: paid at the purchase"
    seen = "live" if rate.live else f"seen {rate.as_of.isoformat()}" if rate.as_of else "date not known"
    return f"{line.way.value} {rate.zone_id or rate.region} ({seen})"
