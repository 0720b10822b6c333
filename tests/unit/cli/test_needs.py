"""Reading a need file from the disk: what is no such file is said at once, and never read without end."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from berth.cli.needs import typed_need
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.settings import MAX_BYTES


def said(path: Path) -> str:
    """What is said about a file that cannot be read."""
    with pytest.raises(BerthError) as found:
        typed_need(path, {})
    assert found.value.exit_code is ExitCode.BAD_REQUEST
    return found.value.message


def test_what_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    """A missing file, a folder, a link to itself, bytes that are no text, a file that is too large."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_bytes(b"#" * (MAX_BYTES + 1))
    for name, reason in {
        "missing": "No such file", ".": "Is a directory", "loop": "Too many levels",
        "binary": "not UTF-8", "large": "larger than 4,000,000 bytes",
    }.items():  # fmt: skip
        message = said(tmp_path / name)
        assert str(tmp_path / name) in message
        assert reason in message


def test_a_device_without_end_is_not_read_to_its_end() -> None:
    """It would fill the memory before anything could be said; here that would be a MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, hard))
    try:
        assert "larger than" in said(Path("/dev/zero"))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_the_mark_that_some_editors_write_first_is_no_part_of_the_need(tmp_path: Path) -> None:
    """A byte order mark before the first key."""
    file = tmp_path / "need.toml"
    file.write_bytes(b'\xef\xbb\xbfname = "x"\n')
    assert typed_need(file, {}).text == 'name = "x"\n'
