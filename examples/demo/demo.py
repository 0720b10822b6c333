"""The demo: Berth's main job from need to clean account, over real HTTP, against a yard in rehearsal.

Then the story of an answer that is lost (`lost_answer.py`).

Everything below is what a person would type, plus a model that is trained on the spot. Only this
script moves the yard's clock; `berth` follows it. Nothing reaches AWS: the yard, its S3 and its containers
are processes of this machine, and they end with the script.
"""

from __future__ import annotations

import json
import os
import pickle
import shlex
import statistics
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lost_answer import lost_answer_story

HERE = Path(__file__).resolve().parent
BERTH = Path(sys.executable).with_name("berth")
NEED = HERE / "need.toml"
CLOCK = "2026-12-01T09:00Z"
BATCH = 10
WIDTH = 80


class DemoFailed(RuntimeError):
    """A step did not do what it should; the demo ends with what was printed."""


class Stage:
    """Prints what happens and runs commands in the yard's environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._told = False
        self.environment = dict(os.environ)
        for name in [name for name in self.environment if name.startswith(("AWS_", "BERTH_"))]:
            del self.environment[name]
        self.environment["BERTH_HOME"] = str(folder / "journal")
        self.environment["PATH"] = f"{BERTH.parent}{os.pathsep}{self.environment.get('PATH', '')}"

    def say(self, text: str) -> None:
        """A paragraph of the story."""
        print("\n" + textwrap.fill(text, WIDTH), flush=True)

    def run(self, *words: str, expect: int = 0, show: bool = True) -> str:
        """Type a `berth` command, print it and what it answers; its standard output."""
        shown = [word.replace(str(HERE) + "/", "").replace(str(self.folder), "$DEMO") for word in words]
        if show:
            print(f"\n$ berth {shlex.join(shown)}".replace("'", ""), flush=True)
        done = subprocess.run(
            [str(BERTH), *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if show else subprocess.PIPE,
            text=True,
            check=False,
        )
        if show:
            print(self._shortened(done.stdout), end="", flush=True)
        if done.returncode != expect:
            raise DemoFailed(
                f"exit code {done.returncode} instead of {expect}\n{done.stdout}{done.stderr or ''}"
            )
        return done.stdout

    def _shortened(self, text: str) -> str:
        """The two lines that say REHEARSAL stand above every command: whole once, then the first alone."""
        lines = text.replace(str(self.folder), "$DEMO").splitlines()
        if lines and lines[0].startswith("REHEARSAL"):
            if self._told:
                lines = [lines[0].removesuffix(" Stock is made"), *lines[2:]]
            self._told = True
        return "".join(f"{line}\n" for line in lines if line and not line.startswith("next: eval"))

    def yard(self, *words: str, show: bool = True) -> str:
        """A `berth yard` command on the demo's data folder."""
        return self.run("yard", *words, "--data", str(self.folder / "yard"), show=show)


def train(folder: Path) -> tuple[Path, Any, Any]:
    """Train a classifier of handwritten digits (scikit-learn's 1,797 images); pack it as SageMaker wants.

    The archive, and the held-out images with their labels.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC

    images, labels = load_digits(return_X_y=True)
    seen, held_out, seen_labels, held_out_labels = train_test_split(
        images, labels, test_size=0.3, random_state=7
    )
    model = folder / "model.pkl"
    model.write_bytes(pickle.dumps(SVC(gamma=0.001, C=10).fit(seen, seen_labels)))
    archive = folder / "model.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(model, "model.pkl")
    return archive, held_out, held_out_labels


def in_background(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start `work` in a thread; call the result to wait for what it gives."""
    box: list[Any] = []
    thread = threading.Thread(target=lambda: box.append(work()))
    thread.start()

    def wait() -> Any:
        thread.join()
        if not box:
            raise DemoFailed("the model could not be trained (see above)")
        return box[0]

    return wait


