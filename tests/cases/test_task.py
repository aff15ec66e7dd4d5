from __future__ import annotations

import importlib.metadata

import pytest
import torch

from vgf_conformance.cases.needs import missing
from vgf_conformance.cases.task import COSINE, PSNR, TOP_1, TOP_1_AGREEMENT

LOGITS = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])


def test_top_1_counts_each_example_of_a_batch() -> None:
    assert TOP_1.score([LOGITS], torch.tensor([1, 1, 1])).tolist() == [True, False, True]
    assert TOP_1_AGREEMENT.score([LOGITS], [LOGITS.flip(0)]).tolist() == [True, True, True]
    assert TOP_1_AGREEMENT.score([LOGITS], [-LOGITS]).tolist() == [False, False, False]


def test_psnr_of_each_image() -> None:
    images = torch.zeros(2, 1, 2, 2)
    noisy = images + torch.tensor([0.1, 0.01]).reshape(2, 1, 1, 1)
    assert PSNR.score([noisy], images).tolist() == pytest.approx([20, 40])


def test_cosine_against_an_answer_or_eager() -> None:
    assert COSINE.score([LOGITS], 2 * LOGITS).tolist() == pytest.approx([1, 1, 1])
    assert COSINE.score([LOGITS], [-LOGITS]).tolist() == pytest.approx([-1, -1, -1])


def test_a_package_of_the_version_needed_is_not_missing() -> None:
    assert missing([f"numpy=={importlib.metadata.version('numpy')}"]) == ""
    assert missing([]) == ""


def test_missing_packages_come_with_the_command_that_installs_them() -> None:
    found = missing(["vgf-conformance-weights==1.2", "numpy==0.0.1"])
    assert found == (
        f"vgf-conformance-weights 1.2 is not installed; numpy is {importlib.metadata.version('numpy')}, "
        "should be 0.0.1: pip install --no-deps vgf-conformance-weights==1.2 numpy==0.0.1"
    )
