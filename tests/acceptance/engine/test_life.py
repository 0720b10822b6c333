"""How containers live, fail and end, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from berth.yard.engines.engine import (
    Answer,
    Container,
    ContainerUnreachable,
    Invocation,
    Report,
    ReportKind,
)
from berth.yard.engines.launch import ProcessLauncher
from berth.yard.engines.limits import Limits
from berth.yard.engines.local import LocalEngine
from berth.yard.engines.probe import find_confinement
from berth.yard.engines.sandbox import FIRST_UID, Confinement, Grants

from .bench import IMAGES, PATIENCE_S, QUICK, UNCONFINED, Bench, bench, cgroups_of, processes_of, wait_until

# A container's life


def test_an_invocation_goes_there_and_back(either: Bench) -> None:
    """Body, content type and status, several at once, up to the largest body that SageMaker takes."""
    container = either.started(either.container())

    async def many() -> list[Answer]:
        calls = [Invocation(str(i).encode(), {"content-type": "text/x"}) for i in range(20)]
        return await asyncio.gather(*(either.engine.invoke(container.key, call) for call in calls))

    answers = asyncio.run(many())
    assert [answer.body for answer in answers] == [str(i).encode() for i in range(20)]
    assert {answer.headers["content-type"] for answer in answers} == {"text/x"}
    large = os.urandom(6_291_456)
    assert either.invoke(container, large).body == large
    either.stopped(container)
    with pytest.raises(ContainerUnreachable, match="not running"):
        either.invoke(container, b"late")


def test_a_container_that_ends_at_once_has_failed(either: Bench) -> None:
    """In SageMaker's words, then with exit code and last line; the log stays."""
    container = either.container(ECHO_EXIT_AT_ONCE="5")
    either.engine.start(container)
    report = either.report(container.key)
    assert report.kind is ReportKind.FAILED
    assert report.reason.startswith(
        "The primary container for production variant AllTraffic did not pass the ping health check. "
        "Please check CloudWatch logs for this endpoint."
    )
    assert "exit code 5" in report.reason
    assert "no: I was told not to" in report.reason
    assert "no: I was told not to" in either.engine.logs(container.key)


def test_a_container_that_is_not_ready_in_time_has_failed(either: Bench) -> None:
    """The start-up limit counts real seconds and names what the last ping said."""
    container = replace(either.container(ECHO_READY_AFTER_S="60"), startup_limit_s=0.5, variant_name="blue")
    either.engine.start(container)
    report = either.report(container.key)
    assert report.kind is ReportKind.FAILED
    assert "variant blue" in report.reason
    assert "not ready within 0.5 seconds: /ping answered 503" in report.reason
    wait_until(lambda: processes_of(container.key) == [])


def test_an_image_that_is_not_mapped_names_the_key(either: Bench) -> None:
    """What would be right, and which images there are."""
    container = either.container(image="mystery:1")
    either.engine.start(container)
    report = either.report(container.key)
    assert report.kind is ReportKind.FAILED
    assert "'mystery:1'" in report.reason
    assert "[engine.images]" in report.reason
    assert "echo" in report.reason


def test_a_command_that_is_not_there_is_named(either: Bench) -> None:
    """The exit code of shells for it, and the program."""
    container = either.container(image="nothing")
    either.engine.start(container)
    assert "/no/such/program" in either.report(container.key).reason


def test_an_environment_that_no_process_can_have_is_a_failure(either: Bench) -> None:
    """A zero byte or an equals sign in a name is the container's fault, not the engine's."""
    for environment in ({"A": "b\0c"}, {"A=B": "c"}):
        container = replace(either.container(), environment=environment)
        either.engine.start(container)
        assert "cannot start" in either.report(container.key).reason


def test_a_crash_loop_leaves_nothing_behind(either: Bench) -> None:
    """It dies at its first invocation, is started again under the same key, five times over."""
    container = either.container(ECHO_EXIT_AFTER="1")
    for _ in range(5):
        either.started(container)
        with pytest.raises(ContainerUnreachable):
            either.invoke(container, b"last straw")
        report = either.report(container.key)
        assert report.kind is ReportKind.DIED
        assert "exit code 3" in report.reason
        assert "this was one too many" in report.reason
    wait_until(lambda: processes_of(container.key) == [])
    wait_until(either.engine.settled)
    wait_until(lambda: set((either.folder / "run").glob("*.sock")) == sockets_of_the_living(either))


def sockets_of_the_living(made: Bench) -> set[Path]:
    """The sockets of the containers that other tests of this module left running."""
    return {made.folder / "run" / one.address.name for one in made.engine._newest.values() if one.address}


