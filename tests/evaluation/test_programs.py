"""Small programs through the real stack: the emulation layers over a driver, and the reference model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.fakes import COUNT_FILE
from tests.subjects import FP, INT, randn, subject
from vgf_conformance.cases.case import Apply
from vgf_conformance.evaluation.eager import run_eager
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.results.record import Comparison, Leftover, Record
from vgf_conformance.targets.process import ProcessTarget, reference_target
from vgf_conformance.vocabulary import Finding, Profile, Stage, Verdict

X = randn(3, 5)
UNSUPPORTED = "Not included in BaseTOSASupportList or a registered tosa_support_check"


def on_both(evaluator: Evaluator, asked: Subject, profile: Profile = FP, scheme: str = "none") -> Record:
    """Evaluate on both targets; the record of emulation, which holds the reference's comparisons too."""
    reference = evaluator.evaluate(asked, profile, scheme, "reference")
    record = evaluator.evaluate(asked, profile, scheme, "emulation")
    for found in (reference, record):
        assert found.message == ""
        assert found.verdict is Verdict.PASS
    return record


def pairs(record: Record, pair: str) -> list[Comparison]:
    return [item for item in record.comparisons if item.pair == pair]


def exact(record: Record) -> list[bool]:
    """Which of the user's outputs on the device equal eager in every element."""
    measured = [item.metrics for item in pairs(record, "emulation/eager")]
    return [metrics is not None and metrics.differing == 0 for metrics in measured]


def caught(record: Record) -> tuple[Verdict, Stage | None, Finding | None]:
    return record.verdict, record.stage, record.finding


def sort_in_the_middle(x: torch.Tensor) -> torch.Tensor:
    return torch.sort(torch.exp(x))[0] * 2.0 + x


@pytest.mark.parametrize(("profile", "scheme"), [(FP, "none"), (INT, "a8w8-pc")], ids=["FP", "INT"])
def test_an_unsupported_operator_in_the_middle(profile: Profile, scheme: str, evaluator: Evaluator) -> None:
    record = on_both(evaluator, subject(sort_in_the_middle, X), profile, scheme)
    assert len(record.delegates) == 2
    assert record.leftovers == [Leftover("aten.sort.default", UNSUPPORTED, 1)]
    assert {item.delegate for item in pairs(record, "emulation/reference")} == {"delegate 0", "delegate 1"}
    (final,) = pairs(record, "emulation/eager")
    assert final.metrics is not None
    assert final.metrics.elements == 15
    assert final.metrics.sqnr_db is not None
    assert final.metrics.sqnr_db > (120 if scheme == "none" else 20)


