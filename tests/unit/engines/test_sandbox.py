"""What bubblewrap is told, which uids containers get, and that a uid is never given twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from berth.yard.engines.sandbox import (
    ETC_FILES,
    FIRST_UID,
    Confinement,
    Grants,
    Room,
    bubblewrap_arguments,
    claim_uid,
    interpreter_paths,
    unprivileged_uids,
)

WHOLE_MAP = "         0          0 4294967295\n"


def arguments(
    tmp_path: Path, *, root: bool = True, grants: Grants | None = None, **room: object
) -> list[str]:
    confinement = Confinement("/usr/bin/bwrap", "0.8.0", range(FIRST_UID, FIRST_UID + 9) if root else None)
    made = Room(**{"model_dir": None, "hostname": "m", "hosts": tmp_path / "h", "etc": tmp_path, **room})  # type: ignore[arg-type]
    return bubblewrap_arguments(confinement, grants or Grants(), made)


def pairs(words: list[str], option: str) -> list[tuple[str, str]]:
    return [(words[i + 1], words[i + 2]) for i, word in enumerate(words) if word == option]


def test_namespaces_and_environment_are_always_the_containers_own(tmp_path: Path) -> None:
    """Whoever runs the yard, nothing of these is shared."""
    for root in (True, False):
        words = arguments(tmp_path, root=root)
        for option in ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--clearenv"):
            assert option in words
        assert {"--die-with-parent", "--new-session", "--as-pid-1"} <= set(words)
        assert words[words.index("--cap-drop") + 1] == "ALL"


def test_only_a_root_yard_keeps_what_init_needs_to_leave_root(tmp_path: Path) -> None:
    """As root init changes uid by itself; otherwise bubblewrap makes the user namespace and keeps nothing."""
    assert "--unshare-user" not in arguments(tmp_path, root=True)
    assert "--cap-add" not in arguments(tmp_path, root=False)
    assert "--unshare-user" in arguments(tmp_path, root=False)


def test_a_granted_network_is_the_only_way_to_one(tmp_path: Path) -> None:
    """The grant of the fleet file shares the machine's network and the files that one needs to use it."""
    words = arguments(tmp_path, grants=Grants(network=True))
    assert "--unshare-net" not in words
    assert "/etc/resolv.conf" in words
    assert "/etc/resolv.conf" not in arguments(tmp_path)


def test_the_model_is_bound_read_only(tmp_path: Path) -> None:
    """A container cannot change the yard's copy of its artefact."""
    words = arguments(tmp_path, model_dir=tmp_path / "model")
    assert (str(tmp_path / "model"), "/opt/ml/model") in pairs(words, "--ro-bind")
    assert not pairs(words, "--bind")


def test_what_is_shown_is_the_system_the_interpreter_and_what_was_granted(tmp_path: Path) -> None:
    """Sources of all binds: system folders, files of /etc, the interpreter, images, init, grants."""
    extra = tmp_path / "weights"
    words = arguments(tmp_path, grants=Grants(readable=(extra,), devices=(Path("/dev/null"),)))
    sources = {source for source, _ in pairs(words, "--ro-bind")}
    ours = {str(path) for path in interpreter_paths(sys.executable)} | {str(extra)}
    ours |= {str(tmp_path / name) for name in (*ETC_FILES, "h")}
    allowed = ("/usr", "/bin", "/sbin", "/lib")
    odd = [s for s in sources - ours if not s.startswith(allowed) and "/engines/" not in s]
    assert odd == []
    assert ("/dev/null", "/dev/null") in pairs(words, "--dev-bind")


def test_the_yards_folder_is_covered_when_it_lies_in_something_shown(tmp_path: Path) -> None:
    """A yard whose data lies below a granted folder still hides it."""
    data = tmp_path / "shown/data"
    data.mkdir(parents=True)
    words = arguments(tmp_path, grants=Grants(readable=(tmp_path / "shown",)), hidden=(data,))
    assert words[words.index(str(data)) - 1] == "--tmpfs"
    assert words.index(str(data)) > words.index(str(tmp_path / "shown"))
    assert str(data) not in arguments(tmp_path, hidden=(data,))


@pytest.mark.parametrize(
    ("uid", "uid_map", "expected"),
    [
        (0, WHOLE_MAP, range(FIRST_UID, FIRST_UID + 65_536)),
        (1000, WHOLE_MAP, None),
        (0, "0 1000 1\n1 100000 65536\n", range(32769, 65537)),
        (0, "0 1000 1\n", None),
    ],
)
def test_uids_come_from_where_nobody_lives(uid: int, uid_map: str, expected: range | None) -> None:
    """Root's containers get uids far above all others, or the upper half of what is mapped; others none."""
    assert unprivileged_uids(uid, uid_map) == expected


def test_a_uid_is_given_once_until_it_is_free_again() -> None:
    """Claims are seen by all yards of the machine and end with their holder."""
    uids = range(FIRST_UID + 70_000, FIRST_UID + 70_002)
    first, second = claim_uid(uids), claim_uid(uids)
    assert {first.uid, second.uid} == set(uids)
    with pytest.raises(OSError, match="taken"):
        claim_uid(uids)
    first.lock.close()
    third = claim_uid(uids)
    assert third.uid == first.uid
    second.lock.close()
    third.lock.close()


def test_a_uid_of_a_person_is_never_taken() -> None:
    """A uid that has a name on this machine is somebody's."""
    with pytest.raises(OSError, match="taken"):
        claim_uid([0])
