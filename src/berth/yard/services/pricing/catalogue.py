"""The fleet's rates as products of AWS's price list: EC2 on demand, what runs in blocks, SageMaker hosting.

A product without a known price is not listed. A Capacity Block's fee is not in AWS's price list: what stands
there under market option `CapacityBlock` is the operating system alone, nothing for Linux, so that a reader
who takes it for the price of the block finds it free or at a third of a dollar
(docs/reference/unconfirmed.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from berth.facts.ec2_shapes import ec2_shape
from berth.facts.regions import region as known_region
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.pools import EC2, SAGEMAKER, Pool
from berth.yard.market.price_lists import REHEARSAL_PRICE, find_rate
from berth.yard.services.ec2.instance_types import vcpus_of

EC2_CODE = "AmazonEC2"
SAGEMAKER_CODE = "AmazonSageMaker"
# Ubuntu Pro by the vCPU hour: 0.336 for 192 vCPUs, "about a third of a dollar" (skypilot issue 4657).
UBUNTU_PRO_PER_VCPU = Decimal("0.00175")


@dataclass(frozen=True, slots=True)
class Product:
    """One product with its one on-demand price: `usd_per_hour`, and `label`, whose figure that is."""

    service: str
    family: str
    attributes: Mapping[str, str]
    usd_per_hour: Decimal
    label: str

    @property
    def sku(self) -> str:
        """Sixteen letters and digits that depend on the attributes alone."""
        text = repr((self.service, sorted(self.attributes.items())))
        return hashlib.blake2b(text.encode(), digest_size=8, person=b"price-sku").hexdigest().upper()


def products(fleet: Fleet) -> tuple[Product, ...]:
    """Every product of the fleet, in the order of service and SKU."""
    found: dict[tuple[str, str], Product] = {}
    for pool in fleet.pools.values():
        for product in (*_ec2(fleet, pool), *_sagemaker(fleet, pool)):
            found.setdefault((product.service, product.sku), product)
    return tuple(found[key] for key in sorted(found))


def _place(region: str) -> dict[str, str]:
    known = known_region(region)
    place = {"regionCode": region, "locationType": "AWS Region"}
    return {**place, "location": known.name} if known is not None else place


# -- EC2 -------------------------------------------------------------------------------------------------
def _ec2(fleet: Fleet, pool: Pool) -> Iterator[Product]:
    face = pool.faces.get(EC2)
    if face is None:
        return
    rate = find_rate(fleet.on_demand_rates, pool.hardware, pool.region)
    if rate is not None and pool.shares.on_demand:
        yield _ec2_product(
            pool, face.instance_type, "Linux", "OnDemand", usd=rate.usd_per_hour, label=rate.label
        )
    if pool.shares.reservable and pool.self_service:
        yield from _block_surcharges(pool, face.instance_type)


def _block_surcharges(pool: Pool, instance_type: str) -> Iterator[Product]:
    yield _ec2_product(
        pool, instance_type, "Linux", "CapacityBlock", usd=Decimal(0), label="no surcharge for Linux"
    )
    vcpus = vcpus_of(instance_type)
    if vcpus is not None:
        yield _ec2_product(
            pool,
            instance_type,
            "Ubuntu Pro",
            "CapacityBlock",
            usd=vcpus * UBUNTU_PRO_PER_VCPU,
            label=REHEARSAL_PRICE,
        )


def _ec2_product(pool: Pool, name: str, system: str, market: str, *, usd: Decimal, label: str) -> Product:
    attributes = {
        **_place(pool.region),
        "servicecode": EC2_CODE,
        "servicename": "Amazon Elastic Compute Cloud",
        "instanceType": name,
        "instanceFamily": "GPU instance" if not name.startswith("trn") else "Machine Learning ASIC Instances",
        "currentGeneration": "Yes",
        "operatingSystem": system,
        "preInstalledSw": "NA",
        "licenseModel": "No License required",
        "tenancy": "Shared",
        "capacitystatus": "Used",
        "marketoption": market,
        "operation": "RunInstances" if system == "Linux" else "RunInstances:0g00",
        "usagetype": f"{'BoxUsage' if market == 'OnDemand' else 'CapacityBlockUsage'}:{name}",
        **_hardware(name),
    }
    return Product(EC2_CODE, "Compute Instance", attributes, usd, label)


def _hardware(name: str) -> dict[str, str]:
    shape = ec2_shape(name)
    if shape is None:
        return {}
    found = {"vcpu": str(shape.vcpus), "memory": f"{shape.memory_mib // 1024} GiB"}
    return found if shape.vendor == "AWS" else {**found, "gpu": str(shape.device_count)}


# -- SageMaker -------------------------------------------------------------------------------------------
def _sagemaker(fleet: Fleet, pool: Pool) -> Iterator[Product]:
    face = pool.faces.get(SAGEMAKER)
    rate = find_rate(fleet.hosting_rates, pool.hardware, pool.region)
    if face is None or rate is None:
        return
    attributes = {
        **_place(pool.region),
        "servicecode": SAGEMAKER_CODE,
        "servicename": "Amazon SageMaker",
        "instanceType": face.instance_type,
        "instanceName": face.instance_type,
        "component": "Hosting",
        "operation": "RunInstance",
        "usagetype": f"Host:{face.instance_type}",
    }
    yield Product(SAGEMAKER_CODE, "ML Instance", attributes, rate.usd_per_hour, rate.label)
