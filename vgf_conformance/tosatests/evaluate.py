"""One TOSA test on one target, judged twice: by this harness's comparison and by tosa-tools' verifier."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison.device import judge_device
from vgf_conformance.comparison.propagation import NotCovered, propagate
from vgf_conformance.formats.boundary import check_vgf
from vgf_conformance.formats.convert import Refusal, convert, identity
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.formats.tosa import TosaGraph, TosaTensor, read_graph, storage
from vgf_conformance.formats.vgf import read_vgf
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.results.facts import delegate_facts
from vgf_conformance.results.record import Comparison, Record
from vgf_conformance.targets import toolkit
from vgf_conformance.targets.base import OnTargets, Outputs, Target, TargetFailure
from vgf_conformance.targets.precise import Exact, PreciseFailure
from vgf_conformance.tosatests.declare import TosaTest, TosaTests
from vgf_conformance.tosatests.generate import LISTING_SEED, Generated, generator
from vgf_conformance.tosatests.verifier import verifier
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

Array = NDArray[Any]

#: What the reference model's Python binding cannot hand over: it refuses such inputs, and leaves such
#: outputs empty.
_NOT_BOUND = {"int4", "int48"}

#: The name of the only graph of a test, where a program has its delegates' names.
_GRAPH = "test"


class Fault(Exception):
    """What ends an evaluation, as the record has it."""

    def __init__(
        self, verdict: Verdict, stage: Stage | None, finding: Finding, message: str, log: str = ""
    ) -> None:
        super().__init__(message)
        self.verdict, self.stage, self.finding, self.message, self.log = verdict, stage, finding, message, log


@dataclass
class Prepared:
    """What does not depend on the target: the test, its exact results and the reference model's."""

    generated: Generated
    graph: TosaGraph
    inputs: list[Array]
    exact: dict[str, Exact]
    reference: Outputs
    key: str
    notes: list[str]


