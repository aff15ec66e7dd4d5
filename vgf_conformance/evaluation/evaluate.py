"""From a subject to a record: stage by stage, the first one that breaks is named."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from vgf_conformance.attribution.noisy import (
    JudgedCall,
    Unseen,
    look_closer,
    noisy_notes,
    only_noisy,
    with_all_visible,
)
from vgf_conformance.cases.dtypes import computed_dtypes
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.digests import digests
from vgf_conformance.evaluation.accuracy import accuracy, budget_faults
from vgf_conformance.evaluation.attribute import Attributor
from vgf_conformance.evaluation.eager import EagerFailure, NotRepeatable, one_thread
from vgf_conformance.evaluation.execution import execute_program, judge_execution
from vgf_conformance.evaluation.fault import Fault, of_lowering, of_target
from vgf_conformance.evaluation.prepare import (
    Prepared,
    judge_unreferenced,
    measure_step_lower,
    prepare,
    reported,
)
from vgf_conformance.evaluation.quantisation.measure import measure_quantise
from vgf_conformance.evaluation.quantisation.stage import QuantiseFailure
from vgf_conformance.evaluation.subject import Subject, request_of
from vgf_conformance.evaluation.suspicions import calibration_notes, input_faults
from vgf_conformance.evaluation.task import Measurement, lowered_program, quantised_program
from vgf_conformance.evaluation.walk import Call, Walk, walk_calls
from vgf_conformance.formats.convert import convert
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import TosaGraph
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.causes import describe, whole
from vgf_conformance.results.facts import delegate_facts
from vgf_conformance.results.record import Comparison, Leftover, Record, Sensitivity
from vgf_conformance.sensitivity.measure import measure
from vgf_conformance.targets import toolkit
from vgf_conformance.targets.base import Array, OnTargets, Target, TargetFailure
from vgf_conformance.targets.precise import PreciseFailure, precise_results
from vgf_conformance.targets.runtime import RuntimeTarget
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

_ORDER: dict[Stage | None, int] = {stage: position for position, stage in enumerate([None, *Stage])}


#: A quantised program with less than this against eager is worth a note: one bit is 6 dB.
POOR_SQNR_DB = 20.0
NO_OPERATORS = "the program has no operators, and only gives back its inputs or constants"


class Evaluator(OnTargets):
    """Evaluates subjects on named targets; targets of one artifact share what prepares it.

    ``targets`` must hold ``reference``: every other target is judged against it.
    """

    def __init__(self, targets: Mapping[str, Target], cache: Cache | None = None) -> None:
        super().__init__(targets)
        self._cache = cache
        self._last: tuple[Subject, tuple[str, str], Prepared | LoweringFailure] | None = None

    def evaluate(self, subject: Subject, profile: Profile, scheme: str, target: str) -> Record:
        """Lower, run and judge ``subject``; every fault ends up in the record."""
        record = Record(
            id=f"{subject.file}::{subject.case}[{subject.sample}-{profile.name}-{scheme}-{target}]",
            case=subject.case,
            sample=subject.sample,
            kind=subject.kind,
            suite=subject.suite,
            profile=profile.name,
            scheme=scheme,
            target=target,
            verdict=Verdict.PASS,
            file=subject.file,
            operator=subject.operator,
            dtypes=computed_dtypes(subject.module, subject.inputs, scheme),
            tier=subject.tier,
            driver=self._targets[target].driver,
            about=dataclasses.asdict(subject.about) if subject.about else {},
        )
        try:
            faults = self._fill(record, subject, profile, scheme)
        except EagerFailure as error:
            message = f"the model itself raises on these inputs: {error}"
            faults = [Fault(Verdict.ERROR, Stage.EXPORT, Finding.INPUT, message, whole(error))]
        except NotRepeatable as error:
            faults = [Fault(Verdict.ERROR, Stage.EXPORT, Finding.UNREPEATABLE, str(error))]
        except Exception as error:  # one case must not take the run down
            message = f"a fault of the harness, please report it: {describe(error)}"
            faults = [Fault(Verdict.ERROR, None, Finding.RAISED, message, whole(error))]
        if faults:
            _blame(record, min(faults, key=lambda fault: _ORDER[fault.stage]))
        elif any(item.finding is Finding.NOISY for item in record.comparisons):
            record.finding = Finding.NOISY
        if record.task is not None and record.task.message not in record.message:
            # Whatever is to blame, this is what it costs.
            record.message += f"\n{record.task.message}"
        return record

    def _fill(self, record: Record, subject: Subject, profile: Profile, scheme: str) -> list[Fault]:
        record.notes += subject.notes
        if scheme != "none" and subject.kind == "model":
            record.notes += calibration_notes(subject)
        if wrong := input_faults(subject):
            return wrong
        prepared = self._prepared(subject, profile, scheme)
        if isinstance(prepared, LoweringFailure):
            record.seconds = dict(prepared.seconds)
            if isinstance(prepared, QuantiseFailure):
                record.comparisons = list(prepared.judgement.comparisons)
                record.quantise_fault = prepared.judgement.fault
            record.cached = prepared.made if prepared.cached else ""
            kept = self._cache.keep("rejected.tosa", prepared.tosa) if self._cache and prepared.tosa else None
            return [of_lowering(prepared, kept)]
        _describe(record, prepared)
        record.notes += prepared.undefined.notes()
        faults = self._faults(subject, prepared, record.target, record)
        # Where no numbers come out there is no accuracy either; a runtime on a driver that errs is not asked.
        in_runtime = isinstance(self._targets[record.target], RuntimeTarget)
        measured = all(fault.finding is Finding.WRONG for fault in faults)
        if subject.task is not None and measured and not (in_runtime and _delegate_failed(record)):
            start = time.perf_counter()
            faults += self._task_faults(subject, prepared, record)
            record.seconds["task"] = time.perf_counter() - start
        record.accuracy = accuracy(subject, prepared, record)
        return [*faults, *budget_faults(subject, record)]

    @one_thread()
    def _task_faults(self, subject: Subject, prepared: Prepared, record: Record) -> list[Fault]:
        """Set ``record.task``: what does not depend on the target is measured once for all of them."""
        assert subject.task is not None
        names = [] if prepared.reference.failure is not None else ["reference"]
        try:
            if prepared.measurement is None:
                prepared.measurement = Measurement.of(subject.task, subject.module)
                if prepared.artifact.quantised is not None:
                    prepared.measurement.add("quantised", quantised_program(prepared.artifact.quantised))
            for name in dict.fromkeys([*names, record.target]):
                if name not in prepared.measurement.scores:
                    program = lowered_program(prepared.artifact, self._targets[name])
                    prepared.measurement.add(name, program)
        except TargetFailure as failure:
            return [of_target(failure)]
        record.task, faults = prepared.measurement.result(record.target)
        return faults

    def attribute(
        self, record: Record, subject: Subject, profile: Profile, scheme: str, folder: Path | None
    ) -> None:
        """Set ``record.first_wrong`` where ``record`` fails and there is a graph to look for it in.

        The folder that shows the operator goes below ``folder``.
        """
        unable = record.target == "reference" and record.stage is Stage.RUN
        # The search runs a first call alone.
        if record.verdict is Verdict.PASS or unable or subject.before:
            return
        attributor = Attributor(
            reference=self._targets["reference"],
            target=self._targets[record.target],
            convert=convert,
            cache=self._cache,
            folder=folder,
        )
        try:
            found = attributor.attribute(subject, profile, scheme, record)
        except Exception as error:  # the verdict stands without it
            record.notes.append(f"the search for the first wrong operator ended early: {describe(error)}")
            return
        if found is not None:
            record.first_wrong = found.recorded()

    def measure_sensitivity(self, record: Record, subject: Subject, profile: Profile, scheme: str) -> None:
        """Measure where the graphs run; a passing case that catches no fault of a device at all fails.

        Sets ``record.sensitivity``, and ``quantise_sensitivity`` where it is quantised. A wrong lowering is
        no hindrance: what is measured is how a device's run of its graphs is judged.
        """
        if not _measurable(record):
            return
        prepared = self._prepared(subject, profile, scheme)
        if isinstance(prepared, LoweringFailure):
            return
        record.sensitivity = Sensitivity()
        for call in prepared.reference.calls:
            graph = prepared.graphs[call.delegate]
            record.sensitivity.add(
                measure(graph, call.inputs, call.outputs.arrays, self._targets["reference"])
            )
        if scheme != "none":
            record.quantise_sensitivity = measure_quantise(
                subject, request_of(subject, profile, scheme), prepared.eager, prepared.undefined
            )
            record.quantise_sensitivity.add(measure_step_lower(subject, prepared))
        if record.verdict is Verdict.PASS and record.sensitivity.faults and not record.sensitivity.caught:
            message = f"none of {record.sensitivity.faults} planted faults is caught"
            _blame(record, Fault(Verdict.FAIL, Stage.RUN, Finding.BLIND, message))

    def _prepared(self, subject: Subject, profile: Profile, scheme: str) -> Prepared | LoweringFailure:
        configuration = (profile.specification, scheme)
        last = self._last
        if last is not None and last[0] is subject and last[1] == configuration:
            return last[2]
        try:
            made: Prepared | LoweringFailure = prepare(
                subject, profile, scheme, self._targets["reference"], self._cache
            )
        except LoweringFailure as failure:
            made = failure
        self._last = (subject, configuration, made)
        return made

    def _faults(self, subject: Subject, prepared: Prepared, target: str, record: Record) -> list[Fault]:
        record.comparisons = list(prepared.comparisons)
        record.first_wrong, record.quantise_fault = prepared.first_wrong, prepared.stage.fault
        faults = [
            *_quantise_faults(prepared),
            *_unquantised(subject, record),
            *_lowering_faults(subject, prepared, target),
        ]
        if target != "reference":
            problems = [problem for problem in prepared.problems if problem.stage is Stage.CONVERT]
            faults += [Fault(Verdict.FAIL, item.stage, item.finding, item.message) for item in problems]
            # An invalid VGF is not given to a driver: what it would do is undefined.
            if not problems and not _is_invalid(prepared.reference.failure):
                faults += self._run_faults(subject, prepared, target, record)
        faults += [
            Fault(Verdict.FAIL, item.stage, Finding.WRONG, item.message)
            for item in record.comparisons
            if item.passed is False
        ]
        record.notes += noisy_notes(record.comparisons)
        return faults

    def _run_faults(self, subject: Subject, prepared: Prepared, target: str, record: Record) -> list[Fault]:
        """What is wrong with the program on ``target``: first its delegates, then the runtime around them."""
        chosen = self._targets[target]
        if not isinstance(chosen, RuntimeTarget):
            _, faults = self._device_faults(subject, prepared, chosen, record)
            return faults
        walk, faults = self._device_faults(subject, prepared, chosen.peer, record)
        # Where the driver fails on the VGFs themselves, the runtime cannot do better.
        if walk.failure or faults or _delegate_failed(record):
            return faults
        return _runtime_faults(prepared, walk, chosen, record)

    def _device_faults(
        self, subject: Subject, prepared: Prepared, device: Target, record: Record
    ) -> tuple[Walk, list[Fault]]:
        """Walk the program on ``device``; each call is judged against the reference on the same inputs.

        The reference model runs no custom shaders: the outputs of a program that has some are held
        against the program above, and where they are wrong, lowering is the first that may be at fault.
        """
        start, target = time.perf_counter(), device.name
        walk = walk_calls(prepared.artifact, prepared.calls, device)
        record.seconds["run"] = time.perf_counter() - start
        record.outputs = [digests(call.outputs.arrays) for call in walk.calls]
        record.worker_bytes = walk.calls[-1].outputs.worker_bytes if walk.calls else 0
        record.notes += [message for call in walk.calls for message in call.outputs.validation]
        faults = [fault for call in walk.calls for fault in _call_faults(prepared, call)]
        custom = {number for number, graph in enumerate(prepared.graphs) if _has_custom(graph)}
        for call in walk.calls:
            if call.delegate in custom:
                continue
            try:
                record.comparisons += self._judge_call(prepared, call, target)
            except TargetFailure as failure:
                faults.append(_unjudged(failure, target))
        if walk.failure is not None:
            return walk, [*faults, of_target(walk.failure)]
        judged = [item for item in record.comparisons if item.stage is Stage.RUN]
        if not faults and only_noisy(judged):
            self._look_closer(prepared, walk, device, record)
        if custom:
            record.comparisons += judge_unreferenced(subject, prepared, walk.outputs, target)
        else:
            record.comparisons += _reported_outputs(prepared, walk.outputs, target)
        return walk, faults

    def _look_closer(self, prepared: Prepared, walk: Walk, device: Target, record: Record) -> None:
        """Judge the calls that are only noisy operator by operator; sets what the record keeps of that."""
        delegates = prepared.artifact.delegates
        calls = [
            JudgedCall(
                delegates[call.delegate],
                prepared.graphs[call.delegate],
                call.inputs,
                call.outputs.arrays,
                [item for item in record.comparisons if item.delegate == delegates[call.delegate].name],
            )
            for call in walk.calls
        ]
        closer = look_closer(device, delegates, calls, _with_all_visible)
        record.visible = closer.visible
        record.first_wrong = record.first_wrong or closer.first_wrong

    def _judge_call(self, prepared: Prepared, call: Call, target: str) -> list[Comparison]:
        """Raises TargetFailure where the reference model gives nothing to compare with."""
        known = next((item for item in prepared.reference.calls if _same_call(item, call)), None)
        if known is not None:
            reference = known.outputs.arrays
        else:
            self._targets["reference"].load(prepared.artifact.delegates)
            reference = self._targets["reference"].run(call.delegate, call.inputs).arrays
        return judge_device(
            prepared.graphs[call.delegate],
            call.inputs,
            call.outputs.arrays,
            reference,
            target=target,
            delegate=prepared.artifact.delegates[call.delegate].name,
            precise=lambda: self._precise(prepared, call),
        )

    def _precise(self, prepared: Prepared, call: Call) -> list[Array] | None:
        """A call's outputs in fp64, remembered beside the artifact; None where there are none."""
        graph, tosa = prepared.graphs[call.delegate], prepared.artifact.delegates[call.delegate].tosa
        digest = hashlib.sha256(f"fp64 {toolkit.version()}".encode() + tosa)
        for array in call.inputs:
            digest.update(array.tobytes())
        key = digest.hexdigest()
        known: list[Array] | None = self._cache.get(key) if self._cache else None
        if known is None:
            try:
                known = precise_results(tosa, graph, call.inputs)
            except PreciseFailure:
                return None
            if self._cache:
                self._cache.put(key, known)
        return known


