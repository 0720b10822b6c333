"""Unpacking a tar.gz that a stranger made, without trusting it and without `tarfile`'s filters.

Nothing is extracted by `tarfile`: its members are only read. Folders and files are made first, while no
link exists that could lead a path astray; links come last and are looked at again once all are there. The
archive is read as a stream, bounded in bytes, members and depth, so a bomb costs what the bounds say.
"""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from gzip import GzipFile
from pathlib import Path, PurePosixPath
from typing import IO

from berth.yard.engines.provisioner import ArtefactProblem

PIECE_BYTES = 1024 * 1024
HEADERS_BYTES_MAX = 1024 * 1024  # what one member may take for its headers (long names, PAX records)
TRAILING_BYTES_MAX = 16 * 1024 * 1024  # after the last member: padding
DEPTH_MAX = 64
NAME_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an artefact may be: bytes as stored, bytes unpacked, members (or objects below a prefix)."""

    stored_bytes: int = 16 * 1024**3
    unpacked_bytes: int = 64 * 1024**3
    files: int = 100_000


def unpack(archive: Path, into: Path, bounds: Bounds) -> None:
    """Unpack the tar.gz `archive` into the new folder `into`.

    Files end up with mode 0644 or 0755, folders with 0755: all can be read, and nothing is setuid. Raises
    ArtefactProblem that names the member; what is in `into` then is to be thrown away.
    """
    into.mkdir()
    into.chmod(0o755)  # whatever the umask is
    with archive.open("rb") as packed, GzipFile(fileobj=packed) as stream:
        reader = _Metered(stream.read)
        try:
            with tarfile.open(fileobj=reader, mode="r|") as members:  # type: ignore[call-overload]
                _Unpacking(into, bounds, reader).run(members)
            _drain(reader)
        except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, RecursionError) as problem:
            if isinstance(problem, OSError) and problem.errno is not None:
                raise  # this disk's fault, or a name that it cannot hold
            raise ArtefactProblem(f"The model data is not a sound tar.gz archive: {problem}") from problem


def _drain(reader: _Metered) -> None:
    """Read on after the last member: the check sum of the whole stream comes at its end."""
    left = TRAILING_BYTES_MAX
    while left > 0:
        reader.allowance = PIECE_BYTES
        piece = reader.read(PIECE_BYTES)
        if not piece:
            return
        left -= len(piece)
    raise ArtefactProblem("The model data goes on after its last member.")


class _Metered:
    """The unpacked stream. `tarfile` reads headers whole into memory, so each may only take so much."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.allowance = HEADERS_BYTES_MAX

    def read(self, size: int) -> bytes:
        """Up to `size` bytes. Raises ArtefactProblem beyond the allowance."""
        data = self._read(size)
        self.allowance -= len(data)
        if self.allowance < 0:
            raise ArtefactProblem("The model data holds a member whose headers are too large.")
        return data


