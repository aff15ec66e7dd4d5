"""A pack whose case has a wide operator twice, so that a device may be noisy there and yet conform."""

from __future__ import annotations

from pathlib import Path

from vgf_conformance.packs.build import build_pack

SUITE = """
import torch

from vgf_conformance.cases.case import operator, sample
from vgf_conformance.cases.inputs import normal

wave = operator(
    "aten.sin.default",
    lambda x: torch.sin(x) * 0.5 - torch.sin(-x) * 0.25,
    [sample("rank2", normal(3, 5))],
    configurations=(("FP", "none"),),
)

single = operator(
    "aten.sin.default", torch.sin, [sample("rank1", normal(7))], configurations=(("FP", "none"),)
)

whole = operator(
    "aten.add.Tensor",
    lambda x: (x + x) * x,
    [sample("rank1", normal(7))],
    configurations=(("INT", "a8w8-pc"),),
)
"""

NOISY = "suites/operators/test_noisy.py::wave[rank2-FP-none-emulation]"


def noisy_pack(folder: Path) -> Path:
    """Built in ``folder``."""
    file = folder / "suites" / "operators" / "test_noisy.py"
    file.parent.mkdir(parents=True)
    file.write_text(SUITE)
    build_pack([file], "smoke", folder / "noisy.zip", say=lambda text: None)
    return folder / "noisy.zip"