def _with_all_visible(call: JudgedCall) -> Delegate:
    try:
        return with_all_visible(call.delegate, call.graph, convert)
    except Exception as error:  # the verdict stands without it
        raise Unseen(f"with all intermediate results visible: {describe(error)}") from error


def _quantise_faults(prepared: Prepared) -> list[Fault]:
    message = prepared.stage.message
    return [Fault(Verdict.FAIL, Stage.QUANTISE, Finding.WRONG, message)] if message else []


def _lowering_faults(subject: Subject, prepared: Prepared, target: str) -> list[Fault]:
    faults = [
        Fault(Verdict.FAIL, problem.stage, problem.finding, problem.message)
        for problem in prepared.problems
        if problem.stage is Stage.LOWER
    ]
    failure = prepared.reference.failure
    if failure is not None and (target == "reference" or failure.stage is Stage.LOWER):
        faults.append(of_target(failure))
    artifact = prepared.artifact
    if subject.delegated is True and not artifact.delegates:
        reasons = "; ".join(f"{node.operator}: {node.reason}" for node in artifact.leftovers)
        message = f"nothing was delegated ({reasons or NO_OPERATORS})"
        faults.append(Fault(Verdict.UNSUPPORTED, Stage.LOWER, Finding.BOUNDARY, message))
    if subject.delegated is False and artifact.delegates and not artifact.leftovers:
        message = "the case declares that it falls back to the CPU, but all of it was delegated"
        faults.append(Fault(Verdict.FAIL, Stage.LOWER, Finding.BOUNDARY, message))
    return faults


