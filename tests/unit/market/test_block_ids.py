"""Ids of Capacity Block offerings: 68 bits that carry the whole offer; nothing else passes for one."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.market.block_ids import (
    MalformedOffering,
    PoolNumbers,
    decode_block_offering,
    encode_block_offering,
)
from berth.yard.market.block_rules import BlockTerms
from berth.yard.market.offering_ids import UnknownOffering

KEY = b"0123456789abcdef0123456789abcdef"
ACCOUNT = "111122223333"
RATE = Decimal("47.757")
NOW = datetime(2026, 12, 1, 9, 0, 20, tzinfo=UTC)
ISSUED = datetime(2026, 12, 1, 9, 1, tzinfo=UTC)
NUMBERS = PoolNumbers.of({f"use1-az{number}/p5.48xlarge": number for number in (0, 1, 77, 2047)})
TERMS = BlockTerms("use1-az77/p5.48xlarge", 4, ISSUED, 1, 2, RATE)


def encode(terms: BlockTerms, account: str = ACCOUNT, region: str = "us-east-1", key: bytes = KEY) -> str:
    """The id of `terms`."""
    return encode_block_offering(terms, numbers=NUMBERS, key=key, account_id=account, region=region)


def decode(
    text: str,
    account: str = ACCOUNT,
    region: str = "us-east-1",
    key: bytes = KEY,
    now: datetime = NOW,
    rates: tuple[Decimal, ...] = (RATE,),
) -> object:
    """What `text` means to that account there at `now`."""
    return decode_block_offering(
        text, numbers=NUMBERS, key=key, account_id=account, region=region, now=now,
        rates=lambda pool, issued_at: rates,
    )  # fmt: skip


terms = st.builds(
    BlockTerms,
    pool_key=st.sampled_from(sorted(NUMBERS.numbers)),
    count=st.integers(1, 64),
    issued_at=st.integers(0, 2**23 - 1).map(lambda ago: ISSUED - timedelta(minutes=ago)),
    start=st.integers(0, 56),
    end=st.integers(1, 183),
    usd_per_hour=st.decimals("0.001", "999", places=4).filter(lambda rate: rate > 0),
)


@settings(max_examples=300, deadline=None)
@given(terms)
def test_an_id_carries_the_whole_offer(given_terms: BlockTerms) -> None:
    """Pool, count, minute, start, end and price come back from `cb-` and 17 digits, for 16 years."""
    text = encode(given_terms)
    assert re.fullmatch(r"cb-[0-9a-f]{17}", text)
    assert decode(text, rates=(given_terms.usd_per_hour,)) == given_terms


@pytest.mark.parametrize("year", [2000, 2026, 2199])
def test_the_minute_is_read_as_the_last_that_fits(year: int) -> None:
    """Any clock of a yard is served: the 23 bits are counted back from a minute after now."""
    now = datetime(year, 6, 1, 9, 0, 20, tzinfo=UTC)
    for ago in (timedelta(0), timedelta(minutes=60), timedelta(days=365)):
        issued = now.replace(second=0) + timedelta(minutes=1) - ago
        offered = BlockTerms(TERMS.pool_key, 1, issued, 0, 1, RATE)
        assert decode(encode(offered), now=now) == offered


def test_an_id_is_good_for_one_account_region_yard_and_price_only() -> None:
    """Anything else makes the same text unknown."""
    text = encode(TERMS)
    assert decode(text) == TERMS
    assert decode(text, account="444455556666") == UnknownOffering(text)
    assert decode(text, region="us-west-2") == UnknownOffering(text)
    assert decode(text, key=b"another") == UnknownOffering(text)
    assert decode(text, rates=(Decimal("54.92"),)) == UnknownOffering(text)
    assert decode(text, rates=()) == UnknownOffering(text)


def test_the_price_that_agrees_is_the_offers() -> None:
    """Of several rates the one under which the id was made is told, however it is written."""
    assert decode(encode(TERMS), rates=(Decimal("54.92"), Decimal("47.7570"))) == TERMS


def test_ids_of_one_offer_to_two_accounts_have_nothing_in_common() -> None:
    """The body is masked by the tag: half of the bits differ, not a few."""
    ids = [int(encode(TERMS, account=f"{number:012d}")[3:], 16) for number in range(200)]
    differing = [(a ^ b).bit_count() for a, b in pairwise(ids)]
    assert 28 < sum(differing) / len(differing) < 40


def test_made_up_ids_pass_the_tag_as_rarely_as_14_bits_promise() -> None:
    """Of 40,000 random ids at most a handful carry terms: one in 16,384, less for pools that do not exist."""
    draw = random.Random(3)
    passed = [
        text
        for text in (f"cb-{draw.getrandbits(68):017x}" for _ in range(40_000))
        if isinstance(decode(text), BlockTerms)
    ]
    assert len(passed) <= 3


def test_a_typing_error_makes_an_id_unknown() -> None:
    """No one changed digit names another offer."""
    good = encode(TERMS)
    for place in range(3, len(good)):
        for digit in "0123456789abcdef":
            if digit != good[place]:
                text = good[:place] + digit + good[place + 1 :]
                assert decode(text) == UnknownOffering(text)


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(st.text(max_size=40), st.from_regex(r"cb-[0-9a-fA-F]{15,19}"), st.binary(max_size=20).map(repr))
)
def test_any_other_text_is_answered_and_never_a_traceback(text: str) -> None:
    """Fuzz: of the right form it is unknown, else malformed."""
    found = decode(text)
    if re.fullmatch(r"cb-[0-9a-f]{17}", text):
        assert found == UnknownOffering(text)
    else:
        assert found == MalformedOffering(text)


def test_pool_numbers_fit_and_differ() -> None:
    """2048 pools, each with a number of its own."""
    for wrong in ({"a": 2048}, {"a": -1}, {"a": 1, "b": 1}):
        with pytest.raises(ValueError, match="pool numbers"):
            PoolNumbers.of(wrong)
