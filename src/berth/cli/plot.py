"""`berth plan --plot FILE`: cost against use, drawn by matplotlib as SVG or PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Way

if TYPE_CHECKING:
    from datetime import date

    from berth.planner.cost import HourlyRate
    from berth.planner.costs.curves import Band, Curves, Line
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
    kind = f"{best.offer.count} x {best.offer.instance_type}"
    title = f"{plan.need.handle(best.number)}: {best.offer.way.value}, {kind}, {best.offer.region}"
    try:
        _save(picture, title, plan.made_at.date(), path)
    except OSError as problem:
        raise BerthError(ExitCode.USAGE, f"--plot {path}: {problem.strerror or problem}") from None
    left_out = f"; without {'; '.join(picture.left_out)}" if picture.left_out else ""
    return f"drawn: {path}{left_out}"


def _save(picture: Curves, title: str, today: date, path: Path) -> None:
    """Without date and random ids inside: the same plan gives the same file."""
    import matplotlib as mpl

    undated = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "berth", "font.size": 10}):
        _figure(picture, title, today).savefig(path, metadata=undated)


def _figure(picture: Curves, title: str, today: date) -> Any:
    """A line for the offer and one a way, with a shade over the way's places; what is known of each below."""
    from matplotlib.figure import Figure

    told = [text.replace("$", r"\$") for text in legend(picture, today)]  # two of them would mean a formula
    figure = Figure(figsize=(8, 4.4 + 0.19 * len(told)), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    hours = [0.0, float(picture.usable_hours)]
    axes.plot(hours, _ends(picture, picture.offer), color="black", linewidth=2.2, label=told[0])
    for band, text in zip(picture.bands, told[1:], strict=False):
        colour, dashes = LOOKS.get(band.near.way, ("C7", "-"))
        axes.plot(hours, _ends(picture, band.near), color=colour, linestyle=dashes, linewidth=1.6, label=text)
        if band.places > 1:
            bounds = (_ends(picture, band.lowest), _ends(picture, band.highest))
            axes.fill_between(hours, *bounds, color=colour, alpha=0.13, linewidth=0)
        if band.meeting.after is not None:
            at = band.meeting.after.total_seconds() / 3600
            axes.axvline(at, color=colour, linewidth=0.8, linestyle=":")
            axes.annotate(f" {at:.1f} h", (at, 0), fontsize=8, color="#555555", va="bottom")
    for text in told[1 + len(picture.bands) :]:
        axes.plot([], [], color="none", label=text)
    axes.set_title(title)
    axes.set_xlabel(f"hours of use of {picture.count} instance{'s' if picture.count > 1 else ''}")
    axes.set_ylabel(f"total, {picture.offer.fixed.currency}")
    axes.set_xlim(0, hours[1])
    axes.set_ylim(bottom=0)
    figure.legend(loc="outside lower left", fontsize=8, frameon=False)
    axes.grid(alpha=0.25)
    return figure


LOOKS: Final = {
    Way.ON_DEMAND: ("C0", "--"),
    Way.SAGEMAKER_ON_DEMAND: ("C0", "-"),
    Way.SPOT: ("C1", ":"),
    Way.ODCR: ("C2", "-."),
}
"""No two ways look alike."""
_PROMISES: Final = {
    Way.ON_DEMAND: "may be refused on the day",
    Way.SAGEMAKER_ON_DEMAND: "may be refused on the day",
    Way.SPOT: "its price moves, and it may end on two minutes' notice",
    Way.ODCR: "if granted; paid idle too",
}
_MOST_LEFT_OUT = 8


def _ends(picture: Curves, line: Line) -> list[float]:
    return [float(line.at(part).amount) for part in (0 * picture.usable_hours, picture.usable_hours)]


def legend(picture: Curves, today: date) -> list[str]:
    """A line for the offer, each way, and what has no line: what it is, how sure it is, why there is none."""
    left = [f"no line: {one}" for one in picture.left_out[:_MOST_LEFT_OUT]]
    if len(picture.left_out) > _MOST_LEFT_OUT:
        left.append(f"no line: {len(picture.left_out) - _MOST_LEFT_OUT} more, named in the plan")
    from berth.planner.phrases import money_text

    cost = money_text(picture.offer.at(picture.usable_hours))
    own = f"{picture.offer.way.value}, {picture.region}: {cost}, paid at the purchase, used or not"
    return [own, *(_of_band(picture, band, today) for band in picture.bands), *left]


def _of_band(picture: Curves, band: Band, today: date) -> str:
    """The way and place, how sure its price is, what it promises, and the span over all its places."""
    from berth.planner.phrases import money_text

    rate = band.near.rate
    where = f" {rate.zone_id or rate.region}" if rate is not None else ""
    told = [_surety(rate, today) if rate is not None else "", _PROMISES.get(band.near.way, "")]
    if band.places > 1:
        low, high = (money_text(line.at(picture.usable_hours)) for line in (band.lowest, band.highest))
        spread = f"all {low}" if low == high else f"{low} to {high}, shaded"
        told.append(f"{band.places} places, {spread}")
    return f"{band.near.way.value}{where}: {'; '.join(part for part in told if part)}"


def _surety(rate: HourlyRate, today: date) -> str:
    from berth.planner.phrases import age

    if rate.live:
        seen = "live"
    elif rate.as_of is not None:
        seen = f"seen {rate.as_of.isoformat()}, {age(rate.as_of, today)} old"
    else:
        seen = "date not known"
    return f"{seen}, Region assumed" if rate.region_assumed else seen
