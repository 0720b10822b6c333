"""How to buy what a plan leads with, and what stands beside it: commands that can be copied as they stand."""

from __future__ import annotations

import shlex

from berth.planner.phrases import HANG, WIDTH, exact_amount
from berth.planner.plan import Choice, Plan
from berth.terms.money import Money


def buy_lines(plan: Plan, best: Choice | None, profile: str | None) -> list[str]:
    """The commands, what leads first. `profile`: the one that was named to ask with; None: none was."""
    ways: list[tuple[str, Money | None, str]] = []
    if best is not None and best.cost.fee is not None:
        told = "that one alone" if plan.mix_leads else "asks, re-reads the fee, buys once"
        ways.append((plan.need.handle(best.number), best.cost.fee, told))
    if plan.mix is not None and any(piece.promised for piece in plan.mix.pieces):
        told = "asks once, buys each once"
        if plan.mix.beyond_one_search:
            told = f"with --unconfirmed: {told}"
        ways.insert(0 if plan.mix_leads else 1, (plan.need.handle_of_mix, plan.mix_fee, told))
    lines: list[str] = []
    for handle, fee, told in ways:
        lines += _with_word("" if lines else "BUY", _command(handle, fee, profile), told)
    return lines


def _command(handle: str, fee: Money | None, profile: str | None) -> list[str]:
    """The command without its options, then each of them."""
    parts = [f"berth buy {handle}"]
    if fee is not None:
        most = exact_amount(fee)
        parts.append(f"--max {most if fee.currency == 'USD' else shlex.quote(f'{most} {fee.currency}')}")
    return [*parts, f"--profile {shlex.quote(profile)}"] if profile else parts


def _with_word(word: str, command: list[str], told: str) -> list[str]:
    line = f"{word:<{HANG}}{' '.join(command)}"
    if len(line) > WIDTH:  # each option in a line of its own, as a shell reads it
        first, *options = command
        parts = [f"{word:<{HANG}}{first}", *(f"{'':<{HANG + 2}}{option}" for option in options)]
        return [*(f"{part} \\" for part in parts[:-1]), parts[-1], " " * HANG + told]
    if len(line) + 2 + len(told) <= WIDTH:
        return [line + "       "[: max(2, WIDTH - len(line) - len(told))] + told]
    return [line, " " * HANG + told]
