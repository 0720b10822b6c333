"""Unpacking a stranger's tar.gz: what is sound comes out whole, what climbs or swells is refused."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.yard.engines.archive import Bounds, unpack
from berth.yard.engines.provisioner import ArtefactProblem

SMALL = Bounds(stored_bytes=10**7, unpacked_bytes=10**6, files=50)
Member = tuple[str, bytes | None, dict[str, object]]


def member(name: str, content: bytes | None = b"", **fields: object) -> Member:
    return name, content, fields


def packed(*members: Member, kind: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as tar:
        for name, content, fields in members:
            info = tarfile.TarInfo(name)
            for field, value in fields.items():
                setattr(info, field, value)
            info.size = len(content or b"") if info.isreg() else 0
            tar.addfile(info, io.BytesIO(content or b""))
    return gzip.compress(out.getvalue(), 1)


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> Member:
    return member(name, None, type=kind, linkname=to)


def unpacked(folder: Path, archive: bytes, bounds: Bounds = SMALL) -> Path:
    (folder / "a.tar.gz").write_bytes(archive)
    unpack(folder / "a.tar.gz", folder / "model", bounds)
    return folder / "model"


def test_a_sound_archive_comes_out_whole(tmp_path: Path) -> None:
    """Folders, files, empty files, links inside and a leading './' all arrive."""
    model = unpacked(
        tmp_path,
        packed(
            member("./", None, type=tarfile.DIRTYPE),
            member("./model.joblib", b"weights"),
            member("code/inference.py", b"x = 1", mode=0o755),
            member("empty", b""),
            link("latest", "code/inference.py"),
            link("code/up", "../model.joblib"),
            link("same", "model.joblib", tarfile.LNKTYPE),
        ),
    )
    assert (model / "model.joblib").read_bytes() == b"weights"
    assert (model / "latest").read_bytes() == b"x = 1"
    assert (model / "code/up").read_bytes() == b"weights"
    assert (model / "same").read_bytes() == b"weights"
    assert (model / "empty").read_bytes() == b""


def test_modes_are_ours(tmp_path: Path) -> None:
    """Set-user-id bits go, everything can be read by any uid, and only an executable stays one."""
    before = os.umask(0o077)
    try:
        model = unpacked(
            tmp_path,
            packed(member("run", b"x", mode=0o6711), member("d/secret", b"x", mode=0o600)),
        )
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (model, *model.rglob("*"))}
    assert modes == {"model": 0o755, "run": 0o755, "d": 0o755, "secret": 0o644}


HOSTILE = {
    "absolute path": ([member("/etc/passwd", b"x")], "'/etc/passwd'.*absolute"),
    "path that goes up": ([member("../evil", b"x")], r"'\.\./evil'.*goes up"),
    "path that goes up inside": ([member("a/../../evil", b"x")], "goes up"),
    "link to an absolute path": ([link("out", "/etc")], "'out'.*outside the model"),
    "link that climbs": ([link("a/out", "../../etc")], "'a/out'.*outside the model"),
    "link with no target": ([link("out", "")], "outside the model"),
    "file through a link": ([link("d", "/tmp"), member("d/evil", b"x")], "'d/evil'.*in its way"),
    "folder through a link": ([link("d", "."), member("d/e", None, type=tarfile.DIRTYPE)], "in its way"),
    "link through a link": ([link("d", "."), link("d/e", "x")], "in its way"),
    "links that climb together": (
        [member("a/b/f", b""), link("up", "a/b"), link("out", "up/../../../etc")],
        "'out'.*outside the model",
    ),
    "links that climb one through the other": (
        [member("a/b/f", b""), link("x", "a/b/deep"), link("a/b/deep", "../.."), link("y", "x/../evil")],
        "outside the model",
    ),
    "hard link out": ([link("h", "/etc/passwd", tarfile.LNKTYPE)], "'/etc/passwd'.*absolute"),
    "hard link up": ([link("h", "../secret", tarfile.LNKTYPE)], "goes up"),
    "hard link to nothing": (
        [link("h", "later", tarfile.LNKTYPE), member("later")],
        "no file of the archive",
    ),
    "hard link to a link": (
        [link("s", "f"), link("h", "s", tarfile.LNKTYPE), member("f")],
        "no file of the archive",
    ),
    "file where a folder is": ([member("d/f"), member("d", b"x")], "'d'.*folder"),
    "folder where a file is": ([member("f"), member("f/g", b"x")], "'f/g'.*in its way"),
    "device": ([member("null", None, type=tarfile.CHRTYPE)], "'null'.*device"),
    "pipe": ([member("p", None, type=tarfile.FIFOTYPE)], "'p'.*pipe"),
    "too deep": ([member("/".join("d" * 70), b"x")], "deeper than 64"),
    "too long": ([member("n" * 256, b"x")], "too long"),
    "too many": ([member(f"f{i}") for i in range(51)], "more than 50 members"),
    "too large": ([member("big", b"\0" * 1_000_001)], "'big'.*more than 1000000 bytes"),
    "too large together": ([member(f"f{i}", b"\0" * 300_000) for i in range(4)], "'f3'.*more than 1000000"),
    "control characters": ([member("a\x1b[2J/../..", b"")], r"'a\\x1b\[2J/\.\./\.\.'"),
    "headers without end": (
        [member("x", b"", pax_headers={"comment": "c" * 2_000_000})],
        "headers are too large",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused_by_name(tmp_path: Path, case: str) -> None:
    """Each trick is refused, the message names the member, and nothing outside the folder is touched."""
    members, complaint = HOSTILE[case]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "here").mkdir()
    with pytest.raises(ArtefactProblem, match=complaint):
        unpacked(outside / "here", packed(*members))
    assert sorted(path.name for path in outside.iterdir()) == ["here"]
    assert sorted(path.name for path in (outside / "here").iterdir()) == ["a.tar.gz", "model"]
    assert not Path("/tmp/evil").exists()


def test_a_later_member_replaces_without_writing_through(tmp_path: Path) -> None:
    """A file that replaces a hard link leaves the other name alone; one that replaces a link is a file."""
    model = unpacked(
        tmp_path,
        packed(
            member("a", b"first"),
            link("b", "a", tarfile.LNKTYPE),
            member("b", b"second"),
            link("c", "a"),
            member("c", b"third"),
            member("d", b"fourth"),
            link("d", "a"),
        ),
    )
    assert [(model / name).read_bytes() for name in "abcd"] == [b"first", b"second", b"third", b"first"]
    assert not (model / "c").is_symlink()
    assert (model / "d").is_symlink()


def test_sparse_files_are_refused(tmp_path: Path) -> None:
    """A sparse file claims more than it brings, so it has no place here."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("holes")
        info.pax_headers = {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.realsize": "999999999",
        }
        info.size = 512
        tar.addfile(info, io.BytesIO(b"1\n0\n1\n".ljust(512, b"\0")))
    with pytest.raises(ArtefactProblem, match="sparse"):
        unpacked(tmp_path, gzip.compress(out.getvalue()))


