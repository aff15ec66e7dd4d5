"""Inside the worker: sentinels, both runs, the reference model's refusals, the VGF runner's."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tosa_serializer as ts

from tests.comparison.build import GraphBuilder
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.targets.base import Outputs, TargetFailure
from vgf_conformance.targets.process import ProcessTarget, emulation_target, reference_target
from vgf_conformance.targets.reference import ReferenceRunner
from vgf_conformance.targets.runner import Refused
from vgf_conformance.targets.sentinel import SENTINELS, compare_runs, filled
from vgf_conformance.targets.vulkan import choose_driver
from vgf_conformance.targets.worker import Worker
from vgf_conformance.vocabulary import Finding, Stage, Verdict

DTYPES = ["bool", "int8", "int16", "int32", "int64", "float16", "float32", ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)], ids=str)
def test_a_buffer_that_nothing_wrote_is_seen(dtype: str, shape: tuple[int, ...]) -> None:
    first, second = (filled(shape, np.dtype(dtype), sentinel) for sentinel in SENTINELS)
    assert (first.shape, first.dtype) == (shape, np.dtype(dtype))
    outputs = compare_runs([first], [second])
    assert outputs.unwritten == ({0: first.size} if first.size else {})
    assert outputs.unrepeatable == []


def test_values_that_look_like_one_sentinel_were_written() -> None:
    """A result may hold a sentinel's bytes: only the pair of both tells an unwritten element."""
    values = np.array([0xA5A5A5A5, 0x5A5A5A5A, 7], np.uint32)
    assert compare_runs([values], [values.copy()]) == Outputs([values])


def test_runs_that_differ() -> None:
    one = np.array([1.0, np.nan, 3.0], np.float32)
    other = np.array([1.0, np.nan, np.nextafter(np.float32(3), np.float32(4))])
    assert compare_runs([one, one], [one, other]).unrepeatable == [1]
    assert compare_runs([one], [one, one]).unrepeatable == [0, 1]
    assert compare_runs([one], [one[:2]]).unrepeatable == [0]
    assert compare_runs([one], [one.astype(np.float64)]).unrepeatable == [0]
    half = filled((4,), np.dtype(np.float32), SENTINELS[0]).copy()
    again = filled((4,), np.dtype(np.float32), SENTINELS[1]).copy()
    half[:2], again[:2] = (1.0, 2.0), (1.0, 2.5)
    assert compare_runs([half], [again]) == Outputs([half], {0: 2}, [0])


def delegate(tosa: bytes, inputs: list[Port], *outputs: Port, vgf: bytes = b"") -> Delegate:
    return Delegate("delegate 0", tosa, vgf, tuple(inputs), outputs, 1)


def port(*shape: int, dtype: str = "float32") -> Port:
    return Port(shape, dtype, tuple(range(len(shape))))


def gather() -> Delegate:
    build = GraphBuilder()
    inputs = [build.input("values", [1, 4, 2], "float32"), build.input("indices", [1, 3], "int32")]
    tosa = build.finish(build.operator("GATHER", inputs, [1, 3, 2], "float32"))
    return delegate(tosa, [port(1, 4, 2), port(1, 3, dtype="int32")], port(1, 3, 2))


def test_an_unpredictable_run_is_a_finding_of_its_own() -> None:
    """TOSA leaves an index outside the table undefined."""
    values = np.arange(8, dtype=np.float32).reshape(1, 4, 2)
    target = reference_target()
    try:
        target.load([gather()])
        inside = target.run(0, [values, np.array([[0, 3, 1]], np.int32)])
        assert inside.arrays[0].tolist() == [[[0, 1], [6, 7], [2, 3]]]
        with pytest.raises(TargetFailure) as caught:
            target.run(0, [values, np.array([[0, 9, 1]], np.int32)])
    finally:
        target.close()
    failure = caught.value
    assert (failure.verdict, failure.stage, failure.finding) == (
        Verdict.FAIL,
        Stage.LOWER,
        Finding.UNPREDICTABLE,
    )
    assert failure.message == "the reference run ends TOSA_UNPREDICTABLE: the lowering left TOSA's domain"


