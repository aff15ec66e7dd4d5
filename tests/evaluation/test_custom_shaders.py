"""A VGF of several segments: graphs with a custom shader between them, images and a sampler."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from tests.subjects import FP, randn, subject
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.vocabulary import Finding, Stage, Verdict

GRID = torch.rand(1, 4, 5, 2, generator=torch.Generator().manual_seed(0)) * 2.4 - 1.2


def sampled(channels: int) -> Subject:
    return subject(lambda x, grid: F.grid_sample(x, grid, align_corners=True), randn(1, channels, 6, 6), GRID)


def test_it_runs_on_emulation_and_is_held_against_eager(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(sampled(4), FP, "none", "emulation")
    assert record.verdict is Verdict.PASS
    assert [(item.pair, item.passed) for item in record.comparisons] == [("emulation/eager", True)]


def test_the_reference_model_runs_none(evaluator: Evaluator) -> None:
    record = evaluator.evaluate(sampled(4), FP, "none", "reference")
    assert (record.verdict, record.stage) == (Verdict.UNSUPPORTED, Stage.RUN)


def test_wrong_results_are_not_the_devices_alone(evaluator: Evaluator) -> None:
    """The backend's own shader for two channels writes zeros."""
    record = evaluator.evaluate(sampled(2), FP, "none", "emulation")
    assert (record.verdict, record.stage, record.finding) == (Verdict.FAIL, Stage.LOWER, Finding.WRONG)
