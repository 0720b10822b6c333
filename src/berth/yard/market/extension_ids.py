"""Ids of extension offerings: they carry the offer, so that a search writes nothing.

A block's is `cbe-` and 17 hexadecimal digits. From the top: issue minute 23 bits, days 8, check tag 37. The
tag is keyed and covers account, Region, reservation, its present end and the hourly rate: an id works for
nobody else, for no other block, at no other price, and no more once the end has moved.

A plan's is `tpeo-` and more digits, since ExtendTrainingPlan is told nothing else: check tag (16 bytes), then
under a mask version (1), issue minute (4), days (2), old end in microseconds (8), fee in millionths (8),
currency (3), name of the plan (the rest). Neither is security: the purchase checks everything again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from berth.terms.instants import EPOCH, from_micros, to_micros
from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.market.block_ids import MalformedOffering
from berth.yard.market.extension_rules import EXTENSION_HOURS, ExtensionTerms
from berth.yard.market.fees import fee
from berth.yard.market.offering_ids import UnknownOffering

BLOCK_PREFIX, PLAN_PREFIX = "cbe-", "tpeo-"
_MINUTE_BITS, _DAYS, _TAG = 23, 8, 37
_BODY = _MINUTE_BITS + _DAYS
_BLOCK = re.compile(BLOCK_PREFIX + r"([0-9a-f]{17})")
_PLAN = re.compile(PLAN_PREFIX + r"((?:[0-9a-f]{2})+)")
_PLAN_MAX = 512
_MINUTE = timedelta(minutes=1)
_VERSION = 1
_PACKED = struct.Struct(">BIHqq3s")
_TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class BlockSaid:
    """What a block's extension id belongs to: who asks, which block of how many, and its present end."""

    account_id: str
    region: str
    reservation_id: str
    count: int
    end: datetime


# -- blocks ----------------------------------------------------------------------------------------------
def block_terms(said: BlockSaid, issued_at: datetime, days: int, usd_per_hour: Decimal) -> ExtensionTerms:
    """The terms of extending that block by `days` at that rate."""
    added = Window(said.end, said.end + timedelta(days=days))
    return ExtensionTerms(issued_at, days, said.end, fee(usd_per_hour, said.count, added))


def encode_block_extension(
    said: BlockSaid, terms: ExtensionTerms, usd_per_hour: Decimal, *, key: bytes
) -> str:
    """The id of an offering that was reckoned at `usd_per_hour`; `key` is the yard's secret."""
    minute = (terms.issued_at - EPOCH) // _MINUTE % (1 << _MINUTE_BITS)
    body = minute << _DAYS | terms.days
    tag = _block_tag(body, usd_per_hour, said, key)
    return f"{BLOCK_PREFIX}{(body ^ _block_mask(tag, key)) << _TAG | tag:017x}"


def block_issue_minute(offering_id: str, now: datetime, *, key: bytes) -> datetime | None:
    """When the offering was issued, by its id; None for a text of another form."""
    found = _split(offering_id, key)
    return _last_before(found[0] >> _DAYS, now) if found is not None else None


def decode_block_extension(
    offering_id: str, said: BlockSaid, *, key: bytes, now: datetime, rates: Iterable[Decimal]
) -> ExtensionTerms | UnknownOffering | MalformedOffering:
    """What the id offers, for any text whatever. `rates` are the hourly rates at which it may have been."""
    found = _split(offering_id, key)
    if found is None:
        return MalformedOffering(offering_id)
    body, tag = found
    days = body & ((1 << _DAYS) - 1)
    if days * 24 not in EXTENSION_HOURS:
        return UnknownOffering(offering_id)
    for rate in rates:
        if tag == _block_tag(body, rate, said, key):
            return block_terms(said, _last_before(body >> _DAYS, now), days, rate)
    return UnknownOffering(offering_id)