def test_the_reference_model_has_no_custom_operators() -> None:
    serializer = ts.TosaSerializer(targetMajor=1, targetMinor=0, targetPatch=0, targetDraft=False)
    serializer.addInputTensor(ts.TosaSerializerTensor("x", [2], ts.DType.FP32))
    result = serializer.addIntermediate([2], ts.DType.FP32)
    attribute = ts.TosaSerializerAttribute()
    attribute.CustomAttribute(operator_name="mine", domain_name="here", implementation_attrs=[])
    serializer.addOperator(ts.Op.CUSTOM, ["x"], [result.name], attribute)
    serializer.currRegion.basicBlocks[0].addOutput(result.name)
    with pytest.raises(Refused) as caught:
        ReferenceRunner().build(delegate(bytes(serializer.serialize()), [port(2)], port(2)))
    assert (caught.value.verdict, caught.value.finding) == (Verdict.UNSUPPORTED, Finding.INVALID)
    assert "CUSTOM operator" in caught.value.message


def test_bfloat16_passes_through_the_reference_model() -> None:
    build = GraphBuilder()
    x = build.input("x", [3], "bfloat16")
    tosa = build.finish(build.operator("ABS", [x], [3], "bfloat16"))
    values = np.array([-1.5, 2.0, -0.0], ml_dtypes.bfloat16)
    runner = ReferenceRunner().build(delegate(tosa, [port(3, dtype="bfloat16")], port(3, dtype="bfloat16")))
    (result,) = runner.run([values], SENTINELS[0])
    assert result.dtype == ml_dtypes.bfloat16
    assert result.astype(np.float32).tolist() == [1.5, 2.0, 0.0]


class Twice:
    """A runner that counts: builds, and runs in its results."""

    builds = 0
    runs = 0

    def build(self, delegate: Delegate) -> Twice:
        if delegate.name == "refused":
            raise Refused(Verdict.UNSUPPORTED, Stage.RUN, Finding.INVALID, "not here")
        self.builds += 1
        return self

    def run(self, inputs: object, sentinel: int) -> list[np.ndarray]:  # type: ignore[type-arg]
        self.runs += 1
        return [np.array([self.builds, self.runs])]


def test_a_worker_builds_once_and_runs_twice() -> None:
    runner = Twice()
    worker = Worker(runner)
    named = gather()
    assert worker.handle(("load", (named, dataclasses.replace(named, name="refused")))) == ("ok", None)
    for number in range(3):
        kind, outputs = worker.handle(("run", 0, []))
        assert kind == "ok"
        assert outputs.arrays[0].tolist() == [1, 2 * number + 1]
        assert outputs.unrepeatable == [0]
    assert worker.handle(("run", 1, [])) == (
        *("refused", Verdict.UNSUPPORTED, Stage.RUN, Finding.INVALID, "not here"),
    )
    kind, text = worker.handle(("run", 7, []))
    assert kind == "error"
    assert text.strip().endswith("IndexError: tuple index out of range")
    worker.handle(("load", (named,)))
    worker.handle(("run", 0, []))
    assert runner.builds == 2


def test_a_runner_that_cannot_be_imported_ends_the_worker() -> None:
    target = ProcessTarget("none", "no_such_module:Runner")
    target.load([gather()])
    with pytest.raises(TargetFailure) as caught:
        target.run(0, [])
    assert (caught.value.verdict, caught.value.finding) == (Verdict.CRASH, Finding.CRASHED)
    assert caught.value.message == "the worker ended with exit status 1"
    assert "No module named 'no_such_module'" in caught.value.log


def test_a_vgf_that_the_driver_refuses(tmp_path: Path) -> None:
    """A VGF whose graph is damaged: an answer of the target, not an end of the run."""
    path = Path(__file__).parents[2] / "vgf_conformance" / "targets"
    vgf, tosa = (path / "abs.vgf").read_bytes(), (path / "abs.tosa").read_bytes()
    target = emulation_target(choose_driver(None), tmp_path)
    graph = ReferenceRunner().build(delegate(tosa, [], port()))._graph
    shape = graph.tensors[graph.inputs[0]].shape
    sound = delegate(tosa, [port(*shape)], port(*shape), vgf=vgf)
    values = -np.ones(shape, np.float32)
    try:
        target.load([sound])
        assert (target.run(0, [values]).arrays[0] == 1).all()
        # Spir-V begins with this word; the module section is the one place that has it.
        magic = bytes.fromhex("03022307")
        assert vgf.count(magic) == 1
        target.load([dataclasses.replace(sound, vgf=vgf.replace(magic, b"\0\0\0\0"))])
        with pytest.raises(TargetFailure) as caught:
            target.run(0, [values])
        assert caught.value.stage is Stage.RUN
        assert caught.value.verdict in (Verdict.FAIL, Verdict.CRASH)
        target.load([sound])
        assert (target.run(0, [values]).arrays[0] == 1).all()
    finally:
        target.close()
