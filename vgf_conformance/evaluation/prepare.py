"""Everything about a subject that does not depend on the target: done once, used by every target."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from vgf_conformance.attribution.noisy import (
    JudgedCall,
    correctly_rounded,
    look_closer,
    only_noisy,
    with_all_visible,
)
from vgf_conformance.comparison.lowering import MANY_OPERATORS, Expected, judge_output, outputs_count
from vgf_conformance.comparison.propagation import LAYOUT, NotCovered, propagate
from vgf_conformance.evaluation.direct import is_direct, output_errors
from vgf_conformance.evaluation.eager import (
    is_floating,
    leaves,
    one_thread,
    repeated_eager,
    run_eager_fp64,
    tensors,
)
from vgf_conformance.evaluation.exported import check_export
from vgf_conformance.evaluation.quantisation.stage import (
    Judgement,
    Quantised,
    QuantiseFailure,
    judge_quantise,
)
from vgf_conformance.evaluation.state import judge_buffers
from vgf_conformance.evaluation.subject import Subject, request_of
from vgf_conformance.evaluation.task import Measurement
from vgf_conformance.evaluation.ties import quantised_errors
from vgf_conformance.evaluation.undefined import Undefined, Watch
from vgf_conformance.evaluation.walk import Walk, sized, walk_calls
from vgf_conformance.formats.boundary import Problem, check_shared_outputs, check_tosa, check_vgf
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.rescales import check_rescales
from vgf_conformance.formats.tosa import TosaGraph, read_graph
from vgf_conformance.formats.vgf import read_vgf
from vgf_conformance.lowering.artifact import Artifact, LoweringFailure
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import export, lower
from vgf_conformance.lowering.program import State
from vgf_conformance.lowering.tensors import from_physical, to_numpy
from vgf_conformance.results.record import Comparison, FirstWrong, Sensitivity
from vgf_conformance.targets.base import Target
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict


@dataclass
class Prepared:
    """A lowered subject with its expected outputs and its run on the reference model.

    ``first_wrong`` is the operator that the reference model computes outside of its own bound, where that
    was looked for. ``calls`` are the inputs of this call, last, and of those before it, whose buffers it has.
    """

    artifact: Artifact
    graphs: list[TosaGraph]
    problems: list[Problem]
    eager: list[torch.Tensor]
    quantised: list[torch.Tensor] | None
    reference: Walk
    calls: list[list[Any]]
    comparisons: list[Comparison] = field(default_factory=list)
    measurement: Measurement | None = None
    first_wrong: FirstWrong | None = None
    undefined: Undefined = field(default_factory=Undefined)
    stage: Judgement = field(default_factory=Judgement)

    @property
    def inputs(self) -> list[Any]:
        """This call's, flattened."""
        return self.calls[-1]


@one_thread()
def prepare(
    subject: Subject, profile: Profile, scheme: str, reference: Target, cache: Cache | None
) -> Prepared:
    """Lower ``subject``, run it eagerly, quantised and on the reference model, and judge up to ``lower``.

    Raises EagerFailure, NotRepeatable and LoweringFailure.
    """
    before = subject.before or ()
    eager = repeated_eager(subject.module, subject.inputs, before)
    request = request_of(subject, profile, scheme)
    exported = export(request)
    undefined = check_export(exported, subject, eager)
    try:
        artifact = lower(request, cache, exported)
    except LoweringFailure as failure:
        stage = judge_quantise(subject, request, failure.steps, eager, undefined)
        raise _earliest(failure, stage) from failure
    calls = [*map(leaves, before), leaves(subject.inputs)]
    graphs = [read_graph(delegate.tosa) for delegate in artifact.delegates]
    quantised: list[torch.Tensor] | None = None
    state: State = {}
    if artifact.quantised is not None:
        watch = Watch()
        for inputs in calls[:-1]:
            artifact.quantised.walk(inputs, state=state)
        quantised = tensors(artifact.quantised.walk(calls[-1], after=watch, state=state))
        undefined = undefined.joined(watch.found(artifact.quantised, quantised))
    walked = walk_calls(artifact, calls, reference)
    _require_predictable(walked, undefined)
    made = None if artifact.quantised is None else Quantised(artifact.quantised, quantised or [])
    stage = judge_quantise(subject, request, artifact.steps, eager, undefined, made)
    prepared = Prepared(
        artifact=artifact,
        graphs=graphs,
        problems=_static_problems(artifact, graphs),
        eager=eager,
        quantised=quantised,
        reference=walked,
        calls=calls,
        undefined=undefined,
        stage=stage,
    )
    for call in prepared.reference.calls:
        delegate = artifact.delegates[call.delegate]
        if call.delegate in artifact.refusals:
            continue
        prepared.problems += check_shared_outputs(delegate, read_vgf(delegate.vgf), call.outputs.arrays)
    prepared.comparisons = [
        *stage.comparisons,
        *_quantisation(subject, prepared),
        *_lowering(subject, prepared),
    ]
    if prepared.reference.failure is None:
        left = prepared.reference.buffers
        prepared.comparisons += judge_buffers(subject, artifact, state, left, len(eager))
    prepared.first_wrong = _noisy_reference(prepared, reference)
    return prepared


