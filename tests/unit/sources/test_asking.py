"""Many places at once: as they come, in the caller's thread, and Ctrl-C keeps what is there."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable

import pytest

from berth.sources.asking import ask_all

Hand = Callable[[str], None]


def test_all_lanes_run_at_once_and_are_heard_in_one_thread() -> None:
    """Each lane waits for all others to be under way: only if they run together does anybody end."""
    together = threading.Barrier(8, timeout=10)
    heard: list[tuple[str, int]] = []

    def lane(hand_over: Hand) -> None:
        together.wait()
        hand_over("first")
        hand_over("second")

    assert ask_all([lane] * 8, lambda said: heard.append((said, threading.get_ident())))
    assert len(heard) == 16
    assert {ident for _, ident in heard} == {threading.get_ident()}


def test_ctrl_c_keeps_what_was_heard() -> None:
    """One lane hangs for ever; the person interrupts after the other has answered."""
    forever = threading.Event()
    heard: list[str] = []

    def hangs(hand_over: Hand) -> None:
        forever.wait(60)

    def hear(said: str) -> None:
        heard.append(said)
        _thread.interrupt_main()

    assert not ask_all([lambda hand_over: hand_over("answer"), hangs], hear)
    assert heard == ["answer"]
    forever.set()


def test_a_fault_in_a_lane_is_not_swallowed() -> None:
    """What a lane raises comes out where it was asked."""

    def broken(hand_over: Hand) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask_all([broken], lambda said: None)


def test_no_lanes_is_done() -> None:
    """Nothing to ask."""
    assert ask_all([], lambda said: None)
