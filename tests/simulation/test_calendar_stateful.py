"""No host is promised twice: any sequence of searches, purchases by both faces, failures, restarts and time.

200 sequences of 50 steps are 10,000 steps; benchmarks/bench_stateful.py takes a million.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from berth.yard.faults import FaultKind

from .calendar_world import HOURS, TYPES, World

asked = {
    "type_": st.sampled_from(TYPES),
    "count": st.sampled_from([1, 2, 4]),
    "hours": st.sampled_from(HOURS),
    "lead_hours": st.one_of(st.just(0), st.integers(0, 1400)),
    "account": st.integers(0, 1),
}


class Calendar(RuleBasedStateMachine):
    """Everything that changes what is promised, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(**asked)
    def search_blocks(self, **query: int) -> None:
        """Somebody looks for blocks."""
        self.world.search_blocks(**query)  # type: ignore[arg-type]

    @rule(**asked)
    def search_plans(self, **query: int) -> None:
        """Somebody looks for plans."""
        self.world.search_plans(**query)  # type: ignore[arg-type]

    @rule(which=st.integers(0, 39), account=st.integers(0, 1), fails=st.sampled_from([False] * 5 + [True]))
    def buy(self, which: int, account: int, fails: bool) -> None:
        """Somebody buys what was found, or tries to; sometimes the store fails."""
        self.world.buy(which, account, fails)

    @rule(which=st.integers(0, 39), many=st.integers(2, 6))
    def buy_many(self, which: int, many: int) -> None:
        """One offer, sent again and again."""
        for _ in range(many):
            self.world.buy(which, 0, False)

    @rule(
        kind=st.sampled_from([FaultKind.PAYMENT_FAILURE, FaultKind.GONE]),
        operation=st.sampled_from(["PurchaseCapacityBlock", "CreateTrainingPlan"]),
    )
    def spoil(self, kind: FaultKind, operation: str) -> None:
        """The next purchase is not paid, or comes too late."""
        self.world.spoil_next(kind, operation)

    @rule(minutes=st.one_of(st.integers(1, 90), st.integers(60, 3000), st.integers(1440, 60_000)))
    def advance(self, minutes: int) -> None:
        """Time passes."""
        self.world.advance(minutes)

    @rule()
    def restart(self) -> None:
        """The yard is opened again."""
        self.world.restart()

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        """Counted again after every step."""
        self.world.check()

    def teardown(self) -> None:
        """At the end the money is counted."""
        self.world.check_ledger()
        self.world.close()


TestCalendar = Calendar.TestCase
TestCalendar.settings = settings(
    max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_the_steps_reach_what_they_are_for() -> None:
    """Purchases by both faces, refusals of each kind, payments that fail, work taken back: all come up."""
    world = World()
    for turn in range(60):
        type_, lead = TYPES[turn % 2], (turn * 37) % 300
        world.search_blocks(type_, 1 + turn % 3, HOURS[turn % 5], lead, turn % 2)
        world.search_plans(type_, 1, HOURS[turn % 5], lead, turn % 2)
        if turn % 9 == 0:
            world.spoil_next(FaultKind.PAYMENT_FAILURE, "*")
        for which in range(4):
            world.buy(turn * 7 + which * 11, (turn + which) % 2, fails=which == 2)
        world.advance(90 if turn % 5 else 3000)
        world.check()
    world.check_ledger()
    for what in ("bought", "taken back"):
        assert world.done[f"PurchaseCapacityBlock: {what}"] > 0
        assert world.done[f"CreateTrainingPlan: {what}"] > 0
    for code in ("NotFound", "Expired"):
        assert world.done[f"PurchaseCapacityBlock: InvalidCapacityBlockOfferingId{code}"] > 0
    reached = {row[0] for row in world.store.execute("SELECT to_state FROM events")}
    assert {"payment-failed", "active", "expired", "Failed", "Active", "Expired"} <= reached
    world.close()
