"""Local Zones apart: what is on sale in them needs an opt-in and subnets there (field fault 43)."""

from __future__ import annotations

from dataclasses import replace

from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.sources.reading import joined

LOCAL_ZONE = "local-zone"


def in_local_zone(offer: Offer) -> bool:
    """Whether any part of the offer is in a Local Zone."""
    return any(segment.zone_type == LOCAL_ZONE for segment in offer.segments)


def without_local_zones(answer: PlaceAnswer) -> PlaceAnswer:
    """The answer without offers in Local Zones; how many were left out is said."""
    kept = tuple(offer for offer in answer.offers if not in_local_zone(offer))
    hidden = len(answer.offers) - len(kept)
    if not hidden:
        return answer
    none_left = answer.outcome is PlaceOutcome.OFFERS and not kept
    return replace(
        answer,
        offers=kept,
        outcome=PlaceOutcome.NONE_ON_SALE if none_left else answer.outcome,
        detail=joined([f"{hidden} in Local Zones left out", answer.detail]),
    )
