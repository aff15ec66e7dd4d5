"""Finds what made a prepared program another one: the first pass, and the first node that it changed.

Preparing a program for quantisation folds batch norms, runs the backend's transformations for annotation one
after the other, and inserts observers. The same is done again, and after each step the program is run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from executorch.backends.arm._passes import arm_pass_manager
from torch.fx import GraphModule
from torchao.quantization.pt2e import quantize_pt2e

from vgf_conformance.attribution.origin import Origin, source_line
from vgf_conformance.comparison.metrics import same_class, sqnr
from vgf_conformance.evaluation.eager import tensors
from vgf_conformance.evaluation.quantisation.precise import in_fp64, walk_in_sequence
from vgf_conformance.lowering.edges import Place
from vgf_conformance.lowering.lower import Request, prepared_for
from vgf_conformance.lowering.program import Program, Ref, all_nodes, read_prepared
from vgf_conformance.lowering.tensors import to_numpy

#: What prepare_pt2e does itself before the quantizer's transformations.
_FOLDS = ("_fuse_conv_bn_", "_fuse_linear_bn_")
#: Decibels from which on two values are one: constants rounded to fp32 cost about 140 dB in fp64.
_SAME_DB = 100.0

#: The inputs of calls in sequence, flattened.
Calls = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Change:
    """The pass that changed what the program computes, and the first node whose value is lost.

    ``node`` is its name before the pass (empty where no single node is to blame).
    """

    cause: str
    node: str
    origin: Origin | None


@dataclass
class _Snapshot:
    """The program after one of the passes, and where its nodes come from."""

    cause: str
    program: Program
    origins: dict[str, Origin]


def first_change(request: Request, calls: Calls, is_right: Callable[[Program], bool]) -> Change | None:
    """Prepare ``request`` again; None where ``is_right`` finds every program on the way right.

    Raises whatever exporting, preparing and running the programs raise.
    """
    last: list[_Snapshot] = []
    found: list[Change] = []

    def seen(cause: str, module: GraphModule) -> None:
        if found:
            return
        snapshot = _snapshot(cause, module)
        if last and not is_right(snapshot.program):
            found.append(_change(last[-1], snapshot, calls))
        last[:] = [snapshot]

    exported = torch.export.export(request.module, request.inputs, dynamic_shapes=request.dynamic_shapes)
    seen("torch.export", exported.module(check_guards=False))
    with _watched(seen):
        prepared = prepared_for(request, exported)
    seen("prepare_pt2e", prepared)
    return found[0] if found else None


@contextlib.contextmanager
def _watched(seen: Callable[[str, GraphModule], None]) -> Iterator[None]:
    """Let ``seen`` look at the graph after each pass by which prepare_pt2e rewrites it."""
    originals = {name: getattr(quantize_pt2e, name) for name in _FOLDS}
    manager = arm_pass_manager.GraphModulePassManager

    def fold(name: str) -> Callable[[GraphModule], None]:
        def folded(module: GraphModule) -> None:
            originals[name](module)
            seen(name.strip("_"), module)

        return folded

    def watched(one: Callable[[GraphModule], Any]) -> Callable[[GraphModule], Any]:
        def run(module: GraphModule) -> Any:
            result = one(module)
            seen(getattr(one, "__name__", type(one).__name__), result.graph_module)
            return result

        return run

    def all_watched(passes: Sequence[Callable[[GraphModule], Any]]) -> Any:
        return manager([watched(one) for one in passes])

    for name in _FOLDS:
        setattr(quantize_pt2e, name, fold(name))
    arm_pass_manager.GraphModulePassManager = all_watched
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(quantize_pt2e, name, original)
        arm_pass_manager.GraphModulePassManager = manager


def _snapshot(cause: str, module: GraphModule) -> _Snapshot:
    # Later passes write to parameters too.
    program = in_fp64(read_prepared(module))
    return _Snapshot(cause, program, {node.name: origin_of(Place.of(node)) for node in all_nodes(module)})


def origin_of(place: Place) -> Origin:
    """A node's place as the reports write it."""
    return Origin((), place.operator, place.module, place.kind, source_line(place.stack))


def _change(before: _Snapshot, after: _Snapshot, calls: Calls) -> Change:
    name = _first_lost(before.program, after.program, calls)
    return Change(after.cause, name, before.origins.get(name))


def _first_lost(before: Program, after: Program, calls: Calls) -> str:
    """The first step of ``before`` whose value ``after`` lacks, and whose lack changes an output."""
    (then, outputs), (now, changed) = _values(before, calls), _values(after, calls)
    lost = {name for name, value in then.items() if not any(_same(value, other) for other in now.values())}
    steps = {step.name: step for step in before.steps}
    reached: set[str] = set()
    waiting = [
        output.name
        for output, one, other in zip(before.outputs, outputs, changed, strict=True)
        if isinstance(output, Ref) and output.name in steps and not _same(one, other)
    ]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += steps[name].reads & lost
    return next((step.name for step in before.steps if step.name in reached), "")


def _values(program: Program, calls: Calls) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """What each step outside branches and loops gives, where that is a tensor; and the outputs."""
    values: dict[str, torch.Tensor] = {}
    names = {step.name for step in program.steps}

    def keep(step: Any, args: tuple[Any, ...], result: Any) -> Any:
        if step.name in names and isinstance(result, torch.Tensor):
            # A later step may write to it.
            values[step.name] = result.clone()
        return result

    outputs = tensors(walk_in_sequence(in_fp64(program), in_fp64(list(calls)), keep))
    return values, outputs


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape:
        return False
    first, second = to_numpy(one).astype(float), to_numpy(other).astype(float)
    if not same_class(first, second).all():
        return False
    finite = np.isfinite(first)
    kept = sqnr(first[finite], second[finite])
    return kept is None or kept >= _SAME_DB or bool((first == second)[finite].all())
