"""From an endpoint's rows to running containers: fetch each model's artefact, unpack it, start it.

Fetching may take long and must not hold up the writer, so it happens in threads of its own. What becomes of
it is reported like what becomes of a container: a fetch that fails is a container that FAILED.
"""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Callable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from berth.yard.engines.engine import Container, Engine, Report, ReportKind, ReportTo

log = logging.getLogger(__name__)

FETCHES_AT_ONCE = 2
STARTUP_LIMIT_S = 480


@dataclass(frozen=True, slots=True)
class Order:
    """One container to be started, as the rows say. `model` is the CreateModel request and `config` the
    CreateEndpointConfig request, both JSON; `variant` names the production variant in it."""

    key: str
    account_id: str
    region: str
    model: str
    config: str
    variant: str


class ArtefactProblem(Exception):
    """The model's data cannot be had or unpacked; the text is for FailureReason."""


FetchModel = Callable[[Order, str, Path], None]
"""Fetch the artefact at an s3:// URL and unpack it into a folder. Raises ArtefactProblem."""


class Provisioner:
    """Starts and stops what endpoints need, through an engine.

    `orders_of(endpoint_arn)` reads the containers of an endpoint that are to be started; `fetch` gets an
    artefact. The unpacked copies are the yard's own (under `folder`), so that a restarted yard does not
    depend on the S3 it came from.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        orders_of: Callable[[str], list[Order]],
        fetch: FetchModel,
        report: ReportTo,
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._orders_of = orders_of
        self._fetch = fetch
        self._report = report
        self._threads = ThreadPoolExecutor(FETCHES_AT_ONCE, thread_name_prefix="yard-provision")
        self._lock = threading.Lock()
        self._pending = 0

    def launch(self, endpoint_arn: str) -> None:
        """Begin to start every container of the endpoint that is not running. Returns at once."""
        with self._lock:
            self._pending += 1
        self._threads.submit(self._launch_all, endpoint_arn)

    def stop_all(self, keys: Sequence[str]) -> None:
        """Begin to end containers for good."""
        for key in keys:
            self._engine.stop(key)

    def forget(self, key: str) -> None:
        """Delete the copy of the artefact of a container that has ended for good."""
        self._threads.submit(shutil.rmtree, self._folder / key, ignore_errors=True)

    def sweep(self, keep: Set[str]) -> None:
        """Delete copies that no variant needs: those of containers that ended while the yard was down."""
        for place in self._folder.iterdir():
            if place.name not in keep:
                shutil.rmtree(place, ignore_errors=True)

    def settled(self) -> bool:
        """Whether nothing is being fetched, started or ended."""
        return self._pending == 0 and self._engine.settled()

    def close(self) -> None:
        """End every container; wait for it."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._engine.close()

    def _launch_all(self, endpoint_arn: str) -> None:
        try:
            for order in self._orders_of(endpoint_arn):
                self._launch(order)
        except Exception:
            log.exception("endpoint %s could not be launched", endpoint_arn)
        finally:
            with self._lock:
                self._pending -= 1

    def _launch(self, order: Order) -> None:
        try:
            self._engine.start(self._container(order))
        except ArtefactProblem as problem:
            self._report(Report(order.key, ReportKind.FAILED, str(problem)))
        except OSError as problem:
            self._report(Report(order.key, ReportKind.FAILED, f"Could not keep the model's data: {problem}"))
        except Exception as fault:
            # A fault of ours must not leave the endpoint Creating, which cannot even be deleted.
            log.exception("the container %s could not be started", order.key)
            reason = f"The yard could not start the container ({type(fault).__name__}); its log says more."
            self._report(Report(order.key, ReportKind.FAILED, reason))

    def _container(self, order: Order) -> Container:
        model = json.loads(order.model)
        variants = json.loads(order.config)["ProductionVariants"]
        variant = next(v for v in variants if v["VariantName"] == order.variant)
        definition = model.get("PrimaryContainer") or model["Containers"][0]
        url = self._artefact_url(definition)
        return Container(
            key=order.key,
            account_id=order.account_id,
            image=definition["Image"],
            environment=definition.get("Environment", {}),
            model_dir=self._own_copy(order, url) if url else None,
            variant_name=order.variant,
            startup_limit_s=variant.get("ContainerStartupHealthCheckTimeoutInSeconds", STARTUP_LIMIT_S),
        )

    @staticmethod
    def _artefact_url(definition: dict[str, object]) -> str | None:
        source = definition.get("ModelDataSource")
        if isinstance(source, dict) and isinstance(source.get("S3DataSource"), dict):
            return str(source["S3DataSource"]["S3Uri"])
        url = definition.get("ModelDataUrl")
        return str(url) if url else None

    def _own_copy(self, order: Order, url: str) -> Path:
        place = self._folder / order.key
        if not place.exists():
            self._fetch(order, url, place)
        return place