def _earliest(failure: LoweringFailure, stage: Judgement) -> LoweringFailure:
    """``failure``, or what is wrong before it."""
    if stage.fault is None or failure.stage in (Stage.EXPORT, Stage.QUANTISE):
        return failure
    return QuantiseFailure(
        Verdict.FAIL,
        Stage.QUANTISE,
        Finding.WRONG,
        f"{stage.message}; lowering then ends at {failure.stage.value}: {failure.message}",
        failure.log,
        seconds=failure.seconds,
        made=failure.made,
        cached=failure.cached,
        judgement=stage,
    )


def _require_predictable(walked: Walk, undefined: Undefined) -> None:
    """Raise LoweringFailure where TOSA leaves open what the graph gives, and PyTorch does so as well."""
    failure = walked.failure
    if failure is not None and failure.finding is Finding.UNPREDICTABLE and undefined.masks:
        reasons = "; ".join(undefined.notes())
        message = f"nothing to judge, choose other inputs: {reasons}; and so does TOSA: {failure.message}"
        raise LoweringFailure(Verdict.ERROR, Stage.EXPORT, Finding.INPUT, message)


def _static_problems(artifact: Artifact, graphs: list[TosaGraph]) -> list[Problem]:
    problems: list[Problem] = []
    for number, (delegate, graph) in enumerate(zip(artifact.delegates, graphs, strict=True)):
        problems += [*check_tosa(delegate, graph), *check_rescales(delegate, graph)]
        if refusal := artifact.refusals.get(number):
            problems.append(Problem(Stage.CONVERT, Finding.RAISED, f"{delegate.name}: {refusal}"))
            continue
        problems += check_vgf(delegate, graph, read_vgf(delegate.vgf))
    return problems


def _quantisation(subject: Subject, prepared: Prepared) -> list[Comparison]:
    """Quantised program against eager: judged only against the budget that the case states."""
    if prepared.quantised is None:
        return []
    pair = "quantised/eager"
    if wrong := outputs_count(pair, Stage.QUANTISE, prepared.quantised, prepared.eager):
        return [wrong]
    comparisons = []
    defined = prepared.undefined.without(prepared.quantised, prepared.eager)
    for number, (quantised, eager) in enumerate(zip(defined, prepared.eager, strict=True)):
        comparison = reported(
            pair, Stage.QUANTISE, number, quantised, eager, prepared.artifact.output_scales[number]
        )
        sqnr = comparison.metrics.sqnr_db if comparison.metrics else None
        if subject.budget is not None and sqnr is not None:
            comparison.rule = f"sqnr >= {subject.budget.sqnr_db:g} dB"
            comparison.passed = sqnr >= subject.budget.sqnr_db
            if not comparison.passed:
                comparison.message = (
                    f"output {number}: {sqnr:.1f} dB against eager, "
                    f"the case asks for {subject.budget.sqnr_db:g} dB"
                )
        comparisons.append(comparison)
    return comparisons