def test_nothing_delegated_is_unsupported_where_it_must_be(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(
        subject(lambda x: torch.sort(x)[0], X, delegated=True), FP, "none", "emulation"
    )
    assert caught(record) == (Verdict.UNSUPPORTED, Stage.LOWER, Finding.BOUNDARY)
    assert record.message == f"nothing was delegated (aten.sort.default: {UNSUPPORTED})"
    assert record.notes == ["nothing was delegated: the whole program runs on the CPU"]


def test_all_delegated_fails_where_a_fall_back_is_declared(evaluator: Evaluator) -> None:
    whole = evaluator.evaluate(subject(torch.exp, X, delegated=False), FP, "none", "reference")
    assert caught(whole) == (Verdict.FAIL, Stage.LOWER, Finding.BOUNDARY)
    assert whole.message == "the case declares that it falls back to the CPU, but all of it was delegated"
    partly = evaluator.evaluate(subject(sort_in_the_middle, X, delegated=False), FP, "none", "reference")
    assert partly.verdict is Verdict.PASS


def relu_and_frac(x: torch.Tensor) -> torch.Tensor:
    return torch.frac(torch.relu(x))


def test_delegates_of_one_delegation_tag(evaluator: Evaluator) -> None:
    """The backend names what it dumps by the tag, so that the second delegate overwrites the first's."""
    record = evaluator.evaluate(subject(relu_and_frac, X), FP, "none", "reference")
    assert len(record.delegates) == 2
    assert [set(item.tosa_operators) for item in record.delegates] == [{"CLAMP"}, {"SUB"}]
    assert record.verdict is Verdict.PASS


def test_nothing_delegated_runs_on_the_cpu_where_it_may(evaluator: Evaluator) -> None:
    record = on_both(evaluator, subject(lambda x: torch.sort(x)[0], X))
    assert exact(record) == [True]
    assert record.delegates == []


def test_inputs_returned_unchanged(evaluator: Evaluator) -> None:
    empty = torch.zeros(0, 4)
    record = on_both(evaluator, subject(lambda x, y, z: (x, torch.exp(y), y, z), X, randn(2), empty))
    assert exact(record) == [True, exact(record)[1], True, True]
    assert [item.metrics and item.metrics.elements for item in pairs(record, "emulation/eager")] == [
        15,
        2,
        2,
        0,
    ]


class Constants(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(6.0).reshape(2, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, Any, torch.Tensor, int]:
        return torch.abs(x), self.table, torch.ones(2, 2), 5


def test_constant_outputs(evaluator: Evaluator) -> None:
    record = on_both(evaluator, subject(Constants(), X))
    assert exact(record) == [True, True, True, True]


def test_a_repeated_output(evaluator: Evaluator) -> None:
    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.abs(x)
        return y, y

    assert exact(on_both(evaluator, subject(twice, X))) == [True, True]


def test_two_equal_outputs_are_a_known_fault_that_is_caught(evaluator: Evaluator) -> None:
    """The emulation layer leaves all but the last of equal outputs unwritten."""
    equal = subject(lambda x: (torch.abs(x), torch.abs(x)), X)
    assert evaluator.evaluate(equal, FP, "none", "reference").verdict is Verdict.PASS
    record = evaluator.evaluate(equal, FP, "none", "emulation")
    assert caught(record) == (Verdict.FAIL, Stage.RUN, Finding.UNWRITTEN)
    assert record.message == "delegate 0, output 0: 15 of 15 elements were never written"


def test_structured_inputs_and_outputs(evaluator: Evaluator) -> None:
    def nested(pair: dict[str, torch.Tensor], factor: int) -> dict[str, Any]:
        return {"b": torch.abs(pair["x"]), "a": [None, pair["y"] * factor]}

    asked = subject(nested, {"x": X, "y": randn(2)}, 4)
    assert exact(on_both(evaluator, asked)) == [True, True]
    on_both(evaluator, asked, INT, "a8w8-pc")


def test_an_input_that_is_changed_in_place(evaluator: Evaluator) -> None:
    x = X.clone()
    record = on_both(evaluator, subject(lambda x: x.add_(1.0) * 2.0, x))
    assert exact(record) == [True]
    assert torch.equal(x, X)


class Counter(torch.nn.Module):
    """Counts its own calls."""

    other: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("other", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1.0)
        self.other = self.other + 1.0
        return torch.abs(x) + self.calls + self.other


def test_a_module_with_state_starts_every_stage_alike(evaluator: Evaluator) -> None:
    module = Counter()
    assert torch.equal(run_eager(module, (X,))[0], run_eager(module, (X,))[0])
    assert (module.calls.item(), module.other.item()) == (0.0, 0.0)
    assert exact(on_both(evaluator, subject(module, X))) == [True]


@pytest.mark.parametrize(
    ("values", "profile"),
    [
        pytest.param(X > 0, "INT", id="bool"),
        pytest.param((X * 50).to(torch.int8), "INT", id="int8"),
        pytest.param((X * 5000).to(torch.int32), "INT", id="int32"),
        pytest.param(X.half(), "FP", id="float16"),
        pytest.param(X.bfloat16(), "FP+bf16", id="bfloat16"),
        pytest.param(X, "FP", id="float32"),
    ],
)
def test_dtypes_at_the_boundary(values: torch.Tensor, profile: str, evaluator: Evaluator) -> None:
    record = on_both(
        evaluator, subject(lambda a, b: torch.cat([a, b]), values, values.flip(0)), Profile.parse(profile)
    )
    assert len(record.delegates) == 1
    assert exact(record) == [True]
    assert [item.rule for item in pairs(record, "reference/eager")] == ["exact"]


@pytest.mark.parametrize(
    ("dtype", "profile"),
    [(torch.float16, "FP"), (torch.bfloat16, "FP+bf16"), (torch.float32, "FP")],
    ids=["float16", "bfloat16", "float32"],
)
def test_arithmetic_in_each_float(dtype: torch.dtype, profile: str, evaluator: Evaluator) -> None:
    record = on_both(evaluator, subject(lambda a: a + a * 0.3, X.to(dtype)), Profile.parse(profile))
    assert len(record.delegates) == 1
    (judged,) = pairs(record, "reference/eager")
    assert judged.rule.startswith("propagated, sqnr >= ")


def test_int16_between_quantised_operators(evaluator: Evaluator) -> None:
    """int16 tensors reach the backend inside quantised programs; at the boundary it refuses them."""
    int16 = (X * 5000).to(torch.int16)
    record = evaluator.evaluate(subject(lambda a: torch.cat([a, a]), int16), INT, "none", "emulation")
    assert caught(record) == (Verdict.FAIL, Stage.LOWER, Finding.RAISED)
    assert record.message.startswith("TosaValueError: Unsupported dtype torch.int16 for CONCAT")


def test_int64_stays_on_the_cpu(evaluator: Evaluator) -> None:
    int64 = (X * 5000).to(torch.int64)
    record = on_both(evaluator, subject(lambda a, x: (a + 1, torch.abs(x)), int64, X))
    assert record.leftovers == [Leftover("aten.add.Tensor", "Non-constant node with int64 output.", 1)]
    assert len(record.delegates) == 1
    assert exact(record) == [True, True]


def test_ranks_zero_to_six(evaluator: Evaluator) -> None:
    inputs = [randn(*([2] * rank), seed=rank) for rank in range(7)]
    record = on_both(evaluator, subject(lambda *all_: tuple(torch.abs(x) for x in all_), *inputs))
    assert len(record.delegates) == 1
    assert exact(record) == [True] * 7
    counts = [item.metrics and item.metrics.elements for item in pairs(record, "emulation/eager")]
    assert counts == [2**rank for rank in range(7)]


def test_rank_seven_falls_back(evaluator: Evaluator) -> None:
    record = on_both(evaluator, subject(torch.abs, randn(1, 2, 1, 2, 1, 2, 1)))
    assert record.delegates == []
    assert [item.operator for item in record.leftovers] == ["aten.abs.default"]


def test_an_empty_tensor_in_a_delegate_leaves_tosas_domain(evaluator: Evaluator) -> None:
    """TOSA has no dimension of zero: lowering one is the backend's fault, and no driver is given it."""
    record = evaluator.evaluate(subject(torch.abs, torch.zeros(0, 3)), FP, "none", "emulation")
    assert caught(record) == (Verdict.FAIL, Stage.LOWER, Finding.INVALID)
    assert record.message.startswith("the reference model refuses the TOSA graph")
    assert pairs(record, "emulation/reference") == []


def test_an_empty_tensor_outside_the_delegates(evaluator: Evaluator) -> None:
    record = on_both(evaluator, subject(lambda x, e: (torch.abs(x), torch.sort(e)[0]), X, torch.zeros(0, 4)))
    assert exact(record) == [True, True]


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(randn(1, 3, 4, 6).to(memory_format=torch.channels_last), id="channels_last"),
        pytest.param(randn(6, 4).T, id="transposed"),
        pytest.param(randn(2, 3, 4).permute(2, 0, 1), id="permuted"),
        pytest.param(randn(4, 6)[:, ::2], id="strided"),
    ],
)
def test_memory_layouts(x: torch.Tensor, evaluator: Evaluator) -> None:
    record = on_both(evaluator, subject(lambda x: x.abs() - 0.5 * x.shape[0], x))
    assert exact(record) == [True]


