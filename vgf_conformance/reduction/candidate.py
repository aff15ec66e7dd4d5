"""A part of a traced model as a model of its own, with the values that it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from vgf_conformance.reduction.trace import Trace, Unit

Values = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Candidate:
    """Some units of a trace, what they read from outside, and which of their results are outputs.

    ``calibration`` holds further sets of input values; empty, it is calibrated on ``inputs``. ``literals``
    are numbers that other units of the model computed.
    """

    trace: Trace
    kept: tuple[int, ...]
    inputs: Values
    outputs: tuple[str, ...]
    calibration: tuple[Values, ...] = ()
    literals: dict[str, Any] = field(default_factory=dict)

    @property
    def units(self) -> list[Unit]:
        """The units in the order in which they run."""
        return [self.trace.units[number] for number in self.kept]

    @property
    def constants(self) -> dict[str, torch.Tensor]:
        """The parameters, buffers and constant tensors that the units read."""
        read = set().union(*(unit.reads for unit in self.units))
        return {name: value for name, value in self.trace.program.constants.items() if name in read}

    def with_values(self, inputs: Values, calibration: tuple[Values, ...] | None = None) -> Candidate:
        """The same units on other values."""
        kept = self.calibration if calibration is None else calibration
        return replace(self, inputs=inputs, calibration=kept)


class Cutter:
    """Cuts candidates out of a trace, with the values of one sample and of the calibration sets."""

    def __init__(self, trace: Trace, inputs: Sequence[Any], calibration: Sequence[Sequence[Any]]) -> None:
        self._trace = trace
        self._inputs = inputs
        self._calibration = calibration

    def cut(self, kept: Iterable[int]) -> Candidate:
        """The candidate of the units ``kept``, by number.

        Its inputs are the values that the eager program has there. What the other units or the user read
        of it, and what nothing reads, become outputs.
        """
        numbers = tuple(sorted(set(kept)))
        units = [self._trace.units[number] for number in numbers]
        made = {step.name for unit in units for step in unit.steps}
        reads = set().union(*(unit.reads for unit in units)) if units else set()
        outside = [name for name in self._order() if name in reads and name not in made]
        values = self._trace.values(outside, self._inputs)
        inputs = {name: self._input(name, value) for name, value in values.items() if _is_tensor(value)}
        return Candidate(
            trace=self._trace,
            kept=numbers,
            inputs={name: inputs[name] for name in outside if name in inputs},
            outputs=self._outputs(numbers, units),
            calibration=tuple(self._calibrated(outside)),
            literals={name: value for name, value in values.items() if not _is_tensor(value)},
        )

    def _calibrated(self, names: Sequence[str]) -> Iterable[Values]:
        for inputs in self._calibration:
            try:
                found = self._trace.values(names, inputs)
            except (RuntimeError, ValueError, IndexError, TypeError):
                # With open dimensions a set may be of another shape than the sample.
                continue
            yield {name: self._input(name, found[name]) for name in names if _is_tensor(found[name])}

    def _input(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """A value of its own; the user's inputs keep the order of their axes in memory."""
        value = value.detach()
        user = name in self._trace.program.inputs
        return value.clone() if user else value.clone(memory_format=torch.contiguous_format)

    def _order(self) -> list[str]:
        program = self._trace.program
        return [*program.inputs, *(step.name for step in program.steps)]

    def _outputs(self, numbers: tuple[int, ...], units: Sequence[Unit]) -> tuple[str, ...]:
        inside = set().union(*(unit.reads for unit in units)) if units else set()
        chosen = set(numbers)
        others = [unit for number, unit in enumerate(self._trace.units) if number not in chosen]
        wanted = self._trace.outputs.union(*(unit.reads for unit in others))
        outputs: list[str] = []
        for unit in units:
            asked = [name for name in unit.results if name in wanted]
            unread = not asked and not inside.intersection(step.name for step in unit.steps)
            outputs += list(unit.results) if unread else asked
        return tuple(outputs)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)