def reported(
    pair: str,
    stage: Stage,
    number: int,
    actual: torch.Tensor,
    expected: torch.Tensor,
    lsb: float | None = None,
) -> Comparison:
    """A Comparison that records metrics and judges shape and dtype only."""
    comparison = judge_output(
        number, to_numpy(actual), Expected(pair, to_numpy(expected), to_numpy(expected), None, lsb)
    )
    comparison.stage = stage
    if comparison.metrics is not None:
        comparison.passed, comparison.rule, comparison.headroom, comparison.message = (
            None,
            "reported",
            None,
            "",
        )
        comparison.metrics.wrong = None
    return comparison


def _noisy_reference(prepared: Prepared, reference: Target) -> FirstWrong | None:
    """Judge the reference model operator by operator where it is only noisy, as any device is."""
    lowered = [item for item in prepared.comparisons if item.stage is Stage.LOWER]
    if not only_noisy(lowered):
        return None
    (walked,) = prepared.reference.calls
    delegate, graph = prepared.artifact.delegates[walked.delegate], prepared.graphs[walked.delegate]
    call = JudgedCall(delegate, graph, walked.inputs, walked.outputs.arrays, lowered)
    closer = look_closer(reference, prepared.artifact.delegates, [call], _shown)
    wrong = closer.first_wrong
    return None if wrong is None else replace(wrong, stage=Stage.LOWER)


def _shown(call: JudgedCall) -> Delegate:
    """All intermediate results visible; the reference model needs no VGF."""
    return with_all_visible(call.delegate, call.graph, lambda tosa: b"")


def judge_unreferenced(
    subject: Subject, prepared: Prepared, outputs: list[torch.Tensor], target: str
) -> list[Comparison]:
    """As the lowering is judged, a target's outputs where the reference model cannot run the graph."""
    return _judged(subject, prepared, outputs, target, [None] * len(prepared.eager))


def measure_step_lower(subject: Subject, prepared: Prepared) -> Sensitivity:
    """Whether the lowered program is judged wrong where all its quantised outputs are one step lower.

    The smallest value of each stays: there may be none below. Nothing is tried where no output is quantised.
    """
    right, scales = prepared.reference.outputs, prepared.artifact.output_scales
    lower = [
        output if scale is None else (output - scale).clamp(min=output.min())
        for output, scale in zip(right, scales, strict=True)
    ]
    if all(scale is None for scale in scales):
        return Sensitivity()
    if all(map(torch.equal, lower, right)):
        return Sensitivity(tried=1, equivalent=1)
    name = "lowered outputs one step lower (all)"
    if all(item.passed is not False for item in _judged(subject, prepared, lower, "reference")):
        return Sensitivity(tried=1, survivors=[f"{name}: within the tolerance"])
    return Sensitivity(tried=1, caught=1, mutants=[name])


def _lowering(subject: Subject, prepared: Prepared) -> list[Comparison]:
    """Reference model against the quantised program, or against eager where nothing is quantised."""
    if prepared.reference.failure is not None:
        return []
    return _judged(subject, prepared, prepared.reference.outputs, "reference")


