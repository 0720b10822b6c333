"""The yard, assembled: what an operation, a timer or an engine's report may reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from berth.terms.clock import Clock
from berth.terms.ids import IdSource
from berth.yard.engines.engine import Engine
from berth.yard.engines.provisioner import Provisioner
from berth.yard.faults import Faults
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.zones import ZoneNames
from berth.yard.lifecycle.clock import YardClock
from berth.yard.market.block_ids import PoolNumbers
from berth.yard.services.ec2.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Yard:
    """All parts of a running yard. Handed to every operation; nothing in it is global.

    `calendars` is what is promised in every pool, changed only by the writer; `offering_key` signs the ids of
    offerings, `session_key` the sessions of roles, `pool_numbers` are how EC2's name pools; `real` is this
    machine's clock, `clock` the yard's. `surroundings` gives what surrounds the instances of an account (id)
    in a Region.
    """

    fleet: Fleet
    calendars: FleetCalendars
    zone_names: Callable[[str, str], ZoneNames]
    surroundings: Callable[[str, str], Surroundings]
    offering_key: bytes
    session_key: bytes
    pool_numbers: PoolNumbers
    clock: YardClock
    real: Clock
    ids: IdSource
    faults: Faults
    engine: Engine
    provisioner: Provisioner