def _unquantised(subject: Subject, record: Record) -> list[Fault]:
    """What a quantised program computes in floating point: a fault where the case does not declare it."""
    if record.scheme == "none":
        return []
    floating: collections.Counter[str] = collections.Counter()
    for delegate in record.delegates:
        floating.update(delegate.floating)
    if subject.floating is None:
        if floating:
            what = f"{record.profile} {record.scheme}: the quantiser leaves in floating point"
            record.notes.append(f"{what}: {_counted(floating)}")
        return []
    undeclared = {name: count for name, count in floating.items() if name not in subject.floating}
    if not undeclared:
        return []
    declared = f"the case declares {', '.join(subject.floating) or 'nothing'}"
    message = f"the quantiser leaves in floating point: {_counted(undeclared)}; {declared}"
    return [Fault(Verdict.FAIL, Stage.QUANTISE, Finding.UNQUANTISED, message)]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


def _has_custom(graph: TosaGraph) -> bool:
    """Whether custom shaders stand in for some of the graph's operators."""
    return "CUSTOM" in graph.operator_counts()


def _unjudged(failure: TargetFailure, target: str) -> Fault:
    """A call without a reference is not a pass: either the graph is at fault, or nobody can say."""
    if failure.stage is Stage.LOWER:
        return of_target(failure)
    message = f"{target} ran, but nothing can judge it: {failure.message}"
    return Fault(Verdict.ERROR, Stage.RUN, failure.finding, message, failure.log)