def _judged(
    subject: Subject,
    prepared: Prepared,
    outputs: list[torch.Tensor],
    target: str,
    errors: list[np.ndarray[Any, Any] | None] | None = None,
) -> list[Comparison]:
    native = prepared.eager if prepared.quantised is None else prepared.quantised
    pair = f"{target}/eager" if prepared.quantised is None else f"{target}/quantised"
    if wrong := outputs_count(pair, Stage.LOWER, outputs, native):
        return [wrong]
    precise = None if prepared.quantised is not None else _in_fp64(subject)
    values = native if precise is None else tensors(precise)
    beside_eager = prepared.undefined.without(outputs, prepared.eager)
    outputs, values = prepared.undefined.without(outputs, native), prepared.undefined.without(values, native)
    if errors is None:
        errors = _allowed_errors(prepared, has_precise=precise is not None)
    comparisons = []
    for number, (output, right) in enumerate(zip(outputs, native, strict=True)):
        error = errors[number]
        expected = Expected(
            pair=pair,
            value=to_numpy(values[number]),
            native=to_numpy(right),
            error=None if error is None else np.broadcast_to(error, tuple(right.shape)),
            lsb=prepared.artifact.output_scales[number],
            quantised=prepared.quantised is not None,
            allowance=subject.lsb if prepared.quantised is not None else None,
            rounded=functools.partial(_correctly_rounded, prepared, number),
        )
        comparisons.append(judge_output(number, to_numpy(output), expected))
        if prepared.quantised is not None:
            comparisons.append(
                reported(f"{target}/eager", Stage.LOWER, number, beside_eager[number], prepared.eager[number])
            )
    return comparisons


def _in_fp64(subject: Subject) -> list[Any] | None:
    return run_eager_fp64(subject.module, subject.inputs, subject.before or ())


def _allowed_errors(prepared: Prepared, has_precise: bool) -> list[np.ndarray[Any, Any] | None]:
    """What each user output may differ by; None where no bound means anything (see comparison.lowering)."""
    artifact = prepared.artifact
    if artifact.quantised is not None:
        return list(quantised_errors(artifact.quantised, prepared.calls, artifact.output_scales))
    if len(prepared.calls) > 1:
        # The bounds count on buffers that are exact.
        return [None] * len(prepared.eager)
    errors = _propagated_errors(prepared)
    if not any(is_floating(value) for value in prepared.inputs):
        # What eager computes from integers in integers is exact, however it was lowered.
        errors = [
            error if is_floating(output) else None
            for error, output in zip(errors, prepared.eager, strict=True)
        ]
    # Without an fp64 form eager's own rounding, of the same size as the graph's, counts too.
    return errors if has_precise else [None if error is None else 2.0 * error for error in errors]


def _propagated_errors(prepared: Prepared) -> list[np.ndarray[Any, Any] | None]:
    artifact = prepared.artifact
    none: list[np.ndarray[Any, Any] | None] = [None] * len(artifact.program.outputs)
    if not is_direct(artifact.program) or any(
        _operators(graph) > MANY_OPERATORS for graph in prepared.graphs
    ):
        return none
    errors: dict[int, list[torch.Tensor]] = {}
    for call in prepared.reference.calls:
        delegate = artifact.delegates[call.delegate]
        try:
            bounded = propagate(prepared.graphs[call.delegate], call.inputs, rounded_constants=True)
        except NotCovered:
            continue
        errors[call.delegate] = [
            from_physical(item.error.reshape(sized(port.physical_shape, output.shape)), port)
            for item, output, port in zip(bounded, call.outputs.arrays, delegate.outputs, strict=True)
        ]
    return output_errors(artifact.program, artifact.delegates, errors)


def _correctly_rounded(prepared: Prepared, number: int) -> np.ndarray[Any, Any] | None:
    """User output ``number`` where each operator rounds correctly; None unless of one graph, known here."""
    artifact = prepared.artifact
    if artifact.quantised is not None or len(prepared.reference.calls) != 1 or len(artifact.delegates) != 1:
        return None
    (call,) = prepared.reference.calls
    graph = prepared.graphs[call.delegate]
    if _operators(graph) > MANY_OPERATORS:
        return None
    try:
        outputs = correctly_rounded(graph, call.inputs)
    except NotCovered:
        return None
    values = [
        from_physical(output.astype(np.float64).reshape(sized(port.physical_shape, seen.shape)), port)
        for output, seen, port in zip(
            outputs, call.outputs.arrays, artifact.delegates[call.delegate].outputs, strict=True
        )
    ]
    return output_errors(artifact.program, artifact.delegates, {call.delegate: values})[number]


def _operators(graph: TosaGraph) -> int:
    return sum(count for name, count in graph.operator_counts().items() if name not in LAYOUT)
