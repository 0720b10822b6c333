"""The set-up says what is missing before it does anything, and does nothing where there is nothing to do."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "install.py"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/install.py as a module, set on an empty folder instead of this one."""
    spec = importlib.util.spec_from_file_location("berth_set_up", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def executable(path: Path, text: str) -> None:
    """A program that a shell runs."""
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def test_an_old_python_is_refused_with_the_version_that_is_needed(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below 3.11 nothing is made; the sentence says what was found and how to name another."""
    monkeypatch.setattr(install.sys, "version_info", (3, 10, 4))
    with pytest.raises(
        install.CannotInstall, match=r"needs Python 3\.11 or later; .* is 3\.10\.4.*make PYTHON="
    ):
        install.check_python()


def test_debian_without_venv_is_told_the_package(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's Python has no ensurepip until python3-venv is there."""
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(install.CannotInstall, match="apt-get install python3-venv"):
        install.check_python()


@pytest.mark.parametrize(
    ("programs", "told"),
    [
        ({}, "there is no node"),
        ({"node": "echo v18.19.0"}, "is v18.19.0"),
        ({"node": "echo v20.1.0"}, "npm is not"),
    ],
    ids=["no node", "Debian's node", "no npm"],
)
def test_node_is_asked_for_by_version(
    install: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: dict[str, str], told: str
) -> None:
    """Node that is missing, older than 20 or without npm is named before anything is fetched."""
    for name, text in programs.items():
        executable(tmp_path / name, text)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(install.CannotInstall, match=told):
        install.node_version()


def test_an_environment_is_current_until_something_that_made_it_changes(
    install: ModuleType, tmp_path: Path
) -> None:
    """The stamp covers the lock, the project file, the place and the Python."""
    (tmp_path / "pyproject.toml").write_text("a")
    (tmp_path / "a.lock").write_text("one==1\n")
    environment = install.PythonEnvironment(tmp_path / "env", tmp_path / "a.lock", editable=True)
    environment.folder.mkdir()
    first = environment.digest()
    assert not install.is_current(environment.folder, first)
    (environment.folder / install.STAMP).write_text(first + "\n")
    assert install.is_current(environment.folder, environment.digest())

    elsewhere = install.PythonEnvironment(tmp_path / "moved", tmp_path / "a.lock", editable=True)
    assert elsewhere.digest() != first
    for name in ("a.lock", "pyproject.toml"):
        before = environment.digest()
        (tmp_path / name).write_text("changed")
        assert environment.digest() != before


def test_nothing_runs_where_the_stamp_is_right(
    install: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second `make install` starts no process."""
    (tmp_path / "a.lock").write_text("one==1\n")
    environment = install.PythonEnvironment(tmp_path / "env", tmp_path / "a.lock")
    environment.folder.mkdir()
    (environment.folder / install.STAMP).write_text(environment.digest() + "\n")
    monkeypatch.setattr(install, "run", lambda *_, **__: pytest.fail("a process was started"))
    install.install_python(environment)


def test_a_failed_step_shows_what_it_said(
    install: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason of a failure is the failed program's own."""
    executable(tmp_path / "pip", "echo no such package; exit 3")
    with pytest.raises(install.CannotInstall, match=r"installing failed"):
        install.run([str(tmp_path / "pip")], "installing")
    assert "no such package" in capsys.readouterr().err


def test_an_environment_moved_here_from_elsewhere_is_not_taken_for_ours(
    install: ModuleType, tmp_path: Path
) -> None:
    """Scripts of a moved environment would start the Python of the old place."""
    environment = install.PythonEnvironment(tmp_path / "env", tmp_path / "a.lock")
    (environment.folder / "bin").mkdir(parents=True)
    assert not install.runs_here(environment)
    executable(environment.python, f"echo {environment.folder}; echo '{sys.version}'")
    (environment.folder / "bin" / "pip").write_text(f"#!{environment.folder}/bin/python\n")
    assert install.runs_here(environment)
    (environment.folder / "bin" / "pip").write_text(f"#!{os.sep}elsewhere/bin/python\n")
    assert not install.runs_here(environment)