def test_a_container_that_no_longer_pings_is_dead(either: Bench) -> None:
    """After it was ready, failed pings in a row end it."""
    container = either.started(either.container(ECHO_EVAL="1"))
    either.inside(container, "__import__('os').environ.update(ECHO_PING_STATUS='500')")
    report = either.report(container.key)
    assert report.kind is ReportKind.DIED
    assert "2 pings in a row failed, at last: /ping answered 500" in report.reason
    wait_until(lambda: processes_of(container.key) == [])


def test_a_deaf_container_is_killed_after_the_grace(either: Bench) -> None:
    """SIGTERM first; then SIGKILL. STOPPED is told once it is gone, of unknown keys at once."""
    container = either.started(either.container(ECHO_IGNORE_TERM="1"))
    before = time.monotonic()
    either.stopped(container)
    assert time.monotonic() - before >= QUICK.stop_grace_s
    assert processes_of(container.key) == []
    either.stopped(replace(container, key="never-heard-of"))


def test_a_stop_before_it_is_ready_ends_it_without_a_failure(either: Bench) -> None:
    """Stopped by us is no failure."""
    container = either.container(ECHO_READY_AFTER_S="60")
    either.engine.start(container)
    assert not either.engine.settled()
    either.stopped(container)
    wait_until(either.engine.settled)


def test_the_same_again_is_ignored_and_another_replaces(either: Bench) -> None:
    """A second start of what runs changes nothing; a changed one takes its place, quietly."""
    container = either.started(either.container(ECHO_EVAL="1", N="1"))
    pid = either.inside(container, "(__import__('os').getpid(), __import__('os').environ['N'])")
    either.engine.start(container)
    assert either.inside(container, "(__import__('os').getpid(), __import__('os').environ['N'])") == pid
    changed = either.started(replace(container, environment={**container.environment, "N": "2"}))
    assert either.inside(changed, "__import__('os').environ['N']") == "2"
    either.stopped(changed)


def test_a_key_that_is_no_file_name_is_refused(either: Bench) -> None:
    """A key becomes a file name, so it must be one."""
    for key in ("", "../up", ".hidden", "a/b", "a" * 201, "a\n"):
        with pytest.raises(ValueError, match="container key"):
            either.engine.start(replace(either.container(), key=key))
        assert either.engine.logs(key) == ""


def test_a_scikit_learn_model_is_served(confined: Bench, tmp_path: Path) -> None:
    """The shipped image loads a model and predicts from CSV and JSON; bad input is a 400 with words."""
    joblib = pytest.importorskip("joblib", reason="extra `demo` is not installed")
    from sklearn.linear_model import LinearRegression

    model = tmp_path / "model"
    model.mkdir()
    joblib.dump(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]), model / "model.joblib")
    container = confined.started(confined.container(image="sklearn", model_dir=model))
    csv = confined.invoke(container, b"2\n3\n", **{"content-type": "text/csv"})
    assert json.loads(csv.body)["predictions"] == pytest.approx([5.0, 7.0])
    asked = confined.invoke(container, b'{"instances": [[2]]}', **{"content-type": "application/json"})
    assert json.loads(asked.body)["predictions"] == pytest.approx([5.0])
    for body in (b"a,b", b"", b"1,2", b'"'):
        refused = confined.invoke(container, body, **{"content-type": "text/csv"})
        assert refused.status == 400
        assert json.loads(refused.body)["error"]
    confined.stopped(container)


# Limits


@pytest.mark.parametrize("use_cgroups", [True, False])
def test_memory_and_processes_are_bounded(
    confinement: Confinement, tmp_path: Path, use_cgroups: bool
) -> None:
    """By cgroup or by rlimits: too much memory is not had, too many processes are not started."""
    limits = Limits(memory_bytes=200 * 1024**2, processes=20)
    made = bench(tmp_path, confinement, limits=limits, use_cgroups=use_cgroups)
    container = made.started(made.container(ECHO_EVAL="1"))
    bomb = (
        "__import__('subprocess').run(['/bin/sh', '-c', {script!r}], capture_output=True, text=True).stderr"
    )
    script = "for i in 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t u v w x y; do sleep 1 & done"
    assert "fork" in made.inside(container, bomb.format(script=script))
    # Killed for its memory, or refused more, which ends the server by MemoryError.
    with suppress(ContainerUnreachable):
        made.inside(container, "len(b'x' * 2**29)")
    report = made.report(container.key)
    assert report.kind is ReportKind.DIED
    if made.engine.describe()["limits"].startswith("cgroup"):
        assert "more memory" in report.reason
    else:
        assert "MemoryError" in made.engine.logs(container.key)
    made.engine.close()
    assert cgroups_of(made.folder) == []


