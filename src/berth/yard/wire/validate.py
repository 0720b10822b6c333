"""The models' constraints, and the words in which AWS reports that one does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .models import Shape
from .patterns import UNBOUNDED_LENGTH_MAX, matcher

# Where a value stands in a request, innermost label first: (outer, label). None is the request itself.
Path: TypeAlias = "tuple[Path, str] | None"

NOT_NULL = "Member must not be null"
_SHOWN_MAX = 1_024  # characters of a refused value that a message repeats
_REPORTED_MAX = 50  # findings that one message lists


@dataclass(frozen=True, slots=True)
class Finding:
    """One constraint that one value does not satisfy. `value` None and `rule` NOT_NULL: it is missing."""

    path: Path
    value: Any
    rule: str
    sensitive: bool = False


Findings: TypeAlias = list[Finding]
# A reader turns one value from the wire into its Python value, adding to the findings what is wrong with it.
Reader: TypeAlias = Callable[[Any, Path, Findings], Any]
# A check gives the rules that a value breaks; empty when it is good.
Check: TypeAlias = Callable[[Any], Sequence[str]]


class Malformed(Exception):
    """A value that cannot be read as its type at all."""

    def __init__(self, path: Path, message: str, value: object = None) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.value = value


class UnknownName(Exception):
    """A parameter that the operation does not have."""

    def __init__(self, path: Path) -> None:
        super().__init__(spell(path))
        self.path = path


def spell(path: Path) -> str:
    """A path as AWS writes it: `productionVariants.1.member.modelName`, `Filter.1.Value.2`."""
    labels: list[str] = []
    while path is not None:
        path, label = path
        labels.append(label)
    return ".".join(reversed(labels))


def summarise(findings: Sequence[Finding]) -> str:
    """The sentence of AWS's JSON and query services, for instance "1 validation error detected: ...".

    The form is public from many reports, such as github.com/aws/amazon-sagemaker-examples issue 2236.
    """
    head = f"{len(findings)} validation error{'s' if len(findings) != 1 else ''} detected: "
    return head + "; ".join(_sentence(finding) for finding in findings[:_REPORTED_MAX])


def _sentence(finding: Finding) -> str:
    if finding.value is None:
        shown = "Value null"
    elif finding.sensitive:
        shown = "Value"
    else:
        shown = f"Value '{show(finding.value)}'"
    return f"{shown} at '{spell(finding.path)}' failed to satisfy constraint: {finding.rule}"


def show(value: object) -> str:
    """A value as AWS's messages show it: lists in brackets without quotes, long text cut."""
    if isinstance(value, list):
        text = "[" + ", ".join(str(item) for item in value[:_REPORTED_MAX]) + "]"
    else:
        text = str(value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."


def check_for(shape: Shape) -> Check | None:
    """The check of a shape's own constraints; None when it has none."""
    traits = shape.traits
    if traits.get("enum"):
        return _enum_check(traits["enum"])
    if "pattern" in traits:
        return _pattern_check(traits)
    if shape.kind in {"string", "blob", "list", "map"}:
        return _length_check(traits)
    return _range_check(traits)


def _enum_check(values: Sequence[str]) -> Check:
    allowed = frozenset(values)
    broken = (f"Member must satisfy enum value set: [{', '.join(values)}]",)
    return lambda value: () if value in allowed else broken


def _pattern_check(traits: Mapping[str, Any]) -> Check:
    pattern = traits["pattern"]
    matches = matcher(pattern)
    broken = (f"Member must satisfy regular expression pattern: {pattern}",)
    # A pattern only ever runs on text of bounded length: the shape's bound, else ours.
    length = _length_check({"max": UNBOUNDED_LENGTH_MAX, **traits})
    assert length is not None

    def check(value: str) -> Sequence[str]:
        too_long_or_short = length(value)
        if too_long_or_short:
            return too_long_or_short
        return () if matches(value) else broken

    return check


def _length_check(traits: Mapping[str, Any]) -> Check | None:
    least, most = traits.get("min", 0), traits.get("max")
    if not least and most is None:
        return None
    ceiling = float("inf") if most is None else most
    too_short = (f"Member must have length greater than or equal to {least}",)
    too_long = (f"Member must have length less than or equal to {most}",)

    def check(value: Any) -> Sequence[str]:
        length = len(value)
        if length < least:
            return too_short
        return too_long if length > ceiling else ()

    return check


def _range_check(traits: Mapping[str, Any]) -> Check | None:
    least, most = traits.get("min"), traits.get("max")
    if least is None and most is None:
        return None
    floor = float("-inf") if least is None else least
    ceiling = float("inf") if most is None else most
    too_small = (f"Member must have value greater than or equal to {least}",)
    too_great = (f"Member must have value less than or equal to {most}",)

    def check(value: Any) -> Sequence[str]:
        if value < floor:
            return too_small
        return too_great if value > ceiling else ()

    return check


def rules_of(shape: Shape) -> list[str]:
    """All rules of a scalar shape, as AWS lists them for an element of a list."""
    traits = shape.traits
    if traits.get("enum"):
        return [f"Member must satisfy enum value set: [{', '.join(traits['enum'])}]"]
    word = "length" if shape.kind in {"string", "blob"} else "value"
    rules = []
    if "max" in traits:
        rules.append(f"Member must have {word} less than or equal to {traits['max']}")
    if "min" in traits:
        rules.append(f"Member must have {word} greater than or equal to {traits['min']}")
    if "pattern" in traits:
        rules.append(f"Member must satisfy regular expression pattern: {traits['pattern']}")
    return rules


def fold_elements(findings: Findings, start: int, path: Path, value: list[Any], shape: Shape) -> None:
    """Replace the findings from `start` on, all of elements of one list of scalars, by AWS's single one."""
    if len(findings) > start:
        rule = f"Member must satisfy constraint: [{', '.join(rules_of(shape))}]"
        findings[start:] = [Finding(path, value, rule, shape.sensitive)]


def note_missing(findings: Findings, path: Path, labels: Iterable[str]) -> None:
    findings.extend(Finding((path, label), None, NOT_NULL) for label in labels)
