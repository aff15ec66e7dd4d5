"""PT2E quantisation with the VGF quantizer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from executorch.backends.arm.quantizer import (
    VgfQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from executorch.backends.arm.vgf import VgfCompileSpec
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.causes import describe
from vgf_conformance.lowering.edges import Reader, found_parameters, problems, readers
from vgf_conformance.lowering.observers import Prescription, prescriptions, unseen
from vgf_conformance.lowering.program import Program, read_prepared
from vgf_conformance.lowering.steps import Steps
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: The quantizer's own configuration of each scheme.
_CONFIGURATION: dict[str, Callable[[], Any]] = {
    "a8w8-pc": lambda: get_symmetric_quantization_config(is_per_channel=True),
    "a8w8-pt": lambda: get_symmetric_quantization_config(is_per_channel=False),
    "a16w8": get_symmetric_a16w8_quantization_config,
    # As the backend's own configuration for int4 weights, which its public package leaves out.
    "a8w4": lambda: get_symmetric_quantization_config(is_per_channel=True, weight_qmin=-7, weight_qmax=7),
}


@dataclass(frozen=True)
class Quantised:
    """A quantised program, and how it was made."""

    converted: torch.fx.GraphModule
    steps: Steps


def quantise(
    exported: ExportedProgram,
    specification: VgfCompileSpec,
    scheme: str,
    calibration: Sequence[tuple[Any, ...]],
    configure: Callable[[VgfQuantizer], None] | None,
) -> Quantised:
    """Prepare, calibrate and convert; ``configure`` replaces the scheme's global configuration.

    Raises LoweringFailure for calibration data with NaN or of shapes that the program does not take, and
    where ``configure`` raises; also whatever the quantizer raises.
    """
    _require_numbers(calibration)
    prepared = prepare(exported.module(check_guards=False), specification, scheme, configure)
    return convert(calibrate(prepared, exported, calibration))


@dataclass(frozen=True)
class Calibrated:
    """A prepared program whose observers have seen the ``calibration`` data; ``program`` is it before."""

    module: torch.fx.GraphModule
    program: Program
    calibration: Sequence[tuple[Any, ...]]

    def expected(self) -> Expected:
        """What conversion has to make of it, which changes it."""
        return Expected(
            self.program,
            readers(self.module),
            prescriptions(self.module),
            unseen(self.module, self.program, self.calibration),
        )


@dataclass(frozen=True)
class Expected:
    """What a converted program is held against: the prepared one, and what its observers have to give."""

    program: Program
    readers: Mapping[str, Reader]
    prescribed: Mapping[str, Prescription]
    unseen: Mapping[str, str]

    def steps(self, converted: torch.fx.GraphModule) -> Steps:
        """What is kept of the steps that ended with ``converted``."""
        found = readers(converted)
        wrong = tuple(problems(self.readers, found, self.prescribed, self.unseen))
        return Steps(self.program, wrong, found_parameters(self.readers, found, self.prescribed))


def calibrate(
    prepared: torch.fx.GraphModule, exported: ExportedProgram, calibration: Sequence[tuple[Any, ...]]
) -> Calibrated:
    """Let the observers of ``prepared`` see ``calibration``; raises LoweringFailure for other shapes."""
    program = read_prepared(prepared)
    with torch.no_grad(), _same_state(prepared, exported):
        for index, inputs in enumerate(calibration):
            _calibrate(prepared, exported, index, inputs)
    return Calibrated(prepared, program, calibration)


def convert(calibrated: Calibrated) -> Quantised:
    """Turn observers into quantisation, in place."""
    expected = calibrated.expected()
    converted = convert_pt2e(calibrated.module)
    return Quantised(converted, expected.steps(converted))


def prepare(
    module: torch.fx.GraphModule,
    specification: VgfCompileSpec,
    scheme: str,
    configure: Callable[[VgfQuantizer], None] | None,
) -> torch.fx.GraphModule:
    """The program rewritten for annotation, with observers that have seen nothing yet.

    ``module`` is an exported program's, without the guards of a checked one: they break the backend's passes.
    Raises LoweringFailure where ``configure`` raises; also whatever the quantizer raises.
    """
    quantizer = VgfQuantizer(specification)
    if configure is None:
        quantizer.set_global(_CONFIGURATION[scheme]())
    else:
        _configure(quantizer, configure)
    prepared: torch.fx.GraphModule = prepare_pt2e(module, quantizer)
    return prepared


@contextlib.contextmanager
def _same_state(prepared: Any, exported: ExportedProgram) -> Iterator[None]:
    """Undo what calibration does to the model's own buffers: the program must start as the model does.

    Observers keep what they saw in buffers of their own, which stay.
    """
    own = [spec.target for spec in exported.graph_signature.input_specs if spec.kind == InputKind.BUFFER]
    buffers = dict(prepared.named_buffers())
    kept = [(buffers[name], buffers[name].clone()) for name in own if name in buffers]
    yield
    for buffer, value in kept:
        buffer.copy_(value)


def _configure(quantizer: VgfQuantizer, configure: Callable[[VgfQuantizer], None]) -> None:
    try:
        configure(quantizer)
    except (Exception, SystemExit) as error:
        raise _bad_input(
            f"configure_quantizer() raises {describe(error)}; fix it, or leave it out"
        ) from error


def _calibrate(prepared: Any, exported: ExportedProgram, index: int, inputs: tuple[Any, ...]) -> None:
    try:
        prepared(*inputs)
    except Exception as error:
        given, wanted = _shapes(inputs), _shapes(exported.example_inputs[0])
        if given == wanted:
            raise
        raise _bad_input(
            f"calibration data: set {index} has the shapes {given}, on which the program that was exported "
            f"for {wanted} raises {describe(error)}; give the shapes of the inputs"
        ) from error


def _shapes(inputs: Any) -> list[list[int]]:
    leaves = torch.utils._pytree.tree_leaves(inputs)
    return [list(leaf.shape) for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _bad_input(message: str) -> LoweringFailure:
    return LoweringFailure(Verdict.ERROR, Stage.QUANTISE, Finding.INPUT, message)


def _require_numbers(calibration: Sequence[tuple[Any, ...]]) -> None:
    for index, inputs in enumerate(calibration):
        for position, value in enumerate(torch.utils._pytree.tree_leaves(inputs)):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.isnan().any():
                raise _bad_input(
                    f"calibration data: input {position} of set {index} holds NaN; calibrate on real values"
                )
