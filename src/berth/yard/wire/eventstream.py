"""The framing of AWS's event streams (`application/vnd.amazon.eventstream`), for answers in parts.

A message is: total length, length of the headers, CRC of these two, headers, payload, CRC of all; numbers are
32 bit, big-endian. A header is: length of the name, name, type 7 (string), length of the value, value.
Source: smithy.io, "Amazon Event Stream Specification" (Smithy 2.0).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from zlib import crc32

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7
_FRAME_BYTES = 16  # two lengths and two checksums


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of a stream."""
    packed = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", _FRAME_BYTES + len(packed) + len(payload), len(packed))
    body = prelude + struct.pack(">I", crc32(prelude)) + packed + payload
    return body + struct.pack(">I", crc32(body))


def _header(name: str, value: str) -> bytes:
    raw_name, raw_value = name.encode("utf-8"), value.encode("utf-8")
    return (
        struct.pack(">B", len(raw_name)) + raw_name + struct.pack(">BH", _STRING, len(raw_value)) + raw_value
    )
