"""Ids of Capacity Block offerings: `cb-` and 17 hexadecimal digits that carry the whole offer.

The 68 bits, from the top: pool number 11, issue minute 23, start number 6, end number 8, count less one 6,
and a check tag of 14. The tag is keyed and covers account, Region and the hourly rate too, so that an id
works for nobody else and at no other price than the one it showed; the other bits are masked by a keystream
that the tag starts. Neither is security: 14 bits are guessed in minutes. The purchase checks rules, price,
age, quotas and capacity again.

23 bits of minutes are 16 years; the minute is read as the last one that fits and is not ahead of now.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from berth.terms.instants import EPOCH
from berth.yard.market.block_rules import COUNT_MAX, BlockTerms
from berth.yard.market.offering_ids import UnknownOffering
from berth.yard.market.window_rules import DAYS_MAX, LEAD_DAYS_MAX

PREFIX = "cb-"
POOLS_MAX = 2048
_POOL, _MINUTE_BITS, _START, _END, _COUNT, _TAG = 11, 23, 6, 8, 6, 14
_BODY = _POOL + _MINUTE_BITS + _START + _END + _COUNT
_PATTERN = re.compile(PREFIX + r"([0-9a-f]{17})")
_MINUTE = timedelta(minutes=1)

Rates = Callable[[str, datetime], Iterable[Decimal]]


@dataclass(frozen=True, slots=True)
class MalformedOffering:
    """A text that has not the form of an offering id."""

    offering_id: str


@dataclass(frozen=True, slots=True)
class PoolNumbers:
    """A number from 0 to 2047 for each pool that EC2 sells from, and back; the same for good."""

    numbers: Mapping[str, int]
    pools: Mapping[int, str]

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> PoolNumbers:
        """From pool key to number. Raises ValueError for a number out of range or there twice."""
        back = {number: pool for pool, number in numbers.items()}
        if len(back) != len(numbers) or not all(0 <= number < POOLS_MAX for number in back):
            raise ValueError(f"pool numbers must differ and lie between 0 and {POOLS_MAX - 1}")
        return cls(dict(numbers), back)


def encode_block_offering(
    terms: BlockTerms, *, numbers: PoolNumbers, key: bytes, account_id: str, region: str
) -> str:
    """The offering id of `terms` for one account in one Region; `key` is the yard's secret, of any length."""
    body = numbers.numbers[terms.pool_key]
    for value, bits in (
        ((terms.issued_at - EPOCH) // _MINUTE % (1 << _MINUTE_BITS), _MINUTE_BITS),
        (terms.start, _START),
        (terms.end, _END),
        (terms.count - 1, _COUNT),
    ):
        body = body << bits | value
    tag = _tag(body, terms.usd_per_hour, key, account_id, region)
    return f"{PREFIX}{(body ^ _mask(tag, key)) << _TAG | tag:017x}"


def decode_block_offering(
    offering_id: str,
    *,
    numbers: PoolNumbers,
    key: bytes,
    account_id: str,
    region: str,
    now: datetime,
    rates: Rates,
) -> BlockTerms | UnknownOffering | MalformedOffering:
    """What the id offers, for any text whatever.

    `rates(pool key, issue minute)` are the hourly rates at which it may have been offered; the first with
    which the tag agrees is the offer's.
    """
    found = _PATTERN.fullmatch(offering_id)
    if found is None:
        return MalformedOffering(offering_id)
    whole = int(found.group(1), 16)
    tag = whole & ((1 << _TAG) - 1)
    body = (whole >> _TAG) ^ _mask(tag, key)
    rest, read = body, []
    for bits in (_COUNT, _END, _START, _MINUTE_BITS):
        rest, value = rest >> bits, rest & ((1 << bits) - 1)
        read.append(value)
    less_one, end, start, minute = read
    pool_key = numbers.pools.get(rest)
    if pool_key is None or start > LEAD_DAYS_MAX or not 1 <= end <= DAYS_MAX + 1 or less_one >= COUNT_MAX:
        return UnknownOffering(offering_id)
    issued_at = _last_before(minute, now)
    for rate in rates(pool_key, issued_at):
        if tag == _tag(body, rate, key, account_id, region):
            return BlockTerms(pool_key, less_one + 1, issued_at, start, end, rate)
    return UnknownOffering(offering_id)


def _last_before(minute: int, now: datetime) -> datetime:
    """The last instant with this minute number that is not more than a minute ahead of `now`: an issue minute
    is rounded up."""
    latest = (now - EPOCH) // _MINUTE + 1
    return EPOCH + (latest - (latest - minute) % (1 << _MINUTE_BITS)) * _MINUTE


def _tag(body: int, rate: Decimal, key: bytes, account_id: str, region: str) -> int:
    text = f"{account_id}/{region}/{rate.normalize():f}/{body:x}"
    return _digest(text.encode(), key, b"cb-tag", _TAG)


def _mask(tag: int, key: bytes) -> int:
    return _digest(tag.to_bytes(2, "big"), key, b"cb-mask", _BODY)


def _digest(text: bytes, key: bytes, person: bytes, bits: int) -> int:
    short = key if 0 < len(key) <= 32 else hashlib.blake2s(key).digest()
    digest = hashlib.blake2s(text, key=short, person=person, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - bits)
