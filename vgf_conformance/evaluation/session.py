"""Opens the targets that a run asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.runtime_choice import INSTALLED, RuntimeChoice
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import TIME_LIMIT


def open_evaluator(
    targets: Sequence[str],
    choice: DriverChoice,
    folder: Path,
    time_limit: float = TIME_LIMIT,
    runtime: RuntimeChoice = INSTALLED,
) -> Evaluator:
    """An evaluator with ``reference`` and whatever of ``targets`` needs more.

    ``folder`` takes the layer manifests and must outlive the evaluator. Raises UserError where the
    driver, the layers or the runtime's backend are missing, or are not what was asked for.
    """
    return Evaluator(open_targets(targets, choice, folder, time_limit, runtime), Cache(default_folder()))
