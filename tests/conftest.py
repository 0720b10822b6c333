"""What holds for every test: where CI is true nothing skips, and no test finds a real account by accident."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest

IN_CI = os.environ.get("CI", "").lower() == "true"

# A test that forgets to point a client at a yard must fail for want of keys, not reach a real account.
AWS_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "BERTH_YARD",
    "BERTH_JOURNAL",
    "BERTH_RULES",
)


@pytest.fixture(autouse=True, scope="session")
def nobodys_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the credentials, profiles and endpoints of whoever runs the tests."""
    nowhere = tmp_path_factory.mktemp("no-aws-files")
    with pytest.MonkeyPatch.context() as patch:
        for name in AWS_VARIABLES:
            patch.delenv(name, raising=False)
        patch.setenv("AWS_CONFIG_FILE", str(nowhere / "config"))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nowhere / "credentials"))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard() -> None:
    """A shell starts what it runs in the background deaf to Ctrl-C, and children inherit that: not here."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """A PostgreSQL server (`postgresql_server.Server`): the one that is given, or one of our own."""
    from . import postgresql_server

    try:
        server = postgresql_server.start()
    except postgresql_server.NoServer as missing:
        pytest.skip(str(missing))
    try:
        yield server
    finally:
        server.stop()


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if expected := getattr(report, "wasxfail", ""):
        return f"expected to fail: {expected}"
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)


def _fail_what_skips(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not IN_CI or report.outcome != "skipped":
        return
    reason = _reason(report)
    if hasattr(report, "wasxfail"):
        del report.wasxfail
    report.outcome = "failed"
    report.longrepr = f"CI is true, so this may not be left out. {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip, or a failure that somebody expected, into a failure where CI is true."""
    report = yield
    _fail_what_skips(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that leaves itself out while it is collected."""
    report = yield
    _fail_what_skips(report)
    return report