class TosaEvaluator(OnTargets):
    """Evaluates TOSA tests; the targets of one test share what prepares it.

    ``targets`` must hold ``reference``: every other target is judged against it.
    """

    def __init__(self, targets: Mapping[str, Target], cache: Cache, seed: int = 0) -> None:
        super().__init__(targets)
        self._cache = cache
        self._seed = seed
        self._last: tuple[str, Prepared | Fault] | None = None

    def evaluate(self, tests: TosaTests, test: TosaTest, target: str) -> Record:
        """Run and judge ``test``; every fault ends up in the record, but for UserErrors."""
        record = Record(
            id=f"{tests.file}::{tests.name}[{test.name}-{test.profile}-none-{target}]",
            case=tests.name,
            sample=test.name,
            kind="tosa",
            suite=tests.file,
            profile=test.profile,
            scheme="none",
            target=target,
            verdict=Verdict.PASS,
            file=tests.file,
            operator=tests.operator,
            tier=test.tier,
            driver=self._targets[target].driver,
        )
        try:
            self._fill(record, self.prepared(tests, test), target)
        except UserError:
            raise
        except Fault as fault:
            _blame(record, fault)
        except TargetFailure as failure:
            _blame(record, _of_target(failure))
        except Exception as error:  # one test must not take the run down
            message = f"a fault of the harness, please report it: {type(error).__name__}: {error}"
            _blame(record, Fault(Verdict.ERROR, None, Finding.RAISED, message, traceback.format_exc()))
        return record

    def _fill(self, record: Record, prepared: Prepared, target: str) -> None:
        record.artifact, record.notes = prepared.key, list(prepared.notes)
        if target == "reference":
            _describe(record, prepared, b"")
            outputs, peer = prepared.reference, _peer(prepared)
        else:
            vgf = self._converted(record, prepared)
            _describe(record, prepared, vgf)
            outputs, peer = self._run(record, prepared, target, vgf), prepared.reference.arrays
        record.comparisons = judge_device(
            prepared.graph, prepared.inputs, outputs.arrays, peer, target=target, delegate=_GRAPH
        )
        ours = list(record.comparisons)
        theirs = verify(prepared, outputs.arrays, target)
        record.comparisons += theirs
        fault = _unsteady(outputs) or weigh(ours, theirs)
        if fault is not None:
            raise fault

    def prepared(self, tests: TosaTests, test: TosaTest) -> Prepared:
        """The test with its exact results and the reference model's; raises Fault where there are none."""
        key = self._key("test", tests.options, test.listed.name, self._seed)
        if self._last is None or self._last[0] != key:
            try:
                self._last = key, self._prepare(tests, test, key)
            except Fault as fault:
                self._last = key, fault
        made = self._last[1]
        if isinstance(made, Fault):
            raise made
        return made

    def _prepare(self, tests: TosaTests, test: TosaTest, key: str) -> Prepared:
        generated: Generated | None = self._cache.get(key)
        if generated is None:
            generated = generator(tests.options).write(test.listed.name, self._seed)
            self._cache.put(key, generated)
        graph = read_graph(generated.tosa)
        inputs = [_stored(generated.inputs[name], graph.tensors[name]) for name in graph.inputs]
        unbound = sorted({graph.tensors[name].dtype for name in graph.inputs + graph.outputs} & _NOT_BOUND)
        try:
            exact = generated.exact()
            if unbound:
                # Its program takes them; integers are the same in its precise mode.
                outputs = Outputs([exact[name].value for name in graph.outputs])
            else:
                outputs = self._reference(generated, graph, inputs)
        except PreciseFailure as failure:
            raise Fault(Verdict.FAIL, Stage.RUN, Finding.UNPREDICTABLE, str(failure)) from failure
        except TargetFailure as failure:
            raise _of_target(failure) from failure
        notes = [f"{dtype}: by the reference model's program, its binding lacks it" for dtype in unbound]
        return Prepared(generated, graph, inputs, exact, outputs, key, notes)

    def _reference(self, generated: Generated, graph: TosaGraph, inputs: Sequence[Array]) -> Outputs:
        reference = self._targets["reference"]
        reference.load((_delegate(generated, graph, b""),))
        return reference.run(0, inputs)

    def _converted(self, record: Record, prepared: Prepared) -> bytes:
        start = time.perf_counter()
        key = self._key("vgf", prepared.generated.tosa, identity())
        vgf: bytes | None = self._cache.get(key)
        if vgf is None:
            try:
                vgf = convert(prepared.generated.tosa)
            except Refusal as refusal:
                raise Fault(
                    refusal.verdict, Stage.CONVERT, refusal.finding, refusal.message, refusal.log
                ) from refusal
            self._cache.put(key, vgf)
        record.seconds["convert"] = time.perf_counter() - start
        delegate = _delegate(prepared.generated, prepared.graph, vgf)
        for problem in check_vgf(delegate, prepared.graph, read_vgf(vgf)):
            raise Fault(Verdict.FAIL, problem.stage, problem.finding, problem.message)
        return vgf

    def _run(self, record: Record, prepared: Prepared, target: str, vgf: bytes) -> Outputs:
        start = time.perf_counter()
        self._targets[target].load((_delegate(prepared.generated, prepared.graph, vgf),))
        try:
            outputs = self._targets[target].run(0, prepared.inputs)
        finally:
            record.seconds["run"] = time.perf_counter() - start
        record.worker_bytes = outputs.worker_bytes
        record.notes += outputs.validation
        declared = [prepared.graph.tensors[name] for name in prepared.graph.outputs]
        for number, (array, tensor) in enumerate(zip(outputs.arrays, declared, strict=False)):
            outputs.arrays[number] = _signed(array, tensor)
        return outputs

    def _key(self, *parts: object) -> str:
        whole = ("tosa", toolkit.version(), LISTING_SEED, *parts)
        return hashlib.sha256(repr(whole).encode()).hexdigest()


def verify(prepared: Prepared, actual: Sequence[Array], target: str) -> list[Comparison]:
    """The verdict of tosa-tools' verifier on each output."""
    compliance = prepared.generated.description["meta"]["compliance"]
    verdicts = []
    for number, name in enumerate(prepared.graph.outputs):
        exact = prepared.exact[name]
        fits = number < len(actual) and actual[number].shape == exact.value.shape
        passed = fits and verifier().accepts(name, actual[number], exact.value, exact.bounds, compliance)
        verdicts.append(
            Comparison(
                pair=f"{target}/exact",
                stage=Stage.RUN,
                output=number,
                passed=passed,
                rule=f"tosa-tools {compliance['tensors'][name]['mode']}",
                metrics=None,
                delegate=_GRAPH,
                message="" if passed else f"output {number}: the verifier of tosa-tools says not compliant",
            )
        )
    return verdicts


