"""The conformance table, read. Nothing here imports either half of the project."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def plan_rules() -> dict[str, Any]:
    """AWS's rules of training plans, as typed from the reference."""
    return tomllib.loads(Path(__file__).with_name("training_plan_rules.toml").read_text("utf-8"))


@pytest.fixture(scope="session")
def block_rules() -> dict[str, Any]:
    """AWS's rules of Capacity Blocks, as typed from the reference."""
    return tomllib.loads(Path(__file__).with_name("capacity_block_rules.toml").read_text("utf-8"))
