"""The canonical form of a request, the text that Signature Version 4 signs (services other than S3)."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from .http import Request


def canonical_request(request: Request, signed_headers: tuple[str, ...], payload_hash: str) -> str:
    """AWS's canonical request: method, path, query, signed headers, their names, hash of the body."""
    headers = request.headers
    # A header that was signed but did not arrive counts as empty, so the signature does not hold.
    lines = [f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed_headers]
    return "\n".join(
        (
            request.method.upper(),
            canonical_path(request.path),
            canonical_query(request.query),
            "".join(lines),
            ";".join(signed_headers),
            payload_hash,
        )
    )


def canonical_path(path: str) -> str:
    """The path without `.`, `..` and empty segments, encoded once more than it was sent."""
    if path in {"", "/"}:
        return "/"
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    # As both SDKs do, and unlike RFC 3986, `/a/.` is `/a` and not `/a/`.
    ends_in_slash = path.endswith("/") and kept
    return quote("/" + "/".join(kept) + ("/" if ends_in_slash else ""), safe="/~")


def canonical_query(query: str) -> str:
    """The parameters but for the signature itself, decoded, encoded AWS's way, and sorted."""
    if not query:
        return ""
    pairs = [
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in query_pairs(query)
        if name != b"X-Amz-Signature"
    ]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def query_pairs(query: str) -> list[tuple[bytes, bytes]]:
    """The names and values of a query string, decoded, in the order sent."""
    # A plus sign is a space, as for whoever parses the parameters: a reading of its own here would let
    # somebody turn one into the other without breaking the signature.
    parts = [pair.partition("=") for pair in query.replace("+", " ").split("&") if pair]
    return [(unquote_to_bytes(name), unquote_to_bytes(value)) for name, _, value in parts]
