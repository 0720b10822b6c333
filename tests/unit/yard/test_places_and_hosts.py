"""Whatever is launched, ended, bought and waited for, nothing holds more than there is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from berth.yard.errors import ServiceError

from .ec2_bench import P5, Ec2Bench

ZONES = ("use1-az1", "use1-az2")
LIVE = "('pending', 'running', 'shutting-down')"


class Launching(RuleBasedStateMachine):
    """Launches into blocks and on demand, ends, restarts and time, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory(prefix="yard-")
        self.ec2 = Ec2Bench(Path(self._folder.name) / "y")
        self.starts = 7
        self.image = self.ec2.image()
        self.blocks: list[str] = []

    @initialize()
    def first_block(self) -> None:
        """There is something to launch into."""
        self.blocks.append(self.ec2.block(2))

    @rule(count=st.integers(1, 3), zone=st.sampled_from(ZONES), hours=st.sampled_from([2, 3, 24]))
    def sell_a_block(self, count: int, zone: str, hours: int) -> None:
        """One more block that has begun, if hosts are free."""
        try:
            self.blocks.append(self.ec2.block(count, zone=zone, hours=hours))
        except ValueError as refused:
            assert "no room" in str(refused)  # noqa: PT017 - what it says is the point

    def _launch(self, **more: object) -> None:
        before = self._holding()
        try:
            self.ec2.ec2("RunInstances", ImageId=self.image, InstanceType=P5, **more)
        except ServiceError:
            assert self._holding() == before

    def _holding(self) -> int:
        return len(self.ec2.rows("SELECT 1 FROM instances"))

    @rule(pick=st.integers(0, 99), least=st.integers(1, 3), more=st.integers(0, 2))
    def launch_into_a_block(self, pick: int, least: int, more: int) -> None:
        """Into any block, living or not."""
        block = self.blocks[pick % len(self.blocks)]
        self._launch(
            MinCount=least, MaxCount=least + more, InstanceMarketOptions={"MarketType": "capacity-block"},
            CapacityReservationSpecification={"CapacityReservationTarget": {"CapacityReservationId": block}},
        )  # fmt: skip

    @rule(least=st.integers(1, 2), more=st.integers(0, 2), zone=st.sampled_from([*ZONES, None]))
    def launch_on_demand(self, least: int, more: int, zone: str | None) -> None:
        """Anywhere or in a zone."""
        where = {"Placement": {"AvailabilityZoneId": zone}} if zone else {}
        self._launch(MinCount=least, MaxCount=least + more, **where)

    @precondition(lambda self: self._holding() > 0)
    @rule(pick=st.integers(0, 99))
    def end_one(self, pick: int) -> None:
        """Whatever its state."""
        rows = self.ec2.rows("SELECT instance_id FROM instances ORDER BY number")
        self.ec2.ec2("TerminateInstances", InstanceIds=[rows[pick % len(rows)]["instance_id"]])

    @rule(minutes=st.sampled_from([1, 9, 10, 31, 60, 1440]))
    def wait(self, minutes: int) -> None:
        """Time passes, timers are played."""
        self.ec2.advance(minutes=minutes)

    @rule()
    def restart(self) -> None:
        """Memory is counted again from the rows."""
        self.ec2.close()
        self.starts += 1
        self.ec2 = Ec2Bench(self.ec2.path, seed=self.starts)

    @invariant()
    def places_are_what_instances_hold(self) -> None:
        """A block's count of taken places is the number of its instances that are not yet clean."""
        for row in self.ec2.rows("SELECT * FROM capacity_reservations"):
            held = self.ec2.rows(
                f"SELECT 1 FROM instances WHERE reservation_id = ? AND status IN {LIVE}",
                row["reservation_id"],
            )
            assert row["in_use"] == len(held) <= row["count"]

    @invariant()
    def hosts_are_never_promised_twice(self) -> None:
        """On each share of each pool the rows fit, and the calendar counts what the rows say."""
        now = self.ec2.yard.clock.now()
        for pool in self.ec2.yard.fleet.pools.values():
            open_rows = self.ec2.rows(
                "SELECT coalesce(sum(count), 0) AS n FROM bookings WHERE pool = ? AND end_us IS NULL",
                pool.key,
            )
            running = self.ec2.rows(
                f"SELECT 1 FROM instances WHERE pool = ? AND reservation_id IS NULL AND status IN {LIVE}",
                pool.key,
            )
            calendars = self.ec2.yard.calendars
            on_demand = calendars.on_demand(pool.key).committed_max_from(now)
            assert open_rows[0]["n"] == len(running) == on_demand <= pool.shares.on_demand
            reserved = calendars.pool(pool.key).committed_max_from(now)
            assert reserved <= pool.shares.reservable
            assert on_demand + reserved <= pool.hosts

    @invariant()
    def nothing_runs_past_its_block(self) -> None:
        """In the last 30 minutes nothing is pending or running in a block."""
        late = int((self.ec2.yard.clock.now() + timedelta(minutes=30)).timestamp() * 1_000_000)
        assert self.ec2.rows(
            "SELECT 1 FROM instances JOIN capacity_reservations USING (reservation_id) WHERE end_us <= ?"
            " AND instances.status IN ('pending', 'running')",
            late,
        ) == []  # fmt: skip

    def teardown(self) -> None:
        """Close the yard."""
        self.ec2.close()
        self._folder.cleanup()


TestLaunching = Launching.TestCase
TestLaunching.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)
