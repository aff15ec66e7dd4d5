"""Walks a lowered program with one target behind its delegate calls, and keeps what each call saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from vgf_conformance.evaluation.eager import tensors
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.program import AfterStep, State
from vgf_conformance.lowering.tensors import from_physical, to_physical
from vgf_conformance.targets.base import Array, Outputs, Target, TargetFailure
from vgf_conformance.vocabulary import Finding, Stage, Verdict


@dataclass
class Call:
    """One delegate call: what went in and came out, in memory order."""

    delegate: int
    inputs: list[Array]
    outputs: Outputs


@dataclass(frozen=True)
class Asked:
    """What a target is asked to compute: a delegate and its inputs, in memory order."""

    delegate: int
    inputs: list[Array]


@dataclass
class Walk:
    """A whole run of a program on one target, up to its end or its failure; ``buffers`` as it left them.

    ``unanswered`` is the call that the target failed in.
    """

    outputs: list[torch.Tensor] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    failure: TargetFailure | None = None
    buffers: State = field(default_factory=dict)
    unanswered: Asked | None = None


def walk_program(
    artifact: Artifact,
    inputs: Sequence[Any],
    target: Target,
    after: AfterStep | None = None,
    state: State | None = None,
) -> Walk:
    """Run ``artifact`` on ``inputs``; a target's failure, or a leftover operator's, ends the walk early.

    ``after`` and ``state`` are as for Program.walk.
    """
    walk = Walk()
    target.load(artifact.delegates)

    def call(number: int, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        delegate = artifact.delegates[number]
        physical = [to_physical(value, port) for value, port in zip(arguments, delegate.inputs, strict=True)]
        walk.unanswered = Asked(number, physical)
        outputs = target.run(number, physical)
        walk.unanswered = None
        walk.calls.append(Call(number, physical, outputs))
        if len(outputs.arrays) != len(delegate.outputs):
            raise TargetFailure(
                Verdict.FAIL,
                Stage.RUN,
                Finding.WRONG,
                f"{delegate.name} gave {len(outputs.arrays)} outputs, should be {len(delegate.outputs)}",
            )
        for position, (array, port) in enumerate(zip(outputs.arrays, delegate.outputs, strict=True)):
            # Some graphs have a rank-0 tensor as one of shape [1]; any other shape is wrong.
            if array.size != 1 and array.shape != sized(port.physical_shape, array.shape):
                raise TargetFailure(
                    Verdict.FAIL,
                    Stage.RUN,
                    Finding.WRONG,
                    f"{delegate.name}, output {position} has shape {list(array.shape)}, "
                    f"should be {list(port.physical_shape)}",
                )
        return [
            from_physical(array.reshape(sized(port.physical_shape, array.shape)), port)
            for array, port in zip(outputs.arrays, delegate.outputs, strict=True)
        ]

    try:
        walk.outputs = tensors(artifact.program.walk(inputs, call, after, state))
    except TargetFailure as failure:
        walk.failure = failure
    except Exception as error:  # a leftover operator's refusal belongs to the lowered program
        walk.failure = TargetFailure(
            Verdict.FAIL,
            Stage.LOWER,
            Finding.RAISED,
            f"outside the delegates: {type(error).__name__}: {error}",
        )
    return walk


def walk_calls(artifact: Artifact, calls: Sequence[Sequence[Any]], target: Target) -> Walk:
    """Run ``artifact`` on each of ``calls`` in turn, with the buffers that the one before left.

    Returns the last walk, which is the first that fails.
    """
    state: State = {}
    for number, inputs in enumerate(calls):
        walk = walk_program(artifact, inputs, target, state=state)
        if walk.failure is not None:
            if len(calls) > 1:
                walk.failure.message += f", in call {number + 1} of {len(calls)}"
            break
    walk.buffers = state
    return walk


def sized(wanted: tuple[int, ...], given: tuple[int, ...]) -> tuple[int, ...]:
    """``wanted`` with its open (-1) dimensions filled in from ``given``."""
    if -1 not in wanted or len(wanted) != len(given):
        return wanted
    return tuple(have if want == -1 else want for want, have in zip(wanted, given, strict=True))
