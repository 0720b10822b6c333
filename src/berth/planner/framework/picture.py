"""The framework as one picture, drawn from its rules: questions down the left, ways at the right."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap
from xml.sax.saxutils import escape

from berth.planner.framework.advice import QUESTIONS, Question
from berth.planner.framework.limits import EC2_WAYS, SAGEMAKER_WAYS
from berth.planner.framework.ways import AXES
from berth.terms.ways import Way

WIDTH = 1000
_LEFT, _ASK_WIDE, _WAY_X, _WAY_WIDE = 20, 330, 430, 550
_LINE = 17
_HEAD = 'font-family="Helvetica, Arial, sans-serif"'


def svg(questions: Iterable[Question] = QUESTIONS) -> str:
    """The picture as SVG text: the same rules give the same bytes."""
    asked = tuple(questions)
    parts, y = _managers(20)
    for question in asked:
        if question.ways:
            drawn, y = _row(question, y)
            parts += drawn
    drawn, y = _notes([question for question in asked if not question.ways], y)
    parts += drawn
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}"',
        f"  {_HEAD}>",
        "<title>Which way to get GPUs: questions in order, and the ways that they lead to</title>",
        f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>',
        *parts,
        "</svg>",
        "",
    ])  # fmt: skip


def _managers(y: int) -> tuple[list[str], int]:
    """The first question, which decides which ways exist at all."""
    high = 92
    parts = _box(_LEFT, y, _ASK_WIDE, high, "#1f3a5f")
    parts += _lines(_LEFT + 14, y + 26, wrap("Who manages the machines?", 34), "#ffffff", bold=True)
    parts += _lines(_LEFT + 14, y + 52, ["It decides which ways exist at all."], "#ffffff")
    half = (_WAY_WIDE - 20) // 2
    for place, (title, ways) in enumerate((("You: EC2", EC2_WAYS), ("AWS: SageMaker", SAGEMAKER_WAYS))):
        x = _WAY_X + place * (half + 20)
        parts += _box(x, y, half, high, "#eef3f8")
        parts += _lines(x + 12, y + 24, [title], "#1f3a5f", bold=True)
        parts += _lines(
            x + 12,
            y + 46,
            wrap(", ".join(_label(way) for way in ways), 32, break_on_hyphens=False),
            "#333333",
        )
    parts.append(_arrow(_LEFT + _ASK_WIDE, y + high // 2, _WAY_X, y + high // 2, ""))
    return parts, y + high + 26


def _row(question: Question, y: int) -> tuple[list[str], int]:
    asks = wrap(question.asks, 38)
    told = [line for way in question.ways for line in _way_lines(way)]
    high = max(len(asks) * _LINE + 44, len(told) * _LINE + 18)
    parts = _box(_LEFT, y, _ASK_WIDE, high, "#f6f1e7")
    parts += _lines(_LEFT + 14, y + 24, asks, "#222222", bold=True)
    parts += _lines(_LEFT + 14, y + 28 + len(asks) * _LINE, [question.rule], "#7a6a48")
    parts += _box(_WAY_X, y, _WAY_WIDE, high, "#e9f4ec")
    for number, line in enumerate(told):
        bold = not line.startswith("  ")
        parts += _lines(
            _WAY_X + (12 if bold else 26), y + 22 + number * _LINE, [line.strip()], "#234", bold=bold
        )
    middle = y + high // 2
    parts.append(_arrow(_LEFT + _ASK_WIDE, middle, _WAY_X, middle, "yes"))
    parts.append(_arrow(_LEFT + 40, y + high, _LEFT + 40, y + high + 26, "then"))
    return parts, y + high + 26


def _way_lines(way: Way) -> list[str]:
    axes = AXES[way]
    return [
        _label(way),
        *(f"  {line}" for said in (axes.availability, axes.cost_model) for line in wrap(said, 80)),
    ]


def _notes(questions: list[Question], y: int) -> tuple[list[str], int]:
    lines = [f"{question.asks}  ({question.rule})" for question in questions]
    high = len(lines) * 22 + 44
    parts = _box(_LEFT, y, WIDTH - 2 * _LEFT, high, "#f4f4f4")
    parts += _lines(_LEFT + 14, y + 26, ["Beside every way"], "#222222", bold=True)
    for number, line in enumerate(lines):
        parts += _lines(_LEFT + 14, y + 50 + number * 22, [line], "#333333")
    return parts, y + high + 20


def _label(way: Way) -> str:
    return way.value


def _box(x: int, y: int, wide: int, high: int, fill: str) -> list[str]:
    return [f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="8" fill="{fill}" stroke="#c8c8c8"/>']


def _lines(x: int, y: int, lines: list[str], colour: str, *, bold: bool = False) -> list[str]:
    weight = ' font-weight="bold"' if bold else ""
    return [
        f'<text x="{x}" y="{y + number * _LINE}" font-size="13" fill="{colour}"{weight}>{escape(line)}</text>'
        for number, line in enumerate(lines)
    ]


def _arrow(x: int, y: int, to_x: int, to_y: int, word: str) -> str:
    across = y == to_y
    head = (
        f"{to_x - 7},{to_y - 4} {to_x},{to_y} {to_x - 7},{to_y + 4}"
        if across
        else (f"{to_x - 4},{to_y - 7} {to_x},{to_y} {to_x + 4},{to_y - 7}")
    )
    label_x, label_y = ((x + to_x) // 2 - 10, y - 6) if across else (x + 8, (y + to_y) // 2 + 4)
    label = f'<text x="{label_x}" y="{label_y}" font-size="12" fill="#666666">{word}</text>' if word else ""
    line = f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="#888888"/>'
    return f'{line}<polygon points="{head}" fill="#888888"/>{label}'
