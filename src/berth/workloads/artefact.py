"""The model artefact: a file or folder made into the tar.gz that SageMaker unpacks, and brought to S3."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from berth.aws.refusals import Kind, refusal_of
from berth.terms.outcomes import BerthError, ExitCode, Spending

_CHUNK = 1 << 20


def default_bucket(account: str, region: str) -> str:
    """The bucket that SageMaker's own tools use by default in an account and Region."""
    return f"sagemaker-{region}-{account}"


@contextmanager
def packed(data: Path) -> Iterator[Path]:
    """`data` as a tar.gz: itself if it is one, else a temporary one of its content, the same every time.

    A folder's content lies at the archive's root; times, owners and order are fixed, so that the same content
    gives the same bytes. Raises BerthError for what cannot be read, and for links that lead to folders.
    """
    try:
        if data.is_file() and data.name.endswith((".tar.gz", ".tgz")):
            with tarfile.open(data, "r:gz"):
                pass
            yield data
            return
    except (OSError, tarfile.TarError) as problem:
        raise _unusable(data, f"is no tar.gz: {problem}") from None
    if not data.exists():
        raise _unusable(data, "is not there")
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        target = Path(folder) / "model.tar.gz"
        try:
            _pack(data, target)
        except (OSError, tarfile.TarError) as problem:
            raise _unusable(data, f"cannot be packed: {problem}") from None
        yield target


def bring_to_s3(
    s3: Any, archive: Path, *, bucket: str, prefix: str, region: str, talk: Callable[[str], None]
) -> str:
    """Upload `archive` unless its content is there already; the `s3://` URL, named after the content.

    The bucket is made when it is missing. Raises BerthError (nothing that costs a fee was done by it).
    """
    digest = _digest(archive)
    key = f"{prefix}/{digest[:16]}/model.tar.gz"
    url = f"s3://{bucket}/{key}"
    size = archive.stat().st_size
    try:
        if _holds(s3, bucket, key, size):
            talk(f"the model is in S3 already: {url}")
            return url
        _ensure_bucket(s3, bucket, region, talk)
        talk(f"uploading {size:,} bytes to {url}")
        _upload(s3, archive, bucket, key)
    except (ClientError, BotoCoreError) as problem:
        refusal = refusal_of(problem)
        raise BerthError(refusal.exit_code, f"the model could not be brought to {url}: {refusal}") from None
    return url


def with_spending(error: BerthError, spent: Spending) -> BerthError:
    """The same failure, with what is known about the order's money."""
    return BerthError(error.exit_code, error.message, error.next_step, spent)


def _pack(data: Path, target: Path) -> None:
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path, name in _members(data):
            info = tarfile.TarInfo(name)
            info.mode = 0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644
            if path.is_dir():
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
                continue
            info.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(info, content)


def _members(data: Path) -> Iterator[tuple[Path, str]]:
    """What goes into the archive, sorted: links to files as the files, links to folders refused."""
    if data.is_file():
        yield data, data.name
        return
    found = sorted(data.rglob("*"), key=lambda path: path.relative_to(data).parts)
    for path in found:
        name = path.relative_to(data).as_posix()
        if path.is_symlink() and path.is_dir():
            raise OSError(f"{name} is a link to a folder; put the folder itself there")
        if not path.is_file() and not path.is_dir():
            raise OSError(f"{name} is neither a file nor a folder")
        yield path, name


def _digest(archive: Path) -> str:
    digest = hashlib.sha256()
    with archive.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _holds(s3: Any, bucket: str, key: str, size: int) -> bool:
    try:
        head = s3.head_object(Bucket=bucket, Key=key)
    except ClientError as problem:
        if refusal_of(problem).kind is Kind.NOT_FOUND:
            return False
        raise
    return bool(head.get("ContentLength") == size)


def _ensure_bucket(s3: Any, bucket: str, region: str, talk: Callable[[str], None]) -> None:
    try:
        s3.head_bucket(Bucket=bucket)
        return
    except ClientError as problem:
        if refusal_of(problem).kind is not Kind.NOT_FOUND:
            raise
    talk(f"making the bucket {bucket}")
    # us-east-1 is the one Region that S3 does not take as a location.
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=bucket, **place)


def _upload(s3: Any, archive: Path, bucket: str, key: str) -> None:
    """One request, or parts one after the other for what is large: deploying uses no threads."""
    from boto3.s3.transfer import S3Transfer, TransferConfig

    config: Any = TransferConfig(use_threads=False, multipart_threshold=256 << 20)
    transfer = S3Transfer(s3, config)
    transfer.upload_file(str(archive), bucket, key)


def _unusable(data: Path, why: str) -> BerthError:
    return BerthError(ExitCode.BAD_REQUEST, f"{data} {why}")
