"""Fetching a model's data: it appears whole or not at all, within bounds, and failures have words."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from berth.yard.engines.archive import Bounds
from berth.yard.engines.artefacts import fetch_model, split_url
from berth.yard.engines.provisioner import ArtefactProblem


class Bucket:
    """An S3 client that has one bucket, `models`, with the given objects."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - as boto3 has it
        if Bucket != "models" or Key not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": "it is not there"}}, "GetObject")
        return {"Body": io.BytesIO(self.objects[Key])}

    def get_paginator(self, _name: str) -> Bucket:
        return self

    def paginate(self, Bucket: str, Prefix: str) -> list[dict[str, Any]]:  # noqa: N803 - as boto3 has it
        keys = [key for key in self.objects if key.startswith(Prefix)]
        return [{"Contents": [{"Key": key}]} for key in keys] or [{}]


def archive(content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("model.joblib")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return gzip.compress(out.getvalue())


def test_an_archive_is_fetched_and_unpacked(tmp_path: Path) -> None:
    """The folder holds the archive's files and nothing is left beside it."""
    fetch_model(Bucket({"a/m.tar.gz": archive(b"weights")}), "s3://models/a/m.tar.gz", tmp_path / "m")
    assert (tmp_path / "m/model.joblib").read_bytes() == b"weights"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_prefix_becomes_a_folder(tmp_path: Path) -> None:
    """Objects below a prefix keep their paths and can be read by any uid; folder markers are no files."""
    objects = {"p/": b"", "p/x/": b"", "p/x/y.bin": b"1", "p/z": b"2", "other": b"3"}
    before = os.umask(0o077)
    try:
        fetch_model(Bucket(objects), "s3://models/p/", tmp_path / "m")
    finally:
        os.umask(before)
    found = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*")}
    assert sorted(found) == ["m", "m/x", "m/x/y.bin", "m/z"]
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444 for path in found.values())


@pytest.mark.parametrize(
    ("objects", "url", "complaint"),
    [
        ({}, "s3://models/m.tar.gz", "Could not find model data at s3://models/m.tar.gz.*NoSuchKey"),
        ({}, "s3://models/none/", "no object lies there"),
        ({"m": b"x" * 2000}, "s3://models/m", "larger than this yard takes"),
        ({"m": archive(b"\0" * 5000)}, "s3://models/m", "more than 4000 bytes"),
        ({"p/a": b"", "p/b": b"", "p/c": b"", "p/d": b""}, "s3://models/p/", "more than 3 objects"),
        ({"p/a": b"x" * 600, "p/b": b"x" * 600}, "s3://models/p/", "larger than this yard takes"),
        ({"p/../../evil": b"x"}, "s3://models/p/", "goes up"),
        ({"p//etc/evil": b"x"}, "s3://models/p/", "absolute"),
        ({"p/a": b"x", "p/a/b": b"x"}, "s3://models/p/", "another object is in its way"),
        ({"p/a/b": b"x", "p/a": b"x"}, "s3://models/p/", "another object is in its way"),
        ({}, "https://models.s3.amazonaws.com/m", "s3://bucket/key"),
        ({}, "s3:///m", "s3://bucket/key"),
    ],
)
def test_what_cannot_be_had_leaves_nothing(
    tmp_path: Path, objects: dict[str, bytes], url: str, complaint: str
) -> None:
    """The reason is told in words, and neither a part nor a folder remains."""
    with pytest.raises(ArtefactProblem, match=complaint):
        fetch_model(Bucket(objects), url, tmp_path / "m", Bounds(1000, 4000, 3))
    assert list(tmp_path.iterdir()) == []


def test_what_an_earlier_try_left_is_no_hindrance(tmp_path: Path) -> None:
    """A yard that was killed in the midst of a fetch fetches again."""
    (tmp_path / ".m.part/model").mkdir(parents=True)
    (tmp_path / ".m.part/model.tar.gz").write_bytes(b"half")
    fetch_model(Bucket({"m": archive(b"weights")}), "s3://models/m", tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_an_s3_that_is_away_is_told_so(tmp_path: Path) -> None:
    """A connection that fails is a reason in words too."""

    class Away(Bucket):
        def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - as boto3 has it
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")

    with pytest.raises(ArtefactProblem, match=r"Could not fetch.*127.0.0.1:1"):
        fetch_model(Away({}), "s3://models/m", tmp_path / "m")


def test_urls_are_split_at_the_bucket() -> None:
    """The key keeps its slashes."""
    assert split_url("s3://b/a/b c/d.tar.gz") == ("b", "a/b c/d.tar.gz")
