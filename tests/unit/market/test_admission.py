"""Whether an offering is sold: everything is looked at anew at the purchase."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, Quotas
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.fleet.pools import SAGEMAKER
from berth.yard.market.admission import Granted, Holdings, Reason, Refused, admit_outside, admit_plan
from berth.yard.market.offering_ids import UnknownOffering, decode_offering, encode_offering
from berth.yard.market.plan_offerings import PlanOffering, search_plan_offerings
from berth.yard.market.plan_query import PlanQuery

FLEET = load_fleet((Path(__file__).parents[1] / "fleet" / "small.toml").read_text(), "small.toml")
NOW = datetime(2026, 12, 1, 19, 8, tzinfo=UTC)
KEY, ACCOUNT, REGION = b"key", "111122223333", "us-east-1"


class Counter:
    """A fleet, its calendars, and somebody who searches and buys."""

    def __init__(self, fleet: Fleet = FLEET, now: datetime = NOW) -> None:
        self.fleet, self.now, self.holdings = fleet, now, Holdings()
        self.calendars = FleetCalendars(fleet, now)

    def offers(self, type_: str = "ml.trn1.32xlarge", count: int = 1) -> tuple[PlanOffering, ...]:
        """What a search for a day finds."""
        query = PlanQuery(type_, count, 24, (Target.ENDPOINT,))
        return search_plan_offerings(
            query, region=REGION, now=self.now, fleet=self.fleet, calendars=self.calendars
        )

    def buy(self, offer: PlanOffering) -> Granted | Refused:
        """The decision on an offer, through its id; a grant is committed."""
        text = encode_offering(offer.terms, key=KEY, account_id=ACCOUNT, region=REGION)
        decision = admit_plan(
            decode_offering(text, key=KEY, account_id=ACCOUNT, region=REGION),
            region=REGION,
            now=self.now,
            fleet=self.fleet,
            calendars=self.calendars,
            holdings=self.holdings,
        )
        if isinstance(decision, Granted):
            self.calendars.commit(decision.pool.key, SAGEMAKER, decision.window, decision.terms.count)
        return decision

    def refusal(self, offer: PlanOffering) -> Refused:
        """The same, where a refusal is expected."""
        decision = self.buy(offer)
        assert isinstance(decision, Refused)
        return decision


def test_what_was_shown_is_sold_as_it_was_shown() -> None:
    """Window, count, fee and target of the grant are those of the offer."""
    counter = Counter()
    for offer in counter.offers():
        decision = counter.buy(offer)
        assert isinstance(decision, Granted)
        assert (decision.window, decision.fee) == (offer.window, offer.fee)
        assert decision.terms.targets == (Target.ENDPOINT,)
        assert decision.instance_type == "ml.trn1.32xlarge"


def test_an_unknown_id_is_refused_as_not_found() -> None:
    """A text that is no offering answers ResourceNotFound."""
    counter = Counter()
    decision = admit_plan(
        UnknownOffering("tpo-what"),
        region=REGION,
        now=NOW,
        fleet=FLEET,
        calendars=counter.calendars,
        holdings=Holdings(),
    )
    assert isinstance(decision, Refused)
    assert (decision.reason, decision.error().code) == (Reason.UNKNOWN, "ResourceNotFound")


@pytest.mark.parametrize(("index", "minutes"), [(0, 20), (2, 60)])
def test_an_offer_ages(index: int, minutes: int) -> None:
    """An immediate offer is sold for 20 minutes and a scheduled one for 60, on the yard's clock."""
    counter = Counter()
    offer = counter.offers()[index]
    counter.now = NOW + timedelta(minutes=minutes) - timedelta(seconds=1)
    assert isinstance(counter.buy(offer), Granted)
    counter.now = NOW + timedelta(minutes=minutes)
    assert counter.refusal(offer).reason is Reason.EXPIRED


def test_an_offer_from_the_future_is_unknown() -> None:
    """An id of a clock that is ahead (another life of the yard) is not this yard's."""
    counter = Counter()
    offer = counter.offers()[2]
    counter.now = NOW - timedelta(minutes=2)
    assert counter.refusal(offer).reason is Reason.UNKNOWN


def test_payment_must_be_in_five_minutes_before_the_start() -> None:
    """A start at 19:38 can be paid for until 19:28, when payment takes 5 minutes."""
    counter = Counter(replace(FLEET, lifetimes=replace(FLEET.lifetimes, immediate=timedelta(minutes=29))))
    offer = counter.offers()[0]
    assert offer.window.start == NOW + timedelta(minutes=30)
    counter.now = NOW + timedelta(minutes=20, seconds=1)
    assert counter.refusal(offer).reason is Reason.TOO_LATE_TO_PAY
    counter.now = NOW + timedelta(minutes=20)
    assert isinstance(counter.buy(offer), Granted)