BROKEN: dict[str, Callable[[], bytes]] = {
    "not gzip": lambda: b"PK\x03\x04 this is a zip",
    "empty": lambda: b"",
    "gzip of no tar": lambda: gzip.compress(b"hello" * 1000),
    "cut short": lambda: packed(member("f", os.urandom(100_000)))[:-50_000],
    "check sum wrong": lambda: packed(member("f", b"x"))[:-8] + b"\0" * 8,
    "headers nested for ever": lambda: gzip.compress(_nested(900)),
    "goes on after its end": lambda: packed(member("f")) + gzip.compress(b"\0" * 20_000_000, 9),
}


def _nested(count: int) -> bytes:
    header = tarfile.TarInfo("././@PaxHeader")
    header.type = tarfile.XHDTYPE
    return header.tobuf(tarfile.USTAR_FORMAT) * count + b"\0" * 1024


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_archive_is_refused_in_words(tmp_path: Path, case: str) -> None:
    """What is no sound archive is an ArtefactProblem, never an error of ours."""
    with pytest.raises(ArtefactProblem, match="The model data"):
        unpacked(tmp_path, BROKEN[case]())


names = st.lists(st.sampled_from(["a", "b", "c", "..", ".", "", "é", "x" * 90]), min_size=1, max_size=4).map(
    "/".join
)
kinds = st.sampled_from(
    [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
entries = st.tuples(names, kinds, names, st.binary(max_size=20))


def check_nothing_escapes(root: Path, archive: bytes) -> None:
    """Unpack; whatever happens, nothing lies outside and no link leads there."""
    yard = root / "yard"
    yard.mkdir()
    (yard / "untouched").write_bytes(b"mine")
    inside = yard / "inside"
    inside.mkdir()
    try:
        model = unpacked(inside, archive)
    except ArtefactProblem:
        model = None
    assert sorted(path.name for path in root.iterdir()) == ["yard"]
    assert sorted(path.name for path in yard.iterdir()) == ["inside", "untouched"]
    assert {path.name for path in inside.iterdir()} <= {"a.tar.gz", "model"}
    assert (yard / "untouched").read_bytes() == b"mine"
    if model is not None:
        for path in model.rglob("*"):
            assert Path(os.path.realpath(path)).is_relative_to(os.path.realpath(model))
            assert path.is_symlink() or not path.stat().st_mode & 0o7000


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(entries, max_size=8), st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))
def test_no_mix_of_members_escapes(
    tmp_path_factory: pytest.TempPathFactory, members: list[tuple[str, bytes, str, bytes]], layout: int
) -> None:
    """Whatever files, folders and links an archive mixes, they stay inside or are refused."""
    archive = packed(
        *(member(name, content, type=kind, linkname=to) for name, kind, to, content in members), kind=layout
    )
    check_nothing_escapes(tmp_path_factory.mktemp("mix"), archive)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 3000), st.binary(min_size=1, max_size=12)), min_size=1, max_size=6))
def test_no_damage_is_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, bytes]]
) -> None:
    """Bytes overwritten anywhere in the tar give a sound result or an ArtefactProblem."""
    tar = bytearray(
        gzip.decompress(packed(member("a/b", b"x" * 700), link("l", "a/b"), member("é" * 60, b"y")))
    )
    for at, junk in damage:
        tar[at : at + len(junk)] = junk
    check_nothing_escapes(tmp_path_factory.mktemp("damage"), gzip.compress(bytes(tar), 1))
