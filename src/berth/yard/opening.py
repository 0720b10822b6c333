"""Opening a yard: from a data folder and a fleet file to an assembled yard whose memory equals its rows."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

from berth.storage.sqlite import connect, migrate
from berth.terms.clock import Clock
from berth.terms.ids import IdSource
from berth.terms.instants import from_micros, to_micros
from berth.yard.assembly import Yard
from berth.yard.data_folder import DataFolder
from berth.yard.engines.engine import Engine, EngineRefused, Report
from berth.yard.engines.provisioner import FetchModel, Order, Provisioner
from berth.yard.faults import Faults
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.pools import EC2
from berth.yard.fleet.zones import ZoneNames
from berth.yard.identity.accounts import access_keys, add_account
from berth.yard.lifecycle.clock import ClockRefused, YardClock
from berth.yard.lifecycle.timers import Timekeeper, Timer
from berth.yard.market import bookings, outside
from berth.yard.market.block_ids import POOLS_MAX, PoolNumbers
from berth.yard.services import catalogue
from berth.yard.services.ec2.block_extensions import BLOCK_EXTENSION_TIMERS
from berth.yard.services.ec2.block_life import BLOCK_TIMERS
from berth.yard.services.ec2.instance_life import INSTANCE_TIMERS
from berth.yard.services.ec2.own_surroundings import own_surroundings
from berth.yard.services.ec2.surroundings import Surroundings
from berth.yard.services.sagemaker.endpoint_life import come_back, take_report
from berth.yard.services.sagemaker.plan_extensions import PLAN_EXTENSION_TIMERS
from berth.yard.services.sagemaker.plan_life import PLAN_TIMERS
from berth.yard.services.service_quotas.requests import QUOTA_TIMERS
from berth.yard.store.transaction import Reader, Reading, Transaction
from berth.yard.store.writer import GroupCommit, SerialWriter, ThreadWriter, Writer

MIGRATIONS = "berth.yard.store.migrations"
FIRST_ACCOUNT = "default"


class FleetChanged(ValueError):
    """The fleet file lacks what has been promised in this data folder."""


@dataclass(frozen=True, slots=True)
class Doors:
    """What the yard takes from outside: engine, how artefacts are fetched, time, ids, the writer's kind.

    `engine` is given where to report. A simulation hands in `threaded=False`: then every change happens at
    once, in the caller's thread. `surroundings` None = the yard's own VPCs, subnets, groups and images.
    """

    engine: Callable[[Callable[[Report], None]], Engine]
    fetch: FetchModel
    real: Clock
    ids: IdSource
    threaded: bool = True
    surroundings: Callable[[str, str], Surroundings] | None = None


@dataclass(frozen=True, slots=True)
class OpenYard:
    """An assembled yard with its moving parts."""

    yard: Yard
    writer: Writer
    reader: Reader
    timekeeper: Timekeeper
    restart: Callable[[], None]
    close: Callable[[], None]


def open_yard(folder: DataFolder, fleet: Fleet, clock: str, doors: Doors) -> OpenYard:
    """Open the yard of `folder` (prepared and locked by the caller).

    `clock` is `real` or an instant in ISO 8601; a folder keeps the clock it has. Raises NewerSchema,
    ClockRefused, FleetChanged, EngineRefused.
    """
    connection = connect(folder.store)
    try:
        migrate(connection, MIGRATIONS)
        start = Transaction(connection, doors.real.now(), doors.ids)
        connection.execute("BEGIN IMMEDIATE")
        _check_kind(start, fleet)
        yard_clock = YardClock.open(start, doors.real, clock)
        if yard_clock.stopped and not fleet.is_rehearsal:
            raise ClockRefused("only a rehearsal's clock can stand still; this fleet owns real machines")
        start.now, start.now_us = yard_clock.now(), to_micros(yard_clock.now())
        key, session_key = _kept_key(start, "offering-key"), _kept_key(start, "session-key")
        if not access_keys(start):
            add_account(start, FIRST_ACCOUNT)
        accounts = len({key.account.account_id for key in access_keys(start).values()})
        numbers = _pool_numbers(start, fleet)
        calendars = _begin_market(start, fleet)
        connection.execute("COMMIT")
    except BaseException:
        connection.close()  # which rolls back
        raise

    body = GroupCommit(connection, yard_clock.now, doors.ids)
    writer: Writer = ThreadWriter(body) if doors.threaded else SerialWriter(body)
    yard: Yard

    def report(news: Report) -> None:
        writer.submit(lambda tx: take_report(tx, yard, news))

    engine = doors.engine(report)
    try:
        engine.allow_accounts(accounts)
    except EngineRefused:
        engine.close()
        writer.close()
        connection.close()
        raise
    provisioner = Provisioner(engine, folder.models, _orders_reader(folder.store), doors.fetch, report)
    yard = Yard(
        fleet=fleet, calendars=calendars, zone_names=_zone_names(fleet),
        surroundings=doors.surroundings or own_surroundings(fleet), offering_key=key,
        session_key=session_key, pool_numbers=numbers,
        clock=yard_clock, real=doors.real, ids=doors.ids, faults=Faults(), engine=engine,
        provisioner=provisioner,
    )  # fmt: skip
    timekeeper = Timekeeper(writer, yard_clock, doors.real, _timers(yard), provisioner.settled)
    reader = Reader(connect(folder.store))
    assert catalogue.SERVICES

    def restart() -> None:
        keys = writer.submit(lambda tx: tx.all("SELECT container_key FROM variants")).result()
        provisioner.sweep({row["container_key"] for row in keys})
        for arn in writer.submit(lambda tx: come_back(tx, yard)).result():
            provisioner.launch(arn)

    def close() -> None:
        timekeeper.close()
        provisioner.close()
        writer.close()
        reader.close()
        connection.close()

    return OpenYard(yard, writer, reader, timekeeper, restart, close)


def _timers(yard: Yard) -> dict[str, Timer]:
    def bind(play: Callable[[Transaction, Yard, str], None]) -> Callable[[Transaction, str], None]:
        return lambda tx, subject: play(tx, yard, subject)

    kinds = {kind: Timer(bind(play), touches) for kind, (play, touches) in PLAN_TIMERS.items()}
    simple = {
        **BLOCK_TIMERS, **BLOCK_EXTENSION_TIMERS, **PLAN_EXTENSION_TIMERS, **INSTANCE_TIMERS, **QUOTA_TIMERS
    }  # fmt: skip
    kinds |= {kind: Timer(bind(play)) for kind, play in simple.items()}
    fleet, calendars = yard.fleet, yard.calendars
    kinds[bookings.DAY_TIMER] = Timer(lambda tx, _: bookings.play_day(tx, calendars))
    kinds[outside.DAY_TIMER] = Timer(lambda tx, subject: outside.play_day(tx, fleet, subject))
    kinds[outside.ARRIVAL_TIMER] = Timer(
        lambda tx, subject: outside.play_arrival(tx, fleet, calendars, subject)
    )
    return kinds


def _check_kind(tx: Transaction, fleet: Fleet) -> None:
    """A folder belongs to a rehearsal or to real machines for good. Raises FleetChanged."""
    row = tx.one("SELECT value FROM meta WHERE key = 'kind'")
    if row is None:
        tx.insert("meta", key="kind", value=fleet.kind.value)
    elif row["value"] != fleet.kind.value:
        raise FleetChanged(
            f"this data folder is of kind {row['value']!r} and the fleet file of kind {fleet.kind.value!r}:"
            " start it on another folder with --data"
        )


def _kept_key(tx: Transaction, name: str) -> bytes:
    """A key of the yard's own, made once."""
    row = tx.one("SELECT value FROM meta WHERE key = ?", name)
    if row is not None:
        return bytes.fromhex(row["value"])
    key = secrets.token_bytes(32)
    tx.insert("meta", key=name, value=key.hex())
    return key


