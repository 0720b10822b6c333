"""AWS's own clients, each in an environment of its own, with what the yard gives them and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
AWS = ROOT / ".venv-awscli" / "bin" / "aws"
JAVASCRIPT = Path(__file__).parent / "js"
# Longest that one call of a client may take, in real seconds; starting a client takes about one.
CALL_LIMIT_S = 60


class ClientFailed(AssertionError):
    """A client that should have succeeded did not; the text holds what it said."""


@dataclass(frozen=True)
class AwsCli:
    """The AWS CLI, version 1. `home` has no ~/.aws, so that only `environment` can tell it where to go."""

    environment: Mapping[str, str]
    home: Path

    def run(self, *arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
        """Run `aws ARGUMENTS` in the yard's environment with some variables changed, whatever comes of it."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), **self.environment, **changed}
        return subprocess.run(
            [str(AWS), *arguments], env=environment, cwd=self.home, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=CALL_LIMIT_S,
        )  # fmt: skip

    def __call__(self, *arguments: str) -> dict[str, Any]:
        """The answer of `aws ARGUMENTS` as JSON, {} when it answers nothing. Raises ClientFailed."""
        done = self.run(*arguments)
        if done.returncode != 0:
            raise ClientFailed(f"aws {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout) if done.stdout.lstrip().startswith("{") else {}

    def refused(self, *arguments: str, **changed: str) -> str:
        """What the CLI says about a call that must fail. Raises ClientFailed when it does not."""
        done = self.run(*arguments, **changed)
        if done.returncode == 0:
            raise ClientFailed(f"aws {' '.join(arguments)} should have been refused\n{done.stdout}")
        return done.stderr.strip()


@dataclass(frozen=True)
class JavaScriptError:
    """An error as the SDK threw it: `name` is AWS's code; status and id None when no answer came at all."""

    name: str
    message: str
    status: int | None
    request_id: str | None


@dataclass(frozen=True)
class JavaScriptSdk:
    """AWS's JavaScript SDK, version 3, with its defaults."""

    node: str
    environment: Mapping[str, str]
    home: Path

    def _call(self, service: str, operation: str, parameters: Mapping[str, object]) -> dict[str, Any]:
        wanted = json.dumps({"service": service, "operation": operation, "input": parameters})
        done = subprocess.run(
            [self.node, str(JAVASCRIPT / "call.mjs"), wanted], cwd=self.home, stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.home), **self.environment},
            capture_output=True, text=True, check=False, timeout=CALL_LIMIT_S,
        )  # fmt: skip
        if done.returncode != 0:
            raise ClientFailed(f"node: exit {done.returncode}\n{done.stderr}")
        return dict(json.loads(done.stdout))

    def __call__(self, service: str, operation: str, **parameters: object) -> dict[str, Any]:
        """The answer of one call. Raises ClientFailed when the SDK threw."""
        said = self._call(service, operation, parameters)
        if "error" in said:
            raise ClientFailed(f"{service} {operation}: {said['error']}")
        return dict(said["output"])

    def refused(self, service: str, operation: str, **parameters: object) -> JavaScriptError:
        """The error of a call that must fail. Raises ClientFailed when it does not."""
        said = self._call(service, operation, parameters)
        if "error" not in said:
            raise ClientFailed(f"{service} {operation} should have been refused: {said['output']}")
        error = said["error"]
        return JavaScriptError(error["name"], error["message"], error.get("status"), error.get("requestId"))


@pytest.fixture
def aws(yard: Any, tmp_path: Path) -> AwsCli:
    """The AWS CLI with the yard's environment and nothing else."""
    if not AWS.is_file():
        pytest.skip("no AWS CLI in .venv-awscli: run `make test-clients`")
    return AwsCli(dict(yard.environment), tmp_path)


@pytest.fixture
def javascript(yard: Any, tmp_path: Path) -> JavaScriptSdk:
    """The JavaScript SDK with the yard's environment and nothing else."""
    node = shutil.which("node", path=os.environ.get("PATH"))
    if node is None or not (JAVASCRIPT / "node_modules").is_dir():
        pytest.skip("no Node 20, or no SDK in tests/clients/js: run `make test-clients`")
    return JavaScriptSdk(node, dict(yard.environment), tmp_path)
