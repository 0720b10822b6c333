"""Where cgroups can be made is read from the kernel's texts; what stands in for them is said in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth.yard.engines.limits import CgroupHome, Limits, candidates, in_words, prefix_of, rlimits_of

V1_MOUNTS = """\
30 25 0:27 / / rw - ext4 /dev/vda rw
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:7 - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_MOUNTS = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
CONTAINER_MOUNTS = """\
35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
39 31 0:36 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids
"""


def test_version_1_is_taken_from_the_own_cgroup_of_each_controller() -> None:
    """Where version 1 holds the controllers it comes first, each controller where the yard is in it."""
    found = candidates("8:pids:/\n4:memory:/own/place\n0::/\n", V1_MOUNTS)
    assert found[0] == CgroupHome(
        1, Path("/sys/fs/cgroup/memory/own/place"), Path("/sys/fs/cgroup/pids"), swap=False
    )


def test_version_2_looks_upwards() -> None:
    """The yard's own cgroup has processes and may not hand controllers on, so its parents follow."""
    found = candidates("0::/system.slice/yard.service\n", V2_MOUNTS)
    assert [str(home.memory) for home in found] == [
        "/sys/fs/cgroup/system.slice/yard.service",
        "/sys/fs/cgroup/system.slice",
        "/sys/fs/cgroup",
    ]
    assert {home.version for home in found} == {2}


def test_a_container_sees_its_part_of_the_tree() -> None:
    """What is mounted is only a part: paths are told from the whole tree's root."""
    found = candidates("8:pids:/docker/abc\n4:memory:/docker/abc/x\n", CONTAINER_MOUNTS)
    assert found == [CgroupHome(1, Path("/sys/fs/cgroup/memory/x"), Path("/sys/fs/cgroup/pids"), swap=False)]


@pytest.mark.parametrize(("cgroup", "mounts"), [("", ""), ("4:memory:/\n", V1_MOUNTS), ("0::/\n", "")])
def test_without_both_controllers_there_is_no_place(cgroup: str, mounts: str) -> None:
    """Memory without processes, or nothing at all, is no place."""
    assert not [home for home in candidates(cgroup, mounts) if home.version == 1]


def test_the_values_are_those_of_each_version(tmp_path: Path) -> None:
    """Memory, swap and processes, by the names that each version has for them."""
    limits = Limits(memory_bytes=1000, processes=7)
    memory, pids = CgroupHome(1, tmp_path / "m", tmp_path / "p", swap=True).of_container("c", limits)
    assert (memory.folder, pids.folder) == (tmp_path / "m/c", tmp_path / "p/c")
    assert list(memory.values) == [("memory.limit_in_bytes", "1000"), ("memory.memsw.limit_in_bytes", "1000")]
    assert list(pids.values) == [("pids.max", "7")]
    (both,) = CgroupHome(2, tmp_path, tmp_path, swap=True).of_container("c", limits)
    assert list(both.values) == [("memory.max", "1000"), ("pids.max", "7"), ("memory.swap.max", "0")]


@pytest.mark.parametrize(("version", "unlimited"), [(1, "-1"), (2, "max")])
def test_no_limit_is_written_as_such(tmp_path: Path, version: int, unlimited: str) -> None:
    """None is no limit, in each version's word for it."""
    groups = CgroupHome(version, tmp_path, tmp_path, swap=False).of_container("c", Limits(None, None))
    assert {value for group in groups for _, value in group.values} == {unlimited, "max"}
    assert rlimits_of(Limits(None, None), own_user=True) == {"RLIMIT_CORE": 0}


def test_processes_are_only_limited_where_the_user_is_the_containers_own() -> None:
    """RLIMIT_NPROC counts a whole user: the yard's own processes must not count."""
    assert "RLIMIT_NPROC" in rlimits_of(Limits(), own_user=True)
    assert "RLIMIT_NPROC" not in rlimits_of(Limits(), own_user=False)
    assert "processes not limited" in in_words(Limits(), None, own_user=False)


def test_the_words_name_what_limits(tmp_path: Path) -> None:
    """Status tells a cgroup from rlimits, and figures with units."""
    home = CgroupHome(2, tmp_path, tmp_path, swap=True)
    assert in_words(Limits(), home, own_user=True) == "cgroup v2: memory 2 GiB, processes 256"
    assert in_words(Limits(), None, own_user=True).startswith("rlimits: address space of a process 2 GiB")


def test_a_sweep_takes_only_the_empty_ones_of_this_engine(tmp_path: Path) -> None:
    """Another engine's cgroups, and one that is in use, stay."""
    mine, other = prefix_of(tmp_path / "a"), prefix_of(tmp_path / "b")
    assert mine != other
    for name in (f"{mine}gone", f"{mine}used", f"{other}gone"):
        (tmp_path / name).mkdir()
    (tmp_path / f"{mine}used/cgroup.procs").write_text("1")
    CgroupHome(1, tmp_path, tmp_path, swap=False).sweep(mine)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"{mine}used", f"{other}gone"])
