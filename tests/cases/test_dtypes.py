"""The element types that samples compute with."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from vgf_conformance.cases.dtypes import computed_dtypes

NUMBERS = torch.ones(2)
INDICES = torch.zeros(2, dtype=torch.int64)
MASK = torch.ones(2, dtype=torch.bool)


@pytest.mark.parametrize(
    ("module", "inputs", "scheme", "dtypes"),
    [
        (torch.nn.ReLU(), (NUMBERS,), "none", ["float32"]),
        (torch.nn.ReLU(), (NUMBERS.bfloat16(), 3, None), "none", ["bfloat16"]),
        # Inputs in lists, and each dtype once.
        (torch.nn.Identity(), ([NUMBERS, NUMBERS], MASK), "none", ["bool", "float32"]),
        # A table counts beside the indices; a counter among the buffers does not.
        (torch.nn.Embedding(3, 2), (INDICES,), "none", ["float32", "int64"]),
        (torch.nn.BatchNorm1d(2), (torch.ones(3, 2),), "none", ["float32"]),
        # A scheme quantises what is floating point and nothing else.
        (torch.nn.Embedding(3, 2), (INDICES,), "a8w8-pt", ["int64", "int8"]),
        (torch.nn.ReLU(), (NUMBERS,), "a8w8-pc", ["int8"]),
        (torch.nn.ReLU(), (NUMBERS,), "a16w8", ["int16"]),
        (torch.nn.Linear(2, 2), (NUMBERS,), "a8w4", ["int4"]),
        (torch.nn.Identity(), (INDICES.int(),), "a8w8-pc", ["int32"]),
        (torch.nn.Identity(), (), "none", []),
    ],
)
def test_what_a_sample_computes_with(module: Any, inputs: Any, scheme: str, dtypes: list[str]) -> None:
    assert computed_dtypes(module, inputs, scheme) == dtypes
