"""Opens the targets that a run of TOSA tests asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.tosatests.evaluate import TosaEvaluator
from vgf_conformance.vocabulary import TIME_LIMIT


def open_tosa_evaluator(
    targets: Sequence[str],
    choice: DriverChoice,
    folder: Path,
    time_limit: float = TIME_LIMIT,
    *,
    seed: int = 0,
) -> TosaEvaluator:
    """An evaluator as ``evaluation.session.open_evaluator`` gives one, for TOSA tests."""
    return TosaEvaluator(open_targets(targets, choice, folder, time_limit), Cache(default_folder()), seed)
