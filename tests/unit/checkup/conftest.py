"""Needs of both halves, as a checkup gets them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from berth.planner.launch import Launch
from berth.planner.need import Deployment, Need
from berth.terms.ways import Target

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/serving"


def need_of(target: Target = Target.INSTANCES, **more: Any) -> Need:
    """A need of two 8-GPU machines."""
    kind = "p5.48xlarge" if target is Target.INSTANCES else "ml.p5.48xlarge"
    facts: dict[str, Any] = {
        "name": "eval", "instance_type": kind, "count": 2, "duration": timedelta(hours=24),
        "target": target, "regions": ("us-east-1",),
    }  # fmt: skip
    return Need(**{**facts, **more})


@pytest.fixture
def blocks() -> Need:
    """One of instances."""
    return need_of(launch=Launch(image="ami-0123456789abcdef0"))


@pytest.fixture
def served() -> Need:
    """One of an endpoint, made from an image."""
    return need_of(Target.ENDPOINT, deployment=Deployment(image="i", data="model", role=ROLE))