# The end of a yard

YARD = """
import sys, time
from pathlib import Path
from berth.yard.engines.engine import Container
from berth.yard.engines.launch import ProcessLauncher
from berth.yard.engines.local import LocalEngine
from berth.yard.engines.probe import find_confinement
from berth.yard.engines.s3 import S3Companion
from berth.yard.engines.sandbox import Confinement, Grants
folder, mark, mode = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
confinement = find_confinement(Grants()) if mode == "confined" else Confinement(None, why_not="test")
launcher = ProcessLauncher(folder, {"echo": ["{python}", "-I", "{images}/echo_server.py"]}, confinement)
engine = LocalEngine(launcher, lambda report: print(report.kind, flush=True))
companion = S3Companion(folder / mark)
companion.wait_ready()
for number in range(3):
    engine.start(Container(f"{mark}-{number}", "1", "echo", {"MARK": mark}, None))
time.sleep(600)
"""


@pytest.mark.parametrize("mode", ["confined", "unconfined"])
@pytest.mark.parametrize("supervisors_too", [False, True])
def test_a_killed_yard_leaves_nothing(
    confinement: Confinement, tmp_path: Path, mode: str, supervisors_too: bool
) -> None:
    """SIGKILL to the yard, and to its supervisors at the same moment: no process remains, moto's included."""
    folder, mark = tmp_path / "engine", f"mark{uuid.uuid4().hex[:12]}"
    yard = subprocess.Popen(
        [sys.executable, "-c", YARD, str(folder), mark, mode], stdout=subprocess.PIPE, text=True
    )
    assert yard.stdout is not None
    try:
        assert [yard.stdout.readline() for _ in range(3)] == ["ready\n"] * 3
        running = processes_of(mark)
        assert len(running) >= 8  # of each container its supervisor and its command; the S3's two
    finally:
        for pid in [yard.pid, *(children_of(yard.pid) if supervisors_too else [])]:
            os.kill(pid, signal.SIGKILL)
        yard.wait()
        yard.stdout.close()
    wait_until(lambda: processes_of(mark) == [] and processes_of(str(folder)) == [])
    if not supervisors_too:
        wait_until(lambda: cgroups_of(folder) == [])
    # The next engine on the same folder starts, sweeps what was left, and serves under the same keys.
    reports: queue.Queue[Report] = queue.Queue()
    launcher = ProcessLauncher(folder, IMAGES, confinement if mode == "confined" else UNCONFINED)
    engine = LocalEngine(launcher, reports.put)
    engine.start(Container(f"{mark}-0", "1", "echo", {"MARK": mark}, None))
    assert reports.get(timeout=PATIENCE_S).kind is ReportKind.READY
    engine.close()
    assert processes_of(mark) == []
    assert cgroups_of(folder) == []


def children_of(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def test_an_engine_that_closes_ends_everything_quietly_and_soon(
    confinement: Confinement, tmp_path: Path
) -> None:
    """Also what still starts, and what is deaf; nothing is reported: a yard that opens again wants them."""
    made = bench(tmp_path, confinement)
    made.started(made.container())
    made.started(made.container(ECHO_IGNORE_TERM="1"))
    for _ in range(3):
        made.engine.start(made.container(ECHO_READY_AFTER_S="60"))
    before = time.monotonic()
    made.engine.close()
    assert time.monotonic() - before < 50
    assert made.reports.empty()
    assert processes_of(made.mark) == []


# Without bubblewrap


def test_a_root_yard_without_bubblewrap_still_gives_uids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an unprivileged uid can run this Python, each container has one, and a copy of the model."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_confinement(Grants())
    assert found.bubblewrap is None
    assert found.uids is None or os.getuid() == 0
    made = bench(tmp_path, found)
    model = made.folder / "closed/model"
    model.mkdir(parents=True, mode=0o700)
    (model / "weights").write_text("w")
    model.chmod(0o755)
    container = made.started(made.container(model_dir=model, ECHO_EVAL="1"))
    uid = made.inside(container, "__import__('os').getuid()")
    assert uid == os.getuid() if found.uids is None else uid >= FIRST_UID
    place = made.inside(container, "__import__('os').environ['SM_MODEL_DIR']")
    assert made.inside(container, f"open({place + '/weights'!r}).read()") == "w"
    assert made.inside(container, f"__import__('os').access({str(model)!r}, 4)") is (found.uids is None)
    made.stopped(container)
    assert Path(place).exists() is (found.uids is None)  # the copy goes, the yard's own stays
    made.engine.close()
