"""Putting a real yard together: its fleet file, engine `local`, the S3 beside it, the server."""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

from berth.storage.sqlite import NewerSchema
from berth.terms.clock import Clock
from berth.terms.ids import IdSource
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.settings import SettingsError
from berth.yard.command.settings import StartSettings
from berth.yard.data_folder import DataFolder
from berth.yard.engines.artefacts import fetch_model
from berth.yard.engines.engine import Engine, EngineRefused, Report
from berth.yard.engines.limits import Limits
from berth.yard.engines.local import open_local_engine
from berth.yard.engines.provisioner import ArtefactProblem, Order
from berth.yard.engines.s3 import S3Companion
from berth.yard.engines.sandbox import Grants
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.fleet_file import load_fleet, rehearsal_fleet
from berth.yard.lifecycle.clock import ClockRefused
from berth.yard.opening import Doors, FleetChanged, open_yard
from berth.yard.rest import Rest, RestRefused, read_address
from berth.yard.server import Listening, Server, bind


def build_server(
    settings: StartSettings, real: Clock, ids: IdSource, ready: Callable[[], None]
) -> tuple[Callable[[], Server], Callable[[], None]]:
    """What makes the server (inside its event loop), and what closes everything. Raises BerthError."""
    folder = settings.folder
    fleet, text = choose_fleet(settings)
    if settings.throttle_scale != 1 and not fleet.is_rehearsal:
        raise BerthError(
            ExitCode.BAD_REQUEST, "only a rehearsal may scale its throttles: leave --throttle-scale"
        )
    forget_aws(os.environ)
    try:
        listening = bind(folder, settings.port)
    except OSError as problem:
        raise BerthError(
            ExitCode.BAD_REQUEST, f"cannot listen on 127.0.0.1:{settings.port}: {problem.strerror}",
            "choose another with --port (0 = any free one)",
        ) from None  # fmt: skip
    rest = choose_rest(settings, fleet, listening)
    companion = S3Companion(folder.path / "s3") if fleet.is_rehearsal else None
    doors = Doors(
        engine=lambda report: make_engine(folder, fleet, report),
        fetch=Fetcher(fleet, companion),
        real=real,
        ids=ids,
        surroundings=rest.surroundings if rest is not None else None,
    )
    try:
        opened = open_yard(folder, fleet, settings.clock, doors)
    except (NewerSchema, ClockRefused, FleetChanged, EngineRefused, ValueError) as problem:
        if companion is not None:
            companion.close()
        raise BerthError(ExitCode.BAD_REQUEST, str(problem)) from None
    if text is not None:
        folder.keep_fleet(text)

    def make() -> Server:
        s3_url = companion.url if companion is not None else None
        return Server(
            opened, folder, listening, s3_url=s3_url, real=real, ready=ready, rest=rest,
            throttle_scale=settings.throttle_scale,
        )  # fmt: skip

    def close() -> None:
        opened.close()
        if companion is not None:
            companion.close()

    return make, close


def choose_rest(settings: StartSettings, fleet: Fleet, listening: Listening) -> Rest | None:
    """The emulator of `--rest`, once it answers; None without one. Raises BerthError."""
    if settings.rest is None:
        return None
    try:
        rest = Rest(read_address(settings.rest), fleet)
        if rest.address.port == listening.aws.getsockname()[1]:
            raise RestRefused("--rest names the yard's own port")
        rest.check()
    except RestRefused as problem:
        raise BerthError(ExitCode.BAD_REQUEST, str(problem)) from None
    return rest


def forget_aws(environ: MutableMapping[str, str]) -> None:
    """Take every trace of somebody's AWS out of the yard's environment: profiles, keys, endpoints, files.

    All that a yard knows of AWS is in its fleet file, so a rehearsal cannot reach AWS, and no profile that
    happens to be set can break it.
    """
    for name in [name for name in environ if name.startswith("AWS_")]:
        del environ[name]
    environ["AWS_CONFIG_FILE"] = environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
    environ["AWS_EC2_METADATA_DISABLED"] = "true"


def choose_fleet(settings: StartSettings) -> tuple[Fleet, str | None]:
    """The fleet of `--fleet`, else the one that the folder was started with last, else the shipped rehearsal.

    With it the text of the file, None for the shipped one: it is kept in the folder once the yard is open, so
    that a yard can be started again without the file. Raises BerthError.
    """
    kept = settings.folder.fleet
    try:
        if settings.fleet_file is not None:
            text = settings.fleet_file.read_text(encoding="utf-8")
            return load_fleet(text, str(settings.fleet_file)), text
        if kept.exists():
            text = kept.read_text(encoding="utf-8")
            return load_fleet(text, str(kept)), text
    except SettingsError as problem:
        raise BerthError(ExitCode.BAD_REQUEST, str(problem), "mend the fleet file") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise BerthError(
            ExitCode.BAD_REQUEST, f"cannot read {settings.fleet_file or kept}: {problem}"
        ) from None
    return rehearsal_fleet(), None


def make_engine(folder: DataFolder, fleet: Fleet, report: Callable[[Report], None]) -> Engine:
    """Engine `local` with the fleet file's images and limits."""
    return open_local_engine(
        folder.containers,
        fleet.engine.images,
        report,
        limits=Limits(memory_bytes=fleet.engine.memory_mib * 1024 * 1024, processes=fleet.engine.processes),
        grants=Grants(network=fleet.engine.network),
        hidden=[folder.path],
    )


class Fetcher:
    """Fetches artefacts: in a rehearsal from the S3 beside the yard and from no other, else with the
    account's credentials of the fleet file."""

    def __init__(self, fleet: Fleet, companion: S3Companion | None) -> None:
        self._fleet = fleet
        self._companion = companion

    def __call__(self, order: Order, url: str, into: Path) -> None:
        """Fetch and unpack. Raises ArtefactProblem."""
        fetch_model(self._client(order), url, into)

    def _client(self, order: Order) -> Any:
        import boto3

        if self._companion is not None:
            return boto3.client(
                "s3", endpoint_url=self._companion.url, region_name=order.region,
                aws_access_key_id="YARD", aws_secret_access_key="YARD",  # noqa: S106 - anybody's
            )  # fmt: skip
        settings = self._fleet.s3
        keys = settings.credentials.get(order.account_id) if settings is not None else None
        if settings is None or keys is None:
            raise ArtefactProblem(
                "Could not fetch model data: the fleet file has no S3 credentials for account"
                f" {order.account_id}"
            )
        return boto3.client(
            "s3", endpoint_url=settings.endpoint_url, region_name=order.region,
            aws_access_key_id=keys.access_key_id, aws_secret_access_key=keys.secret_access_key,
            aws_session_token=keys.session_token,
        )  # fmt: skip