@dataclass
class _Unpacking:
    """One archive on its way to the disk."""

    into: Path
    bounds: Bounds
    reader: _Metered
    unpacked: int = 0
    count: int = 0
    links: dict[PurePosixPath, tarfile.TarInfo] = field(default_factory=dict)

    def run(self, members: tarfile.TarFile) -> None:
        """All members, then the symbolic links."""
        while True:
            self.reader.allowance = HEADERS_BYTES_MAX
            member = members.next()
            if member is None:
                break
            members.members = []  # type: ignore[attr-defined] # else it would keep a hundred thousand
            self.count += 1
            if self.count > self.bounds.files:
                raise ArtefactProblem(f"The model data holds more than {self.bounds.files} members.")
            self.take(members, member)
        for name, member in self.links.items():
            self.link(name, member)
        for name, member in self.links.items():
            self.look_again(name, member)

    def take(self, members: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """One member. Raises ArtefactProblem for what has no place in a model."""
        name = safe_name(member.name)
        if name is None:
            return  # the folder itself, which some archives begin with
        self.links.pop(name, None)  # of two members with one name the later counts
        if member.isdir():
            self.folder(name, member)
        elif member.issym():
            self.remove_file(name, member)
            self.links[name] = member
        elif member.islnk():
            self.hard_link(name, member)
        elif member.isreg() and not member.issparse():
            self.file(name, member, members)
        else:
            kind = "a sparse file" if member.issparse() else "a device, a pipe or of an unknown kind"
            raise refused(member, f"it is {kind}")

    def folder(self, name: PurePosixPath, member: tarfile.TarInfo) -> None:
        """The folder `name` and those above it."""
        place = self.into
        for part in name.parts:
            place /= part
            if PurePosixPath(place.relative_to(self.into)) in self.links:
                raise refused(member, "a link of the archive is in its way")
            try:
                place.mkdir(mode=0o755)
            except FileExistsError:
                if not place.is_dir():
                    raise refused(member, "a file of the archive is in its way") from None
            else:
                place.chmod(0o755)  # whatever the umask is

    def file(self, name: PurePosixPath, member: tarfile.TarInfo, members: tarfile.TarFile) -> None:
        """The regular file `name`."""
        if member.size < 0:
            raise refused(member, "its size is negative")
        self.unpacked += member.size
        if self.unpacked > self.bounds.unpacked_bytes:
            raise refused(member, f"the archive unpacks to more than {self.bounds.unpacked_bytes} bytes")
        self.make_way(name, member)
        # Beyond the file itself tarfile reads ahead by at most one of its records (20 blocks).
        self.reader.allowance = member.size + HEADERS_BYTES_MAX
        source = members.extractfile(member)
        assert source is not None
        place = self.into / name
        with place.open("xb") as file:
            copied = _copy(source, file)
        if copied != member.size:
            raise refused(member, "the archive ends in its midst")
        place.chmod(0o755 if member.mode & 0o100 else 0o644)

    def hard_link(self, name: PurePosixPath, member: tarfile.TarInfo) -> None:
        """Another name for a file that came before."""
        target = safe_name(member.linkname)
        if target is None or target in self.links or not self.is_file(self.into / target):
            raise refused(member, f"it links to {member.linkname!r}, which is no file of the archive so far")
        if target == name:
            return
        self.make_way(name, member)
        os.link(self.into / target, self.into / name, follow_symlinks=False)

    def link(self, name: PurePosixPath, member: tarfile.TarInfo) -> None:
        """The symbolic link `name`, made when all files are there."""
        target = PurePosixPath(member.linkname)
        end = os.path.normpath(name.parent / target)
        if target.is_absolute() or not member.linkname or end == ".." or end.startswith("../"):
            raise refused(member, f"it links to {member.linkname!r}, outside the model")
        self.make_way(name, member)
        os.symlink(member.linkname, self.into / name)

    def look_again(self, name: PurePosixPath, member: tarfile.TarInfo) -> None:
        """Links can lead through links: where does this one really end?"""
        end = os.path.realpath(self.into / name)
        if not Path(end).is_relative_to(os.path.realpath(self.into)):
            raise refused(member, f"it links to {member.linkname!r} and by that outside the model")

    def make_way(self, name: PurePosixPath, member: tarfile.TarInfo) -> None:
        """Make the folders above `name`, remove a file that has this name."""
        if name.parent != PurePosixPath("."):
            self.folder(name.parent, member)
        self.remove_file(name, member)

    def remove_file(self, name: PurePosixPath, member: tarfile.TarInfo) -> None:
        """Remove the file that has this name, if there is one; a folder is no file."""
        place = self.into / name
        if place.is_dir() and not place.is_symlink():
            raise refused(member, "a folder of the archive has that name")
        if self.is_file(place):
            place.unlink()

    @staticmethod
    def is_file(place: Path) -> bool:
        """Whether there is a regular file. (As long as no link is made, its path cannot lead astray.)"""
        return place.is_file() and not place.is_symlink()


def refused(member: tarfile.TarInfo, why: str) -> ArtefactProblem:
    """The complaint about a member, which it names."""
    return ArtefactProblem(f"The model data holds a member {shown(member.name)}, which is refused: {why}.")


def shown(name: str) -> str:
    """A name as an error may show it: quoted, escaped, shortened."""
    text = ascii(name)
    return text if len(text) <= 200 else f"{text[:200]}..."


def safe_name(name: str) -> PurePosixPath | None:
    """The path below the model's folder that `name` means; None when it means that folder itself.

    Raises ArtefactProblem for an absolute path, one that goes up, one too long or too deep.
    """
    path = PurePosixPath(name)
    problem = None
    if path.is_absolute():
        problem = "its path is absolute"
    elif ".." in path.parts:
        problem = "its path goes up"
    elif "\0" in name:
        problem = "its path holds a zero byte"
    elif len(path.parts) > DEPTH_MAX:
        problem = f"its path is deeper than {DEPTH_MAX}"
    elif any(len(os.fsencode(part)) > 255 for part in path.parts) or len(os.fsencode(name)) > NAME_BYTES_MAX:
        problem = "its path is too long"
    if problem is not None:
        raise ArtefactProblem(f"The model data holds a member {shown(name)}, which is refused: {problem}.")
    return path if path.parts else None


def _copy(source: IO[bytes], file: IO[bytes]) -> int:
    copied = 0
    while piece := source.read(PIECE_BYTES):
        file.write(piece)
        copied += len(piece)
    file.flush()
    os.fsync(file.fileno())
    return copied
