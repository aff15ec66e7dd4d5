"""A small suite, packed once a session: integers, floats with two outputs, bfloat16, and what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vgf_conformance.packs.build import build_pack
from vgf_conformance.packs.pack import Pack, open_pack

SUITE = """
import torch

from vgf_conformance.cases.case import operator, sample
from vgf_conformance.cases.inputs import normal

FP, BF16, INT = ("FP", "none"), ("FP+bf16", "none"), ("INT", "a8w8-pc")

absolute = operator("aten.abs.default", torch.abs, [sample("rank1", normal(7))], configurations=(INT,))

pair = operator(
    "aten.exp.default",
    lambda x: (torch.exp(x), torch.abs(x)),
    [sample("rank2", normal(3, 5))],
    configurations=(FP,),
)

narrow = operator(
    "aten.add.Tensor",
    torch.add,
    [sample("row", normal(2, 3, dtype=torch.bfloat16), normal(3, dtype=torch.bfloat16))],
    configurations=(BF16,),
)

sort = operator(
    "aten.sort.default",
    lambda x: torch.sort(x)[0],
    [sample("rank1", normal(4))],
    configurations=(FP,),
    delegated=False,
)

negative = operator("aten.neg.default", torch.neg, [sample("rank1", normal(4))], configurations=(FP,))

rare = operator("aten.exp.default", torch.exp, [sample("rank1", normal(4))], tier="nightly")
"""

EXPECTATIONS = """
[[expectation]]
file = "operators/test_small.py"
case = "negative"
verdict = "fail"
stage = "lower"
reason = "lowered wrongly"
evidence = "seen"
versions = {torch = "2"}

[[expectation]]
file = "operators/test_small.py"
case = "pair"
target = "emulation"
verdict = "fail"
stage = "run"
reason = "the layers are off"
evidence = "seen"
versions = {torch = "2"}
"""


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite file, in a project of its own."""
    root = tmp_path_factory.mktemp("project")
    file = root / "suites" / "operators" / "test_small.py"
    file.parent.mkdir(parents=True)
    file.write_text(SUITE)
    expectations = root / "golden" / "expectations" / "test_small.toml"
    expectations.parent.mkdir(parents=True)
    expectations.write_text(EXPECTATIONS)
    return file


@pytest.fixture(scope="session")
def small(suite: Path, cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pack of that suite."""
    path = tmp_path_factory.mktemp("packs") / "small.zip"
    build_pack([suite], "smoke", path, say=lambda text: None)
    return path


@pytest.fixture
def pack(small: Path) -> Iterator[Pack]:
    """The same, open."""
    with open_pack(small) as opened:
        yield opened
