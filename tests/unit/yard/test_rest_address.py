"""Another emulator beside a yard is on this machine, or there is none."""

from __future__ import annotations

import pytest

from berth.yard.rest import RestRefused, read_address


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("http://127.8.9.1:5000/", "http://127.8.9.1:5000"),
        ("http://localhost:5000", "http://127.0.0.1:5000"),
        ("http://[::1]:5000", "http://[::1]:5000"),
    ],
)
def test_loopback_is_taken(url: str, meant: str) -> None:
    """By address; the name localhost means 127.0.0.1 whatever a resolver says."""
    assert read_address(url).url == meant


@pytest.mark.parametrize(
    "url",
    [
        "https://ec2.us-east-1.amazonaws.com",
        "http://ec2.us-east-1.amazonaws.com:80",
        "http://10.0.0.1:5000",
        "http://169.254.169.254:80",
        "http://0.0.0.0:5000",
        "http://[::]:5000",
        "http://[::ffff:10.0.0.1]:5000",
        "http://127.0.0.1.example.com:5000",
        "http://127.0.0.1@example.com:5000",
        "http://example.com:5000/127.0.0.1",
        "http://2130706433:5000",
        "http://0x7f.1:5000",
        "http://127.0.0.1",
        "https://127.0.0.1:5000",
        "http://127.0.0.1:99999",
        "http://user@127.0.0.1:5000",
        "http://127.0.0.1:5000/path",
        "ftp://127.0.0.1:5000",
        "127.0.0.1:5000",
        "http://[",
        "",
    ],
)
def test_everything_else_is_refused(url: str) -> None:
    """Names, other addresses, other spellings, other schemes: a rehearsal never reaches AWS."""
    with pytest.raises(RestRefused):
        read_address(url)
