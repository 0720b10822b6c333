"""Effect points: every moment at which a client changes something outside itself, or hears of it.

A journal commit has two (`journal intend:before`, `:after`), a call three: `wire CreateTrainingPlan:before`
it is sent, `:done` when the service has committed and the answer is on its way, `:answered` when the client
has it. Nobody lists them: they are those that production code passes.
"""

from __future__ import annotations

from collections.abc import Callable


class Killed(BaseException):
    """The process is gone: whatever it had in memory is lost, what is committed stays."""


class Effects:
    """Counts the effects of one process and tells whoever listens; a dead process can do nothing more."""

    def __init__(self, name: str, trace: list[str], at: Callable[[int, str], None]) -> None:
        self.name = name
        self.log: list[str] = []
        self._trace = trace
        self._at = at
        self._dead = False

    def __call__(self, effect: str) -> None:
        """One effect point is reached. Raises Killed when the process dies here, or has died."""
        if self._dead:
            raise Killed  # what unwinds after the kill must not act
        self.log.append(effect)
        self._trace.append(f"{self.name} {len(self.log)} {effect}")
        try:
            self._at(len(self.log), effect)
        except Killed:
            self.kill()
            raise

    def kill(self) -> None:
        """From now on every effect raises."""
        if not self._dead:
            self._trace.append(f"{self.name} killed")
        self._dead = True