def _same_call(one: Call, other: Call) -> bool:
    """Whether the delegate is the same and was given the same; in a loop it is called more than once."""
    return one.delegate == other.delegate and all(
        (a == b).all() for a, b in zip(one.inputs, other.inputs, strict=True)
    )


def _is_invalid(failure: TargetFailure | None) -> bool:
    return failure is not None and failure.finding is Finding.INVALID and failure.verdict is Verdict.FAIL


def _call_faults(prepared: Prepared, call: Call) -> list[Fault]:
    """Outputs that the device left unwritten, or gave differently the second time."""
    name = prepared.artifact.delegates[call.delegate].name
    return [
        Fault(Verdict.FAIL, Stage.RUN, finding, f"{name}, {text}") for finding, text in call.outputs.faults()
    ]


def _delegate_failed(record: Record) -> bool:
    """Whether the device's run of a delegate was judged and is wrong."""
    return any(
        item.delegate and item.stage is Stage.RUN and item.passed is False for item in record.comparisons
    )


def _measurable(record: Record) -> bool:
    """Whether all graphs ran: the case passes, or its numbers are wrong before any device is reached."""
    wrong_above = record.finding is Finding.WRONG and record.stage in (Stage.QUANTISE, Stage.LOWER)
    return record.verdict is Verdict.PASS or wrong_above