def _begin_market(tx: Transaction, fleet: Fleet) -> FleetCalendars:
    """What is promised, with what the outside account wants in a fresh yard; the calendars' days begin."""
    calendars = _calendars(tx, fleet)
    outside.begin_demand(tx, fleet, calendars)
    bookings.begin_days(tx)
    return calendars


def _pool_numbers(tx: Transaction, fleet: Fleet) -> PoolNumbers:
    """The number of every pool that EC2 sells from, new ones numbered now. Raises FleetChanged when there is
    none left: a number is never given to another pool, since an offering's id may still carry it."""
    found = {row["pool"]: row["number"] for row in tx.all("SELECT pool, number FROM pool_numbers")}
    for key in sorted(key for key, pool in fleet.pools.items() if EC2 in pool.faces and key not in found):
        if len(found) == POOLS_MAX:
            raise FleetChanged(
                f"this data folder has known {POOLS_MAX} pools, as many as offering ids have room for: start"
                " the yard on another folder with --data"
            )
        found[key] = len(found)
        tx.insert("pool_numbers", number=found[key], pool=key)
    return PoolNumbers.of(found)


def _calendars(tx: Transaction, fleet: Fleet) -> FleetCalendars:
    """What is promised from now on, counted again from the rows."""
    calendars = FleetCalendars(fleet, tx.now)
    sold: defaultdict[tuple[str, str | None], list[tuple[int, int, int]]] = defaultdict(list)
    # Nearly all rows are wanted (`forget_past` drops the old ones): reading the table in its own order, not
    # by its index (hence `+`), takes half the time.
    for pool, face, start_us, end_us, count in tx.all(
        "SELECT pool, face, start_us, end_us, count FROM bookings WHERE +end_us > ?", tx.now_us
    ):
        sold[pool, face].append((start_us, end_us, count))
    running = tx.all("SELECT pool, start_us, count FROM bookings WHERE end_us IS NULL")
    _check_pools(tx, fleet, {pool for pool, _ in sold} | {row["pool"] for row in running})
    for (pool, face), promises in sold.items():
        calendars.commit_all(pool, face, promises)
    for row in running:
        calendars.commit_open(row["pool"], from_micros(row["start_us"]), row["count"])
    return calendars


