"""Fleet files: what they say, and what is said of a bad one."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest

from berth.terms.settings import SettingsError
from berth.terms.ways import Target
from berth.yard.fleet.fleet import Fleet, pools_for
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.fleet.pools import Shares

SMALL = Path(__file__).with_name("small.toml").read_text()


def small_fleet() -> Fleet:
    """The fleet of small.toml."""
    return load_fleet(SMALL, "small.toml")


def complaints(text: str) -> str:
    """All that is said of a bad text."""
    with pytest.raises(SettingsError) as caught:
        load_fleet(text, "fleet.toml")
    return str(caught.value)


def line_of(needle: str, text: str = SMALL) -> int:
    """The line on which `needle` first stands."""
    return text[: text.index(needle)].count("\n") + 1


def test_a_pool_is_hardware_in_a_zone() -> None:
    """Pools go by their key, belong to the zone's Region and carry shares, faces and targets."""
    fleet = small_fleet()
    assert list(fleet.pools) == [
        "use1-az1/trn1.32xlarge",
        "use1-az2/trn1.32xlarge",
        "use1-az1/p5.48xlarge",
        "eun1-az1/p5.48xlarge",
        "use1-atl2-az1/p6e-gb200.36xlarge",
    ]
    pool = fleet.pools["use1-az1/trn1.32xlarge"]
    assert (pool.key, pool.region, pool.hosts) == ("use1-az1/trn1.32xlarge", "us-east-1", 10)
    assert pool.shares == Shares(reservable=8, on_demand=1, spare=1)
    assert pool.faces["sagemaker"].instance_type == "ml.trn1.32xlarge"
    assert Target.STUDIO_APPS in pool.targets


def test_a_face_may_be_capped_below_the_pool() -> None:
    """The cap binds one face only, and a face that is not there may reserve nothing."""
    pool = small_fleet().pools["use1-az1/p5.48xlarge"]
    assert pool.shares.reservable == 17
    assert (pool.limit("sagemaker"), pool.limit("ec2")) == (4, 17)
    assert small_fleet().pools["use1-atl2-az1/p6e-gb200.36xlarge"].limit("ec2") == 0


def test_shares_of_a_pool_of_units_are_whole_units() -> None:
    """A third of three UltraServers is one of them: percentages round down to units."""
    assert small_fleet().pools["use1-atl2-az1/p6e-gb200.36xlarge"].shares == Shares(36, 0, 18)


def test_pools_are_found_by_region_face_and_type() -> None:
    """A service asks by its own name of a type; an unknown one finds nothing."""
    fleet = small_fleet()
    found = pools_for(fleet, "us-east-1", face="sagemaker", type="ml.trn1.32xlarge")
    assert [pool.zone_id for pool in found] == ["use1-az1", "use1-az2"]
    assert pools_for(fleet, "us-east-1", face="ec2", type="ml.trn1.32xlarge") == ()
    assert pools_for(fleet, "eu-north-1", face="sagemaker", type="ml.trn1.32xlarge") == ()


def test_what_a_file_leaves_out_has_its_default() -> None:
    """Payment takes 5 minutes, offers live 20 or 60, nothing is throttled, 25 plans may be held."""
    fleet = small_fleet()
    assert fleet.payment_delay == timedelta(minutes=5)
    assert (fleet.lifetimes.immediate, fleet.lifetimes.scheduled) == (
        timedelta(minutes=20),
        timedelta(minutes=60),
    )
    assert fleet.quotas.training_plans == 25
    assert fleet.quotas.reserved_capacity_of("ml.p5.48xlarge") == 256
    assert fleet.throttle_for("ec2", "RunInstances") is None
    assert (fleet.engine.kind, fleet.engine.network, fleet.s3, fleet.demand) == ("local", False, None, None)


