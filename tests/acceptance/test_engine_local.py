"""Engine `local` with real processes: how containers are shut in, live, fail and end, and what is left."""

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from berth.yard.engines.engine import (
    Answer,
    Container,
    ContainerUnreachable,
    EngineRefused,
    Invocation,
    Report,
    ReportKind,
)
from berth.yard.engines.launch import ProcessLauncher
from berth.yard.engines.limits import Limits
from berth.yard.engines.local import LocalEngine, open_local_engine
from berth.yard.engines.probe import find_confinement
from berth.yard.engines.running import Timing
from berth.yard.engines.sandbox import FIRST_UID, Confinement, Grants

IMAGES = {
    "echo": ["{python}", "-I", "{images}/echo_server.py"],
    "sklearn": ["{python}", "-I", "{images}/sklearn_server.py"],
    "nothing": ["/no/such/program"],
}
PATIENCE_S = 30.0
QUICK = Timing(ping_every_s=0.05, failed_pings=2, stop_grace_s=0.5)
UNCONFINED = Confinement(None, why_not="this test says so")


@dataclass
class Bench:
    """An engine with what it reported, and containers that carry its mark."""

    engine: LocalEngine
    folder: Path
    mark: str
    reports: queue.Queue[Report] = field(default_factory=queue.Queue)

    def container(self, image: str = "echo", model_dir: Path | None = None, **env: str) -> Container:
        key = f"{self.mark}-{uuid.uuid4().hex[:8]}"
        return Container(key, "111122223333", image, {"MARK": self.mark, **env}, model_dir)

    def report(self, key: str) -> Report:
        """The next report, which must be about `key`."""
        report = self.reports.get(timeout=PATIENCE_S)
        assert report.key == key, report
        return report

    def started(self, container: Container) -> Container:
        self.engine.start(container)
        report = self.report(container.key)
        assert report.kind is ReportKind.READY, report
        return container

    def invoke(self, container: Container, body: bytes, **headers: str) -> Answer:
        return asyncio.run(self.engine.invoke(container.key, Invocation(body, headers)))

    def inside(self, container: Container, expression: str) -> Any:
        """The value of a Python expression inside the container."""
        text = self.invoke(container, f"eval {expression}".encode()).body.decode()
        return eval(text)

    def stopped(self, container: Container) -> None:
        self.engine.stop(container.key)
        assert self.report(container.key).kind is ReportKind.STOPPED


def bench(folder: Path, confinement: Confinement, **options: Any) -> Bench:
    mark = f"mark{uuid.uuid4().hex[:12]}"
    reports: queue.Queue[Report] = queue.Queue()
    timing = options.pop("timing", QUICK)
    launcher = ProcessLauncher(folder / mark, IMAGES, confinement, **options)
    return Bench(LocalEngine(launcher, reports.put, 1, timing), folder / mark, mark, reports)


def processes_of(mark: str) -> list[int]:
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            told = Path(f"/proc/{name}/environ").read_bytes() + Path(f"/proc/{name}/cmdline").read_bytes()
            if mark.encode() in told and int(name) != os.getpid():
                found.append(int(name))
    return found


def cgroups_of(folder: Path) -> list[Path]:
    from berth.yard.engines.limits import prefix_of

    return [path for root in Path("/sys/fs/cgroup").glob("*") for path in root.rglob(f"{prefix_of(folder)}*")]