def serve_images(environment: dict[str, str], endpoint: str, images: Any, labels: Any) -> None:
    """Send every held-out image through InvokeEndpoint with stock boto3; print accuracy and latency."""
    import boto3

    runtime = boto3.session.Session(
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_REGION"],
    ).client("sagemaker-runtime", endpoint_url=environment["AWS_ENDPOINT_URL"])
    right, times = 0, []
    for first in range(0, len(images), BATCH):
        batch = images[first : first + BATCH]
        body = "\n".join(",".join(f"{pixel:g}" for pixel in image) for image in batch)
        started = time.perf_counter()
        answer = runtime.invoke_endpoint(
            EndpointName=endpoint, Body=body.encode(), ContentType="text/csv", Accept="application/json"
        )
        guesses = json.loads(answer["Body"].read())["predictions"]
        times.append((time.perf_counter() - started) * 1000)
        right += sum(int(guess) == label for guess, label in zip(guesses, labels[first:], strict=False))
    times.sort()
    print(
        f"\n{len(images)} held-out images in {len(times)} requests: {100 * right / len(images):.1f} % right"
    )
    slow = times[int(len(times) * 0.99)]
    print(f"a request took {statistics.median(times):.1f} ms (median), {slow:.1f} ms (99th percentile)")
    print("REHEARSAL: this machine's CPU answered, not a Trainium")


def endpoint_story(stage: Stage) -> None:
    """Find, compare, buy, wait, deploy on the reservation, serve, clean up, account for."""
    training = in_background(lambda: train(stage.folder))
    stage.say("1. What can be had, from when, for what money?")
    stage.run("plan", str(NEED))
    stage.say("2. Buy it, once. The intent is on disk before the call; the plan's name is the lock.")
    stage.run("buy", "eval-1#1", "--yes", "--max", "228.77")
    stage.yard("clock", "advance", "6m")
    stage.run("show", "eval-1")
    archive, images, labels = training()
    stage.say(
        f"3. Meanwhile a model was trained here on {len(images) * 7 // 3} real images. The window opens;"
        " the script moves the clock."
    )
    stage.yard("clock", "set", "2026-12-02T11:30Z")
    stage.run("deploy", "eval-1", "--data", archive.name)
    stage.say("4. Serve: stock boto3, InvokeEndpoint, real answers.")
    endpoint = json.loads(stage.run("show", "eval-1", "--json", show=False))["endpoint"]["name"]
    serve_images(stage.environment, endpoint, images, labels)
    stage.say("5. Nine and a half hours later: clear up before the window closes, and say what it cost.")
    stage.yard("clock", "advance", "9h30m")
    stage.run("clean", "eval-1", expect=31)
    leftovers = json.loads(stage.yard("ledger", "--json", show=False))
    print(f"\nThe yard's own books: {len(leftovers)} entry, {leftovers[0]['amount']} USD.")


def use_environment(stage: Stage) -> None:
    """Take over what `berth yard env` exports."""
    stage.environment.update(json.loads(stage.yard("env", "--json", show=False)))


def main() -> int:
    """Run the demo; 0 when every step did what it should."""
    started = time.monotonic()
    print(textwrap.fill(
        "Berth gets GPUs for a window of time. REHEARSAL: a yard on this machine plays AWS, with a clock that"
        " this script moves; nothing is charged and nothing reaches AWS.", WIDTH))  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="berth-demo-") as made:
        stage = Stage(Path(made))
        try:
            stage.yard("start", "--detach", "--port", "0", "--clock", CLOCK)
            use_environment(stage)
            endpoint_story(stage)
            lost_answer_story(stage)
        except RuntimeError as failure:
            print(f"\nthe demo failed: {failure}", file=sys.stderr)
            return 1
        finally:
            if (stage.folder / "yard" / "running.json").exists():
                stage.yard("stop", show=False)
    print(f"\nDone in {time.monotonic() - started:.0f} s. Your turn:\n")
    print(f"  .venv/bin/berth yard start --detach --clock {CLOCK}")
    print('  export PATH="$PWD/.venv/bin:$PATH"; eval "$(berth yard env)"')
    print("  berth plan examples/demo/need.toml")
    return 0


if __name__ == "__main__":
    sys.exit(main())
