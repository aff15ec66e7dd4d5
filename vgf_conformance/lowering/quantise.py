"""PT2E quantisation with the VGF quantizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from executorch.backends.arm.quantizer import (
    VgfQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from executorch.backends.arm.vgf import VgfCompileSpec
from torch.export import ExportedProgram
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: The quantizer's own configuration of each scheme.
_CONFIGURATION: dict[str, Callable[[], Any]] = {
    "a8w8-pc": lambda: get_symmetric_quantization_config(is_per_channel=True),
    "a8w8-pt": lambda: get_symmetric_quantization_config(is_per_channel=False),
    "a16w8": get_symmetric_a16w8_quantization_config,
    # As the backend's own configuration for int4 weights, which its public package leaves out.
    "a8w4": lambda: get_symmetric_quantization_config(is_per_channel=True, weight_qmin=-7, weight_qmax=7),
}


def quantise(
    exported: ExportedProgram,
    specification: VgfCompileSpec,
    scheme: str,
    calibration: Sequence[tuple[Any, ...]],
    configure: Callable[[VgfQuantizer], None] | None,
) -> torch.nn.Module:
    """Prepare, calibrate and convert; ``configure`` replaces the scheme's global configuration.

    Raises LoweringFailure for calibration data with NaN, and whatever the quantizer raises.
    """
    _require_numbers(calibration)
    quantizer = VgfQuantizer(specification)
    if configure is None:
        quantizer.set_global(_CONFIGURATION[scheme]())
    else:
        configure(quantizer)
    # The guards submodule of a checked module breaks the backend's annotation passes.
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        for inputs in calibration:
            prepared(*inputs)
    converted: torch.nn.Module = convert_pt2e(prepared)
    return converted


def _require_numbers(calibration: Sequence[tuple[Any, ...]]) -> None:
    for index, inputs in enumerate(calibration):
        for position, value in enumerate(torch.utils._pytree.tree_leaves(inputs)):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.isnan().any():
                raise LoweringFailure(
                    Verdict.ERROR,
                    Stage.QUANTISE,
                    Finding.INPUT,
                    f"calibration data: input {position} of set {index} holds NaN; calibrate on real values",
                )
