"""What can go wrong with an offer that fits, or is easily overlooked: one function a sentence."""

from __future__ import annotations

from datetime import timedelta

from berth.planner import ladder
from berth.planner.cost import OfferCost
from berth.planner.need import Need
from berth.planner.offers import Offer, hours_of, reclaim_before_end
from berth.planner.phrases import money_text
from berth.planner.preference import zones_without_subnet
from berth.terms.durations import spoken
from berth.terms.ways import Target, Way


def cares(need: Need, offer: Offer, cost: OfferCost) -> tuple[str, ...]:
    """Sentences about one offer, the surest to be overlooked first."""
    found = [
        _active_first(need),
        _reclaim(offer),
        _parts(offer),
        _fewer(need, offer),
        _overshoot(need, offer),
        "It starts at once: each later minute moves the start and the fee." if offer.starts_at_once else "",
        "Its zone id is not known." if any(s.zone_id is None for s in offer.segments) else "",
        f"Its price is unknown: {cost.doubt}." if cost.doubt else "",
        _local_zone(offer),
        _subnet(need, offer),
        _image(need),
        _utilisation(need, offer, cost),
    ]
    return tuple(sentence for sentence in found if sentence)


def _active_first(need: Need) -> str:
    what = {Target.ENDPOINT: "endpoint", Target.STUDIO_APPS: "Studio app"}.get(need.target)
    return f"{what} can be created only once Active: start-up eats paid time." if what else ""


def _reclaim(offer: Offer) -> str:
    early = reclaim_before_end(offer.target)
    last = offer.segments[-1].window.end - early
    noun = "instance" if offer.count == 1 else "instances"
    minutes = early // timedelta(minutes=1)
    return f"AWS takes the {noun} from {last:%H:%M}Z, {minutes} min before the paid end."


def _local_zone(offer: Offer) -> str:
    names = [s.zone_name or "" for s in offer.segments if s.zone_type == "local-zone"]
    return f"It is in Local Zone {names[0]}: opt in to it and have a subnet there first." if names else ""


def _subnet(need: Need, offer: Offer) -> str:
    without = zones_without_subnet(need, offer)
    return f"It needs a subnet: the need names none in {', '.join(without)}." if without else ""


def _fewer(need: Need, offer: Offer) -> str:
    wanted = need.type_count(offer.instance_type)
    if wanted is None or offer.count >= wanted.wanted:
        return ""
    return f"It holds {offer.count} of the {wanted.wanted} that are wanted at best."


def _overshoot(need: Need, offer: Offer) -> str:
    """More time than was wanted, because nothing shorter is sold: it is paid like the rest."""
    over = offer.paid_time - need.duration_at_most
    if over > timedelta(0):
        return f"It lasts {spoken(over)} longer than wanted, and all of it is paid."
    step = ladder.step_at_least(need.duration)
    if offer.way is not Way.CAPACITY_BLOCK or offer.paid_time != step or step == need.duration:
        return ""
    longer = spoken(offer.paid_time - need.duration)
    return f"No block lasts {spoken(need.duration)}: the next step is {longer} longer, and paid."


def _image(need: Need) -> str:
    """A block is paid and idle while somebody looks for an image: it is better known before."""
    launch = need.launch
    if need.target is not Target.INSTANCES or (launch and (launch.image or launch.template)):
        return ""
    return "No image is named yet: have one for `berth launch --image`, or [launch] in the need."


def _parts(offer: Offer) -> str:
    if len(offer.segments) == 1:
        return ""
    off = spoken(sum((gap.duration for gap in offer.gaps), timedelta()))
    return f"It comes in {len(offer.segments)} parts, {off} off between them: checkpoint."


def _utilisation(need: Need, offer: Offer, cost: OfferCost) -> str:
    even = cost.break_even
    if need.utilisation is None or even is None or even.rate.hourly is None or cost.total is None:
        return ""
    hours = hours_of(cost.usable) * need.utilisation
    other = (even.rate.hourly * (hours * offer.count)).rounded()
    gap = money_text(max(other - cost.total, cost.total - other, key=lambda m: m.amount).rounded())
    used = f"Used {need.utilisation * 100:.0f} % of the time it"
    if other > cost.total:
        return f"{used} saves {gap} against on-demand."
    return f"{used} costs {gap} more than on-demand."
