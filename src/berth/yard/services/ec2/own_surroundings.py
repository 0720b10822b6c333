"""A yard's own VPCs, subnets, security groups and images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from berth.yard.fleet.fleet import Fleet
from berth.yard.services.ec2.images import own_images
from berth.yard.services.ec2.network import own_network
from berth.yard.services.ec2.surroundings import Surroundings


def own_surroundings(fleet: Fleet) -> Callable[[str, str], Surroundings]:
    """What surrounds the instances of an account (id) in a Region: reckoned once, always the same."""
    known: dict[tuple[str, str], Surroundings] = {}

    def around(account_id: str, region: str) -> Surroundings:
        key = (account_id, region)
        if key not in known:
            network = own_network(account_id, fleet.regions[region])
            known[key] = replace(network, images=own_images(region))
        return known[key]

    return around
