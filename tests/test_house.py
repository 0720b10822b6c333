"""House rules that no linter knows. A broken one says which file, which line and what to do."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 500
# Files that may be longer, each with its reason. An entry that is no longer needed is a failure too.
LONGER_WITH_REASON: dict[str, str] = {}
# Folders of Python files in src that are no packages, each with its reason.
NOT_PACKAGES = {
    "src/berth/yard/engines/images": "programs that a yard starts by their path; nothing imports them"
}

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|\bNotImplementedError\b")
# Folders of the machine that a text was written on; what users meet too (/usr, /opt/ml, /tmp) is none.
MACHINE_PATHS = re.compile(r"(?<![\w.$}<~])/(?:work|root|home|Users|mnt|workspace)/[\w.-]")
# A lock or text that names a registry would break for whoever uses a mirror.
REGISTRIES = re.compile(
    r"\b(?:pyp[i]\.org|python[h]osted\.org|registry\.npm[j]s\.org|deb\.debia[n]\.org|security\.debia[n]\.org)\b"
)
CODE = (".py", ".sql", ".mjs", ".js", ".sh")
TEXT = (*CODE, ".md", ".toml", ".json", ".lock", ".in", ".yaml", ".yml", ".txt", ".html", ".css")
NAMELESS = {"Makefile", "run", ".gitignore", ".npmrc"}
SOURCE = ROOT / "src"
MARKDOWN_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^()\s]+)\)|!\[[^\]\n]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project that git tracks or would track, as paths below the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = (Path(name) for name in listed.split("\0") if name)
    ours = (path for path in found if path.parts[0] != "shared" and (ROOT / path).is_file())
    return tuple(sorted(ours))


def texts(*suffixes: str) -> Iterator[tuple[Path, str]]:
    """Path and text of each file with one of the suffixes; without any, of each file that a person writes."""
    for path in files():
        if path.suffix in (suffixes or TEXT) or (not suffixes and path.name in NAMELESS):
            yield path, (ROOT / path).read_text(encoding="utf-8")


def lines_matching(pattern: re.Pattern[str], *suffixes: str) -> list[str]:
    """`path:line: text` of every match; this file, which holds the patterns, is left out."""
    here = Path(__file__).relative_to(ROOT)
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in texts(*suffixes)
        if path != here
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_source_file_is_longer_than_a_person_reads() -> None:
    """A file is about one noun; a longer one says why it is longer."""
    too_long = {
        str(path): text.count("\n")
        for path, text in texts(".py", ".sql", ".mjs", ".js")
        if text.count("\n") > LONGEST
    }
    assert {path: n for path, n in too_long.items() if path not in LONGER_WITH_REASON} == {}
    assert set(LONGER_WITH_REASON) - set(too_long) == set(), "short enough again: take it off the list"


def test_nothing_is_left_unfinished() -> None:
    """No promise to do it later in code: it is done, or it is in the docs as not done."""
    assert lines_matching(UNFINISHED, *CODE) == []


def test_no_file_knows_the_machine_that_it_was_written_on() -> None:
    """Nothing names a folder of somebody's machine or the address of a package registry."""
    assert lines_matching(MACHINE_PATHS) == []
    assert lines_matching(REGISTRIES) == []


def test_every_module_says_what_it_is() -> None:
    """Each Python file opens with a docstring, tests and tools included."""
    modules = [(path, ast.parse(text)) for path, text in texts(".py") if text.strip()]
    assert [str(path) for path, module in modules if ast.get_docstring(module) is None] == []


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    named = (
        (path.relative_to(SOURCE).with_suffix("").parts, path) for path in (SOURCE / "berth").rglob("*.py")
    )
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for parts, path in named}


def imported(module: str, known: dict[str, Path]) -> set[str]:
    """The modules of ours that it names in an import, in functions and for the type checker too."""
    path, found = known[module], set[str]()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                found.add(inner if inner in known else origin)
    return (found & known.keys()) - {module}


def test_no_modules_lean_on_each_other_in_a_circle() -> None:
    """A circle says that a thing lies in the wrong file: move it to where both can reach it."""
    known = modules()
    try:
        TopologicalSorter({module: imported(module, known) for module in known}).prepare()
    except CycleError as circle:
        pytest.fail(" <- ".join(circle.args[1]))


def test_no_package_of_ours_is_a_bare_folder() -> None:
    """A folder with modules in src has an __init__.py, or the wheel and the import rules would miss it."""
    folders = {path.parent for path in files() if path.suffix == ".py" and path.parts[0] == "src"}
    bare = {str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file()}
    assert bare == set(NOT_PACKAGES)