def test_an_expanded_input_is_refused_by_executorch(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(subject(torch.abs, randn(1, 5).expand(3, 5)), FP, "none", "emulation")
    assert caught(record) == (Verdict.FAIL, Stage.LOWER, Finding.RAISED)
    assert "in dim_order_from_stride)" in record.message


def test_a_result_in_channels_last(evaluator: Evaluator) -> None:
    image = randn(1, 3, 4, 6)
    record = on_both(
        evaluator, subject(lambda x: x.abs().contiguous(memory_format=torch.channels_last), image)
    )
    assert exact(record) == [True]


def test_several_samples_share_one_built_pipeline(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COUNT_FILE, str(tmp_path / "builds"))
    reference = reference_target()
    counting = ProcessTarget("counting", "tests.fakes:Counting", time_limit=30)
    evaluator = Evaluator({"reference": reference, "counting": counting}, cache)
    module = Apply(torch.abs, {})
    try:
        for seed in range(3):
            asked = subject(module, randn(3, 5, seed=seed), example=(X,), sample=f"sample {seed}")
            record = evaluator.evaluate(asked, FP, "none", "counting")
            assert record.verdict is Verdict.PASS
        other = subject(lambda x: x + 1.5, X)
        assert evaluator.evaluate(other, FP, "none", "counting").verdict is Verdict.PASS
    finally:
        evaluator.close()
    builds = (tmp_path / "builds").read_text().split()
    assert len(builds) == 2
    assert len(set(builds)) == 1
    assert str(os.getpid()) not in builds


@pytest.mark.parametrize("target", ["reference", "emulation"])
def test_leaving_tosas_domain_is_a_finding_of_its_own(target: str, evaluator: Evaluator) -> None:
    """A negative index is right in PyTorch, and undefined where lowering hands it to GATHER as it is."""
    indices = torch.tensor([-1, 2], dtype=torch.int32)
    record = evaluator.evaluate(subject(lambda x, i: x[i], randn(4, 3), indices), FP, "none", target)
    assert caught(record) == (Verdict.FAIL, Stage.LOWER, Finding.UNPREDICTABLE)
    assert "TOSA_UNPREDICTABLE" in record.message


def test_special_values_are_compared_by_position(evaluator: Evaluator) -> None:
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0])
    record = on_both(evaluator, subject(lambda x: torch.maximum(x, x * 0.5), special))
    (judged,) = pairs(record, "emulation/eager")
    assert judged.metrics is not None
    assert judged.metrics.nonfinite_mismatches == 0


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda x: x[5], "IndexError: index 5 is out of bounds"),
        (lambda x: x @ x, "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
    ],
)
def test_a_module_that_raises_is_an_error_and_not_a_crash(
    module: Callable[[torch.Tensor], torch.Tensor], message: str, evaluator: Evaluator
) -> None:
    record = evaluator.evaluate(subject(module, X), FP, "none", "reference")
    assert caught(record) == (Verdict.ERROR, Stage.EXPORT, Finding.INPUT)
    assert record.message.startswith(f"the model itself raises on these inputs: {message}")
    assert "Traceback" in record.log


def test_a_fault_of_the_harness_is_nobody_elses(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("vgf_conformance.evaluation.prepare.read_graph", broken)
    record = evaluator.evaluate(subject(torch.exp, X), FP, "none", "reference")
    assert (record.verdict, record.stage) == (Verdict.ERROR, None)
    assert "a fault of the harness, please report it: ZeroDivisionError: planted" in record.message


def test_the_graph_that_the_converter_rejects_is_kept(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(subject(lambda x: x.bool(), X), FP, "none", "reference")
    assert caught(record) == (Verdict.FAIL, Stage.LOWER, Finding.INVALID)
    command = record.log.splitlines()[0].split()
    assert command[:3] == ["reproduce:", "model-converter", "-i"]
    assert read_graph(Path(command[3]).read_bytes()).operator_counts() == {"CAST": 1}
