"""State in buffers: what the last of several calls leaves there, in every form of a program.

Each form is called from the first call on with its own state, as an application calls it. So a buffer is
judged as an output is, but for the bound on floating point, which counts on inputs that are exact: it is
held to the limit to noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from vgf_conformance.comparison.lowering import Expected, judge_output
from vgf_conformance.evaluation.eager import leaves, run_eager, run_eager_fp64
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.evaluation.ties import quantised_errors
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.lower import output_scales
from vgf_conformance.lowering.program import State
from vgf_conformance.lowering.tensors import to_numpy
from vgf_conformance.results.record import Comparison
from vgf_conformance.vocabulary import Stage


def judge_buffers(
    subject: Subject, artifact: Artifact, quantised: State, lowered: State, outputs: int
) -> list[Comparison]:
    """The buffers that the module writes to in its calls: ``quantised`` and ``lowered`` hold the programs'.

    None where ``subject`` is no call of a sequence. Buffers are counted behind the ``outputs``. A program
    that does not have a buffer any more has lost the state: whatever quantised or lowered it froze the value.
    """
    if subject.before is None:
        return []
    names = _written(subject.module, subject)
    eager = dict(zip(names, _after(subject, names), strict=True))
    if artifact.quantised is not None:
        stage, program, pair = Stage.QUANTISE, quantised, "quantised/eager buffers"
        if lost := _lost(names, program, stage, pair, outputs):
            return lost
    pair = f"reference/{'eager' if artifact.quantised is None else 'quantised'} buffers"
    if lost := _lost(names, lowered, Stage.LOWER, pair, outputs):
        return lost
    expected = _expected(subject, artifact, names, eager if artifact.quantised is None else quantised, pair)
    return [
        judge_output(outputs + number, to_numpy(lowered[name]), item)
        for number, (name, item) in enumerate(zip(names, expected, strict=True))
    ]


def _after(subject: Subject, names: Sequence[str]) -> list[torch.Tensor]:
    """The module's buffers of these names after its calls."""
    assert subject.before is not None
    found: list[torch.Tensor] = run_eager(subject.module, subject.inputs, subject.before, names)
    return found[len(found) - len(names) :]


def _written(module: torch.nn.Module, subject: Subject) -> list[str]:
    """Names of the buffers that any of the calls changes."""
    first = {name: buffer.clone() for name, buffer in module.named_buffers()}
    last = dict(zip(first, _after(subject, list(first)), strict=True))
    return [name for name in first if not torch.equal(first[name], last[name])]


def _lost(
    names: Sequence[str], program: Mapping[str, torch.Tensor], stage: Stage, pair: str, outputs: int
) -> list[Comparison]:
    return [
        Comparison(
            pair,
            stage,
            outputs + number,
            False,
            "written",
            None,
            message=f"buffer {name}: the program keeps no state there, and has the value of the export",
        )
        for number, name in enumerate(names)
        if name not in program
    ]


def _expected(
    subject: Subject, artifact: Artifact, names: Sequence[str], native: State, pair: str
) -> list[Expected]:
    assert subject.before is not None
    calls = [*map(leaves, subject.before), leaves(subject.inputs)]
    if artifact.quantised is None:
        wide = run_eager_fp64(subject.module, subject.inputs, subject.before, names)
        values = list(map(native.get, names)) if wide is None else wide[len(wide) - len(names) :]
        return [
            Expected(pair, to_numpy(value), to_numpy(native[name]), None, name=f"buffer {name}")
            for name, value in zip(names, values, strict=True)
        ]
    writes = tuple(artifact.program.writes.get(name) for name in names)
    scales = output_scales(replace(artifact.program, outputs=writes))
    outputs = len(artifact.output_scales)
    errors = quantised_errors(artifact.quantised, calls, (*artifact.output_scales, *scales), names)[outputs:]
    return [
        Expected(
            pair,
            to_numpy(native[name]),
            to_numpy(native[name]),
            error,
            scale,
            quantised=True,
            name=f"buffer {name}",
        )
        for name, error, scale in zip(names, errors, scales, strict=True)
    ]