def anchors(text: str) -> set[str]:
    """The fragments that a Markdown page's headings can be linked by."""
    headings = re.findall(r"(?m)^#{1,6} (.+?)\s*#*$", FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path, text: str) -> Iterator[str]:
    """Links of a Markdown page to files or headings of ours that are not there."""
    for match in MARKDOWN_LINK.finditer(FENCE.sub("", text)):
        link = match.group(1) or match.group(2)
        if re.match(r"[a-z]+:", link):
            continue
        name, _, fragment = link.partition("#")
        target = (ROOT / path.parent / name).resolve() if name else ROOT / path
        if not target.exists():
            yield f"{path}: {link}"
        elif fragment and target.suffix == ".md" and fragment not in anchors(target.read_text()):
            yield f"{path}: {link} (no such heading)"


def test_links_in_the_docs_lead_somewhere() -> None:
    """Every relative link in a Markdown page reaches a file, and its heading if it names one."""
    assert [broken for path, text in texts(".md") for broken in broken_links(path, text)] == []


def linked_from(page: Path) -> Iterator[Path]:
    """Places in this folder, below the root, that a Markdown page links."""
    for match in MARKDOWN_LINK.finditer(FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))):
        link = (match.group(1) or match.group(2)).partition("#")[0]
        place = (ROOT / page.parent / link).resolve()
        if link and "://" not in link and place.is_relative_to(ROOT):
            yield place.relative_to(ROOT)


def test_every_page_of_the_docs_can_be_found_from_the_index() -> None:
    """docs/README.md leads, over its pages and the folders that they link, to every page."""
    pages = {path for path in files() if path.suffix == ".md" and path.parts[0] == "docs"}
    reached: set[Path] = set()
    waiting = [Path("docs/README.md")]
    while waiting:
        place = waiting.pop()
        if (ROOT / place).is_dir():
            waiting += [page for page in pages - reached if page.parent == place]
        elif place in pages - reached:
            reached.add(place)
            waiting += linked_from(place)
    assert sorted(str(page) for page in pages - reached) == []


def test_the_changelog_has_a_place_for_the_next_change() -> None:
    """The first section is Unreleased, so that a change always has where to go."""
    sections = re.findall(r"(?m)^## (.+)$", (ROOT / "CHANGELOG.md").read_text())
    assert sections[0] == "Unreleased"


def make_verbs() -> set[str]:
    """The verbs that the Makefile offers."""
    return set(re.findall(r"(?m)^([a-z-]+):.*## ", (ROOT / "Makefile").read_text()))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/start.md"])
def test_the_make_commands_that_pages_name_exist(page: str) -> None:
    """`make X` in a page is a verb of the Makefile, and each verb is listed as phony."""
    verbs = make_verbs()
    named = set(re.findall(r"(?m)(?:^|`|\$ )make ([a-z][a-z-]*)", (ROOT / page).read_text()))
    assert named - verbs == set()
    phony = re.search(r"(?m)^\.PHONY: (.+)$", (ROOT / "Makefile").read_text())
    assert phony is not None
    assert set(phony.group(1).split()) == verbs


def dependencies() -> Iterator[str]:
    """Name of each direct dependency: core, extras and development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(line for extra in project["project"]["optional-dependencies"].values() for line in extra),
        *(line for group in project["dependency-groups"].values() for line in group),
    ]
    names = (re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in wanted)
    yield from sorted({name for name in names if name != "gpu-berth"})


def test_every_dependency_has_its_reason_beside_it() -> None:
    """pyproject.toml says in a comment why each direct dependency is there."""
    text = (ROOT / "pyproject.toml").read_text()
    # The reasons are lines like "#   name, other  why": names, two blanks, a sentence.
    reasons = re.findall(r"(?m)^#   (\S+(?:[,/] ?\S+)*)  +\S.+$", text)
    given = {name.partition("[")[0] for line in reasons for name in re.split(r"[,/] ?", line)}
    assert [name for name in dependencies() if name not in given] == []


def test_every_dependency_is_locked() -> None:
    """The development lock holds each direct dependency at one exact version, with hashes."""
    lock = (ROOT / "requirements" / "dev.lock").read_text()
    assert [name for name in dependencies() if not re.search(rf"(?m)^{re.escape(name)}==", lock)] == []
    pinned = re.findall(r"(?m)^[\w.-]+==[^\n]*\\\n {4}--hash=sha256:", lock)
    assert len(pinned) == len(re.findall(r"(?m)^[\w.-]+==", lock))
