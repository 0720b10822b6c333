"""Deciding whether an offering can be sold now. Pure: the caller commits, in the same transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, Quotas
from berth.yard.fleet.pools import SAGEMAKER, Pool
from berth.yard.market.offering_ids import UnknownOffering, expired
from berth.yard.market.plan_query import check_reserved_quota, limit_exceeded
from berth.yard.market.plan_rules import PlanTerms
from berth.yard.market.price_lists import rate_at
from berth.yard.market.window_rules import payable

# An issue minute is the search's instant rounded up, so it may lie up to a minute ahead of it.
_AHEAD = timedelta(minutes=1)


class Reason(StrEnum):
    """Why an offering is not sold."""

    UNKNOWN = "unknown"  # not an id that this yard gave to this account in this Region
    EXPIRED = "expired"  # older than its lifetime
    TOO_LATE_TO_PAY = "too-late-to-pay"  # payment would come less than 5 minutes before the start
    NOT_SOLD = "not-sold"  # the fleet no longer has the pool, the target or a price
    QUOTA = "quota"  # the account has as much as it may
    GONE = "gone"  # somebody else took the hosts


@dataclass(frozen=True, slots=True)
class Holdings:
    """What an account holds in the Region: its plans that are neither Expired nor Failed.

    `instances` counts those of the asked type in their reserved capacity.
    """

    plans: int = 0
    instances: int = 0


@dataclass(frozen=True, slots=True)
class Granted:
    """The offering can be sold: `count` hosts of `pool` in `window` are free and the fee is the shown one.

    Commit it with `calendars.commit(pool.key, SAGEMAKER, window, count)`.
    """

    terms: PlanTerms
    pool: Pool
    instance_type: str

    @property
    def window(self) -> Window:
        """The paid window."""
        return self.terms.window

    @property
    def fee(self) -> Money:
        """What is charged: the fee that the offering showed, also after a price change."""
        return self.terms.fee


@dataclass(frozen=True, slots=True)
class Refused:
    """The offering cannot be sold. `code` is AWS's error code; the message is ours, AWS's is not known."""

    reason: Reason
    message: str
    code: str = "ResourceNotFound"

    def error(self) -> ServiceError:
        """The refusal as the answer of CreateTrainingPlan."""
        return ServiceError(self.code, self.message)


def admit_plan(
    offering: PlanTerms | UnknownOffering,
    *,
    region: str,
    now: datetime,
    fleet: Fleet,
    calendars: FleetCalendars,
    holdings: Holdings,
    quotas: Quotas | None = None,
) -> Granted | Refused:
    """Whether a decoded offering can be sold at `now`: rules, price, age, quotas, capacity, in this order.

    `quotas` None = the fleet's. Everything is looked at anew, whatever the search found: the id only says
    what was offered. The fee is the one in the id, or the sale is refused.
    """
    if isinstance(offering, UnknownOffering) or offering.issued_at > now + _AHEAD:
        return Refused(Reason.UNKNOWN, "The training plan offering does not exist.")
    pool = fleet.pools.get(offering.pool_key)
    if pool is None or not _sold(offering, pool, region, fleet):
        return Refused(Reason.NOT_SOLD, "The training plan offering is not sold any more. Search again.")
    instance_type = pool.faces[SAGEMAKER].instance_type
    refused = _too_late(offering, now, fleet) or _over_quota(
        instance_type, offering.count, holdings, quotas or fleet.quotas
    )
    if refused is not None:
        return refused
    if not calendars.fits(pool, SAGEMAKER, offering.window, offering.count):
        return Refused(Reason.GONE, "The training plan offering is no longer available. Search again.")
    return Granted(offering, pool, instance_type)


def _too_late(terms: PlanTerms, now: datetime, fleet: Fleet) -> Refused | None:
    """Why the time has passed at which this could be bought, or None."""
    if expired(terms, now, fleet.lifetimes):
        return Refused(Reason.EXPIRED, "The training plan offering has expired. Search again.")
    if not payable(now, terms.window.start, fleet.payment_delay):
        return Refused(
            Reason.TOO_LATE_TO_PAY,
            "The training plan offering starts too soon to be paid 5 minutes before. Search again.",
        )
    return None


def _sold(terms: PlanTerms, pool: Pool, region: str, fleet: Fleet) -> bool:
    """Whether this pool, target and count are on sale and the issue minute has a price."""
    return (
        pool.region == region
        and pool.self_service
        and SAGEMAKER in pool.faces
        and terms.count > 0
        and terms.count % pool.unit == 0
        and bool(terms.targets)
        and pool.targets.issuperset(terms.targets)
        and rate_at(fleet.price_lists, terms.issued_at, pool.hardware, region) is not None
    )


def _over_quota(instance_type: str, count: int, holdings: Holdings, quotas: Quotas) -> Refused | None:
    try:
        if holdings.plans + 1 > quotas.training_plans:
            limit, used = quotas.training_plans, holdings.plans
            raise limit_exceeded("Number of training plans per Region", limit, used, 1, "Plans")
        check_reserved_quota(instance_type, count, holdings.instances, quotas)
    except ServiceError as refused:
        return Refused(Reason.QUOTA, refused.message, refused.code)
    return None


def admit_outside(
    pool: Pool, window: Window, count: int, *, keep_free: int, calendars: FleetCalendars
) -> bool:
    """Whether the outside account gets `count` hosts of `pool`: the same count, less what it leaves alone.

    It comes through no face, so no face's cap binds it.
    """
    return calendars.fits(pool, None, window, count, keep_free)
