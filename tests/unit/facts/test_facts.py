"""The dated tables that ship with the package."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from berth.facts import instance_types, list_prices, regions
from berth.facts.ec2_shapes import ec2_shape
from berth.facts.instance_types import instance_type, types_with
from berth.facts.list_prices import (
    COMPONENTS,
    capacity_block_hourly,
    on_demand_hourly,
    sagemaker_hourly,
    sagemaker_known,
)
from berth.facts.spot_prices import spot_price_seen


def test_both_faces_name_one_type() -> None:
    """EC2's and SageMaker's name of the same hardware find the same row."""
    found = instance_type("ml.p5.48xlarge")
    assert found is not None
    assert found is instance_type("p5.48xlarge")
    assert (found.accelerator, found.accelerator_count, found.accelerator_memory_gib) == (
        "H100",
        8,
        Decimal(640),
    )
    assert found.ml_name == "ml.p5.48xlarge"
    assert found.training_plan is True


def test_an_unknown_type_or_price_is_none_and_never_zero() -> None:
    """What no source told is None."""
    assert instance_type("p9.96xlarge") is None
    assert on_demand_hourly("p5e.48xlarge", "us-east-1") is None
    assert sagemaker_hourly("ml.p5en.48xlarge", "us-east-1", "hosting") is None
    assert sagemaker_hourly("ml.p5.48xlarge", "us-east-1", "training") is None
    assert all(
        p.value > 0
        for table in (list_prices._on_demand(), list_prices._capacity_block())
        for p in table.values()
    )


def test_prices_carry_their_date_and_source() -> None:
    """A price is shown with when it was seen, by whom, and what is assumed."""
    price = sagemaker_hourly("ml.trn1.32xlarge", "us-east-1", "hosting")
    assert price is not None
    assert (price.value, price.currency) == (Decimal("28.497"), "USD")
    assert (price.as_of, price.as_of_quality, price.source) == (
        date(2025, 1, 26),
        "exact",
        "fmbench-2025-01-26",
    )
    assert price.region_assumed
    block = capacity_block_hourly("p5.48xlarge", "us-east-1")
    assert block is not None
    assert (block.value, block.as_of) == (Decimal("47.757"), date(2026, 10, 7))


def test_on_demand_is_the_newest_row() -> None:
    """The newest of several sources answers."""
    price = on_demand_hourly("p5.48xlarge", "us-east-1")
    assert price is not None
    assert price.value == Decimal("55.04")
    assert price.as_of >= date(2026, 9, 1)


def test_what_is_known_elsewhere_can_be_shown_beside_an_unknown() -> None:
    """A missing component still lists what other rows the type has."""
    assert {(p.place, p.component) for p in sagemaker_known("ml.p5.48xlarge")} == {
        ("us-east-1", "hosting"),
        ("us-west-2", "studio-jupyterlab"),
    }
    assert {p.component for prices in list_prices._sagemaker().values() for p in prices} <= set(COMPONENTS)


def test_types_are_found_by_accelerator() -> None:
    """An accelerator names all its sizes and no UltraServer."""
    assert {t.name for t in types_with("h100")} == {"p5.4xlarge", "p5.48xlarge"}
    assert {t.name for t in types_with("Trainium2")} == {"trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge"}


def test_regions_know_their_zones() -> None:
    """Zones are ids; Local Zones keep one name for everybody; an unlisted pair is unknown."""
    virginia = regions.region("us-east-1")
    assert virginia is not None
    assert "use1-az6" in virginia.zone_ids
    assert ("us-east-1-atl-2a", "use1-atl2-az1") in {(z.name, z.zone_id) for z in virginia.local_zones}
    assert regions.region("eu-south-2").opt_in  # type: ignore[union-attr]
    assert {r.partition for r in regions.regions("aws")} == {"aws"}
    assert regions.zones_offering("ml.p5.48xlarge", "us-east-1")
    assert regions.zones_offering("p5.48xlarge", "us-gov-west-1") is None


def test_every_fact_has_a_source_and_a_date() -> None:
    """No row of any table comes without provenance."""
    everything = [
        *(t.provenance for t in instance_types.instance_types()),
        *(r.provenance for r in regions.regions()),
        *(p.provenance for p in list_prices._on_demand().values()),
        *(p.provenance for p in list_prices._capacity_block().values()),
        *(p.provenance for prices in list_prices._sagemaker().values() for p in prices),
    ]
    assert all(p.source for p in everything)
    assert max(p.as_of for p in everything) <= date(2026, 11, 30)


def test_shapes_agree_with_the_table_of_types() -> None:
    """What EC2 describes of a type and what the table of types says of it are one thing."""
    for kind in instance_types.instance_types():
        shape = ec2_shape(kind.name)
        if shape is None:
            continue
        assert (shape.vcpus, shape.device_count, shape.device) == (
            kind.vcpus,
            kind.accelerator_count,
            kind.accelerator,
        )
        assert kind.memory_gib == Decimal(shape.memory_mib) / 1024
        assert kind.efa == (shape.efa_interfaces_max > 0)
    assert ec2_shape("p9.96xlarge") is None


def test_spot_prices_are_of_one_zone_and_dated() -> None:
    """A Spot price belongs to a zone and a day; another zone's is not taken for it."""
    seen = spot_price_seen("p5.48xlarge", "use1-az6")
    assert seen is not None
    assert seen.usd_per_hour > 0
    assert seen.provenance.source == "skypilot-v9"
    assert spot_price_seen("p5.48xlarge", "nowhere-az1") is None
