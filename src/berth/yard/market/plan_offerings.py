"""Searching: which training plans can be had now. It writes nothing and promises nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from berth.terms.money import Money
from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, Quotas, pools_for
from berth.yard.fleet.pools import SAGEMAKER, Pool
from berth.yard.market.fees import fee
from berth.yard.market.plan_query import PlanQuery, check_query
from berth.yard.market.plan_rules import OFFERINGS_MAX, PlanTerms, whole_days
from berth.yard.market.price_lists import Rate, rate_at
from berth.yard.market.vacancies import Numbers, candidates_for, free_windows
from berth.yard.market.window_rules import issue_minute


@dataclass(frozen=True, slots=True)
class PlanOffering:
    """One continuous plan that could be bought: terms, and what else the answer shows.

    `rate` is the price list's rate that the fee was reckoned from, before any rehearsed price change.
    """

    terms: PlanTerms
    instance_type: str
    zone_id: str
    rate: Rate

    @property
    def window(self) -> Window:
        """The paid window."""
        return self.terms.window

    @property
    def count(self) -> int:
        """Instances."""
        return self.terms.count

    @property
    def fee(self) -> Money:
        """The whole upfront fee: all instances, all hours."""
        return self.terms.fee

    @property
    def targets(self) -> tuple[Target, ...]:
        """What the plan would be for, fixed at purchase."""
        return self.terms.targets

    @property
    def hours_and_minutes(self) -> tuple[int, int]:
        """`DurationHours` and `DurationMinutes`: the two add up."""
        return divmod(self.window.duration // timedelta(minutes=1), 60)


def search_plan_offerings(
    query: PlanQuery,
    *,
    region: str,
    now: datetime,
    fleet: Fleet,
    calendars: FleetCalendars,
    quotas: Quotas | None = None,
    rate_factor: Decimal = Decimal(1),
) -> tuple[PlanOffering, ...]:
    """At most three offerings for `query`, best match first; empty when nothing is free.

    Order, after AWS's worked example: earliest start first, then earliest end. Each window is offered once,
    in the zone with the most hosts free throughout (inferred: AWS does not say how it picks a zone). An
    offering that could not be paid 5 minutes before its start is not shown. `quotas` None = the fleet's;
    `rate_factor` rehearses a price change.

    Raises ServiceError for a query that AWS would refuse (see check_query).
    """
    quotas = fleet.quotas if quotas is None else quotas
    pools = pools_for(fleet, region, face=SAGEMAKER, type=query.instance_type or "")
    checked = check_query(query, now, pools, quotas)
    candidates = candidates_for(
        whole_days(checked.duration_hours), start_after=checked.start_after, end_before=checked.end_before,
        issued_at=issue_minute(now), payment_delay=fleet.payment_delay,
    )  # fmt: skip
    rate = rate_at(fleet.price_lists, candidates.issued_at, pools[0].hardware, region)
    if rate is None:
        return ()
    best: dict[Numbers, tuple[int, Pool]] = {}
    for pool in pools:
        if pool.self_service and set(checked.targets) <= pool.targets:
            for numbers, free in free_windows(
                pool, SAGEMAKER, checked.count, candidates, calendars, most=OFFERINGS_MAX
            ):
                if numbers not in best or free > best[numbers][0]:
                    best[numbers] = (free, pool)

    def offered(numbers: Numbers) -> PlanOffering:
        price = fee(rate.usd_per_hour * rate_factor, checked.count, candidates.window(numbers))
        pool = best[numbers][1]
        terms = PlanTerms(pool.key, checked.count, checked.targets, candidates.issued_at, *numbers, price)
        return PlanOffering(terms, checked.instance_type, pool.zone_id, rate)

    return tuple(offered(numbers) for numbers in sorted(best, key=candidates.window)[:OFFERINGS_MAX])
