"""Asking many places at once: one thread a lane, answers as they come, and Ctrl-C keeps what is there.

The only threads of the client run here. A lane is a piece of work that asks its questions one after another
and hands over each answer; the caller hears all answers in its own thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Answer = TypeVar("Answer")
Lane = Callable[[Callable[[Answer], None]], None]
"""Asks, and hands over each answer by calling its argument. What it raises is a fault of ours."""


@dataclass(frozen=True, slots=True)
class _Heard(Generic[Answer]):
    answer: Answer


@dataclass(frozen=True, slots=True)
class _Ended:
    fault: BaseException | None


def ask_all(lanes: Sequence[Lane[Answer]], hear: Callable[[Answer], None]) -> bool:
    """Run all lanes at once and let `hear` have each answer, in the order in which they come.

    True when every lane ended. False when the person pressed Ctrl-C: what was heard stays heard, and lanes
    under way are left behind (they only read, and end with the process). Raises what a lane raised.
    """
    told: queue.SimpleQueue[_Heard[Answer] | _Ended] = queue.SimpleQueue()
    for number, lane in enumerate(lanes):
        threading.Thread(target=_run, args=(lane, told), name=f"ask-{number}", daemon=True).start()
    open_lanes = len(lanes)
    try:
        while open_lanes:
            said = told.get()
            if isinstance(said, _Heard):
                hear(said.answer)
                continue
            open_lanes -= 1
            if said.fault is not None:
                raise said.fault
    except KeyboardInterrupt:
        _drain(told, hear)
        return False
    return True


def _run(lane: Lane[Answer], told: queue.SimpleQueue[_Heard[Answer] | _Ended]) -> None:
    try:
        lane(lambda answer: told.put(_Heard(answer)))
    except BaseException as fault:  # noqa: BLE001 - handed to the thread that waits, which raises it
        told.put(_Ended(fault))
    else:
        told.put(_Ended(None))


def _drain(told: queue.SimpleQueue[_Heard[Answer] | _Ended], hear: Callable[[Answer], None]) -> None:
    while True:
        try:
            said = told.get_nowait()
        except queue.Empty:
            return
        if isinstance(said, _Heard):
            hear(said.answer)