def _check_pools(tx: Transaction, fleet: Fleet, promised: Set[str]) -> None:
    """Raises FleetChanged when hosts of a pool are promised that the fleet file lacks."""
    for pool in sorted(promised - fleet.pools.keys()):
        row = tx.one(
            "SELECT holder FROM bookings WHERE pool = ? AND (end_us > ? OR end_us IS NULL)", pool, tx.now_us
        )
        assert row is not None
        raise FleetChanged(f"the fleet file has no pool {pool}, of which {row['holder']} holds hosts")


def _zone_names(fleet: Fleet) -> Callable[[str, str], ZoneNames]:
    known: dict[tuple[str, str], ZoneNames] = {}

    def names(account_id: str, region: str) -> ZoneNames:
        key = (account_id, region)
        if key not in known:
            known[key] = ZoneNames.for_account(account_id, fleet.regions[region])
        return known[key]

    return names


def _orders_reader(store: Path) -> Callable[[str], list[Order]]:
    """Reads, in whichever thread asks, the containers of an endpoint that are to be started."""

    def orders(endpoint_arn: str) -> list[Order]:
        reader = Reader(connect(store))
        try:
            return _orders(reader, endpoint_arn)
        finally:
            reader.close()

    return orders


def _orders(rows: Reading, endpoint_arn: str) -> list[Order]:
    found = rows.all(
        "SELECT variants.*, account_id, region, config FROM variants JOIN endpoints ON endpoint_arn = arn"
        " WHERE arn = ? AND state = 'starting' AND status IN ('Creating', 'Updating')",
        endpoint_arn,
    )
    return [
        Order(
            key=row["container_key"],
            account_id=row["account_id"],
            region=row["region"],
            model=row["model"],
            config=row["config"],
            variant=row["name"],
        )
        for row in found
    ]
