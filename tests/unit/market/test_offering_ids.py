"""Offering ids: what they carry, and that nothing else passes for one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import botocore.loaders
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.money import Money
from berth.terms.ways import Target
from berth.yard.fleet.fleet import OfferLifetimes
from berth.yard.market.offering_ids import (
    TARGETS,
    UnknownOffering,
    decode_offering,
    encode_offering,
    expired,
)
from berth.yard.market.plan_rules import PlanTerms

KEY = b"0123456789abcdef0123456789abcdef"
ACCOUNT = "111122223333"
TERMS = PlanTerms(
    pool_key="use1-az6/trn1.32xlarge",
    count=1,
    targets=(Target.ENDPOINT,),
    issued_at=datetime(2026, 12, 1, 19, 9, tzinfo=UTC),
    start=1,
    end=1,
    fee=Money(Decimal("228.77")),
)
MODEL = botocore.loaders.Loader().load_service_model("sagemaker", "service-2")["shapes"][
    "TrainingPlanOfferingId"
]


def encode(terms: PlanTerms, region: str = "us-east-1", account: str = ACCOUNT, key: bytes = KEY) -> str:
    """The id of `terms`, by default for the one account in us-east-1."""
    return encode_offering(terms, key=key, account_id=account, region=region)


def decode(text: str, region: str = "us-east-1", account: str = ACCOUNT, key: bytes = KEY) -> object:
    """What `text` means to that account there."""
    return decode_offering(text, key=key, account_id=account, region=region)


terms = st.builds(
    PlanTerms,
    pool_key=st.from_regex(r"[a-z0-9-]{3,40}/[a-z0-9.-]{3,40}", fullmatch=True),
    count=st.integers(1, 256),
    targets=st.lists(st.sampled_from(TARGETS), unique=True, min_size=1).map(
        lambda found: tuple(t for t in TARGETS if t in found)
    ),
    issued_at=st.integers(0, 2**25).map(lambda m: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(minutes=m)),
    start=st.integers(0, 56),
    end=st.integers(1, 183),
    fee=st.integers(0, 10**15).map(Money.from_micros),
)


@settings(max_examples=200, deadline=None)
@given(terms)
def test_an_id_carries_everything(given_terms: PlanTerms) -> None:
    """Whatever is offered comes back whole, in an id that AWS's model allows."""
    text = encode(given_terms)
    assert re.fullmatch(MODEL["pattern"], text)
    assert MODEL["min"] <= len(text) <= MODEL["max"]
    assert decode(text) == given_terms


def test_the_window_follows_from_issue_minute_and_numbers() -> None:
    """Start 1 is the next 11:30 UTC, start 0 half an hour from the issue minute, both end at 11:30."""
    assert TERMS.window.start == datetime(2026, 12, 2, 11, 30, tzinfo=UTC)
    assert TERMS.window.duration == timedelta(days=1)
    immediate = PlanTerms(TERMS.pool_key, 1, TERMS.targets, TERMS.issued_at, 0, 1, TERMS.fee)
    assert immediate.immediate
    assert immediate.window.start == datetime(2026, 12, 1, 19, 39, tzinfo=UTC)
    assert immediate.window.end == datetime(2026, 12, 2, 11, 30, tzinfo=UTC)


def test_an_id_is_good_for_one_account_region_and_yard_only() -> None:
    """Another account, another Region or another key makes the same text unknown."""
    text = encode(TERMS)
    assert decode(text) == TERMS
    assert decode(text, region="us-west-2") == UnknownOffering(text)
    assert decode(text, account="444455556666") == UnknownOffering(text)
    assert decode(text, key=b"another") == UnknownOffering(text)
    assert encode(TERMS, region="us-west-2") != text


def test_a_long_key_is_as_good_as_a_short_one() -> None:
    """The key may have any length, also none."""
    for key in (b"", b"k", b"k" * 1000):
        assert decode(encode(TERMS, key=key), key=key) == TERMS


@settings(max_examples=300, deadline=None)
@given(st.integers(4, len(encode(TERMS)) - 1), st.sampled_from("0123456789abcdef-xé"))
def test_one_changed_character_makes_an_id_unknown(place: int, character: str) -> None:
    """There is no typo that names another offer."""
    good = encode(TERMS)
    bad = good[:place] + character + good[place + 1 :]
    assert isinstance(decode(bad), UnknownOffering) == (bad != good)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=300), st.binary(max_size=200).map(lambda raw: "tpo-" + raw.hex())))
def test_any_other_text_is_unknown_and_never_a_traceback(text: str) -> None:
    """Fuzz: text of any kind and length is answered as unknown."""
    assert decode(text) == UnknownOffering(text)


def test_a_pool_key_that_fits_no_id_is_refused() -> None:
    """An id longer than the model allows is never given out."""
    too_long = PlanTerms("z" * 90, 1, TERMS.targets, TERMS.issued_at, 1, 1, TERMS.fee)
    with pytest.raises(ValueError, match="too long"):
        encode(too_long)


def test_immediate_offers_live_20_minutes_and_others_60() -> None:
    """Age counts from the issue minute; at its lifetime an offer has expired."""
    immediate = PlanTerms(TERMS.pool_key, 1, TERMS.targets, TERMS.issued_at, 0, 1, TERMS.fee)
    for offer, minutes in ((immediate, 20), (TERMS, 60)):
        end = offer.issued_at + timedelta(minutes=minutes)
        assert not expired(offer, end - timedelta(microseconds=1), OfferLifetimes())
        assert expired(offer, end, OfferLifetimes())