def _runtime_faults(prepared: Prepared, walk: Walk, target: RuntimeTarget, record: Record) -> list[Fault]:
    """Execute the whole program; what differs from the walk over its delegates is the runtime's."""
    if len(prepared.calls) > 1:
        message = "the ExecuTorch runtime is asked for the first call of a sequence only"
        return [Fault(Verdict.UNSUPPORTED, Stage.RUN, Finding.CAPABILITY, message)]
    start = time.perf_counter()
    done = execute_program(prepared.artifact, prepared.inputs, target)
    record.seconds["run"] = time.perf_counter() - start
    if done.failure is not None or done.raw is None:
        return [of_target(done.failure)] if done.failure else []
    record.outputs = [digests(done.raw.arrays)]
    record.worker_bytes = done.raw.worker_bytes
    record.notes += done.raw.validation
    outputs = done.outputs
    if prepared.artifact.leftovers:
        # These are computed by kernels of another make, which may choose otherwise what PyTorch leaves open.
        outputs = prepared.undefined.without(outputs, walk.outputs)
    try:
        record.comparisons += judge_execution(
            prepared.artifact, prepared.inputs, outputs, walk.outputs, target.peer
        )
    except TargetFailure as failure:
        return [_unjudged(failure, target.name)]
    record.comparisons += _reported_outputs(prepared, done.outputs, target.name)
    return [
        Fault(Verdict.FAIL, Stage.RUN, finding, f"the runtime, {text}") for finding, text in done.raw.faults()
    ]


def _reported_outputs(prepared: Prepared, outputs: Sequence[torch.Tensor], target: str) -> list[Comparison]:
    """The user's outputs on the target against the quantised program and eager: is the result good?"""
    against = {"quantised": prepared.quantised, "eager": prepared.eager}
    return [
        reported(f"{target}/{name}", Stage.RUN, number, actual, expected, scale)
        for name, right in against.items()
        if right is not None and len(right) == len(outputs)
        for number, (actual, expected, scale) in enumerate(
            zip(
                prepared.undefined.without(outputs, right),
                right,
                prepared.artifact.output_scales,
                strict=True,
            )
        )
    ]


def _blame(record: Record, fault: Fault) -> None:
    record.verdict, record.stage, record.finding = fault.verdict, fault.stage, fault.finding
    record.message, record.log = fault.message, fault.log


def _describe(record: Record, prepared: Prepared) -> None:
    artifact = prepared.artifact
    record.artifact = artifact.key
    record.cached = artifact.made if artifact.cached else ""
    record.passes = list(artifact.passes)
    record.seconds = dict(artifact.seconds)
    record.pte_bytes = len(artifact.pte)
    record.delegates = [
        delegate_facts(delegate.name, delegate.nodes, graph, delegate.tosa, delegate.vgf)
        for delegate, graph in zip(artifact.delegates, prepared.graphs, strict=True)
    ]
    counts = collections.Counter((node.operator, node.reason) for node in artifact.leftovers)
    record.leftovers = [Leftover(operator, reason, count) for (operator, reason), count in counts.items()]
    for comparison in prepared.comparisons:
        sqnr = comparison.metrics.sqnr_db if comparison.metrics else None
        if comparison.stage is Stage.QUANTISE and sqnr is not None and sqnr < POOR_SQNR_DB:
            what = f"{record.profile} {record.scheme}: quantisation leaves output {comparison.output}"
            record.notes.append(f"{what} {sqnr:.0f} dB against eager")
    if not artifact.delegates:
        why = "the whole program runs on the CPU" if artifact.leftovers else NO_OPERATORS
        record.notes.append(f"nothing was delegated: {why}")
