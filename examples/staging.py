"""What the rehearsals of this folder share: a yard of their own, `berth` as a person types it, checked facts.

Everything runs on this machine, in a temporary folder; nothing reaches AWS. Each command is shown with what
it answered. A fact that is not so ends the rehearsal.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from berth.yard.admin.client import ask
from berth.yard.data_folder import DataFolder

BERTH = Path(sys.executable).with_name("berth")
WIDTH = 80
PATIENCE_S = 300  # for a command that hangs; none of them waits for anything


class RehearsalFailed(RuntimeError):
    """A step did not do what it should; the rehearsal ends with what was printed."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, its answer (stdout) and its talk (stderr)."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.out)


class Stage:
    """A yard on a folder of its own, and a person's shell before it. Use it in a `with` statement.

    `fleet` is the yard's fleet file (None: the one that ships); `here` holds the files that are named.
    """

    def __init__(self, here: Path, clock: str, fleet: Path | None = None) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="berth-rehearsal-")
        self.folder = Path(self._made.name)
        self.here = here
        self._start = ("start", "--detach", "--port", "0", "--clock", clock)
        self._start += ("--fleet", str(fleet)) if fleet is not None else ()
        self._told = False
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("AWS_", "BERTH_"))}
        path = f"{BERTH.parent}{os.pathsep}{kept.get('PATH', '')}"
        self.environment = {**kept, "PATH": path, "BERTH_HOME": str(self.folder / "journal")}
        self._shell = dict(self.environment)

    def __enter__(self) -> Stage:
        """Start the yard."""
        self.yard(*self._start, show=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the yard, and remove the folder."""
        if (self.folder / "yard" / "running.json").exists():
            self.yard("stop")
        self._made.cleanup()

    # -- telling -----------------------------------------------------------------------------------------
    def say(self, text: str) -> None:
        """A paragraph of the story."""
        print("\n" + textwrap.fill(text, WIDTH), flush=True)

    def check(self, fact: str, *, true: bool) -> None:
        """Print a fact that was looked up. Raises RehearsalFailed where it is not so."""
        if not true:
            raise RehearsalFailed(f"not so: {fact}")
        print(textwrap.fill(f"CHECKED  {fact}", WIDTH, subsequent_indent=" " * 9), flush=True)

    # -- typing ------------------------------------------------------------------------------------------
    def berth(self, *words: str, expect: int = 0, show: bool = True, brief: int | None = None) -> Ended:
        """Type a `berth` command; how it ended. `brief`: of its output only so many lines are shown.

        Raises RehearsalFailed unless it ends with the exit code `expect`.
        """
        if show:
            print(f"\n{self._prompt()} berth {self._shown(shlex.join(words))}", flush=True)
        done = subprocess.run(
            [str(BERTH), *words], cwd=self.here, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        if show:
            self._tell(done.stderr, done.stdout, brief)
            if done.returncode:
                print(f"exit code {done.returncode}", flush=True)
        if done.returncode != expect:
            raise RehearsalFailed(
                f"exit code {done.returncode} instead of {expect}\n{done.stdout}{done.stderr}"
            )
        return Ended(done.returncode, done.stdout, done.stderr)

    def excerpts(self, words: Sequence[str], *parts: tuple[str, int, int]) -> None:
        """Type a command and look at parts of its answer: a text in a line, the lines before, all lines."""
        found = self.berth(*words, show=False).out.splitlines()
        for text, before, lines in parts:
            at = next((number for number, line in enumerate(found) if text in line), None)
            if at is None:
                raise RehearsalFailed(f"nowhere in the answer of berth {shlex.join(words)}: {text}")
            shown = f"{shlex.join(words)} | grep -B {before} {shlex.quote(text)} | head -{lines}"
            print(f"\n{self._prompt()} berth {shown}")
            print("\n".join(found[max(at - before, 0) :][:lines]), flush=True)

    def together(self, *commands: Sequence[str]) -> list[Ended]:
        """Type several commands at once, as timers of several machines do; how each ended."""
        started = [
            subprocess.Popen(
                [str(BERTH), *words], cwd=self.here, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for words in commands
        ]  # fmt: skip
        said = [process.communicate(timeout=PATIENCE_S) for process in started]
        return [Ended(one.returncode, *texts) for one, texts in zip(started, said, strict=True)]

    def yard(self, *words: str, show: bool = False) -> Ended:
        """Type a `berth yard` command for this yard."""
        return self.berth("yard", *words, "--data", str(self.folder / "yard"), show=show)

    def clock(self, *words: str) -> None:
        """Move the yard's clock: `set TIME` or `advance SPAN`."""
        self.yard("clock", *words, show=True)

    def become(self, who: str, account: str, user: str | None = None) -> None:
        """Use the keys of an account's user from now on. `who` stands before the prompt."""
        self.environment = {**self._shell, **self.keys(account, user)}
        self._who = who

    _who = ""

    def keys(self, account: str, user: str | None = None) -> dict[str, str]:
        """What `berth yard env --account ACCOUNT --user USER` exports."""
        found: dict[str, str] = self.ask("GET", "/environment", account=account, user=user)
        return found

    def profiles(self, keys: Mapping[str, Mapping[str, str]]) -> None:
        """Write a credentials file with a profile for each identity, and use it from now on."""
        file = self.folder / "credentials"
        names = {"aws_access_key_id": "AWS_ACCESS_KEY_ID", "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY"}
        file.write_text(
            "".join(
                f"[{profile}]\n" + "".join(f"{key} = {found[name]}\n" for key, name in names.items())
                for profile, found in keys.items()
            )
        )
        file.chmod(0o600)
        shared = dict(next(iter(keys.values())))
        for name in names.values():
            del shared[name]
        self.environment = {**self._shell, **shared, "AWS_SHARED_CREDENTIALS_FILE": str(file)}

    def account(self, name: str, *users: str) -> str:
        """Add an account with further users, who may do everything; its number (`berth yard account add`)."""
        number = str(self.ask("POST", "/accounts", {"name": name})["account"])
        for user in users:
            self.user(name, user)
        return number

    def user(self, account: str, name: str, policy: str = "") -> None:
        """Add a further user, who may do what the IAM policy says (`berth yard account user`)."""
        self.ask("POST", "/users", {"account": account, "name": name, "policy": policy})

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """What `berth yard ...` asks the yard, without a process for each."""
        return ask(DataFolder(self.folder / "yard").admin_socket, method, path, body, **query)

    # -- the yard's books --------------------------------------------------------------------------------
    def ledger(self, account: str) -> list[dict[str, Any]]:
        """What the yard billed the account (`berth yard ledger`)."""
        found: list[dict[str, Any]] = self.ask("GET", "/ledger", account=account)
        return found

    def paid(self, account: str) -> list[Decimal]:
        """The amounts of the ledger, oldest first."""
        return [Decimal(entry["amount"]) for entry in self.ledger(account)]

    def calls(self, operation: str) -> list[dict[str, Any]]:
        """The calls of an operation that the yard accepted, oldest first (`berth yard log`)."""
        found: list[dict[str, Any]] = self.ask("GET", "/calls", limit=10_000, operation=operation)
        return found

    # -- inside ------------------------------------------------------------------------------------------
    def _prompt(self) -> str:
        return f"{self._who}$" if self._who else "$"

    def _shown(self, text: str) -> str:
        return text.replace(str(self.folder), "$REHEARSAL").replace(str(self.here) + "/", "").replace("'", "")

    def _tell(self, talk: str, answer: str, brief: int | None) -> None:
        """What a terminal shows; the two lines that say REHEARSAL once whole, then not again."""
        said = (answer, talk) if "\nerror: " in f"\n{talk}" else (talk, answer)
        lines = [line for line in self._shown("".join(said)).splitlines() if line]
        head = next((n for n, line in enumerate(lines) if line.startswith("REHEARSAL")), None)
        if head is not None:
            if self._told:
                del lines[head : head + 2]
            self._told = True
        if brief is not None and len(lines) > brief:
            lines = [*lines[:brief], f"... and {len(lines) - brief} lines more"]
        print("".join(f"{line}\n" for line in lines), end="", flush=True)


def run_rehearsal(story: Callable[[], None]) -> int:
    """Run a story; 0 when every step and every fact was as it should be."""
    try:
        story()
    except (RehearsalFailed, subprocess.TimeoutExpired) as failure:
        print(f"\nthe rehearsal failed: {failure}", file=sys.stderr)
        return 1
    print("\nDone. Nothing was charged, and nothing runs any more.")
    return 0