def test_every_section_is_read() -> None:
    """Quotas, throttles, engine, offers and rates come out as they went in."""
    fleet = load_fleet(
        'payment_delay = "7m"\n'
        + SMALL
        + """
[offers]
immediate = "10m"

[quotas]
training_plans = 3
[quotas.reserved_capacity]
"*" = 9
"ml.p5.48xlarge" = 0
[quotas.endpoint_usage]
"ml.trn1.32xlarge" = 2

[[throttles]]
name = "reads"
service = "ec2"
operations = ["Describe*", "Get*"]
size = 100
refill_per_s = 20
source = "AWS"

[engine]
memory_mib = 512
network = true
[engine.images]
"a/b:1" = ["{python}", "serve.py"]

[[on_demand_rates]]
hardware = "p5.48xlarge"
regions = ["us-east-1"]
usd_per_hour = 55.04
source = "list"
as_of = "2026-09-25"

[demand]
seed = 7
[[demand.levels]]
hardware = "p5.48xlarge"
load = 0.5
keep_free = 2
""",
        "fleet.toml",
    )
    assert fleet.payment_delay == timedelta(minutes=7)
    assert fleet.lifetimes.immediate == timedelta(minutes=10)
    assert fleet.quotas.reserved_capacity_of("ml.p5.48xlarge") == 0
    assert fleet.quotas.reserved_capacity_of("ml.trn1.32xlarge") == 9
    assert fleet.quotas.endpoint_usage_of("ml.trn1.32xlarge") == 2
    bucket = fleet.throttle_for("ec2", "DescribeInstances")
    assert bucket is not None
    assert (bucket.size, bucket.refill_per_s) == (100, Decimal(20))
    assert fleet.throttle_for("sagemaker", "DescribeEndpoint") is None
    assert fleet.engine.images == {"a/b:1": ("{python}", "serve.py")}
    assert (fleet.engine.memory_mib, fleet.engine.network) == (512, True)
    assert fleet.on_demand_rates[0].as_of == date(2026, 9, 25)
    assert fleet.demand is not None
    level = fleet.demand.level_of(fleet.pools["use1-az1/p5.48xlarge"])
    assert level is not None
    assert (level.load, level.keep_free) == (Decimal("0.5"), 2)
    assert fleet.demand.level_of(fleet.pools["use1-az1/trn1.32xlarge"]) is None


def test_an_own_fleet_has_s3_and_no_demand() -> None:
    """Artefacts are fetched with keys per account, which no repr shows; invented buyers are refused."""
    own = SMALL.replace('"rehearsal"', '"own"')
    s3 = """
[s3]
endpoint_url = "http://127.0.0.1:9000"
[s3.credentials.123456789012]
access_key_id = "AK"
secret_access_key = "hidden"
"""
    fleet = load_fleet(own + s3, "fleet.toml")
    assert fleet.s3 is not None
    assert fleet.s3.credentials["123456789012"].secret_access_key == "hidden"
    assert "hidden" not in repr(fleet)
    assert "only for kind" in complaints(SMALL + s3)
    assert "only for kind" in complaints(own + "[demand]\nseed = 1\n")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('kind = "rehearsal"', 'kind = "cloud"', "2: kind: 'cloud' is not one of rehearsal, own"),
        ('zones = ["eun1-az1"]', 'zones = ["use1-az1"]', ": regions.2.zones: use1-az1 is there twice"),
        ('name = "eu-north-1"', 'name = "europe"', ": regions.2.name: 'europe' is not valid: a Region like"),
        ('parent = "use1-az1"', 'parent = "eun1-az1"', ": local_zones.1.parent: 'eun1-az1' is not a zone id"),
        ("use1-az2 = 5", "use1-az9 = 5", "use1-az9: is not a zone id of this fleet"),
        ("use1-az2 = 5", "use1-az2 = 0", "must be a whole number from 1 to 100000, not 0"),
        ("use1-atl2-az1 = 54", "use1-atl2-az1 = 50", "must be a multiple of 18"),
        (
            'spare = "10%"',
            'spare = "110%"',
            ': shares.spare: must be a count of hosts or a percentage like "80%"',
        ),
        ("on_demand = 1", "on_demand = 1\nreservable = 9", "shares: shares come to 11 of 10 hosts"),
        ('"training-job", "endpoint"', '"training", "endpoint"', "'training' is not one of training-job"),
        ("caps = { sagemaker", "caps = { sage", "unknown key"),
        ("usd_per_hour = 47.757", "usd_per_hour = 0", "must be more than 0; leave the rate out"),
        (
            "usd_per_hour = 47.757\nassumed = true",
            "usd_per_hour = 47",
            "a price needs source and as_of, or assumed",
        ),
        (
            "usd_per_hour = 47.757",
            'regions = ["eu-north-1"]\nusd_per_hour = 47',
            "has a rate in eu-north-1 already",
        ),
        ('regions = ["eu-north-1"]', 'regions = ["mars-1"]', "'mars-1' is not among the [[regions]]"),
        (
            "from = 2026-10-07T00:00:00Z",
            "from = 2025-10-07T00:00:00Z",
            "must be later than that of the list before",
        ),
        ("from = 2026-10-07T00:00:00Z", "from = 2026-10-07T00:00:00", "names no time zone"),
        ("as_of = 2026-10-07", 'as_of = "October"', "must be a date like 2026-10-07"),
        ('type = "p5.48xlarge"', 'type = "p5"', "'p5' is not valid: a type like p5.48xlarge"),
        (
            "unit = 18",
            "units = 18",
            "unknown key (did you mean unit?); known here: faces, self_service, targets, type, unit",
        ),
    ],
)
def test_a_complaint_names_line_and_key(old: str, new: str, expected: str) -> None:
    """Whatever is wrong, the message says where, and what would be right."""
    told = complaints(SMALL.replace(old, new, 1))
    assert expected in told
    assert all(part.startswith("fleet.toml:") for part in told.splitlines())


