"""How much room the core takes: the client without extras, in a fresh environment, at the locked versions.

The environment is made in a temporary folder and removed; pip fetches the packages from wherever it is
configured to. Sizes are the files' lengths, byte code included, without what an empty environment holds.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import ROOT, Verdicts, machine, table

LIMIT_MB = 120.0
SHOWN = 8
# What makes a package too large for a core in one line: none of these may be drawn in.
EXTRAS = ("numpy", "moto", "uvicorn", "starlette", "regex", "scikit-learn", "flask")
_PIN = re.compile(r"(?m)^([A-Za-z0-9._-]+)==([^\s;\\]+)([^\\\n]*)")


def constraints(lock: Path) -> str:
    """The lock's versions without its hashes: a constraint, not an order to install."""
    return "".join(
        f"{name}=={version}{marker.rstrip()}\n" for name, version, marker in _PIN.findall(lock.read_text())
    )


def size_of(folder: Path) -> int:
    """Bytes of all files below `folder`."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def parts_of(folder: Path) -> dict[str, int]:
    """Bytes of each entry of a site-packages folder."""
    return {
        entry.name: size_of(entry) if entry.is_dir() else entry.lstat().st_size for entry in folder.iterdir()
    }


def main() -> None:
    """Build the wheel, install it, weigh the difference."""
    print(machine())
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        folder = Path(name)
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
            cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        (wheel,) = folder.glob("*.whl")
        pins = folder / "constraints.txt"
        pins.write_text(constraints(ROOT / "requirements" / "dev.lock"))
        subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
        (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
        empty = parts_of(packages)
        begun = time.perf_counter()
        pip = [str(folder / "env" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-qq", "--constraint", str(pins), str(wheel)], check=True)
        took = time.perf_counter() - begun
        parts = {part: size for part, size in parts_of(packages).items() if part not in empty}
        wheel_mb = wheel.stat().st_size / 1e6
        listing = subprocess.run(
            [*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True
        )
        listed = listing.stdout.split()
    report(parts, listed, wheel_mb, took)


def report(parts: dict[str, int], listed: list[str], wheel_mb: float, took_s: float) -> None:
    """The largest parts, the sum, the pass lines."""
    total = sum(parts.values()) / 1e6
    largest = sorted(parts.items(), key=lambda part: -part[1])[:SHOWN]
    print(" ".join(sorted(listed)))
    print(table(["part", "MB"], [[name, f"{size / 1e6:.1f}"] for name, size in largest]))
    print(f"wheel {wheel_mb:.2f} MB; installed in {took_s:.0f} s")
    verdicts = Verdicts("size")
    verdicts.check(total < LIMIT_MB, f"core install {total:.1f} MB (aim: under {LIMIT_MB:g} MB)")
    drawn = [name for name in EXTRAS if any(line.lower().startswith(f"{name}==") for line in listed)]
    verdicts.check(not drawn, f"nothing of the extras in it{': ' + ', '.join(drawn) if drawn else ''}")
    verdicts.finish()


if __name__ == "__main__":
    main()
