"""Plants faults into the steps by which a program was quantised, and counts those that judging them catches.

Nothing is lowered again: the program is quantised once, and of a faulty one only the steps behind the fault.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from vgf_conformance.evaluation.eager import one_thread
from vgf_conformance.evaluation.quantisation.converted import judge_converted
from vgf_conformance.evaluation.quantisation.faults import FAULTS, After, Fault
from vgf_conformance.evaluation.quantisation.prepared import Identity
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.evaluation.ties import walking
from vgf_conformance.evaluation.undefined import Undefined
from vgf_conformance.lowering.lower import Request, export, prepared_module
from vgf_conformance.lowering.program import Program, read_prepared, writes_in_place
from vgf_conformance.lowering.quantise import Calibrated, calibrate, convert
from vgf_conformance.lowering.steps import Steps
from vgf_conformance.lowering.tensors import from_numpy, to_numpy
from vgf_conformance.quiet import quiet
from vgf_conformance.results.record import Sensitivity
from vgf_conformance.sensitivity.measure import FURTHER, redrawn, same
from vgf_conformance.targets.base import Array

#: Places of one fault in one program: large models have hundreds.
MOST_PLACES = 4

#: The inputs of calls in sequence, flattened.
Calls = Sequence[Sequence[Any]]


@one_thread()
def measure_quantise(
    subject: Subject, request: Request, eager: Sequence[torch.Tensor], undefined: Undefined
) -> Sensitivity:
    """What judging the steps catches, on the subject's sample.

    Raises LoweringFailure where ``request`` cannot be quantised, and whatever running the result raises.
    """
    identity, exported = Identity(subject, eager, undefined), export(request)
    # Constants that are folded while a graph is recorded for gradients cannot be copied.
    with quiet(), torch.no_grad():
        return _Measurement(identity, request, exported, undefined).made()


@dataclass(frozen=True)
class _Made:
    """A quantised program, and how it was made."""

    program: Program
    steps: Steps


class _Measurement:
    """One subject, quantised once, and the faults that are planted in it."""

    def __init__(
        self, identity: Identity, request: Request, exported: ExportedProgram, undefined: Undefined
    ) -> None:
        self._identity, self._request, self._undefined = identity, request, undefined
        self._exported = exported
        module = exported.module(check_guards=False)
        prepared = prepared_module(request, copy.deepcopy(module))
        self._calibrated = self._calibrate(copy.deepcopy(prepared))
        self._expected = self._calibrated.expected()
        converted = convert(self._copied(self._calibrated.module)).converted
        self._modules = {
            After.EXPORT: module,
            After.PREPARE: prepared,
            After.CALIBRATE: self._calibrated.module,
            After.CONVERT: converted,
        }
        self._right = _Made(_program(converted), self._expected.steps(converted))
        self._outputs = self._run(self._right.program, identity.calls)
        self._found = Sensitivity()

    def made(self) -> Sensitivity:
        if self._is_wrong(self._right, self._outputs):
            return self._found
        for name, fault in FAULTS.items():
            for place in _thinned(fault.places(self._modules[fault.after])):
                self._found.tried += 1
                self._try(f"{name} ({place})", fault, place)
        return self._found

    def _try(self, name: str, fault: Fault, place: str) -> None:
        module = fault.planted(copy.deepcopy(self._modules[fault.after]), place)
        try:
            made = self._quantised(fault.after, module)
            outputs = self._run(made.program, self._identity.calls)
        except Exception:  # no result at all is noticed
            self._found.caught += 1
            self._found.mutants.append(name)
            return
        if not same(outputs, self._outputs):
            reached = True
        elif any(self._differs(made.program, *further) for further in self._further):
            reached = False
        else:
            self._found.equivalent += 1
            return
        if self._is_wrong(made, outputs):
            self._found.caught += 1
            self._found.mutants.append(name)
        else:
            why = "within the tolerance" if reached else "the sample's values do not reach it"
            self._found.survivors.append(f"{name}: {why}")

    def _quantised(self, after: After, module: GraphModule) -> _Made:
        """Go on with ``module``, which is what the step ``after`` gave."""
        if after is After.CONVERT:
            return _Made(_program(module), self._expected.steps(module))
        if after is After.EXPORT:
            module = prepared_module(self._request, module)
        made = convert(self._copied(module) if after is After.CALIBRATE else self._calibrate(module))
        return _Made(_program(made.converted), made.steps)

    def _calibrate(self, prepared: GraphModule) -> Calibrated:
        return calibrate(prepared, self._exported, self._request.calibration)

    def _copied(self, module: GraphModule) -> Calibrated:
        """A calibrated ``module`` to convert, of the program that is right."""
        return replace(self._calibrated, module=copy.deepcopy(module))

    def _is_wrong(self, made: _Made, outputs: Sequence[Array]) -> bool:
        """Whether a step of the stage is judged wrong."""
        if made.steps.problems or not self._is_identity(made.steps.prepared):
            return True
        given = [from_numpy(output) for output in outputs]
        judged = judge_converted(self._identity.calls, made.steps, made.program, given, self._undefined)
        return not all(item.passed for item in judged)

    def _is_identity(self, prepared: Program) -> bool:
        if prepared is self._calibrated.program:
            return self._prepared_right
        return all(item.passed for item in self._identity.judge(prepared))

    @functools.cached_property
    def _prepared_right(self) -> bool:
        return all(item.passed for item in self._identity.judge(self._calibrated.program))

    @functools.cached_property
    def _further(self) -> list[tuple[Calls, list[Array]]]:
        """Other inputs of the same range, each with the right program's outputs; without those it refuses."""
        generator = np.random.default_rng(0)
        drawn = [_redrawn(self._identity.calls, generator) for _ in range(FURTHER)]
        found: list[tuple[Calls, list[Array]]] = []
        for calls in drawn:
            with contextlib.suppress(Exception):
                found.append((calls, self._run(self._right.program, calls)))
        return found

    def _differs(self, program: Program, calls: Calls, right: Sequence[Array]) -> bool:
        try:
            return not same(self._run(program, calls), right)
        except Exception:  # it refuses what the right one takes
            return True

    def _run(self, program: Program, calls: Calls) -> list[Array]:
        outputs = walking(program, copy.deepcopy(calls))(None)
        return [to_numpy(output) for output in outputs]


def _program(converted: GraphModule) -> Program:
    """``converted`` as a program that leaves its constants as they are."""
    program = read_prepared(converted)
    writes = any(writes_in_place(step) for step in program.all_steps)
    return replace(program, buffers={name: name for name in program.constants}) if writes else program


def _thinned(places: Sequence[str]) -> Sequence[str]:
    return places[:: max(1, -(-len(places) // MOST_PLACES))]


def _redrawn(calls: Calls, generator: np.random.Generator) -> list[list[Any]]:
    return [
        [
            from_numpy(redrawn(to_numpy(value), generator)) if isinstance(value, torch.Tensor) else value
            for value in inputs
        ]
        for inputs in calls
    ]
