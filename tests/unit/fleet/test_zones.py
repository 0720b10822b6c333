"""Zone names: one place, another name for each account."""

from __future__ import annotations

from string import ascii_lowercase

from berth.yard.fleet.fleet_file import rehearsal_fleet
from berth.yard.fleet.zones import Region, Zone, ZoneKind, ZoneNames

VIRGINIA = rehearsal_fleet().regions["us-east-1"]


def test_names_and_ids_translate_both_ways() -> None:
    """Every availability zone has one letter, and each name leads back to its id."""
    names = ZoneNames.for_account("111122223333", VIRGINIA)
    zones = VIRGINIA.availability_zones
    assert {names.name(zone.id) for zone in zones} == {f"us-east-1{c}" for c in ascii_lowercase[: len(zones)]}
    assert all(names.id(names.name(zone.id)) == zone.id for zone in VIRGINIA.zones)
    assert names.id("us-east-1z") is None


def test_two_accounts_see_the_zones_permuted() -> None:
    """The same zone is called differently by another account; the same account always alike."""
    first = ZoneNames.for_account("111122223333", VIRGINIA)
    second = ZoneNames.for_account("444455556666", VIRGINIA)
    assert first.names != second.names
    assert first == ZoneNames.for_account("111122223333", VIRGINIA)


def test_the_permutation_never_changes() -> None:
    """Names are kept by people and in files: a new version must give the same ones."""
    names = ZoneNames.for_account("111122223333", VIRGINIA).names
    assert {zone_id: name[-1] for zone_id, name in names.items() if zone_id.startswith("use1-az")} == {
        "use1-az1": "b", "use1-az2": "c", "use1-az3": "f", "use1-az4": "a", "use1-az5": "e", "use1-az6": "d",
    }  # fmt: skip


def test_local_zones_keep_one_name_for_all() -> None:
    """A Local Zone's name is not permuted and takes no letter."""
    for account in ("111122223333", "444455556666"):
        assert ZoneNames.for_account(account, VIRGINIA).name("use1-atl2-az1") == "us-east-1-atl-2a"


def test_every_permutation_comes_up() -> None:
    """Over many accounts each of the six orders of three zones is common."""
    region = Region("xx-test-1", "aws", False, tuple(Zone(f"xx-az{n}", "xx-test-1") for n in (1, 2, 3)))
    seen: dict[tuple[str, ...], int] = {}
    for account in range(600):
        order = tuple(ZoneNames.for_account(f"{account:012d}", region).names)
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert min(seen.values()) > 60


def test_an_availability_zone_is_no_local_zone() -> None:
    """Kinds carry EC2's words."""
    kinds = {zone.id: zone.kind.value for zone in VIRGINIA.zones}
    assert kinds["use1-az1"] == "availability-zone"
    assert kinds["use1-dfw2-az1"] == ZoneKind.LOCAL_ZONE.value == "local-zone"
