"""Rounding and local search: a good whole choice in milliseconds, from which the solver goes on.

Moves are: add an offer, drop one, exchange one for another, and now and then tear down all that cover a row
and build anew. The number of moves is bounded and the seed is fixed, so the same grid gives the same
choice.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from berth.planner.best.grid import Floats, Grid, Ints

_EPS = 1e-7
_THRESHOLDS = (0.95, 0.7, 0.5, 0.3, 2.0)
SEED = 20261130


@dataclass(slots=True)
class _State:
    """A choice (`taken` steps of each offer) with what follows from it, kept up to date by `change`."""

    grid: Grid
    taken: Ints
    net: Ints  # what each row still needs; negative: more than it needs
    free: Ints  # what each room has left
    rows: Ints = field(init=False)
    sizes: Ints = field(init=False)
    which: Ints = field(init=False)
    seats: tuple[Ints, ...] = field(init=False)
    flat: Ints = field(init=False)
    begins: Ints = field(init=False)
    seated: Ints = field(init=False)

    def __post_init__(self) -> None:
        grid = self.grid
        self.rows = np.arange(len(grid.need))
        self.sizes, self.which = np.unique(grid.size, return_inverse=True)
        seats: list[list[int]] = [[] for _ in grid.offers]
        for r, room in enumerate(grid.rooms):
            for j in room.members:
                seats[j].append(r)
        self.seats = tuple(np.array(s, dtype=np.int64) for s in seats)
        self.seated = np.array([j for j, s in enumerate(seats) if s], dtype=np.int64)
        self.flat = np.array([r for s in seats for r in s], dtype=np.int64)
        lengths = np.array([len(seats[j]) for j in self.seated], dtype=np.int64)
        self.begins = (
            np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64) if len(lengths) else lengths
        )

    def change(self, j: int, steps: int) -> None:
        """Take `steps` more of offer j (fewer when negative)."""
        amount = steps * int(self.grid.size[j])
        self.taken[j] += steps
        for low, high in zip(self.grid.first[j], self.grid.last[j], strict=True):
            self.net[low:high] -= amount
        if len(self.seats[j]):
            self.free[self.seats[j]] -= amount

    def cost(self) -> float:
        """What the choice and the metered hours beside it cost; penalties included."""
        metered = self.grid.shortage[self.rows, np.clip(self.net, 0, None)].sum()
        return float(metered + (self.taken * self.grid.cost).sum())

    def _per_offer(self, change: int) -> Floats:
        """What one step more (1) or less (-1) of each offer saves in metered hours."""
        now = self.grid.shortage[self.rows, np.clip(self.net, 0, None)]
        top = self.grid.shortage.shape[1] - 1
        after = np.clip(self.net[None, :] - change * self.sizes[:, None], 0, top)
        saved = now[None, :] - self.grid.shortage[self.rows[None, :], after]
        summed = np.zeros((len(self.sizes), saved.shape[1] + 1))
        np.cumsum(saved, axis=1, out=summed[:, 1:])
        which = self.which[:, None]
        gain: Floats = (summed[which, self.grid.last] - summed[which, self.grid.first]).sum(axis=1)
        return gain

    def best_add(self) -> tuple[int, float]:
        """The offer of which one step more saves most, and how much; (-1, 0) when none can be had."""
        gain = self._per_offer(1) - self.grid.cost
        gain[self.taken >= self.grid.most] = -np.inf
        if len(self.seated):
            least = np.minimum.reduceat(self.free[self.flat], self.begins)
            gain[self.seated[least < self.grid.size[self.seated]]] = -np.inf
        j = int(np.argmax(gain)) if len(gain) else -1
        return (j, float(gain[j])) if j >= 0 and np.isfinite(gain[j]) else (-1, 0.0)

    def best_drop(self) -> tuple[int, float]:
        """The offer of which one step less saves most, and how much."""
        gain = self._per_offer(-1) + self.grid.cost
        gain[self.taken <= 0] = -np.inf
        j = int(np.argmax(gain)) if len(gain) else -1
        return (j, float(gain[j])) if j >= 0 and np.isfinite(gain[j]) else (-1, 0.0)

    def settle(self) -> None:
        """Add and drop while either saves anything."""
        for _ in range(4 * len(self.grid.offers) + 8):
            j, gain = self.best_add()
            if gain > _EPS:
                self.change(j, 1)
                continue
            j, gain = self.best_drop()
            if gain <= _EPS:
                return
            self.change(j, -1)

    def exchange(self) -> bool:
        """One pass over what is taken: drop a step, settle, keep it if that saved anything."""
        better = False
        for j in np.flatnonzero(self.taken):
            if not self.taken[j]:
                continue
            before, cost = self.taken.copy(), self.cost()
            self.change(int(j), -1)
            blocked, add = self._best_other(int(j))
            if blocked >= 0 and add > -np.inf:
                self.change(blocked, 1)
            self.settle()
            if self.cost() < cost - _EPS:
                better = True
            else:
                self.restore(before)
        return better

    def _best_other(self, j: int) -> tuple[int, float]:
        most = self.grid.most[j]
        self.grid.most[j] = self.taken[j]  # not the one that was just dropped
        found = self.best_add()
        self.grid.most[j] = most
        return found

    def restore(self, taken: Ints) -> None:
        """Back to an earlier choice."""
        for j in np.flatnonzero(taken - self.taken):
            self.change(int(j), int(taken[j] - self.taken[j]))


def improved(grid: Grid, relaxed: Floats | None, rounds: int) -> Ints:
    """A choice of steps of each offer. `relaxed` is the answer of the linear program (None: start from
    nothing); `rounds` bounds how often a part is torn down and built anew.
    """
    nothing = np.zeros(len(grid.offers), dtype=np.int64)
    state = _State(
        grid, nothing.copy(), grid.need.copy(), np.array([r.most for r in grid.rooms], dtype=np.int64)
    )
    if not len(grid.offers):
        return nothing
    best, least = nothing, np.inf
    for threshold in _THRESHOLDS if relaxed is not None else (2.0,):
        state.restore(nothing)
        if relaxed is not None and threshold < 1:
            _round_down(state, relaxed, threshold)
        state.settle()
        if (cost := state.cost()) < least - _EPS:
            best, least = state.taken.copy(), cost
    state.restore(best)
    while rounds > 0 and state.exchange():
        rounds -= 1
    return _rebuilt(state, rounds)


def _round_down(state: _State, relaxed: Floats, threshold: float) -> None:
    """Take the steps that the relaxed answer takes nearly whole, nearest to whole first, where there is
    room.
    """
    grid = state.grid
    whole = np.floor(relaxed + 1 - threshold).astype(np.int64)
    for j in np.argsort(-(relaxed - np.floor(relaxed)), kind="stable"):
        steps = int(min(whole[j], grid.most[j]))
        seats = state.seats[j]
        if steps > 0 and (not len(seats) or int(state.free[seats].min()) >= steps * int(grid.size[j])):
            state.change(int(j), steps)


def _rebuilt(state: _State, rounds: int) -> Ints:
    """Tear down what covers a row, and half of its neighbours; build anew in another order; keep what is
    better.
    """
    grid, rng = state.grid, random.Random(SEED)  # noqa: S311 - not for secrets
    best, least = state.taken.copy(), state.cost()
    for _ in range(rounds if len(grid.need) else 0):
        row = rng.randrange(len(grid.need))
        covers = ((grid.first <= row) & (grid.last > row)).any(axis=1) & (state.taken > 0)
        for j in np.flatnonzero(covers):
            if rng.random() < 0.7:
                state.change(int(j), -int(state.taken[j]))
        for _ in range(2):
            _add_some(state, rng)
        state.settle()
        if (cost := state.cost()) < least - _EPS:
            best, least = state.taken.copy(), cost
        else:
            state.restore(best)
    state.restore(best)
    state.exchange()
    return state.taken.copy()


def _add_some(state: _State, rng: random.Random) -> None:
    """One step of an offer that is good, though maybe not best: the door out of a dead end."""
    gain = state._per_offer(1) - state.grid.cost
    gain[state.taken >= state.grid.most] = -np.inf
    good = np.argsort(-gain, kind="stable")[:6]
    j = int(good[rng.randrange(len(good))])
    seats = state.seats[j]
    if gain[j] > _EPS and (not len(seats) or int(state.free[seats].min()) >= int(state.grid.size[j])):
        state.change(j, 1)
