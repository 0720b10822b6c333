"""A model's data: fetched from S3 with bounds, unpacked without trusting the archive."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from berth.yard.engines.archive import Bounds, safe_name, unpack
from berth.yard.engines.provisioner import ArtefactProblem

PIECE_BYTES = 1024 * 1024


def fetch_model(s3: Any, url: str, into: Path, bounds: Bounds | None = None) -> None:
    """Fetch what lies at `url` with the boto3 client `s3`, and leave it unpacked in the new folder `into`.

    `url` is `s3://bucket/key` of a tar.gz (ModelDataUrl), or `s3://bucket/prefix/`, whose objects become
    files (ModelDataSource with S3DataType S3Prefix). `into` appears whole or not at all, and what an earlier
    try left behind is removed.

    Raises ArtefactProblem in words for FailureReason, OSError for faults of this disk.
    """
    bucket, key = split_url(url)
    with _built_aside(into) as work:
        limits = _that_fit(bounds or Bounds(), work)
        if key == "" or key.endswith("/"):
            _fetch_prefix(s3, bucket, key, work / "model", limits)
        else:
            archive = work / "model.tar.gz"
            _fetch_object(s3, bucket, key, archive, limits.stored_bytes)
            unpack(archive, work / "model", limits)


def _that_fit(bounds: Bounds, work: Path) -> Bounds:
    """The bounds, lowered so that a tenth of the disk's free space stays free, whatever an archive holds."""
    free = shutil.disk_usage(work).free * 9 // 10
    return replace(
        bounds,
        stored_bytes=min(bounds.stored_bytes, free),
        unpacked_bytes=min(bounds.unpacked_bytes, free),
    )


def split_url(url: str) -> tuple[str, str]:
    """Bucket and key of an `s3://` URL. Raises ArtefactProblem."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
        raise ArtefactProblem(f"Could not find model data at {url}: it is not of the form s3://bucket/key.")
    return parts.netloc, parts.path.removeprefix("/")


@contextmanager
def _built_aside(into: Path) -> Iterator[Path]:
    """A folder to work in beside `into`; its `model` becomes `into` when all went well."""
    work = into.with_name(f".{into.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700, parents=True)
    try:
        yield work
        _persist(work / "model")
        (work / "model").rename(into)
        _persist(into.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _persist(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fetch_object(s3: Any, bucket: str, key: str, into: Path, limit: int) -> int:
    """Stream one object into a new file; its length. Raises ArtefactProblem, also beyond `limit` bytes."""
    url = f"s3://{bucket}/{key}"
    try:
        answer = s3.get_object(Bucket=bucket, Key=key)
        with closing(answer["Body"]) as body, into.open("xb") as file:
            return _copy(body.read, file, limit, f"The model data at {url}")
    except ClientError as refusal:
        raise _not_found(url, refusal) from refusal
    except BotoCoreError as problem:
        raise ArtefactProblem(f"Could not fetch the model data at {url}: {problem}") from problem


def _not_found(url: str, refusal: ClientError) -> ArtefactProblem:
    error = refusal.response.get("Error", {})
    return ArtefactProblem(
        f"Could not find model data at {url}: S3 answered {error.get('Code', 'an error')}, "
        f"{error.get('Message', 'without a message')}"
    )


def _fetch_prefix(s3: Any, bucket: str, prefix: str, into: Path, limits: Bounds) -> None:
    into.mkdir()
    left, count = limits.stored_bytes, 0
    for key in _keys(s3, bucket, prefix):
        name = safe_name(key.removeprefix(prefix))
        if name is None or key.endswith("/"):
            continue  # what consoles make to show an empty folder
        count += 1
        if count > limits.files:
            raise ArtefactProblem(f"s3://{bucket}/{prefix} holds more than {limits.files} objects.")
        left -= _fetch_below(s3, bucket, key, into / name, left)
    for folder in (into, *(path for path in into.rglob("*") if path.is_dir())):
        folder.chmod(0o755)  # whatever the umask is: a container reads it with a uid of its own
    if count == 0:
        raise ArtefactProblem(f"Could not find model data at s3://{bucket}/{prefix}: no object lies there.")


def _fetch_below(s3: Any, bucket: str, key: str, place: Path, left: int) -> int:
    """One object of a prefix as the file `place`; its length. No link is ever made in there."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            raise FileExistsError
    except (FileExistsError, NotADirectoryError):
        raise ArtefactProblem(
            f"s3://{bucket}/{key} cannot be a file: another object is in its way."
        ) from None
    length = _fetch_object(s3, bucket, key, place, left)
    place.chmod(0o644)
    return length


def _keys(s3: Any, bucket: str, prefix: str) -> Iterator[str]:
    url = f"s3://{bucket}/{prefix}"
    try:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            yield from (entry["Key"] for entry in page.get("Contents", ()))
    except ClientError as refusal:
        raise _not_found(url, refusal) from refusal
    except BotoCoreError as problem:
        raise ArtefactProblem(f"Could not list the model data at {url}: {problem}") from problem


def _copy(read: Callable[[int], bytes], file: IO[bytes], limit: int, what: str) -> int:
    copied = 0
    while piece := read(PIECE_BYTES):
        copied += len(piece)
        if copied > limit:
            raise ArtefactProblem(f"{what} is larger than this yard takes ({limit} bytes are left for it).")
        file.write(piece)
    file.flush()
    os.fsync(file.fileno())
    return copied