def weigh(ours: Sequence[Comparison], theirs: Sequence[Comparison]) -> Fault | None:
    """What the two judgements come to: None where both pass every output.

    Both fail: the result is wrong. One fails: one of the two judges is wrong, which is a finding of
    its own and never a pass.
    """
    wrong: Fault | None = None
    for number in range(max(len(ours), len(theirs))):
        # Our comparison has an entry for each output that the graph or the device has.
        own = next((item for item in ours if item.output == number), None)
        other = next((item for item in theirs if item.output == number), None)
        here, there = (item is not None and bool(item.passed) for item in (own, other))
        if here != there:
            detail = own.message.partition(f"output {number}")[2] if own else ""
            message = (
                f"output {number}: the two judges disagree: {_words(own)} by our comparison, "
                f"{_words(other)} by the verifier{detail}"
            )
            return Fault(Verdict.FAIL, Stage.RUN, Finding.DISAGREEMENT, message)
        if not here and wrong is None:
            assert own is not None
            wrong = Fault(Verdict.FAIL, Stage.RUN, Finding.WRONG, own.message)
    return wrong


def _words(comparison: Comparison | None) -> str:
    if comparison is None:
        return "no such output"
    return f"{'pass' if comparison.passed else 'fail'} ({comparison.rule})"


def _unsteady(outputs: Outputs) -> Fault | None:
    """Outputs that the target left unwritten, or gave differently the second time."""
    for finding, message in outputs.faults():
        return Fault(Verdict.FAIL, Stage.RUN, finding, message)
    return None


def _of_target(failure: TargetFailure) -> Fault:
    """Nothing was lowered here: what a target refuses at ``lower`` was the test's own graph."""
    message = failure.message.removesuffix(": the lowering left TOSA's domain")
    return Fault(failure.verdict, Stage.RUN, failure.finding, message, failure.log)


def _peer(prepared: Prepared) -> list[Array]:
    """What the reference model itself is judged against: exact arithmetic, rounded to the output's type.

    It is this harness's own interpreter's where that knows the operator, so that the reference model's
    integers have an independent judge too; else the reference model's fp64 result.
    """
    try:
        values = [item.value for item in propagate(prepared.graph, prepared.inputs)]
    except NotCovered:
        values = [prepared.exact[name].value for name in prepared.graph.outputs]
    with np.errstate(over="ignore", invalid="ignore"):
        return [
            value.astype(storage(prepared.graph.tensors[name].dtype))
            for name, value in zip(prepared.graph.outputs, values, strict=True)
        ]


def _delegate(generated: Generated, graph: TosaGraph, vgf: bytes) -> Delegate:
    inputs, outputs = _ports(graph, graph.inputs), _ports(graph, graph.outputs)
    return Delegate(_GRAPH, generated.tosa, vgf, inputs, outputs, nodes=0)


def _ports(graph: TosaGraph, names: Sequence[str]) -> tuple[Port, ...]:
    shapes = {name: graph.tensors[name].shape for name in names}
    return tuple(
        Port(shape, _in_vgf(graph, name), tuple(range(len(shape)))) for name, shape in shapes.items()
    )


def _in_vgf(graph: TosaGraph, name: str) -> str:
    """The data type of a tensor in a VGF: int48 in int64, int4 in int8, what RESCALE reads as unsigned so."""
    unsigned = {
        tensor
        for operator in graph.operators
        for attribute, tensors in (
            ("input_unsigned", operator.inputs[:1]),
            ("output_unsigned", operator.outputs),
        )
        if operator.attributes.get(attribute)
        for tensor in tensors
    }
    return ("u" if name in unsigned else "") + storage(graph.tensors[name].dtype).name


def _signed(array: Array, tensor: TosaTensor) -> Array:
    """What a VGF calls unsigned, as the TOSA graph has it: the same bits."""
    dtype = storage(tensor.dtype)
    return array.view(dtype) if array.dtype.kind == "u" and array.itemsize == dtype.itemsize else array


def _stored(data: Array, tensor: TosaTensor) -> Array:
    """A test's input as its type: the generator writes narrow floats as raw bits."""
    dtype = storage(tensor.dtype)
    if data.dtype.kind == "V" or (data.dtype.kind == "u" and dtype.kind != "u"):
        return data.view(dtype)
    return data.astype(dtype, copy=False)


def _describe(record: Record, prepared: Prepared, vgf: bytes) -> None:
    tosa = prepared.generated.tosa
    graph = prepared.graph
    record.delegates = [delegate_facts(_GRAPH, 0, graph, tosa, vgf)]


def _blame(record: Record, fault: Fault) -> None:
    record.verdict, record.stage, record.finding = fault.verdict, fault.stage, fault.finding
    record.message, record.log = fault.message, fault.log
