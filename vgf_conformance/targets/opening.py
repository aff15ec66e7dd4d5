"""Opens the targets that a run names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vgf_conformance.targets.base import Target
from vgf_conformance.targets.capabilities import Platform, platforms
from vgf_conformance.targets.process import reference_target, vulkan_target
from vgf_conformance.targets.runtime import open_runtime_target
from vgf_conformance.targets.runtime_choice import INSTALLED, RuntimeChoice
from vgf_conformance.targets.vulkan import LAYERS, DriverChoice
from vgf_conformance.vocabulary import PROGRAM_TARGET, TIME_LIMIT


def open_targets(
    targets: Sequence[str],
    choice: DriverChoice,
    folder: Path,
    time_limit: float = TIME_LIMIT,
    runtime: RuntimeChoice = INSTALLED,
) -> dict[str, Target]:
    """``reference`` and whatever of ``targets`` needs more, by name.

    ``folder`` takes the layer manifests and must outlive the targets. Raises UserError where the
    driver, the layers or the runtime's backend are missing, or are not what was asked for.
    """
    opened: dict[str, Target] = {"reference": reference_target(time_limit)}
    found = platforms(targets, choice)
    below = found.pop(PROGRAM_TARGET, None)
    for name, platform in found.items():
        opened[name] = vulkan_target(name, platform, folder / name, time_limit)
    if below is not None:
        name = _peer(below)
        peer = opened.get(name) or vulkan_target(name, below, folder / name, time_limit)
        opened[PROGRAM_TARGET] = open_runtime_target(
            runtime, below, peer, folder / PROGRAM_TARGET, time_limit
        )
    return opened


def _peer(platform: Platform) -> str:
    """The target that runs single VGFs where the runtime runs whole programs."""
    return "emulation" if set(platform.layers) == set(LAYERS) else "vulkan"