def _split(offering_id: str, key: bytes) -> tuple[int, int] | None:
    found = _BLOCK.fullmatch(offering_id)
    if found is None:
        return None
    whole = int(found.group(1), 16)
    tag = whole & ((1 << _TAG) - 1)
    return (whole >> _TAG) ^ _block_mask(tag, key), tag


def _last_before(minute: int, now: datetime) -> datetime:
    """The last instant with this minute number that is not more than a minute ahead of `now`."""
    latest = (now - EPOCH) // _MINUTE + 1
    return EPOCH + (latest - (latest - minute) % (1 << _MINUTE_BITS)) * _MINUTE


def _block_tag(body: int, rate: Decimal, said: BlockSaid, key: bytes) -> int:
    text = (
        f"{said.account_id}/{said.region}/{said.reservation_id}/{to_micros(said.end)}/{rate.normalize():f}"
        f"/{body:x}"
    )
    return _digest(text.encode(), key, b"cbe-tag", _TAG)


def _block_mask(tag: int, key: bytes) -> int:
    return _digest(tag.to_bytes(5, "big"), key, b"cbe-mask", _BODY)


def _digest(text: bytes, key: bytes, person: bytes, bits: int) -> int:
    digest = hashlib.blake2s(text, key=_short(key), person=person, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - bits)


# -- plans -----------------------------------------------------------------------------------------------
def encode_plan_extension(
    name: str, terms: ExtensionTerms, *, key: bytes, account_id: str, region: str
) -> str:
    """The id of an offering for the plan `name`."""
    plain = _PACKED.pack(
        _VERSION, (terms.issued_at - EPOCH) // _MINUTE, terms.days, to_micros(terms.old_end),
        terms.fee.micros, terms.fee.currency.encode(),
    ) + name.encode()  # fmt: skip
    tag = _plan_tag(plain, key, account_id, region)
    return PLAN_PREFIX + (tag + _plan_masked(plain, tag, key)).hex()


def decode_plan_extension(
    offering_id: str, *, key: bytes, account_id: str, region: str
) -> tuple[str, ExtensionTerms] | UnknownOffering:
    """The plan's name and the terms; UnknownOffering for any text not made for this account and Region."""
    found = _PLAN.fullmatch(offering_id) if len(offering_id) <= _PLAN_MAX else None
    raw = bytes.fromhex(found.group(1)) if found else b""
    if len(raw) <= _TAG_BYTES + _PACKED.size:
        return UnknownOffering(offering_id)
    tag, masked = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
    plain = _plan_masked(masked, tag, key)
    if not hmac.compare_digest(tag, _plan_tag(plain, key, account_id, region)):
        return UnknownOffering(offering_id)
    version, minute, days, end_us, micros, currency = _PACKED.unpack_from(plain)
    if version != _VERSION:
        return UnknownOffering(offering_id)
    terms = ExtensionTerms(
        EPOCH + minute * _MINUTE, days, from_micros(end_us), Money.from_micros(micros, currency.decode())
    )
    return plain[_PACKED.size :].decode(), terms


def _plan_tag(plain: bytes, key: bytes, account_id: str, region: str) -> bytes:
    digest = hashlib.blake2s(key=_short(key), digest_size=_TAG_BYTES, person=b"tpeo-tag")
    digest.update(f"{account_id}/{region}/".encode())
    digest.update(plain)
    return digest.digest()


def _plan_masked(text: bytes, tag: bytes, key: bytes) -> bytes:
    """`text` under a keystream that the tag starts; masking twice gives the text back."""
    stream = b"".join(
        hashlib.blake2b(tag + bytes([block]), key=_short(key), person=b"tpeo-mask").digest()
        for block in range(-(-len(text) // 64))
    )
    return bytes(a ^ b for a, b in zip(text, stream, strict=False))


def _short(key: bytes) -> bytes:
    return key if 0 < len(key) <= 32 else hashlib.blake2s(key).digest()
