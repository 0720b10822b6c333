"""AWS's service models as the installed botocore ships them: found, read, and asked about.

The models are the authority for AWS's shapes. Nothing of them is retyped here, so a newer botocore brings
its new operations by itself.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Traits that change bytes on the wire and that the compilers of this package do not handle. No served
# service uses them (a test asks); a service that does needs the compiler taught first.
UNSUPPORTED_TRAITS = frozenset(
    {"timestampFormat", "xmlAttribute", "xmlNamespace", "document", "hostLabel", "eventheader", "flattened"}
)


@dataclass(frozen=True, slots=True)
class Shape:
    """One named shape of a model. `traits` is the model's own entry: type, min, max, pattern, enum ..."""

    name: str
    traits: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """AWS's type word: structure, list, map, string, integer, long, float, double, boolean ..."""
        return str(self.traits["type"])

    @property
    def sensitive(self) -> bool:
        return bool(self.traits.get("sensitive"))


@dataclass(frozen=True, slots=True)
class Member:
    """A place where a shape is used: a structure's member, a list's element, a map's key or value."""

    name: str
    shape: Shape
    traits: Mapping[str, Any]

    def trait(self, key: str) -> Any:
        """The trait as given at this place, else as given by the shape, else None."""
        own = self.traits.get(key)
        return own if own is not None else self.shape.traits.get(key)

    @property
    def wire_name(self) -> str:
        """The member's name on the wire: `locationName` where the model has one."""
        return str(self.trait("locationName") or self.name)


@dataclass(frozen=True, slots=True)
class Model:
    """A service model: its metadata, operations and shapes."""

    service: str
    metadata: Mapping[str, Any]
    operations: Mapping[str, Mapping[str, Any]]
    shapes: Mapping[str, Mapping[str, Any]]
    error_shapes: Mapping[str, str]
    _cache: dict[str, Shape] = field(default_factory=dict, repr=False, compare=False)

    def shape(self, name: str) -> Shape:
        found = self._cache.get(name)
        if found is None:
            found = self._cache[name] = Shape(name, self.shapes[name])
        return found

    def member(self, name: str, reference: Mapping[str, Any]) -> Member:
        return Member(name, self.shape(reference["shape"]), reference)

    def members(self, structure: Shape) -> list[Member]:
        return [self.member(name, ref) for name, ref in structure.traits["members"].items()]

    def element(self, container: Shape, role: str = "member") -> Member:
        """The element of a list (`member`) or the `key` or `value` of a map."""
        return self.member(role, container.traits[role])

    def input(self, operation: str) -> Shape | None:
        return self._boundary(operation, "input")

    def output(self, operation: str) -> Shape | None:
        return self._boundary(operation, "output")

    def _boundary(self, operation: str, side: str) -> Shape | None:
        reference = self.operations[operation].get(side)
        return None if reference is None else self.shape(reference["shape"])

    def error(self, code: str) -> Shape | None:
        """The modelled error of this code; None for AWS's common errors, which no model lists."""
        name = self.error_shapes.get(code)
        return None if name is None else self.shape(name)

    def patterns(self) -> set[str]:
        """Every pattern that the model gives to a string."""
        return {traits["pattern"] for traits in self.shapes.values() if "pattern" in traits}

    def unsupported(self) -> list[str]:
        """Uses of traits that this package does not compile, as `shape.member: trait`."""
        return sorted(
            f"{where}: {trait}" for where, trait in self._trait_uses() if trait in UNSUPPORTED_TRAITS
        )

    def _trait_uses(self) -> Iterator[tuple[str, str]]:
        for name, traits in self.shapes.items():
            yield from ((name, trait) for trait in traits)
            for member, reference in traits.get("members", {}).items():
                yield from ((f"{name}.{member}", trait) for trait in reference)
            for role in ("member", "key", "value"):
                yield from ((f"{name}.{role}", trait) for trait in traits.get(role, {}))


def read_model(service: str) -> Model:
    """Read the newest model of a service from the installed botocore, without importing botocore.

    Raises LookupError when botocore is not installed or has no such service.
    """
    document = json.loads(_model_text(_newest(_botocore_data() / service)))
    shapes = document["shapes"]
    errors = {
        traits.get("error", {}).get("code", name): name
        for name, traits in shapes.items()
        if traits.get("exception")
    }
    return Model(service, document["metadata"], document["operations"], shapes, errors)


def _botocore_data() -> Path:
    spec = importlib.util.find_spec("botocore")
    if spec is None or not spec.submodule_search_locations:
        raise LookupError("botocore is not installed: a yard reads AWS's service models from it")
    return Path(spec.submodule_search_locations[0]) / "data"


def _newest(folder: Path) -> Path:
    if not folder.is_dir():
        raise LookupError(f"the installed botocore has no service {folder.name!r}")
    # Versions are dates, so the greatest name is the newest.
    return max(entry for entry in folder.iterdir() if entry.is_dir())


def _model_text(folder: Path) -> bytes:
    packed = folder / "service-2.json.gz"
    if packed.exists():
        return gzip.decompress(packed.read_bytes())
    return (folder / "service-2.json").read_bytes()
