"""How near to a tie a value must lie for TOSA's operators to round it the other way, operator by operator.

A quantised program computes each value between two quantisations in fp32, TOSA in integers. Most operators
do that exactly and round once, by a RESCALE whose multiplier has 31 bits (TOSA 1.0, RESCALE): only a value
within fp32's own error of a tie can go either way. Some round before: the operands of an addition are brought
to one scale first. How far that moves the value is its window, from the scales that the program states. No
window is known where a value is computed by other operators than those listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.program import Program, Ref, Step

QUANTISE = "quantized_decomposed.quantize_per_tensor"
_DEQUANTISE = "quantized_decomposed.dequantize_per_tensor"
_HALF = 0.5
#: Bits by which the operands of an addition are finer than the result (backend, InsertRescaleInt32Pass).
_ADDITION_BITS = {torch.int8: 20, torch.int16: 12}
#: Scales that differ by less than fp32 resolves are one.
_SAME_SCALE = 2.0**-22


@dataclass(frozen=True)
class Window:
    """A distance from a tie, in steps of what is quantised: ``steps``, and ``share`` of one and the value."""

    steps: float = 0.0
    share: float = 0.0

    def near_tie(self, exact: torch.Tensor) -> torch.Tensor:
        """Which of these values, in steps, lie within the window of a tie."""
        distance = (exact - exact.floor() - 0.5).abs()
        return distance <= self.steps + self.share * (1 + exact.abs())

    def __add__(self, other: Window) -> Window:
        return Window(self.steps + other.steps, self.share + other.share)


@dataclass(frozen=True)
class Scaled:
    """A tensor of codes: what one code is worth, and their type."""

    scale: float
    dtype: torch.dtype


@dataclass(frozen=True)
class _Computed:
    """What a quantisation rounds: the step that computed it from codes, and what it is rounded to."""

    step: Step
    operands: list[Scaled | None]
    result: Scaled


_Rule = Callable[["Windows", _Computed], Window | None]


class Windows:
    """The windows of a program's quantisations."""

    def __init__(self, program: Program) -> None:
        self._steps = {step.name: step for step in program.all_steps}

    def of(self, name: str) -> Window | None:
        """The window of the quantisation ``name``; None where none is known."""
        quantise = self._steps[name]
        computed = self._computed(quantise)
        if computed is None:
            return None
        if computed.step.operator.startswith(_DEQUANTISE):
            return Window()
        rule = _RULES.get(_packet(computed.step))
        return rule(self, computed) if rule else None

    def quantisation_of(self, output: object) -> str | None:
        """The name of the quantisation whose codes ``output`` is made of; None where it is none's alone."""
        step = self._moved_from(output)
        if step is not None and step.operator.startswith(_DEQUANTISE):
            step = self._moved_from(step.args[0])
        return step.name if step is not None and step.operator.startswith(QUANTISE) else None

    def unrounded(self, operand: object, unit: float) -> float:
        """What the rounding of ``operand`` is worth, half its step, where the backend leaves it out; else 0.

        That is so where it is a sum that an addition at the same ``unit`` takes up again: the RESCALE to
        codes and the one from them undo each other and are dropped (backend, FuseConsecutiveRescalesPass).
        """
        name = self.quantisation_of(operand)
        computed = self._computed(self._steps[name]) if name else None
        if computed is None or _packet(computed.step) not in ("add", "sub"):
            return 0.0
        made = _addition_unit(computed)
        dropped = made is not None and abs(made / unit - 1.0) < 1e-6
        return _HALF * computed.result.scale if dropped else 0.0

    def _computed(self, quantise: Step) -> _Computed | None:
        """What ``quantise`` rounds, seen through what clamps it: that is fused, and compares exactly."""
        result = _scaled(quantise)
        step = self._moved_from(quantise.args[0])
        while step is not None and _packet(step) in _CLAMPS:
            before = self._moved_from(step.args[0])
            if before is None or before.operator.startswith(_DEQUANTISE):
                break
            step = before
        if step is None or result is None:
            return None
        operands = [self._codes(argument) for argument in step.args if isinstance(argument, Ref)]
        return _Computed(step, operands, result)

    def _codes(self, argument: Ref) -> Scaled | None:
        step = self._moved_from(argument)
        return _scaled(step) if step is not None and step.operator.startswith(_DEQUANTISE) else None

    def _moved_from(self, value: object) -> Step | None:
        """The step that computed ``value``, seen through what moves it."""
        step = self._steps.get(value.name) if isinstance(value, Ref) else None
        while step is not None and moves_data(step.operator):
            source = step.args[0] if step.args else None
            step = self._steps.get(source.name) if isinstance(source, Ref) else None
        return step


