"""The part of a fleet file that says how it runs: engine, S3, background demand."""

from __future__ import annotations

from collections.abc import Set
from datetime import timedelta
from decimal import Decimal

from berth.terms.settings import Section
from berth.yard.fleet.fleet import (
    DemandLevel,
    DemandSettings,
    EngineSettings,
    FleetKind,
    InstanceSettings,
    S3Credentials,
    S3Settings,
)

LOAD_MAX = Decimal(10)
CLEANING_MAX = timedelta(minutes=30)  # instances are taken back that long before a block's end


def read_engine(top: Section) -> EngineSettings:
    """`[engine]`: where containers run, which images there are, and what each container may use."""
    table = top.table("engine")
    if table is None:
        return EngineSettings()
    default = EngineSettings()
    return EngineSettings(
        kind=table.choice("kind", ("local",), default.kind),
        images=_read_images(table),
        memory_mib=table.integer("memory_mib", default.memory_mib, low=64, high=64 * 1024**2),
        processes=table.integer("processes", default.processes, low=8, high=1_000_000),
        network=table.flag("network", default.network),
    )


def read_instances(top: Section) -> InstanceSettings:
    """`[instances]`: how long an EC2 instance takes to start, and its host to be cleaned."""
    table = top.table("instances")
    default = InstanceSettings()
    if table is None:
        return default
    cleaning = table.duration("cleaning", default.cleaning)
    if cleaning > CLEANING_MAX:
        table.complain("cleaning", "must be at most 30m: a block's hosts are cleaned before the block ends")
    return InstanceSettings(table.duration("starting", default.starting), cleaning)


def _read_images(engine: Section) -> dict[str, tuple[str, ...]]:
    table = engine.table("images")
    found = {}
    for image in table.keys() if table is not None else ():
        assert table is not None
        command = table.texts(image)
        if not command or not command[0]:
            table.complain(image, 'must be a command like ["{python}", "serve.py"]')
        found[image] = command
    return found


def read_s3(top: Section, kind: FleetKind) -> S3Settings | None:
    """`[s3]`: where an own fleet fetches artefacts; a rehearsal runs its own S3 and talks to no other."""
    table = top.table("s3")
    if table is None:
        return None
    if kind is FleetKind.REHEARSAL:
        top.complain("s3", 'only for kind = "own": a rehearsal runs its own S3 and talks to no other')
    credentials = {}
    accounts = table.table("credentials")
    for account_id in accounts.keys() if accounts is not None else ():
        assert accounts is not None
        one = accounts.table(account_id)
        if one is None:
            continue
        if not (len(account_id) == 12 and account_id.isdigit()):
            accounts.complain(account_id, "must be an account id of 12 digits")
        credentials[account_id] = S3Credentials(
            one.text("access_key_id"), one.text("secret_access_key"), one.text("session_token", "") or None
        )
    url = table.text("endpoint_url", "", pattern=r"https?://\S+", hint="a URL like http://127.0.0.1:9000")
    return S3Settings(url or None, credentials)


def read_demand(
    top: Section, kind: FleetKind, hardware: Set[str], regions: Set[str]
) -> DemandSettings | None:
    """`[demand]`: what an outside account wants of a rehearsal; an own fleet has real people for that."""
    table = top.table("demand")
    if table is None:
        return None
    if kind is FleetKind.OWN:
        top.complain("demand", 'only for kind = "rehearsal": nobody invented may buy machines that exist')
    seed = table.integer("seed", low=0, high=2**63 - 1)
    return DemandSettings(seed, tuple(_read_level(one, hardware, regions) for one in table.tables("levels")))


def _read_level(table: Section, hardware: Set[str], regions: Set[str]) -> DemandLevel:
    type_ = table.text("hardware", "") or None
    region = table.text("region", "") or None
    if type_ is not None and type_ not in hardware:
        table.complain("hardware", f"{type_!r} is not among the [[hardware]] types")
    if region is not None and region not in regions:
        table.complain("region", f"{region!r} is not among the [[regions]]")
    load = table.decimal("load")
    if load > LOAD_MAX:
        table.complain("load", f"must be at most {LOAD_MAX}, not {load}")
    return DemandLevel(type_, region, load, table.integer("keep_free", 0, low=0, high=100_000))
