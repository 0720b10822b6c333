"""The command of a verb: as Typer makes it, and an option that is given without a value is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperCommand

from berth.terms.outcomes import BerthError, ExitCode

_BRACKETS = re.compile(r"\{([^{}]*)\}|\[\[(.*)\]\]")


class Verb(TyperCommand):
    """Refuses `--count ""`: what a script left empty must not silently mean that nothing was said."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`NAME` must be there and `[NEED]` may be: without Typer's second kind of brackets."""
        pieces = super().collect_usage_pieces(ctx)
        return [_BRACKETS.sub(lambda found: found[1] or f"[{found[2]}]", piece) for piece in pieces]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Typer's own reading, after the options were looked at as they were typed. Raises BerthError."""
        # Only here are they still text: converted, an empty path reads as this folder.
        typed, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for option in self._empty(typed):
            raise BerthError(
                ExitCode.USAGE,
                f"{option}: the value is empty",
                f"give it a value, or leave {option} out (berth {ctx.info_name} --help)",
            )
        return super().parse_args(ctx, args)

    def _empty(self, typed: dict[str, Any]) -> Iterator[str]:
        """The options that were typed with nothing but blanks behind them."""
        for option in self.params:
            if option.param_type_name != "option":
                continue  # the body of a request may well be empty
            value = typed.get(option.name or "")
            values = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(one, str) and not one.strip() for one in values):
                yield max(option.opts, key=len)


def refuse_empty_options(app: typer.Typer) -> None:
    """Make every verb that is registered so far a `Verb`, those of groups too."""
    for command in app.registered_commands:
        command.cls = Verb
    for group in app.registered_groups:
        if group.typer_instance is not None:
            refuse_empty_options(group.typer_instance)
