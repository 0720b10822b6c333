"""The checkup as text of 80 columns: topic by topic, one line each, then what to do."""

from __future__ import annotations

import textwrap

from berth.checkup.findings import Checkup, Finding, State, Topic
from berth.terms.text import plain

WIDTH = 80
_STATE = 9
_WORDS = {
    Topic.IDENTITY: "Who",
    Topic.CLOCK: "Clock",
    Topic.SDK: "AWS's SDK (botocore)",
    Topic.JOURNAL: "Journal",
    Topic.REGIONS: "Regions",
    Topic.RIGHTS: "Rights, by verb",
    Topic.QUOTAS: "Quotas",
    Topic.NEED: "What the need names",
}


def checkup_text(checkup: Checkup) -> str:
    """The whole list."""
    lines: list[str] = []
    for topic in Topic:
        found = [one for one in checkup.findings if one.topic is topic]
        if found:
            lines += [_WORDS[topic], *(line for one in found for line in _lines(one))]
    return "\n".join([*lines, "", *_closing(checkup)])


def _lines(finding: Finding) -> list[str]:
    state = finding.state.value
    head = f"  {state:<{_STATE}}{plain(finding.what, 100)}"
    return textwrap.wrap(
        f"{head}: {plain(finding.said, 1500)}", WIDTH, subsequent_indent=" " * (_STATE + 2),
        break_long_words=False, break_on_hyphens=False, replace_whitespace=False, drop_whitespace=True,
    )  # fmt: skip


def _closing(checkup: Checkup) -> list[str]:
    counts = {state: len(checkup.having(state)) for state in State}
    said = ", ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
    if not checkup.todo:
        return [f"{said}: nothing to do"]
    lines = ["What to do"]
    for number, one in enumerate(checkup.todo, start=1):
        # A command stays on one line, so that it can be copied.
        head = f"{number:>3}. "
        command = plain(one, 1000)
        wrapped = (
            [command] if "aws " in command else textwrap.wrap(command, WIDTH - 5, break_long_words=False)
        )
        lines += [head + wrapped[0], *(" " * 5 + line for line in wrapped[1:])]
    return [*lines, "", said]
