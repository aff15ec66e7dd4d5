"""A made-up run with everything that a report has to show."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Comparison, DelegateFacts, Leftover, Metrics, Record
from vgf_conformance.vocabulary import Finding, Stage, Verdict

OPERATORS = {
    "operators/test_elementwise.py": ["add", "mul", "sub", "exp", "log", "tanh", "gelu", "sigmoid", "rsqrt"],
    "operators/test_convolution.py": ["conv2d", "conv_transpose2d", "depthwise_conv2d", "linear", "bmm"],
    "operators/test_reduction.py": ["sum", "mean", "amax", "softmax", "layer_norm"],
    "models/test_vision.py": ["mobilenet_v2", "resnet18"],
}
COLUMNS = [("FP", "none"), ("INT", "a8w8-pc"), ("INT", "a8w8-pt")]
TARGETS = ["reference", "emulation"]
RUN = {
    "type": "run",
    "schema": 1,
    "started": "2026-05-11T08:30:00.120+00:00",
    "host": "lab-03, Linux 6.12, x86_64",
    "command": "vgf-conformance run --target emulation",
    "versions": {"torch": "2.13.0", "executorch": "1.5.1", "tosa-tools": "2026.5.0"},
    "drivers": {"emulation": "llvmpipe 25.1, layers 0.11.0", "reference": "TOSA reference model 1.0.2"},
    "notes": ["target vulkan was not run: no driver here has VK_ARM_tensors"],
}


def synthetic(samples: int = 4) -> Results:
    """Records of every operator, sample and column; the same for the same ``samples``."""
    chance = random.Random(7)  # noqa: S311 - made-up errors
    records = [
        _record(chance, file, case, f"rank{number + 1}", profile, scheme, target)
        for file, cases in OPERATORS.items()
        for case, number in itertools.product(cases, range(samples))
        for (profile, scheme), target in itertools.product(COLUMNS, TARGETS)
    ]
    return Results(runs=[RUN], records=records)


def _record(
    chance: random.Random, file: str, case: str, sample: str, profile: str, scheme: str, target: str
) -> Record:
    node_id = f"suites/{file}::{case}[{sample}-{profile}-{scheme}-{target}]"
    model = file.startswith("models/")
    integer = profile == "INT"
    record = Record(
        id=node_id,
        case=case,
        sample=sample,
        kind="model" if model else "operator",
        suite=file.partition("/")[0],
        profile=profile,
        scheme=scheme,
        target=target,
        verdict=Verdict.PASS,
        file=file,
        operator="" if model else f"aten.{case}.default",
        driver="llvmpipe 25.1 (Mesa)" if target == "emulation" else "",
        delegates=_delegates(case, model, integer),
        leftovers=[Leftover("aten.topk.default", "not supported by the partitioner", 2)] if model else [],
        comparisons=_comparisons(chance, integer, target),
        seconds={
            "export": chance.uniform(0.1, 0.3),
            "quantise": chance.uniform(0.1, 0.5) if integer else 0.0,
            "lower": chance.uniform(0.3, 0.9),
            "convert": chance.uniform(0.02, 0.08),
            "run": chance.uniform(0.05, 0.4),
        },
        artifact=f"{chance.getrandbits(48):012x}",
        repro=f'vgf-conformance run "{node_id}"',
        written="2026-05-11T08:52:41.500+00:00",
    )
    return _spoilt(record)


def _delegates(case: str, model: bool, integer: bool) -> list[DelegateFacts]:
    if model:
        return [
            DelegateFacts("delegate_0", 52, {"CONV2D": 17, "RESCALE": 21, "ADD": 14}, 81920, 93388),
            DelegateFacts("delegate_1", 7, {"MATMUL": 1, "RESHAPE": 4, "RESCALE": 2}, 20480, 22120),
        ]
    return [DelegateFacts("delegate_0", 3, {case.upper(): 1, "RESCALE": 2 if integer else 0}, 912, 1480)]


def _comparisons(chance: random.Random, integer: bool, target: str) -> list[Comparison]:
    pairs = [("quantised/eager", Stage.QUANTISE)] if integer else []
    pairs += [("reference/quantised" if integer else "reference/eager", Stage.LOWER)]
    pairs += [("emulation/reference", Stage.RUN)] if target == "emulation" else []
    return [_comparison(chance, pair, stage, integer) for pair, stage in pairs]


def _comparison(chance: random.Random, pair: str, stage: Stage, integer: bool) -> Comparison:
    headroom = min(0.98, chance.expovariate(5))
    histogram = [chance.randrange(200, 900), *(int(300 * chance.random() / 3**place) for place in range(8))]
    reported = pair == "quantised/eager"
    return Comparison(
        pair=pair,
        stage=stage,
        output=0,
        passed=None if reported else True,
        rule="reported" if reported else "1 LSB" if integer else "tosa-1.0.2 EXP",
        metrics=Metrics(
            elements=1024,
            differing=sum(histogram[1:]),
            max_abs=headroom * 1e-6,
            max_rel=headroom * 1e-6,
            max_ulp=None if integer else round(headroom * 12),
            max_lsb=round(headroom * 2) if integer else None,
            sqnr_db=float("inf") if headroom < 0.02 else 120 - 60 * headroom,
            cosine=1.0,
            worst_index=(0, 6),
            worst_actual=0.25,
            worst_expected=0.25000003,
        ),
        headroom=None if reported else headroom,
        histogram=histogram,
        histogram_unit="LSB" if integer else "ULP",
    )


def _spoilt(record: Record) -> Record:
    """Some operators fail, each in its own way."""
    key = (record.case, record.scheme)
    if key == ("layer_norm", "a8w8-pt"):
        return replace(
            record,
            verdict=Verdict.FAIL,
            stage=Stage.LOWER,
            finding=Finding.WRONG,
            message="output 0: 3 of 16 elements differ, worst at [0, 6]: -0.402, should be 0.0",
            expected="RESCALE of the variance overflows: executorch issue 12345",
            comparisons=[_broken(item) for item in record.comparisons],
        )
    if key == ("gelu", "none") and record.sample == "rank2" and record.target == "emulation":
        return replace(
            record,
            verdict=Verdict.FAIL,
            stage=Stage.RUN,
            finding=Finding.WRONG,
            unexpected=True,
            message="emulation differs from reference:\n  output 0, 12 of 1024 elements, worst at [0, 6]",
            comparisons=[*record.comparisons[:-1], _broken(record.comparisons[-1])],
            notes=["TOSA ERF is emulated by a table of 512 entries"],
        )
    if record.case == "conv_transpose2d" and record.target == "emulation" and record.sample == "rank4":
        return replace(
            record,
            verdict=Verdict.CRASH,
            stage=Stage.RUN,
            finding=Finding.CRASHED,
            unexpected=True,
            message="the worker died of SIGSEGV",
            comparisons=record.comparisons[:-1],
            log="VUID-vkCreateDataGraphPipelinesARM: stride 3 is not supported\nSegmentation fault",
        )
    if key == ("exp", "a8w8-pt") and record.sample == "rank1":
        note = "expected fail at lower, but it passes: remove the entry (test_elementwise.toml, entry 3)"
        return replace(record, unexpected=True, expectation_note=note)
    if key == ("softmax", "a8w8-pc") and record.sample == "rank3":
        return replace(
            record,
            verdict=Verdict.UNSUPPORTED,
            stage=Stage.CONVERT,
            finding=Finding.RAISED,
            message="REDUCE_MAX with rank 7 is refused",
            expected="rank above 6 is not claimed to be supported",
            comparisons=[],
        )
    return record


def _broken(comparison: Comparison) -> Comparison:
    if comparison.metrics is None or comparison.rule == "reported":
        return comparison
    metrics = replace(comparison.metrics, max_abs=0.402, max_ulp=None, max_lsb=170.0, sqnr_db=4.2)
    message = "3 of 16 elements beyond the bound"
    return replace(comparison, passed=False, headroom=85.0, metrics=metrics, message=message)
