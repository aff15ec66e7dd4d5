"""Opens the targets that a run asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.targets.process import TIME_LIMIT, open_targets
from vgf_conformance.targets.vulkan import DriverChoice


def open_evaluator(
    targets: Sequence[str], choice: DriverChoice, folder: Path, time_limit: float = TIME_LIMIT
) -> Evaluator:
    """An evaluator with ``reference`` and whatever of ``targets`` needs more.

    ``folder`` takes the layer manifests and must outlive the evaluator. Raises UserError where the
    driver or the layers are missing, or are not what was asked for.
    """
    return Evaluator(open_targets(targets, choice, folder, time_limit), Cache(default_folder()))