def _scaled(step: Step) -> Scaled | None:
    """None where the scale comes from elsewhere: control flow hands it from graph to graph."""
    scale = step.args[1]
    return None if isinstance(scale, Ref) else Scaled(float(scale), step.args[5])


def _packet(step: Step) -> str:
    return step.operator.partition(".")[2].partition(".")[0].removesuffix("_")


def _is_one(one: float, other: float) -> bool:
    return abs(one / other - 1.0) < _SAME_SCALE


def _exact(windows: Windows, computed: _Computed) -> Window:
    """Integers all the way, then one RESCALE."""
    return Window()


def _products(windows: Windows, computed: _Computed) -> Window:
    """As exact; the 48 bits of sums of int16 leave a multiplier of 15 bits (TOSA 1.0, RESCALE, scale16)."""
    wide = any(operand is not None and operand.dtype is torch.int16 for operand in computed.operands)
    return Window(share=2.0**-15 if wide else 0.0)


def _table(windows: Windows, computed: _Computed) -> Window | None:
    """An entry for each code of int8; int16 interpolates between 513, as well as the function lets it."""
    return (
        Window() if all(item is not None and item.dtype is torch.int8 for item in computed.operands) else None
    )


def _addition_unit(computed: _Computed) -> float | None:
    """What one is worth in the integers that an addition adds."""
    scales = [operand for operand in computed.operands if operand is not None]
    if len(scales) != len(computed.operands) or not scales or scales[0].dtype not in _ADDITION_BITS:
        return None
    return 2.0 * max(item.scale for item in scales) / 2.0 ** _ADDITION_BITS[scales[0].dtype]


def _addition(windows: Windows, computed: _Computed) -> Window | None:
    """Each operand is rounded to a finer scale; that of the largest scale is only shifted there."""
    unit = _addition_unit(computed)
    if unit is None:
        return None
    largest = max(operand.scale for operand in computed.operands if operand is not None)
    rounded = [operand for operand in computed.operands if operand and not _is_one(operand.scale, largest)]
    references = [argument for argument in computed.step.args if isinstance(argument, Ref)]
    left_out = sum(windows.unrounded(argument, unit) for argument in references)
    return Window((_HALF * unit * len(rounded) + left_out) / computed.result.scale)


def _extreme(windows: Windows, computed: _Computed) -> Window | None:
    """The operands are rounded to the smallest of their scales."""
    scales = [operand.scale for operand in computed.operands if operand is not None]
    if len(scales) != len(computed.operands) or not scales:
        return None
    same = all(_is_one(scale, min(scales)) for scale in scales)
    return Window(0.0 if same else _HALF * min(scales) / computed.result.scale)


def _at_the_inputs_scale(windows: Windows, computed: _Computed) -> Window | None:
    """Rounded to the input's scale first: an average, or the limit of a clamp."""
    first = computed.operands[0] if computed.operands else None
    if first is None:
        return None
    same = _is_one(first.scale, computed.result.scale)
    return Window(0.0 if same else _HALF * first.scale / computed.result.scale)


_CLAMPS = ("relu", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max")

_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(
        (
            *("abs", "amax", "amin", "cat", "constant_pad_nd", "embedding", "gather", "index", "index_put"),
            *("index_select", "masked_fill", "max_pool2d", "max_pool2d_with_indices", "mul", "neg", "pad"),
            *(
                "pixel_shuffle",
                "pixel_unshuffle",
                "select_scatter",
                "slice_scatter",
                "stack",
                "sum",
                "upsample_nearest2d",
            ),
            *("where", "relu"),
        ),
        _exact,
    ),
    **dict.fromkeys(
        (
            *("addmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "convolution", "linear"),
            *("matmul", "mm"),
        ),
        _products,
    ),
    **dict.fromkeys(
        (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "elu", "erf", "exp"),
            *("expm1", "floor", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "log", "log10", "log1p"),
            *("pow", "reciprocal", "remainder", "round", "rsqrt", "sigmoid", "silu", "sin", "sinh", "tan"),
            "tanh",
        ),
        _table,
    ),
    **dict.fromkeys(("add", "sub"), _addition),
    **dict.fromkeys(("maximum", "minimum"), _extreme),
    **dict.fromkeys(
        ("adaptive_avg_pool2d", "avg_pool2d", "clamp", "clamp_max", "clamp_min", "hardtanh", "relu6"),
        _at_the_inputs_scale,
    ),
}
