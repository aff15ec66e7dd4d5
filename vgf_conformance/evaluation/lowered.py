"""Names what lowering got wrong: the first step whose TOSA operators compute something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vgf_conformance.attribution.region import Seen
from vgf_conformance.comparison.lowering import describe_wrong
from vgf_conformance.evaluation.divergence import Comparing, Loudest, Wrong
from vgf_conformance.evaluation.suspect import LOST, operators_of, suspect
from vgf_conformance.evaluation.walk import Call
from vgf_conformance.evaluation.windows import QUANTISE
from vgf_conformance.formats.tosa import TosaGraph
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.program import Program, Ref, Step
from vgf_conformance.lowering.tensors import to_numpy
from vgf_conformance.targets.base import Array


@dataclass(frozen=True)
class Blamed:
    """A step, one of its operators by position in the graph of a call, and what shows that it is wrong.

    ``became`` are all of its operators, by position, that one first. ``graph`` is the part that shows it,
    with ``inputs``, ``expected`` and ``actual`` in memory order.
    """

    step: Step
    call: int
    position: int
    became: tuple[int, ...]
    rule: str
    message: str
    graph: TosaGraph
    inputs: Sequence[Array]
    expected: Sequence[Array]
    actual: Sequence[Array]


@dataclass(frozen=True)
class DelegateOutput:
    """The tensor of a call that a user's output is made of outside the delegates."""

    call: int
    tensor: str


def blamed(
    program: Program,
    inputs: Sequence[Any],
    seen: Sequence[Seen],
    outputs: Sequence[torch.Tensor],
    sources: Sequence[DelegateOutput | None],
) -> Blamed | None:
    """The first step that ``seen``, the calls on the reference model, compute otherwise than ``program``.

    ``outputs`` are the user's, and ``sources`` the delegates' outputs that they are made of. Where no step by
    itself is wrong, it is the one that adds most; None where there is none.
    """
    comparing = Comparing(program, inputs, seen)
    right = comparing.walk()
    if comparing.wrong is not None:
        return _of_wrong(comparing, comparing.wrong)
    for number, (output, wanted) in enumerate(zip(outputs, right, strict=False)):
        source = sources[number] if number < len(sources) else None
        if source is not None and isinstance(wanted, torch.Tensor):
            found = _misplaced(comparing, program.outputs[number], source, output, wanted)
            if found is not None:
                return found
    return None if comparing.loudest is None else _of_loudest(comparing, comparing.loudest)


def _of_wrong(comparing: Comparing, wrong: Wrong) -> Blamed:
    found = suspect(comparing, wrong)
    seen, made = comparing.seen[wrong.made.call], wrong.made
    graph = seen.cut(wrong.region, made.tensor)
    rule = wrong.judged.rule if wrong.step.operator.startswith(QUANTISE) else "as the PyTorch operator"
    return Blamed(
        step=found.step,
        call=made.call,
        position=found.position,
        became=operators_of(comparing, wrong, found),
        rule=rule,
        message="; ".join(filter(None, (found.reason, wrong.judged.message))),
        graph=graph,
        inputs=[seen.values[name] for name in graph.inputs],
        expected=[wrong.layout.undo(wrong.expected, made.array.shape)],
        actual=[made.array],
    )


def _of_loudest(comparing: Comparing, loudest: Loudest) -> Blamed:
    made = loudest.made
    seen = comparing.seen[made.call]
    graph = seen.cut([made.position], made.tensor)
    said = f": {loudest.message}" if loudest.message else ""
    return Blamed(
        step=loudest.step,
        call=made.call,
        position=made.position,
        became=(made.position,),
        rule="adds most",
        message=f"no step by itself is wrong, their errors add up; this one adds most{said}",
        graph=graph,
        inputs=[seen.values[name] for name in graph.inputs],
        expected=(),
        actual=[made.array],
    )


def _misplaced(
    comparing: Comparing, output: Any, source: DelegateOutput, actual: torch.Tensor, wanted: torch.Tensor
) -> Blamed | None:
    """The step behind the last comparison, of which nothing computes the right values at the right place."""
    name = output.name if isinstance(output, Ref) else ""
    step = comparing.steps.get(name)
    given, right = to_numpy(actual), to_numpy(wanted)
    if step is None or (given.shape == right.shape and _equal(given, right)):
        return None
    cone = comparing.cones.get(name) or (name,)
    seen = comparing.seen[source.call]
    region = seen.region(source.tensor, comparing.right[source.call])
    position = region[-1] if region else seen.maker(source.tensor)
    if position is None:
        return None
    open_steps = [comparing.steps[at] for at in cone if "quantize" not in comparing.steps[at].operator]
    guilty = next((item for item in open_steps if _is_open(comparing, item)), step)
    own = [at for at in region if seen.steps.get(at) == guilty.name]
    position = own[-1] if own else position
    graph = seen.cut(region or [position], source.tensor)
    return Blamed(
        step=guilty,
        call=source.call,
        position=position,
        became=tuple(dict.fromkeys([position, *own])),
        rule="as the PyTorch operator",
        message="; ".join([*([] if own else [LOST]), _difference(given, right)]),
        graph=graph,
        inputs=[seen.values[item] for item in graph.inputs],
        expected=[right],
        actual=[seen.values[source.tensor]],
    )


def _is_open(comparing: Comparing, step: Step) -> bool:
    return moves_data(step.operator) or not comparing.named.get(step.name)


def _equal(given: Array, right: Array) -> bool:
    if given.dtype.kind in "biu":
        return np.array_equal(given, right)
    one, two = given.astype(np.float64), right.astype(np.float64)
    size = float(np.abs(two[np.isfinite(two)]).max(initial=0.0))
    return bool(np.allclose(one, two, rtol=1e-5, atol=1e-5 * size, equal_nan=True))


def _difference(given: Array, right: Array) -> str:
    if given.shape != right.shape or given.dtype != right.dtype:
        return f"it is {given.dtype}{list(given.shape)}, should be {right.dtype}{list(right.shape)}"
    return describe_wrong(
        "output 0", given, right, np.asarray(given == right) | ((given != given) & (right != right))
    )


def delegate_outputs(
    artifact: Artifact, calls: Sequence[Call], seen: Sequence[Seen]
) -> list[DelegateOutput | None]:
    """For each user's output the delegate's output that it is made of; None where there is not just one."""
    steps = {step.name: step for step in artifact.program.steps}
    return [_source(output, steps, calls, seen) for output in artifact.program.outputs]


def _source(
    output: Any, steps: dict[str, Step], calls: Sequence[Call], seen: Sequence[Seen]
) -> DelegateOutput | None:
    step = steps.get(output.name) if isinstance(output, Ref) else None
    while step is not None:
        source = step.args[0] if step.args else None
        before = steps.get(source.name) if isinstance(source, Ref) else None
        if before is not None and before.delegate is not None:
            number = step.args[1] if len(step.args) > 1 and isinstance(step.args[1], int) else 0
            call = next((at for at, item in enumerate(calls) if item.delegate == before.delegate), None)
            return None if call is None else DelegateOutput(call, seen[call].graph.outputs[number])
        step = before if len(step.reads) == 1 else None
    return None
