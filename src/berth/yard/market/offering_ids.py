"""Ids of plan offerings: an id carries what it offers, so a search writes nothing and leaves nothing behind.

Layout of what stands after `tpo-`, in lower-case hexadecimal: 16 bytes of check tag, then the masked terms:
version (1 byte), issue minute since 1970 (4), start number (1), end number (1), count (2), targets as bits
(1), fee in millionths (8), currency (3), pool key (the rest). The tag is keyed, and covers the account and
the Region too, so an id works for nobody else; the mask keeps people from reading ids instead of answers.
Neither is security: the purchase checks capacity, price, rules and age again.

The ids of EC2's Capacity Blocks, 17 digits, are in `block_ids`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.terms.instants import EPOCH
from berth.terms.money import Money
from berth.terms.ways import Target
from berth.yard.fleet.fleet import OfferLifetimes
from berth.yard.market.plan_rules import PlanTerms
from berth.yard.market.window_rules import DAYS_MAX, LEAD_DAYS_MAX

PREFIX = "tpo-"
VERSION = 1
TARGETS = (
    Target.TRAINING_JOB,
    Target.HYPERPOD_CLUSTER,
    Target.ENDPOINT,
    Target.STUDIO_APPS,
)  # bit order: fixed
_PACKED = struct.Struct(">BIBBHBq3s")
_TAG_BYTES = 16
_PATTERN = re.compile(PREFIX + r"((?:[0-9a-f]{2})+)")
_LENGTH_MAX = 256  # of the model
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class UnknownOffering:
    """An id that this yard never gave to this account in this Region, whatever else it may be."""

    offering_id: str


def encode_offering(terms: PlanTerms, *, key: bytes, account_id: str, region: str) -> str:
    """The offering id of `terms` for one account in one Region; `key` is the yard's secret, of any length.

    Matches AWS's `[a-z0-9\\-]+` within 256 characters for pool keys of up to 89 bytes. Raises ValueError
    for a longer one.
    """
    bits = sum(1 << TARGETS.index(target) for target in terms.targets)
    packed = _PACKED.pack(
        VERSION,
        (terms.issued_at - EPOCH) // _MINUTE,
        terms.start,
        terms.end,
        terms.count,
        bits,
        terms.fee.micros,
        terms.fee.currency.encode(),
    )
    plain = packed + terms.pool_key.encode()
    tag = _tag(plain, key, account_id, region)
    text = PREFIX + (tag + _masked(plain, tag, key)).hex()
    if len(text) > _LENGTH_MAX:
        raise ValueError(f"the pool key {terms.pool_key!r} is too long for an offering id")
    return text


def decode_offering(
    offering_id: str, *, key: bytes, account_id: str, region: str
) -> PlanTerms | UnknownOffering:
    """What the id offers; UnknownOffering for any text not made by `encode_offering` for this account."""
    found = _PATTERN.fullmatch(offering_id) if len(offering_id) <= _LENGTH_MAX else None
    raw = bytes.fromhex(found.group(1)) if found else b""
    if len(raw) <= _TAG_BYTES + _PACKED.size:
        return UnknownOffering(offering_id)
    tag, masked = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
    plain = _masked(masked, tag, key)
    if not hmac.compare_digest(tag, _tag(plain, key, account_id, region)):
        return UnknownOffering(offering_id)
    return _terms(plain) or UnknownOffering(offering_id)


def expires_at(terms: PlanTerms, lifetimes: OfferLifetimes) -> datetime:
    """The yard time from which the offering may not be bought any more."""
    return terms.issued_at + (lifetimes.immediate if terms.immediate else lifetimes.scheduled)


def expired(terms: PlanTerms, now: datetime, lifetimes: OfferLifetimes) -> bool:
    """Whether the offering is too old at `now`."""
    return now >= expires_at(terms, lifetimes)


def _terms(plain: bytes) -> PlanTerms | None:
    """The terms in `plain`; None for a version or a number that this yard does not know."""
    version, minute, start, end, count, bits, micros, currency = _PACKED.unpack_from(plain)
    if version != VERSION or start > LEAD_DAYS_MAX or not 1 <= end <= DAYS_MAX + 1:
        return None
    return PlanTerms(
        pool_key=plain[_PACKED.size :].decode(),
        count=count,
        targets=tuple(target for bit, target in enumerate(TARGETS) if bits >> bit & 1),
        issued_at=EPOCH + minute * _MINUTE,
        start=start,
        end=end,
        fee=Money.from_micros(micros, currency.decode()),
    )


def _tag(plain: bytes, key: bytes, account_id: str, region: str) -> bytes:
    digest = hashlib.blake2s(key=_short(key), digest_size=_TAG_BYTES, person=b"tpo-tag")
    digest.update(f"{account_id}/{region}/".encode())
    digest.update(plain)
    return digest.digest()


def _masked(text: bytes, tag: bytes, key: bytes) -> bytes:
    """`text` under a keystream that the tag starts; masking twice gives the text back."""
    blocks = -(-len(text) // 64)
    stream = b"".join(
        hashlib.blake2b(tag + bytes([block]), key=_short(key), person=b"tpo-mask").digest()
        for block in range(blocks)
    )
    return bytes(a ^ b for a, b in zip(text, stream, strict=False))


def _short(key: bytes) -> bytes:
    return key if 0 < len(key) <= 32 else hashlib.blake2s(key).digest()
