"""A yard as a test holds it: a process of its own with its own data and port, in rehearsal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from berth.terms.instants import iso, parse_instant
from berth.yard.admin.client import ask
from berth.yard.data_folder import DataFolder

CLOCK = "2026-12-01T09:00:00Z"
START_LIMIT_S = 60.0


class YardDidNotStart(RuntimeError):
    """The process ended or was not ready in time; the text has what it printed."""


class YardClockHandle:
    """The yard's clock, from a test."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder

    @property
    def now(self) -> datetime:
        """The present in the yard, aware UTC."""
        return parse_instant(ask(self._folder.admin_socket, "GET", "/clock")["now"])

    def set(self, to: datetime) -> datetime:
        """Set the clock; every timer on the way is played. The new present."""
        return parse_instant(ask(self._folder.admin_socket, "POST", "/clock", {"to": iso(to)})["now"])

    def advance(self, **span: float) -> datetime:
        """Advance by a timedelta's keywords: `advance(days=7)`, `advance(minutes=5)`. The new present."""
        return self.set(self.now + timedelta(**span))


class Clients:
    """boto3 clients for the yard: `clients.sagemaker`, `clients("ec2", region="us-west-2")`.

    Made with the yard's keys alone, whatever the environment holds. Attempts are boto3's own default.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def __call__(self, service: str, region: str | None = None, **config: Any) -> Any:
        """A client of `service`; `config` goes to botocore's Config."""
        import boto3
        from botocore.config import Config

        name = "AWS_ENDPOINT_URL_S3" if service == "s3" else "AWS_ENDPOINT_URL"
        return boto3.session.Session(
            aws_access_key_id=self._environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self._environment["AWS_SECRET_ACCESS_KEY"],
            region_name=region or self._environment["AWS_REGION"],
        ).client(  # type: ignore[call-overload]
            service, endpoint_url=self._environment[name], config=Config(**config)
        )

    @property
    def sagemaker(self) -> Any:
        """A SageMaker client."""
        return self("sagemaker")

    @property
    def runtime(self) -> Any:
        """A SageMaker Runtime client."""
        return self("sagemaker-runtime")

    @property
    def ec2(self) -> Any:
        """An EC2 client."""
        return self("ec2")

    @property
    def sts(self) -> Any:
        """An STS client."""
        return self("sts")

    @property
    def s3(self) -> Any:
        """An S3 client for the S3 beside the yard."""
        return self("s3")


