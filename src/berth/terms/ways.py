"""Ways to get capacity, and what it is for."""

from __future__ import annotations

from enum import StrEnum


class Way(StrEnum):
    """How GPUs can be had from AWS."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    ODCR = "odcr"
    CAPACITY_BLOCK = "capacity-block"
    SAGEMAKER_ON_DEMAND = "sagemaker-on-demand"
    TRAINING_PLAN = "training-plan"


class Target(StrEnum):
    """What will run. All but INSTANCES are SageMaker's own words (`SageMakerResourceName`)."""

    INSTANCES = "instances"
    TRAINING_JOB = "training-job"
    HYPERPOD_CLUSTER = "hyperpod-cluster"
    ENDPOINT = "endpoint"
    STUDIO_APPS = "studio-apps"