def wait_until(what: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline, f"did not happen within {within_s} seconds"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def confinement() -> Confinement:
    found = find_confinement(Grants())
    if found.bubblewrap is None and os.environ.get("CI") != "true":
        pytest.skip(f"nothing confines here: {found.why_not}")
    assert found.bubblewrap is not None, found.why_not
    return found


@pytest.fixture(scope="module")
def confined(confinement: Confinement, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = bench(tmp_path_factory.mktemp("confined"), confinement)
    yield made
    made.engine.close()
    assert processes_of(made.mark) == []
    assert cgroups_of(made.folder) == []


@pytest.fixture(scope="module")
def unconfined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = bench(tmp_path_factory.mktemp("unconfined"), UNCONFINED)
    yield made
    made.engine.close()
    assert processes_of(made.mark) == []
    assert cgroups_of(made.folder) == []


@pytest.fixture(params=["confined", "unconfined"])
def either(request: pytest.FixtureRequest) -> Bench:
    made: Bench = request.getfixturevalue(request.param)
    return made


@pytest.fixture(scope="module")
def curious(confined: Bench) -> Container:
    """A confined container in which a test can look around."""
    return confined.started(confined.container(ECHO_EVAL="1"))


# How a container is shut in


def test_every_namespace_is_its_own(confined: Bench, curious: Container) -> None:
    """User, mount, pid, ipc, uts and network namespaces differ from the yard's."""
    for name in ("user", "mnt", "pid", "ipc", "uts", "net"):
        seen = confined.inside(curious, f"__import__('os').readlink('/proc/self/ns/{name}')")
        assert seen != os.readlink(f"/proc/self/ns/{name}"), name


def test_outside_it_is_an_unprivileged_user(confined: Bench, curious: Container) -> None:
    """No process in it has the yard's root, seen from outside; none can gain a privilege."""
    inner = confined.inside(curious, "open('/proc/self/status').read()")
    assert "NoNewPrivs:\t1" in inner
    for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert f"{name}:\t0000000000000000" in inner
    assert len(set(uids_outside(confined, curious))) == 1
    if os.getuid() == 0:
        assert min(uids_outside(confined, curious)) >= FIRST_UID


def uids_outside(made: Bench, container: Container) -> list[int]:
    """Every uid (real, effective, saved, of files) of the two processes in there: init and the command."""
    namespace = made.inside(container, "__import__('os').readlink('/proc/self/ns/pid')")
    pids = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if in_pid_ns(pid, namespace)]
    assert len(pids) == 2
    assert os.getuid() != 0 or {status_of(pid)["Groups"].strip() for pid in pids} == {""}
    return [int(uid) for pid in pids for uid in status_of(pid)["Uid"].split()]


def in_pid_ns(pid: int, namespace: str) -> bool:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/pid") == namespace
    return False


def status_of(pid: int) -> Mapping[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_two_containers_have_two_users(confined: Bench, curious: Container) -> None:
    """A root yard gives each container a uid of its own; another yard has but one uid to give."""
    other = confined.started(confined.container(ECHO_EVAL="1"))
    uids = [uid for each in (curious, other) for uid in uids_outside(confined, each)]
    confined.stopped(other)
    if os.getuid() == 0:
        assert FIRST_UID <= min(uids) < max(uids)
    else:
        assert set(uids) == {os.getuid()}


def test_the_environment_is_the_models_and_nothing_of_the_yards(
    confined: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the model asks for and the little that every program needs; no key of the yard's."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the yard's own")
    container = confined.started(confined.container(ECHO_EVAL="1", LEVEL="3"))
    environment = confined.inside(container, "dict(__import__('os').environ)")
    confined.stopped(container)
    assert environment.pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8"  # Python's own addition
    assert set(environment) == {"MARK", "ECHO_EVAL", "LEVEL", "PATH", "HOME", "LANG"}


def test_there_is_no_network_but_its_own_loopback(confined: Bench, curious: Container) -> None:
    """One interface, and neither the world nor the machine's own services can be reached."""
    interfaces = confined.inside(curious, "__import__('socket').if_nameindex()")
    assert [name for _, name in interfaces] == ["lo"]
    import socket

    with socket.create_server(("127.0.0.1", 0)) as mine:
        port = mine.getsockname()[1]
        reached = confined.inside(curious, f"__import__('socket').socket().connect_ex(('127.0.0.1', {port}))")
    assert reached != 0


def test_nothing_of_the_yard_can_be_seen(confined: Bench, curious: Container) -> None:
    """Neither its folder, nor home and data of anybody, nor its processes; and nothing can be written."""
    yard, test = str(confined.folder), str(Path(__file__))
    for path in (yard, test, "/root", "/home", "/var", "/etc/shadow", "/etc/machine-id", "/sys"):
        assert confined.inside(curious, f"__import__('os').path.exists({path!r})") is False, path
    pids = confined.inside(curious, "[n for n in __import__('os').listdir('/proc') if n.isdecimal()]")
    assert len(pids) == 2
    for path in ("/x", "/usr/x", "/etc/x", "/opt/ml/model/x", "/dev/x", "/run/x"):
        refusal = confined.inside(curious, f"__import__('os').access({os.path.dirname(path)!r}, 2)")
        assert refusal is False, path
    assert confined.inside(curious, "open('/tmp/x', 'w').write('mine')") == 4


def test_its_init_cannot_be_read_by_it(confined: Bench, curious: Container) -> None:
    """Init runs under the same uid; its memory and descriptors stay its own."""
    for file in ("environ", "maps", "mem"):
        read = f"__import__('subprocess').run(['cat', '/proc/1/{file}'], capture_output=True).stdout"
        assert confined.inside(curious, read) == b""
    assert confined.inside(curious, "sorted(__import__('os').listdir('/proc/self/fd'))[:3]") == [
        "0",
        "1",
        "2",
    ]
    assert confined.inside(curious, "len(__import__('os').listdir('/proc/self/fd'))") <= 6


def test_it_listens_on_8080_as_on_aws(confined: Bench, curious: Container) -> None:
    """Two containers have the same port, each in its own network; the argument is `serve`."""
    second = confined.started(confined.container())
    assert "port 8080, arguments ['serve']" in confined.engine.logs(curious.key)
    assert "port 8080, arguments ['serve']" in confined.engine.logs(second.key)
    confined.stopped(second)


def test_the_model_is_there_and_read_only(either: Bench, tmp_path: Path) -> None:
    """At /opt/ml/model where there is a mount namespace, else where SM_MODEL_DIR says."""
    model = tmp_path / "closed" / "model"
    model.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    (model / "weights").write_text("w")
    container = either.started(either.container(model_dir=model, ECHO_EVAL="1"))
    place = either.inside(container, "__import__('os').environ.get('SM_MODEL_DIR', '/opt/ml/model')")
    assert either.inside(container, f"open({place + '/weights'!r}).read()") == "w"
    if place == "/opt/ml/model":
        assert either.inside(container, "__import__('os').access('/opt/ml/model/weights', 2)") is False
    either.stopped(container)


def test_a_host_name_is_the_models(confined: Bench) -> None:
    """ContainerHostname is the name inside, and it resolves."""
    container = confined.started(replace(confined.container(ECHO_EVAL="1"), hostname="front"))
    assert confined.inside(container, "__import__('socket').gethostname()") == "front"
    assert confined.inside(container, "__import__('socket').gethostbyname('front')") == "127.0.0.1"
    confined.stopped(container)


def test_a_granted_network_is_the_machines(confinement: Confinement, tmp_path: Path) -> None:
    """With the fleet file's grant the port is one that is free on the machine, and told by the contract."""
    made = bench(tmp_path, find_confinement(Grants(network=True)), grants=Grants(network=True))
    container = made.started(made.container(ECHO_EVAL="1"))
    port = int(made.inside(container, "__import__('os').environ['SAGEMAKER_BIND_TO_PORT']"))
    assert port != 8080
    net = made.inside(container, "__import__('os').readlink('/proc/self/ns/net')")
    assert net == os.readlink("/proc/self/ns/net")
    assert made.engine.describe()["network"] == "that of the machine"
    made.engine.close()


def test_status_says_what_confines_and_what_limits(confined: Bench, unconfined: Bench) -> None:
    """Words for `status`, in both cases."""
    assert confined.engine.describe()["confinement"].startswith("bubblewrap 0")
    assert unconfined.engine.describe()["confinement"].startswith("none (this test says so)")
    for made in (confined, unconfined):
        assert made.engine.describe()["limits"].startswith(
            ("cgroup v1: memory 2 GiB", "cgroup v2: memory 2 GiB", "rlimits: ")
        )


# Several accounts


def test_without_confinement_a_second_account_is_refused(unconfined: Bench, confined: Bench) -> None:
    """At the start and later; the message says what would help. With confinement any number is fine."""
    with pytest.raises(EngineRefused, match="Install bubblewrap"):
        unconfined.engine.allow_accounts(2)
    unconfined.engine.allow_accounts(1)
    confined.engine.allow_accounts(1000)


def test_an_engine_for_two_accounts_does_not_open_unconfined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine without bubblewrap refuses, and says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineRefused, match="bubblewrap is not installed"):
        open_local_engine(tmp_path / "e", IMAGES, lambda _: None, accounts=2)


@pytest.mark.parametrize(
    "broken", ["exit 1", "echo bwrap: no permission >&2; exit 1", 'shift $(($#-6)); exec "$@"']
)
def test_a_bubblewrap_that_does_not_confine_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """It is believed only after it was tried: one that fails, and one that only pretends."""
    program = tmp_path / "bwrap"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 9 && exit\n{broken}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = find_confinement(Grants())
    assert found.bubblewrap is None
    assert found.why_not.startswith("bubblewrap does not work")


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
    assert time.monotonic() - before < 10
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
