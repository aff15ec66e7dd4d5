"""What a suite file declares: a property, and the types that it is asked of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

from vgf_conformance.arithmetic.probe import Probe

#: The profile that has each type.
_PROFILES = {"float32": "FP", "float16": "FP", "bfloat16": "FP+bf16"}


@dataclass(frozen=True)
class Typed:
    """A type as the sample of a property."""

    name: str

    @property
    def profile(self) -> str:
        """The TOSA profile that has it."""
        return _PROFILES[self.name]


@dataclass(frozen=True)
class Property:
    """How a target computes, asked by ``probes`` of a type; ``name`` and ``file`` are its suite's.

    ``alike`` says that all answers must be the same.
    """

    probes: Callable[[str], list[Probe]]
    dtypes: tuple[str, ...]
    alike: bool
    name: str = ""
    file: str = ""

    @property
    def types(self) -> list[Typed]:
        """The types that it is asked of."""
        return [Typed(name) for name in self.dtypes]

    def tier_of(self, typed: Typed) -> str:
        """Nightly: a driver compiles a shader for each operator."""
        return "nightly"


def arithmetic(probes: Callable[[str], list[Probe]], *dtypes: str, alike: bool) -> Property:
    """Declare that ``probes`` are put to a target for each of ``dtypes``."""
    return Property(probes, dtypes, alike)


def declares_properties(module: ModuleType) -> bool:
    """Whether a suite module is about properties and not about cases."""
    return any(isinstance(value, Property) for value in vars(module).values())


def declared_properties(module: ModuleType, file: str) -> Iterator[Property]:
    """The module's properties in their order, each with its name and suite file."""
    for name, value in vars(module).items():
        if isinstance(value, Property):
            yield dataclasses.replace(value, name=name, file=file)
