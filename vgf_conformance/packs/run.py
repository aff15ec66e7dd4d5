"""Runs the cases of a pack on a target and judges them, without PyTorch."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence

from vgf_conformance.attribution.noisy import JudgedCall, Unseen, look_closer, noisy_notes, only_noisy
from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.digests import digests
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.packs.manifest import PackedCase
from vgf_conformance.packs.pack import LoadedCall, Pack
from vgf_conformance.results.facts import delegate_facts
from vgf_conformance.results.record import DelegateFacts, Record
from vgf_conformance.targets.base import Outputs, Target, TargetFailure
from vgf_conformance.targets.isolation import Isolation
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict


def run_cases(pack: Pack, cases: Sequence[PackedCase], target: Target) -> Iterator[Record]:
    """A record for each case, as it comes; raises UserError where the pack is not what it should be.

    What fails is run again in a fresh worker, to see whether it does so by itself.
    """
    isolation = Isolation[PackedCase](
        run=lambda case: run_case(pack, case, target),
        restart=target.close,
        name=lambda case: case.id_on(target.name),
    )
    for case in cases:
        yield isolation.judge(case)


def run_case(pack: Pack, case: PackedCase, target: Target) -> Record:
    """Run each delegate call of ``case`` on the inputs in the pack; every fault ends up in the record.

    As in the suites, a call that gives no outputs ends the case, and what a run leaves unwritten or does
    otherwise the second time counts before its numbers. Raises UserError where the pack, or an output that
    was brought back, is not what it should be.
    """
    record = _record(case, target)
    faults: list[TargetFailure] = []
    ended: list[TargetFailure] = []
    judged: list[JudgedCall] = []
    try:
        calls = [pack.load(call) for call in case.calls]
        record.delegates = [_facts(call) for call in calls]
        target.load([call.delegate for call in calls])
        for number, call in enumerate(calls):
            outputs = _timed(record, target, number, call)
            record.outputs.append(digests(outputs.arrays))
            record.worker_bytes = outputs.worker_bytes
            record.notes += outputs.validation
            faults += _unsteady(call, outputs)
            judged.append(_judged(call, outputs, target.name))
            record.comparisons += judged[-1].comparisons
        if not faults and only_noisy(record.comparisons):
            closer = look_closer(target, [call.delegate for call in calls], judged, _shown(calls))
            record.visible, record.first_wrong = closer.visible, closer.first_wrong
    except TargetFailure as failure:
        ended = [failure]
    except UserError:
        raise
    except Exception as error:  # one case must not take the run down
        message = f"a fault of the harness, please report it: {type(error).__name__}: {error}"
        log = traceback.format_exc()
        ended = [TargetFailure(Verdict.ERROR, Stage.RUN, Finding.RAISED, message, log)]
    wrong = [
        TargetFailure(Verdict.FAIL, item.stage, Finding.WRONG, item.message)
        for item in record.comparisons
        if not item.passed
    ]
    for fault in [*faults, *ended, *wrong][:1]:
        record.verdict, record.stage, record.finding = fault.verdict, fault.stage, fault.finding
        record.message, record.log, record.unexpected = fault.message, fault.log, True
        if case.known_failure:
            note = f"the suite knows such a failure on the emulation layers: {case.known_failure}"
            record.notes.append(note)
    record.notes += noisy_notes(record.comparisons)
    if record.verdict is Verdict.PASS and any(item.finding is Finding.NOISY for item in record.comparisons):
        record.finding = Finding.NOISY
    return record


def _timed(record: Record, target: Target, number: int, call: LoadedCall) -> Outputs:
    start = time.perf_counter()
    try:
        return target.run(number, call.inputs)
    finally:
        record.seconds["run"] = record.seconds.get("run", 0.0) + time.perf_counter() - start


def _judged(call: LoadedCall, outputs: Outputs, target: str) -> JudgedCall:
    comparisons = judge_device(
        call.graph,
        call.inputs,
        outputs.arrays,
        call.expected,
        target=target,
        delegate=call.delegate.name,
        precise=lambda: call.exact,
    )
    return JudgedCall(call.delegate, call.graph, call.inputs, outputs.arrays, comparisons)


def _shown(calls: Sequence[LoadedCall]) -> Callable[[JudgedCall], Delegate]:
    """What gives a call's graph with all intermediate results visible, as the pack has it."""
    known = {id(call.delegate): call.visible for call in calls}

    def shown(call: JudgedCall) -> Delegate:
        delegate = known[id(call.delegate)]
        if delegate is None:
            raise Unseen("the pack has no graph of it with all intermediate results visible")
        return delegate

    return shown


def _unsteady(call: LoadedCall, outputs: Outputs) -> list[TargetFailure]:
    return [
        TargetFailure(Verdict.FAIL, Stage.RUN, finding, f"{call.delegate.name}, {text}")
        for finding, text in outputs.faults()
    ]


def _record(case: PackedCase, target: Target) -> Record:
    return Record(
        id=case.id_on(target.name),
        case=case.case,
        sample=case.sample,
        kind=case.kind,
        suite=case.file,
        profile=case.profile,
        scheme=case.scheme,
        target=target.name,
        verdict=Verdict.PASS,
        file=case.file,
        operator=case.operator,
        dtypes=list(case.dtypes),
        tier=case.tier,
        driver=target.driver,
    )


def _facts(call: LoadedCall) -> DelegateFacts:
    delegate = call.delegate
    return delegate_facts(delegate.name, delegate.nodes, call.graph, delegate.tosa, delegate.vgf)
