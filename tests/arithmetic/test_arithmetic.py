"""Targets that flush, truncate and add in narrow types: what the probes say of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.attribution.graphs import InProcess
from vgf_conformance.arithmetic.accumulators import accumulators
from vgf_conformance.arithmetic.declare import Property, Typed, arithmetic
from vgf_conformance.arithmetic.evaluate import ArithmeticEvaluator
from vgf_conformance.arithmetic.rounding import rounding
from vgf_conformance.arithmetic.subnormals import subnormal_operands, subnormal_results
from vgf_conformance.comparison.bounds import FORMATS
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import Array, Outputs, TargetFailure
from vgf_conformance.vocabulary import Finding, Stage, Verdict

RESULTS = arithmetic(subnormal_results, *FORMATS, alike=True)
OPERANDS = arithmetic(subnormal_operands, *FORMATS, alike=True)
ROUNDING = arithmetic(rounding, *FORMATS, alike=True)
WIDTH = arithmetic(accumulators, *FORMATS, alike=False)


class Spoiled(InProcess):
    """The reference model, with what ``change`` makes of each operator's result."""

    def __init__(self, change: Callable[[str, Array], Array]) -> None:
        super().__init__("reference")
        self._change = change

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        operator = read_graph(self._delegates[index].tosa).operators[-1].name
        outputs = super().run(index, inputs)
        return dataclasses.replace(outputs, arrays=[self._change(operator, item) for item in outputs.arrays])


def asked(
    what: Property, dtype: str, change: Callable[[str, Array], Array] = lambda operator, result: result
) -> Record:
    named = dataclasses.replace(what, name="property", file="tosa/test_none.py")
    return ArithmeticEvaluator({"reference": Spoiled(change)}).evaluate(named, Typed(dtype), "reference")


def flushed(operator: str, result: Array) -> Array:
    least = max(FORMATS[name].normal_min for name in FORMATS if result.dtype.name == name)
    return np.where(np.abs(result.astype(np.float64)) < least, 0, result).astype(result.dtype)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(
    "what", [RESULTS, OPERANDS, ROUNDING, WIDTH], ids=["results", "operands", "ties", "width"]
)
def test_the_reference_model_answers_alike(what: Property, dtype: str) -> None:
    record = asked(what, dtype)
    assert record.message == ""
    assert record.verdict is Verdict.PASS
    said = {note.split(":")[0] for note in record.notes}
    if what is WIDTH and dtype == "float16":
        # A sum of fp16 numbers that end at 2^15 cannot show more.
        assert said == {
            "10 fraction bits (float16)",
            "15 fraction bits or more",
            "23 fraction bits (float32)",
        }
    else:
        assert len(said) == 1
        assert said <= {"kept", "ties to even", "23 fraction bits (float32)"}


def test_flushing_every_result_is_as_good() -> None:
    record = asked(RESULTS, "float16", flushed)
    assert (record.verdict, [note.split(":")[0] for note in record.notes]) == (
        Verdict.PASS,
        ["flushed to zero"],
    )


def test_flushing_here_and_not_there_is_not() -> None:
    record = asked(
        RESULTS, "float32", lambda operator, got: flushed(operator, got) if operator == "EXP" else got
    )
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.RUN, Finding.WRONG)
    assert record.message.startswith("not alike everywhere: kept: MUL, ADD")
    assert record.message.endswith("; flushed to zero: EXP")


def test_a_number_that_is_neither_kept_nor_flushed_is_wrong() -> None:
    def doubled(operator: str, result: Array) -> Array:
        return (result.astype(np.float64) * (2 if operator == "ADD" else 1)).astype(result.dtype)

    record = asked(OPERANDS, "float32", doubled)
    assert record.verdict is Verdict.FAIL
    assert record.message == "ADD: 2.35099e-38, should be 1.17549e-38 or 0"


@pytest.mark.parametrize("dtype", FORMATS)
def test_truncation_of_everything_is_seen(dtype: str) -> None:
    """The ties' upper neighbours, replaced by the lower ones."""
    exact = {item.operator: item for item in rounding(dtype)}

    def truncated(operator: str, result: Array) -> Array:
        even = exact[operator].answer(result)
        assert even.text == "ties to even"
        down = np.array([0, 1, 0, 1]) * np.sign(result.astype(np.float64))
        unit = 1.0 if result.dtype == np.int32 else 2.0 ** -FORMATS[dtype].fraction
        return (result.astype(np.float64) - down * unit).astype(result.dtype)

    record = asked(ROUNDING, dtype, truncated)
    assert [note.split(":")[0] for note in record.notes] == ["toward zero"]


def test_an_accumulator_narrower_than_declared_is_wrong() -> None:
    """What fp16 convolutions into fp32 would give if they were summed in fp16."""
    convolved: list[Array] = []

    def narrow(operator: str, result: Array) -> Array:
        """The first convolution, into float16, stands for both."""
        if operator == "CONV2D":
            convolved.append(result)
        return convolved[0] if operator == "CONV2D" else result

    record = asked(WIDTH, "float16", narrow)
    assert record.verdict is Verdict.FAIL
    assert record.message == "CONV2D with float32: 10 fraction bits (float16)"


def test_a_target_that_crashes_is_the_verdict() -> None:
    def crash(operator: str, result: Array) -> Array:
        raise TargetFailure(Verdict.CRASH, Stage.RUN, Finding.CRASHED, "ended by SIGSEGV", "last words")

    record = asked(WIDTH, "float32", crash)
    assert (record.verdict, record.message, record.log) == (Verdict.CRASH, "ended by SIGSEGV", "last words")
    assert record.notes == []