def test_gone_between_search_and_purchase() -> None:
    """When somebody else took the hosts the offer is gone and the calendar unchanged."""
    counter = Counter()
    offer = counter.offers()[2]
    counter.calendars.commit(offer.terms.pool_key, None, offer.window, 8)
    refused = counter.refusal(offer)
    assert (refused.reason, refused.code) == (Reason.GONE, "ResourceNotFound")
    assert counter.calendars.pool(offer.terms.pool_key).committed_max(offer.window) == 8


def test_the_faces_cap_is_looked_at_again() -> None:
    """Four p5 may be sold through SageMaker at a time, though twenty are there."""
    counter = Counter()
    offer = counter.offers("ml.p5.48xlarge", 4)[2]
    assert isinstance(counter.buy(offer), Granted)
    assert counter.refusal(offer).reason is Reason.GONE
    assert counter.calendars.fits(counter.fleet.pools[offer.terms.pool_key], "ec2", offer.window, 13)


def test_a_price_change_does_not_touch_an_offer_that_is_out() -> None:
    """An offer of the old list is sold at its fee after the new list has begun."""
    counter = Counter(now=datetime(2026, 10, 6, 23, 50, tzinfo=UTC))
    offer = counter.offers()[-1]
    counter.now = datetime(2026, 10, 7, 0, 10, tzinfo=UTC)
    decision = counter.buy(offer)
    assert isinstance(decision, Granted)
    assert decision.fee == offer.fee
    assert str(offer.fee) == "228.77 USD"


def test_what_the_fleet_no_longer_sells_is_refused() -> None:
    """Pool gone, target withdrawn, no price, account manager only: not sold, whatever the id says."""
    offer = Counter().offers()[2]
    key = offer.terms.pool_key
    pool = FLEET.pools[key]
    without = {name: one for name, one in FLEET.pools.items() if name != key}
    for fleet in (
        replace(FLEET, pools=without),
        replace(FLEET, pools={**FLEET.pools, key: replace(pool, targets=frozenset({Target.TRAINING_JOB}))}),
        replace(FLEET, pools={**FLEET.pools, key: replace(pool, self_service=False)}),
        replace(FLEET, price_lists=()),
    ):
        assert Counter(fleet).refusal(offer).reason is Reason.NOT_SOLD


def test_quotas_are_counted_at_the_purchase() -> None:
    """One plan or one instance more than the quota is ResourceLimitExceeded, with the figures."""
    fleet = replace(FLEET, quotas=Quotas(training_plans=2, reserved_capacity={"*": 3}))
    counter = Counter(fleet)
    offer = counter.offers(count=2)[2]
    counter.holdings = Holdings(plans=2, instances=0)
    assert "'Number of training plans per Region' is 2 Plans" in counter.refusal(offer).message
    counter.holdings = Holdings(plans=1, instances=2)
    refused = counter.refusal(offer)
    assert (refused.reason, refused.code) == (Reason.QUOTA, "ResourceLimitExceeded")
    assert (
        "is 3 Instances, with current utilization of 2 Instances and a request delta of 2" in refused.message
    )
    counter.holdings = Holdings(plans=1, instances=1)
    assert isinstance(counter.buy(offer), Granted)


def test_the_outside_account_leaves_some_alone() -> None:
    """It competes for the same hosts through no face, and keeps out of the last ones."""
    counter = Counter()
    pool = FLEET.pools["use1-az1/p5.48xlarge"]
    window = Window(NOW + timedelta(days=1), NOW + timedelta(days=2))
    assert admit_outside(pool, window, 16, keep_free=1, calendars=counter.calendars)
    assert not admit_outside(pool, window, 17, keep_free=1, calendars=counter.calendars)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["ml.trn1.32xlarge", "ml.p5.48xlarge"]), st.sampled_from([1, 2, 4])),
        max_size=30,
    )
)
def test_no_host_is_ever_promised_twice(wishes: list[tuple[str, int]]) -> None:
    """However many offers of one moment are bought, no pool passes its share and no face its cap."""
    counter = Counter()
    held = [offer for type_, count in wishes for offer in counter.offers(type_, count)]
    for offer in held:
        counter.buy(offer)
    window = Window(NOW, NOW + timedelta(days=30))
    for key, pool in FLEET.pools.items():
        assert counter.calendars.pool(key).committed_max(window) <= pool.limit(SAGEMAKER)