class Seeds:
    """Things put into a yard ready made."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder

    def plan(self, **facts: Any) -> dict[str, str]:
        """A training plan of any state: `plan(name="p", state="Active", count=2, target="endpoint",
        instance_type="ml.trn1.32xlarge", region="us-east-1", start=instant, duration="24h", fee="228.77")`.

        What is left out has the default shown. Its `name` and `arn`.
        """
        if isinstance(facts.get("start"), datetime):
            facts["start"] = iso(facts["start"])
        answer: dict[str, str] = ask(self._folder.admin_socket, "POST", "/seed/plans", facts)
        return answer

    def block(self, **facts: Any) -> dict[str, str]:
        """A Capacity Block of any state: `block(state="active", count=1, instance_type="p5.48xlarge",
        region="us-east-1", platform="Linux/UNIX", start=instant, duration="24h", fee="1146.17",
        zone="use1-az6", tags={"team": "a"})`.

        What is left out has the default shown, the zone whichever has room, no tags. Its
        `capacity_reservation_id`, `capacity_block_id` and `arn`.
        """
        if isinstance(facts.get("start"), datetime):
            facts["start"] = iso(facts["start"])
        answer: dict[str, str] = ask(self._folder.admin_socket, "POST", "/seed/blocks", facts)
        return answer


class YardProcess:
    """A started yard. `stop` ends it; used as a context manager it ends by itself."""

    def __init__(
        self,
        path: Path,
        *,
        clock: str = CLOCK,
        fleet: Path | None = None,
        port: int = 0,
        rest: str | None = None,
        throttle_scale: float = 1.0,
    ) -> None:
        self.folder = DataFolder(path)
        self._clock_setting = clock
        self._fleet = fleet
        self._port = port
        self._rest = rest
        self._throttle_scale = throttle_scale
        self.process: subprocess.Popen[bytes] | None = None
        self.clock = YardClockHandle(self.folder)
        self.seed = Seeds(self.folder)
        self.start()

    # -- process -----------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the process on the folder and wait until it is ready. Raises YardDidNotStart."""
        self.folder.path.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable, "-m", "berth", "yard", "start", "--data", str(self.folder.path),
            "--port", str(self._port), "--clock", self._clock_setting,
        ]  # fmt: skip
        if self._fleet is not None:
            command += ["--fleet", str(self._fleet)]
        if self._rest is not None:
            command += ["--rest", self._rest]
        if self._throttle_scale != 1:
            command += ["--throttle-scale", str(self._throttle_scale)]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        with self.folder.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, cwd="/"
            )
        deadline = time.monotonic() + START_LIMIT_S
        while (facts := self._announced()) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise YardDidNotStart(self.folder.log.read_text(errors="replace")[-4000:])
            time.sleep(0.01)
        self.url: str = facts["url"]
        self.s3_url: str | None = facts["s3_url"]
        self._port = int(self.url.rsplit(":", 1)[1])  # the same port after a restart: clients keep their URL

    def _announced(self) -> dict[str, Any] | None:
        """How the yard of this very process is reached; an announcement of another one is not ours."""
        try:
            facts: dict[str, Any] = json.loads(self.folder.running.read_text())
        except FileNotFoundError:
            return None
        return facts if self.process is not None and facts["pid"] == self.process.pid else None

    def kill(self) -> None:
        """`kill -9`: no chance to tidy up."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """End in order; killed after half a minute."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self) -> None:
        """Stop in order and start again on the same data and port."""
        self.stop()
        self.start()

    def __enter__(self) -> YardProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- what it is and what happened --------------------------------------------------------------------
    def _get(self, path: str, **query: Any) -> Any:
        return ask(self.folder.admin_socket, "GET", path, **query)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that `berth yard env` exports, for the first account."""
        return self.environment_of(None)

    def environment_of(self, account: str | None, user: str | None = None) -> dict[str, str]:
        """The same for the account of that name or id, and for one of its further users."""
        found: dict[str, str] = self._get("/environment", account=account, user=user)
        return found

    @property
    def clients(self) -> Clients:
        """boto3 clients of the first account."""
        return self.clients_of(None)

    def clients_of(self, account: str | None, user: str | None = None) -> Clients:
        """boto3 clients of the account of that name or id, and of one of its further users."""
        return Clients(self.environment_of(account, user))

    def account(self, name: str, policy: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Add an account: its `account` id, `access_key_id`, `secret_access_key`. `policy` is an IAM policy
        document; without one it may do everything."""
        body = {"name": name, "policy": json.dumps(policy) if policy else ""}
        added: dict[str, str] = ask(self.folder.admin_socket, "POST", "/accounts", body)
        return added

    def user(self, account: str, name: str, policy: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Give an account a further user, with keys and a policy of its own, as `account` does."""
        body = {"account": account, "name": name, "policy": json.dumps(policy) if policy else ""}
        added: dict[str, str] = ask(self.folder.admin_socket, "POST", "/users", body)
        return added

    def role(
        self,
        account: str,
        name: str,
        *,
        trust: Sequence[str],
        external_id: str = "",
        policy: Mapping[str, Any] | None = None,
        max_session: str = "1h",
    ) -> str:
        """Give an account a role, or change the one of that name; its ARN. `trust` has ARNs, or accounts by
        name or id."""
        body = {
            "account": account,
            "name": name,
            "trust": list(trust),
            "external_id": external_id,
            "policy": json.dumps(policy) if policy else "",
            "max_session": max_session,
        }
        made: dict[str, str] = ask(self.folder.admin_socket, "POST", "/roles", body)
        return made["arn"]

    def fault(
        self,
        kind: str,
        operation: str = "*",
        *,
        times: int | None = 1,
        amount: object = "",
        account: str = "",
    ) -> None:
        """Arm a fault (once unless `times` says otherwise; None = until cleared)."""
        body = {
            "kind": kind,
            "operation": operation,
            "times": times,
            "amount": str(amount),
            "account": account,
        }
        ask(self.folder.admin_socket, "POST", "/faults", body)

    def clear_faults(self) -> None:
        """Disarm all."""
        ask(self.folder.admin_socket, "DELETE", "/faults")

    @property
    def status(self) -> dict[str, Any]:
        """What `berth yard status` shows."""
        found: dict[str, Any] = self._get("/status")
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened, oldest first (the first ten thousand)."""
        found: list[dict[str, Any]] = self._get("/events", limit=10_000)
        return found

    @property
    def log(self) -> list[dict[str, Any]]:
        """The calls that the yard accepted, oldest first (the first ten thousand)."""
        return self.log_of(None)

    def log_of(self, operation: str | None) -> list[dict[str, Any]]:
        """The accepted calls of one operation."""
        found: list[dict[str, Any]] = self._get("/calls", limit=10_000, operation=operation)
        return found

    @property
    def ledger(self) -> list[dict[str, Any]]:
        """What the yard billed, oldest first; `amount` is a decimal text."""
        found: list[dict[str, Any]] = self._get("/ledger")
        return found
