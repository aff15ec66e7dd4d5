"""One TOSA test judged twice, with real reference model and converter and with targets that lie."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vgf_conformance.comparison.propagation import propagate
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.results.record import Comparison, Record
from vgf_conformance.targets.base import Outputs
from vgf_conformance.targets.process import ProcessTarget, reference_target
from vgf_conformance.tosatests import evaluate
from vgf_conformance.tosatests.declare import TosaTest, TosaTests, named, tosa_tests
from vgf_conformance.tosatests.evaluate import TosaEvaluator, weigh
from vgf_conformance.tosatests.generate import generator
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

Lie = Callable[[NDArray[Any]], NDArray[Any]]


class Device:
    """A target ``emulation`` that gives the exact results of our own interpreter, through ``lie``."""

    name = "emulation"
    driver = "made_up"

    def __init__(self, lie: Lie) -> None:
        self.lie = lie
        self.delegates: tuple[Delegate, ...] = ()

    def load(self, delegates: Sequence[Delegate]) -> None:
        self.delegates = tuple(delegates)

    def run(self, index: int, inputs: Sequence[NDArray[Any]]) -> Outputs:
        exact = propagate(read_graph(self.delegates[index].tosa), inputs)
        return Outputs([self.lie(item.value.astype(item.dtype)) for item in exact])

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def reference() -> Iterator[ProcessTarget]:
    target = reference_target()
    yield target
    target.close()


def first(part: str, operator: str, dtype: str, **options: Any) -> tuple[TosaTests, TosaTest]:
    tests = named(
        tosa_tests(operator, [dtype], each=99, special=99, **options), operator.lower(), "tosa/test_x.py"
    )
    found = [test for test in tests.choose(generator(tests.options).listed()) if part in test.listed.name]
    return tests, found[0]


MATMUL = ("_s0", "MATMUL", "fp32")
MATMUL_OPTIONS: dict[str, Any] = {"sizes": (11, 20)}


def judge(
    reference: ProcessTarget,
    cache: Cache,
    lie: Lie,
    test: tuple[TosaTests, TosaTest],
    target: str = "emulation",
) -> Record:
    evaluator = TosaEvaluator({"reference": reference, "emulation": Device(lie)}, cache)
    return evaluator.evaluate(*test, target)


def as_it_is(result: NDArray[Any]) -> NDArray[Any]:
    return result


def test_right_results_pass_both_judges(reference: ProcessTarget, cache: Cache) -> None:
    test = first(*MATMUL, **MATMUL_OPTIONS)
    for target in ("reference", "emulation"):
        record = judge(reference, cache, as_it_is, test, target)
        assert record.verdict is Verdict.PASS, record.message
        assert [item.pair for item in record.comparisons] == [
            f"{target}/reference",
            f"{target}/exact",
        ]
        assert record.comparisons[1].rule == "tosa-tools DOT_PRODUCT"
        assert (record.kind, record.operator, record.profile, record.scheme) == (
            "tosa",
            "MATMUL",
            "FP",
            "none",
        )
        assert record.delegates[0].tosa_operators == {"MATMUL": 1}
        assert Record.from_json(record.to_json()) == dataclasses.replace(record)
    assert record.delegates[0].vgf_bytes > 0


def spoiled(result: NDArray[Any]) -> NDArray[Any]:
    result[0, 0, 0] += 1
    return result


def test_a_wrong_result_fails_both_judges(reference: ProcessTarget, cache: Cache) -> None:
    record = judge(reference, cache, spoiled, first(*MATMUL, **MATMUL_OPTIONS))
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert [item.passed for item in record.comparisons] == [False, False]
    assert "elements, worst at [0, 0, 0]" in record.message


def test_a_wrong_integer_fails_both_judges(reference: ProcessTarget, cache: Cache) -> None:
    record = judge(reference, cache, spoiled, first("3", "MATMUL", "int8", **MATMUL_OPTIONS))
    assert (record.verdict, record.finding) == (Verdict.FAIL, Finding.WRONG)


def test_a_result_that_one_judge_alone_refuses_fails_as_a_disagreement(
    reference: ProcessTarget, cache: Cache
) -> None:
    # Off by 3 ksb units of half an ULP of B: TOSA 1.0.2 allows 2 ksb; the verifier of tosa-tools 2026.5.0
    # allows fp32 the 6 ksb of the 1.1 draft whatever the graph's version. Its own magnitudes say where B is.
    tests, test = first(*MATMUL, **MATMUL_OPTIONS)
    made = generator(tests.options).write(test.listed.name)
    graph = read_graph(made.tosa)
    (exact,) = propagate(graph, [made.inputs[name] for name in graph.inputs])

    def off(result: NDArray[Any]) -> NDArray[Any]:
        result[0, 0, 0] = np.float32(exact.value[0, 0, 0] + 1.5 * exact.error[0, 0, 0])
        return result

    record = judge(reference, cache, off, (tests, test))
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.RUN, Finding.DISAGREEMENT)
    assert (
        "fail (tosa-1.0.2 MATMUL) by our comparison, pass (tosa-tools DOT_PRODUCT) by the verifier"
        in record.message
    )


def comparison(passed: bool, output: int = 0) -> Comparison:
    return Comparison(
        "emulation/reference", Stage.RUN, output, passed, "rule", None, message="" if passed else "bad"
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "finding"),
    [
        (True, True, None),
        (False, False, Finding.WRONG),
        (True, False, Finding.DISAGREEMENT),
        (False, True, Finding.DISAGREEMENT),
    ],
)
def test_verdicts_are_weighed(ours: bool, theirs: bool, finding: Finding | None) -> None:
    fault = weigh([comparison(ours)], [comparison(theirs)])
    assert (fault and fault.finding) == finding


def test_a_disagreement_is_told_before_a_wrong_output() -> None:
    ours = [comparison(False, 0), comparison(True, 1)]
    theirs = [comparison(False, 0), comparison(False, 1)]
    fault = weigh(ours, theirs)
    assert fault is not None and fault.finding is Finding.DISAGREEMENT and "output 1" in fault.message


def test_an_output_too_few_fails_without_a_disagreement(reference: ProcessTarget, cache: Cache) -> None:
    class Short(Device):
        def run(self, index: int, inputs: Sequence[NDArray[Any]]) -> Outputs:
            return Outputs([])

    evaluator = TosaEvaluator({"reference": reference, "emulation": Short(as_it_is)}, cache)
    record = evaluator.evaluate(*first(*MATMUL, **MATMUL_OPTIONS), "emulation")
    assert (record.verdict, record.finding) == (Verdict.FAIL, Finding.WRONG)
    assert record.message == "output 0: 0 outputs, should be 1"


def test_what_the_converter_refuses_is_unsupported_at_convert(reference: ProcessTarget, cache: Cache) -> None:
    record = judge(reference, cache, as_it_is, first("b_idxi32", "GATHER", "bool"))
    assert (record.verdict, record.stage, record.finding) == (
        Verdict.UNSUPPORTED,
        Stage.CONVERT,
        Finding.RAISED,
    )
    assert "must be 3D tensorArm" in record.message


def test_a_missing_converter_is_a_user_error(
    reference: ProcessTarget, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(tmp_path / "none"))
    with pytest.raises(UserError, match="the model converter does not launch"):
        judge(reference, Cache(tmp_path), as_it_is, first(*MATMUL, **MATMUL_OPTIONS))


def test_a_fault_of_the_harness_is_an_error(
    reference: ProcessTarget, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **keywords: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(evaluate, "judge_device", broken)
    record = judge(reference, cache, as_it_is, first(*MATMUL, **MATMUL_OPTIONS))
    assert (record.verdict, record.stage) == (Verdict.ERROR, None)
    assert "please report it: ZeroDivisionError: planted" in record.message
