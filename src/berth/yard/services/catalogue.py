"""Everything that the yard serves: importing this module fills the register of operations."""

from __future__ import annotations

from berth.yard.services.ec2 import (
    block_extensions,
    capacity_blocks,
    capacity_reservations,
    images,
    instance_types,
    instances,
    network,
    regions,
    run_instances,
    spot_prices,
    zone_opt_ins,
)
from berth.yard.services.ec2 import tags as ec2_tags
from berth.yard.services.iam import simulation
from berth.yard.services.pricing import products
from berth.yard.services.sagemaker import (
    endpoint_configs,
    endpoints,
    models,
    plan_extensions,
    tags,
    training_plans,
)
from berth.yard.services.sagemaker_runtime import invocations
from berth.yard.services.service_quotas import quotas as service_quotas
from berth.yard.services.service_quotas import requests as quota_requests
from berth.yard.services.sts import assume_role, caller_identity

SERVICES = (
    regions,
    zone_opt_ins,
    capacity_blocks,
    block_extensions,
    capacity_reservations,
    ec2_tags,
    instance_types,
    network,
    images,
    run_instances,
    instances,
    spot_prices,
    products,
    training_plans,
    plan_extensions,
    models,
    endpoint_configs,
    endpoints,
    tags,
    invocations,
    service_quotas,
    quota_requests,
    caller_identity,
    assume_role,
    simulation,
)