def test_the_line_is_the_right_one() -> None:
    """The number is that of the line on which the key stands, deep inside arrays of tables too."""
    told = complaints(SMALL.replace("usd_per_hour = 42.328", 'usd_per_hour = "dear"'))
    assert told.startswith(
        f"fleet.toml:{line_of('usd_per_hour = 42.328')}: price_lists.1.rates.4.usd_per_hour:"
    )


def test_everything_wrong_is_told_at_once() -> None:
    """One reading finds all faults, not the first."""
    text = SMALL.replace("use1-az2 = 5", "use1-az2 = 0").replace("usd_per_hour = 10\n", "usd_per_hour = -1\n")
    assert len(complaints(text).splitlines()) == 2


@pytest.mark.parametrize("text", ["", "kind = 3", "[[regions]]\n", "kind = 'own'\npools = 3\nregions = {}\n"])
def test_a_file_that_says_nothing_is_refused_without_a_traceback(text: str) -> None:
    """Empty and mistyped files are complaints like any other."""
    assert complaints(text)


def test_a_bucket_has_one_name_and_a_pool_key_fits_an_id() -> None:
    """Buckets go by their names, and an offering id carries the pool's key whole."""
    bucket = """
[[throttles]]
name = "reads"
service = "ec2"
operations = ["Get*"]
size = 1
refill_per_s = 1
assumed = true
"""
    assert "'reads' is there twice" in complaints(SMALL + bucket + bucket)
    long_zone = "use1-" + "z" * 80
    text = SMALL.replace('"use1-az2"]', f'"{long_zone}"]').replace("use1-az2 = 5", f"{long_zone} = 5")
    assert "together must be at most 80 characters" in complaints(text)


def test_the_example_of_the_reference_page_loads() -> None:
    """What the documentation calls the least that works does work."""
    page = Path(__file__).parents[3] / "docs" / "reference" / "fleet-file.md"
    example = page.read_text().split("```toml\n")[1].split("```")[0]
    assert list(load_fleet(example, "example.toml").pools) == ["lab-az1/p5.48xlarge"]


def test_the_reference_page_names_every_key_of_the_shipped_file() -> None:
    """No key of the rehearsal fleet is missing from the documentation."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "fleet-file.md").read_text()
    shipped = files("berth.yard.fleet").joinpath("rehearsal.toml").read_text()
    keys = {line.split(" = ")[0] for line in shipped.splitlines() if " = " in line and line[0].isalpha()}
    assert {key for key in keys if f"`{key}`" not in page} == set()
