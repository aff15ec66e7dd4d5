"""Generators, declarations, and the suites that use them: repeatable, named and counted."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from vgf_conformance.cases.case import (
    FLOATING,
    FLOATING_ONLY,
    INTEGER,
    MIXED,
    OPERATOR_BUDGET,
    SEPARATE,
    WEIGHTED,
    Budget,
    Case,
    layer,
    model,
    narrow,
    operator,
    quantised,
    sample,
)
from vgf_conformance.cases.inputs import (
    Draw,
    booleans,
    integers,
    normal,
    ramp,
    sparse,
    special_values,
    stacked,
    uniform,
    values,
)
from vgf_conformance.cases.weights import with_drawn_norms, with_whole_weights
from vgf_conformance.evaluation.collect import declared_cases
from vgf_conformance.evaluation.subject import subject_of
from vgf_conformance.vocabulary import UserError

SUITES = Path(__file__).parents[2] / "suites"


def drawn(draw: Draw, seed: int = 0) -> torch.Tensor:
    tensor = draw(torch.Generator().manual_seed(seed))
    assert isinstance(tensor, torch.Tensor)
    return tensor


@pytest.mark.parametrize(
    "draw",
    [
        normal(2, 3, 4, 5, channels_last=True),
        normal(4, 6, transposed=True),
        normal(3, dtype=torch.bfloat16),
        stacked(normal(1, 2), normal(2, 2, scale=9.0)),
        uniform(7, low=-2.0, high=5.0, dtype=torch.float16),
        integers(5, 5, low=-128, high=128, dtype=torch.int8),
        booleans(9),
    ],
    ids=["channels_last", "transposed", "bfloat16", "stacked", "float16", "int8", "bool"],
)
def test_draws_are_repeatable_and_differ_by_seed(draw: Draw) -> None:
    one, again, other = drawn(draw), drawn(draw), drawn(draw, seed=1)
    assert torch.equal(one, again)
    assert one.stride() == again.stride()
    assert not torch.equal(one, other)


def test_layouts() -> None:
    assert drawn(normal(2, 3, 4, 5, channels_last=True)).is_contiguous(memory_format=torch.channels_last)
    transposed = drawn(normal(4, 6, transposed=True))
    assert (tuple(transposed.shape), transposed.stride()) == ((4, 6), (1, 4))


def test_ranges_and_dtypes() -> None:
    flat = drawn(uniform(1000, low=-2.0, high=5.0))
    assert -2 <= flat.min() < -1.5
    assert 4.5 < flat.max() <= 5
    whole = drawn(integers(1000, low=-3, high=3, dtype=torch.int16))
    assert sorted(set(whole.tolist())) == [-3, -2, -1, 0, 1, 2]
    assert whole.dtype == torch.int16
    assert set(drawn(booleans(100)).tolist()) == {True, False}
    assert drawn(normal(1000, scale=3.0)).std().item() == pytest.approx(3, rel=0.1)


def test_stacked_parts_follow_each_other_along_the_first_axis() -> None:
    draw = stacked(values([7.0, 8.0], 1, 2), values([1.0] * 4, 2, 2))
    assert draw.shape == (3, 2)
    assert drawn(draw).tolist() == [[7.0, 8.0], [1.0, 1.0], [1.0, 1.0]]


def test_a_ramp_reaches_every_code_of_its_range() -> None:
    values = drawn(ramp(4, 257, low=-3.0, high=5.0))
    assert (values.min().item(), values.max().item()) == (-3.0, 5.0)
    codes = torch.round((values.flatten() + 3.0) / 8.0 * 255)
    assert torch.equal(codes.unique(), torch.arange(256.0))


def test_given_values() -> None:
    assert drawn(values([1, 2, 3, 4], 2, 2)).tolist() == [[1, 2], [3, 4]]
    large = drawn(values([2**31 - 1, -(2**31)], dtype=torch.int32))
    assert large.tolist() == [2**31 - 1, -(2**31)]
    row, column = drawn(special_values()), drawn(special_values(column=True))
    assert (tuple(row.shape), tuple(column.shape)) == ((11,), (11, 1))
    assert math.isnan(row[-1])
    assert row[:10].unique().numel() == 9  # 0 and -0 are equal
    assert math.copysign(1, row[5]) == -1
    assert drawn(special_values(torch.float16))[3] == 65504


def test_declarations() -> None:
    plain = operator("aten.abs.default", torch.abs, [sample("a", normal(2)), sample("b", normal(3))])
    assert (plain.kind, plain.configurations, plain.budget) == ("operator", FLOATING, OPERATOR_BUDGET)
    assert [(item.name, pair) for item, pair in plain.plan()] == [
        (name, pair) for name in "ab" for pair in FLOATING
    ]
    own = operator("x", torch.abs, [sample("a", normal(2), configurations=FLOATING_ONLY)])
    assert [pair for _, pair in own.plan()] == list(FLOATING_ONLY)
    weighted = layer("aten.linear.default", torch.nn.Linear, [sample("a", normal(2, 3), args=(3, 4))])
    assert weighted.configurations == WEIGHTED
    module = weighted.samples[0].module(seed=5)
    assert torch.equal(module.weight, weighted.samples[0].module(seed=5).weight)
    assert not module.training


def test_narrow_declares_samples_again_in_both_types() -> None:
    wide = layer(
        "aten.embedding.default",
        lambda: torch.nn.Embedding(9, 4),
        [sample("chosen", integers(3, low=0, high=9)), sample("other", integers(2, low=0, high=9))],
    )
    case = narrow(wide, "chosen")
    assert (case.operator, case.tier) == (wide.operator, "nightly")
    assert [(item.name, pair) for item, pair in case.plan()] == [
        ("float16_chosen", ("FP", "none")),
        ("bfloat16_chosen", ("FP+bf16", "none")),
    ]
    for item, dtype in zip(case.samples, (torch.float16, torch.bfloat16), strict=True):
        subject = subject_of(case, item, seed=0)
        assert subject.inputs[0].dtype == torch.int32
        assert subject.module(*subject.inputs).dtype == dtype
    with pytest.raises(KeyError, match="misspelt"):
        narrow(wide, "misspelt")


@pytest.mark.parametrize("column", [False, True])
def test_narrow_special_values_are_those_of_the_narrow_type(column: bool) -> None:
    wide = operator("aten.abs.default", torch.abs, [sample("special", special_values(column=column))])
    for item, dtype in zip(narrow(wide, "special").samples, (torch.float16, torch.bfloat16), strict=True):
        (tensor,) = item.inputs(seed=0)
        assert torch.equal(tensor.isnan(), drawn(special_values(dtype, column=column)).isnan())
        assert tensor[tensor.isfinite()].max() == torch.finfo(dtype).max


@pytest.mark.parametrize("bare", [{"lsb": 2.0}, {"budget": Budget(12.0, " ")}], ids=["lsb", "budget"])
def test_a_tolerance_without_a_reason_is_refused(bare: dict[str, Any]) -> None:
    module = ModuleType("suite")
    module.__dict__["negation"] = operator("aten.neg.default", torch.neg, [sample("a", normal(2))], **bare)
    with pytest.raises(UserError, match=r"operators/test_none\.py: negation .* without a reason"):
        declared_cases(module, "operators/test_none.py")


def test_quantised_declares_samples_again_under_another_scheme() -> None:
    plain = operator(
        "aten.add.Tensor",
        torch.add,
        [sample("a", normal(2), normal(2)), sample("b", normal(3), normal(3))],
        lsb=1.0,
        lsb_reason="the case's",
    )
    case = quantised(plain, "a16w8", "b", lsb=2.0, lsb_reason="its own")
    assert [(item.name, pair) for item, pair in case.plan()] == [
        ("b", ("INT+int16", "a16w8")),
        ("b", ("FP+INT+int16", "a16w8")),
    ]
    assert (case.operator, case.tier, case.lsb, case.lsb_reason) == (
        plain.operator,
        "nightly",
        2.0,
        "its own",
    )


def test_a_sample_may_have_a_tier_of_its_own() -> None:
    case = operator("x", torch.abs, [sample("often", normal(2)), sample("seldom", normal(2), tier="nightly")])
    assert [case.tier_of(item) for item in case.samples] == ["smoke", "nightly"]
    assert subject_of(case, case.samples[1], seed=0).tier == "nightly"


def test_samples_of_a_model_share_its_calibration() -> None:
    case = model(lambda: torch.nn.Linear(3, 4), [sample("a", normal(2, 3)), sample("b", normal(2, 3))])
    for seed in (0, 5):
        subject = subject_of(case, case.samples[1], seed)
        one, other = subject.calibration
        assert not torch.equal(one[0], other[0])
        assert torch.equal(subject.inputs[0], other[0])
        assert subject.calibrated == ""


def test_what_is_not_quantised_does_not_calibrate() -> None:
    samples = [
        sample("plain", normal(2, 3)),
        sample("loud", normal(2, 3, scale=60.0), configurations=FLOATING_ONLY),
        sample("mixed", normal(2, 3), configurations=MIXED),
        sample("whole", normal(2, 3), configurations=INTEGER),
    ]
    case = model(torch.nn.Identity, samples, configurations=SEPARATE)
    plain, _, mixed, _ = case.samples
    for item in case.samples:
        subject = subject_of(case, item, seed=0)
        (first,), (second,) = subject.calibration
        assert torch.equal(first, plain.inputs(0)[0])
        assert torch.equal(second, mixed.inputs(0)[0])
        assert subject.calibrated == (
            "calibrated on plain, mixed; not on loud, whole: only unquantised configurations"
        )
    again = quantised(case, "a16w8", "loud")
    subject = subject_of(again, again.samples[0], seed=0)
    assert torch.equal(subject.calibration[0][0], subject.inputs[0])
    assert (len(subject.calibration), subject.calibrated) == (1, "")
    alone = model(torch.nn.Identity, samples[:2], configurations=SEPARATE, calibration=None)
    subject = subject_of(alone, alone.samples[1], seed=0)
    assert torch.equal(subject.calibration[0][0], subject.inputs[0])


def test_a_sample_of_another_shape_that_is_not_quantised_does_not_disturb_calibration() -> None:
    samples = [sample("long", normal(9, 3), configurations=FLOATING_ONLY), sample("short", normal(2, 3))]
    case = model(torch.nn.Identity, samples)
    (only,) = subject_of(case, case.samples[0], seed=0).calibration
    assert only[0].shape == (2, 3)


def test_norms_start_with_an_effect() -> None:
    torch.manual_seed(0)
    module = with_drawn_norms(
        torch.nn.Sequential(torch.nn.BatchNorm2d(4), torch.nn.LayerNorm(4), torch.nn.ReLU())
    )
    for name, tensor in {**dict(module.named_parameters()), **dict(module.named_buffers())}.items():
        if "num_batches" not in name:
            assert tensor.unique().numel() == 4, name


def test_whole_weights_and_sparse_inputs_keep_sums_exact() -> None:
    torch.manual_seed(0)
    module = with_whole_weights(torch.nn.Linear(400, 3), 2, share=0.25)
    assert sorted(module.weight.unique().tolist()) == [-2, -1, 0, 1, 2]
    # A quarter of five numbers of which one is 0 anyway.
    assert (module.weight != 0).float().mean().item() == pytest.approx(0.2, abs=0.05)
    ones = drawn(sparse(1000, share=0.5, dtype=torch.bfloat16))
    assert (ones.dtype, sorted(ones.unique().tolist())) == (torch.bfloat16, [-1, 0, 1])
    assert (ones != 0).float().mean().item() == pytest.approx(0.5, abs=0.1)


def suites() -> dict[str, list[Case]]:
    found = {}
    for path in sorted(SUITES.rglob("test_*.py")):
        file = path.relative_to(SUITES).as_posix()
        spec = importlib.util.spec_from_file_location(f"suite_{path.parent.name}_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # PyTorch looks there for the globals of branches of torch.cond.
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        found[file] = declared_cases(module, file)
    return found


def test_the_smoke_tier_covers_what_it_promises() -> None:
    cases = [case for found in suites().values() for case in found if case.tier == "smoke"]
    assert len({case.operator for case in cases if case.kind == "operator"}) >= 40
    assert len([case for case in cases if case.kind == "model"]) >= 4
    configurations = {pair for case in cases for _, pair in case.plan()}
    assert {("FP", "none"), ("INT", "a8w8-pc"), ("INT", "a8w8-pt")} <= configurations
    assert {("FP+INT", "none"), ("FP+INT", "a8w8-pc")} <= configurations


def test_every_sample_runs_eagerly_and_repeats() -> None:
    """But for models, which may take training, minutes or packages of weights."""
    for file, cases in suites().items():
        for case in cases if not file.startswith("models/") else []:
            for item in case.samples:
                one, other = subject_of(case, item, seed=3), subject_of(case, item, seed=3)
                results = []
                for subject in (one, other):
                    with torch.no_grad():
                        results.append(torch.utils._pytree.tree_leaves(subject.module(*subject.inputs)))
                for first, second in zip(*results, strict=True):
                    same = torch.allclose(first.double(), second.double(), rtol=0, atol=0, equal_nan=True)
                    assert same, f"{file}::{case.name}[{item.name}]"
