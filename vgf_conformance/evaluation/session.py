"""Opens the targets that a run asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.process import TIME_LIMIT, emulation_target, reference_target
from vgf_conformance.targets.vulkan import choose_driver


def open_evaluator(
    targets: Sequence[str], driver: str | None, folder: Path, time_limit: float = TIME_LIMIT
) -> Evaluator:
    """An evaluator with ``reference`` and whatever of ``targets`` needs more.

    ``folder`` takes the layer manifests and must outlive the evaluator. Raises UserError where the
    driver or the layers are missing.
    """
    opened: dict[str, Target] = {"reference": reference_target(time_limit)}
    # A driver that does not exist is an error even where nothing would run on it.
    chosen = choose_driver(driver) if driver is not None or "emulation" in targets else None
    if "emulation" in targets and chosen is not None:
        opened["emulation"] = emulation_target(chosen, folder, time_limit)
    return Evaluator(opened, Cache(default_folder()))
