"""How containers are shut in: namespaces, users, files, network, and what is said about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from berth.yard.engines.engine import (
    Container,
    EngineRefused,
)
from berth.yard.engines.local import open_local_engine
from berth.yard.engines.probe import find_confinement
from berth.yard.engines.sandbox import FIRST_UID, Confinement, Grants

from .bench import IMAGES, Bench, bench

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
