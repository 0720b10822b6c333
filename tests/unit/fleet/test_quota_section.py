"""The quotas of a fleet file, and how they are raised."""

from __future__ import annotations

from datetime import timedelta

import pytest

from berth.terms.settings import SettingsError
from berth.yard.fleet.fleet import QuotaIncreases, QuotaKind
from berth.yard.fleet.fleet_file import load_fleet

from .test_fleet_file import SMALL


def test_increases_have_a_delay_and_a_most_by_kind() -> None:
    """A kind that is not named goes by `*`; without the section a day, and as much as a file may say."""
    text = """
[quotas]
training_plans = 3
[quotas.increases]
delay = "90m"
most = { "*" = 10, training_plans = 4 }
"""
    increases = load_fleet(SMALL + text, "small.toml").quota_increases
    assert increases.delay == timedelta(minutes=90)
    assert [increases.grants(QuotaKind.TRAINING_PLANS, value) for value in (4, 5)] == [True, False]
    assert [increases.grants(QuotaKind.SPOT_VCPUS, value) for value in (10, 11)] == [True, False]
    assert load_fleet(SMALL, "small.toml").quota_increases == QuotaIncreases()


def test_every_kind_is_read_under_its_key() -> None:
    """`Quotas.of` gives back what stands in the file."""
    text = """
[quotas]
training_plans = 1
reserved_capacity = { "*" = 2 }
endpoint_usage = { "*" = 3 }
training_usage = { "*" = 4 }
cluster_usage = { "*" = 5 }
block_vcpus = { "*" = 6 }
on_demand_vcpus = { "*" = 7, p = 70 }
spot_vcpus = { "*" = 8 }
"""
    quotas = load_fleet(SMALL + text, "small.toml").quotas
    assert [quotas.of(kind, "") for kind in QuotaKind] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert quotas.of(QuotaKind.ON_DEMAND_VCPUS, "p") == 70


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("most = { nonsense = 1 }", "is not a kind of quota"),
        ("sooner = 1", "sooner"),
        ('delay = "x"', "delay"),
    ],
)
def test_what_is_wrong_is_told(wrong: str, told: str) -> None:
    """With its key."""
    with pytest.raises(SettingsError, match=told):
        load_fleet(SMALL + f"\n[quotas.increases]\n{wrong}\n", "small.toml")
