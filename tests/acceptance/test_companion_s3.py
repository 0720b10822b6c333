"""The S3 beside a rehearsal: open from the first moment, S3 and nothing else, gone with its yard."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from berth.yard.engines.artefacts import fetch_model
from berth.yard.engines.provisioner import ArtefactProblem
from berth.yard.engines.s3 import S3Companion, S3Unavailable


@pytest.fixture(scope="module")
def companion(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Companion]:
    made = S3Companion(tmp_path_factory.mktemp("s3"))
    yield made
    made.close()
    assert not made.alive()


def client(companion: S3Companion, service: str = "s3") -> Any:
    keys = {"aws_access_key_id": "YARD", "aws_secret_access_key": "YARD"}
    return boto3.client(service, endpoint_url=companion.url, region_name="us-east-1", **keys)


def test_a_request_that_comes_at_once_waits_and_is_answered(companion: S3Companion) -> None:
    """Nobody has to wait for it: the socket is open before the process is ready."""
    s3 = client(companion)
    s3.create_bucket(Bucket="models")
    s3.put_object(Bucket="models", Key="a b/ü", Body=b"x")
    assert s3.get_object(Bucket="models", Key="a b/ü")["Body"].read() == b"x"
    assert companion.alive()


def test_a_model_is_fetched_from_it(companion: S3Companion, tmp_path: Path) -> None:
    """An archive and a prefix, through a real client; what is not there is told in words."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("model.joblib")
        info.size = 7
        tar.addfile(info, io.BytesIO(b"weights"))
    s3 = client(companion)
    s3.create_bucket(Bucket="fetched")
    s3.put_object(Bucket="fetched", Key="m.tar.gz", Body=gzip.compress(out.getvalue()))
    for number in range(3):
        s3.put_object(Bucket="fetched", Key=f"p/d/{number}", Body=b"%d" % number)
    fetch_model(s3, "s3://fetched/m.tar.gz", tmp_path / "archive")
    fetch_model(s3, "s3://fetched/p/", tmp_path / "prefix")
    assert (tmp_path / "archive/model.joblib").read_bytes() == b"weights"
    assert sorted(path.name for path in (tmp_path / "prefix/d").iterdir()) == ["0", "1", "2"]
    with pytest.raises(ArtefactProblem, match="NoSuchBucket"):
        fetch_model(s3, "s3://nowhere/m.tar.gz", tmp_path / "none")


def test_no_other_service_is_imitated(companion: S3Companion) -> None:
    """A call to SageMaker that goes astray gets no answer that looks like one."""
    with pytest.raises(ClientError, match="nothing else"):
        client(companion, "sagemaker").create_endpoint(EndpointName="e", EndpointConfigName="c")
    with pytest.raises(ClientError):
        client(companion, "ec2").describe_regions()
    with pytest.raises(ClientError):
        client(companion, "sagemaker-runtime").invoke_endpoint(EndpointName="e", Body=b"")


def test_a_closed_one_is_gone(tmp_path: Path) -> None:
    """Its port is free, and whoever asks is told where it was."""
    made = S3Companion(tmp_path)
    made.close()
    made.close()
    with pytest.raises(S3Unavailable, match=f"127.0.0.1:{made.port}"):
        made.wait_ready(1)
    S3Companion(tmp_path, made.port).close()
