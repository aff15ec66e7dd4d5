"""Case and Sample, and the two ways to declare an operator.

add = operator("aten.add.Tensor", torch.add, [sample("same", normal(2, 3), normal(2, 3))])
conv = layer("aten.convolution.default", nn.Conv2d, [sample("3x3", normal(1, 3, 8, 8), args=(3, 8, 3))])
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from vgf_conformance.cases.dtypes import dtype_name
from vgf_conformance.cases.inputs import Draw, Tensor
from vgf_conformance.cases.task import Task

Inputs = tuple[Any, ...]
Configuration = tuple[str, str]

#: (profile, scheme) pairs by what a case computes with.
FLOATING: tuple[Configuration, ...] = (("FP", "none"), ("INT", "a8w8-pc"), ("FP+INT", "a8w8-pc"))
#: As FLOATING, without FP+INT: for further samples of an operator that has some there, because each
#: lowers to the graph of one of these.
SEPARATE: tuple[Configuration, ...] = (("FP", "none"), ("INT", "a8w8-pc"))
#: What SEPARATE leaves out, and what FLOATING_ONLY does: for nightly samples of models, which are slow to
#: lower where they are quantised, and slowest with two profiles in one graph.
MIXED: tuple[Configuration, ...] = (("FP+INT", "a8w8-pc"),)
QUANTISED: tuple[Configuration, ...] = (("INT", "a8w8-pc"), *MIXED)
#: As FLOATING, with the unquantised model in FP+INT too: for one sample or so in each area, because it
#: lowers to the graph of FP.
COMBINED: tuple[Configuration, ...] = (*FLOATING, ("FP+INT", "none"))
#: As FLOATING, with per-tensor weights beside per-channel ones: for operators that have weights.
WEIGHTED: tuple[Configuration, ...] = (*FLOATING, ("INT", "a8w8-pt"))
#: What the schemes beside int8 are lowered for: each needs an extension of the INT profile.
EXTENDED: dict[str, tuple[Configuration, ...]] = {
    "a16w8": (("INT+int16", "a16w8"), ("FP+INT+int16", "a16w8")),
    "a8w4": (("INT+int4", "a8w4"), ("FP+INT+int4", "a8w4")),
}
#: Integer and boolean computations, which no quantiser touches.
INTEGER: tuple[Configuration, ...] = (("FP", "none"), ("INT", "none"), ("FP+INT", "none"))
#: Integer computations that the FP profile cannot express.
INTEGER_ONLY: tuple[Configuration, ...] = (("INT", "none"), ("FP+INT", "none"))
#: Floating-point computations that the INT profile cannot express, and values it cannot hold.
FLOATING_ONLY: tuple[Configuration, ...] = (("FP", "none"),)


@dataclass(frozen=True)
class Budget:
    """The quantisation loss that a case accepts: SQNR of the quantised program against eager, in dB."""

    sqnr_db: float
    reason: str


@dataclass(frozen=True)
class About:
    """Where a model comes from: ``source``, its ``licence``, and how its ``weights`` came to be."""

    source: str
    licence: str
    weights: str


@dataclass(frozen=True)
class Sample:
    """One named set of inputs; ``build`` makes the module they are given to.

    ``configurations`` are its own (profile, scheme) pairs, None where they are the case's; so is
    ``tier`` where it is empty.
    """

    name: str
    draws: tuple[Draw | object, ...]
    build: Callable[[], torch.nn.Module]
    configurations: tuple[Configuration, ...] | None = None
    tier: str = ""

    def module(self, seed: int) -> torch.nn.Module:
        """The module in eval mode, its weights drawn from ``seed``."""
        torch.manual_seed(seed)
        return self.build().eval()

    def inputs(self, seed: int) -> Inputs:
        """The inputs drawn from ``seed`` and the sample's name, the same on every machine."""
        drawn_from = (seed + zlib.crc32(self.name.encode())) % 2**64
        generator = torch.Generator().manual_seed(drawn_from)
        return tuple(draw(generator) if callable(draw) else draw for draw in self.draws)

    def declared(self, configurations: tuple[Configuration, ...]) -> tuple[Configuration, ...]:
        """Its own (profile, scheme) pairs, else ``configurations``: those of its case."""
        return configurations if self.configurations is None else self.configurations


@dataclass(frozen=True)
class OfSamples:
    """Calibration data that are inputs of samples: of those that a quantised configuration is declared for.

    ``left_out`` names the others. What is run in floating point alone would widen the ranges of what
    is quantised.
    """

    samples: tuple[Sample, ...]
    left_out: tuple[str, ...]

    @classmethod
    def among(cls, samples: tuple[Sample, ...], configurations: tuple[Configuration, ...]) -> OfSamples:
        """Those of ``samples`` that calibrate; ``configurations`` are of samples without their own."""
        chosen = [_is_quantised(item.declared(configurations)) for item in samples]
        return cls(
            tuple(item for item, taken in zip(samples, chosen, strict=True) if taken),
            tuple(item.name for item, taken in zip(samples, chosen, strict=True) if not taken),
        )

    def inputs(self, seed: int) -> list[Inputs]:
        """The data, drawn from ``seed`` as the samples' own inputs are."""
        return [item.inputs(seed) for item in self.samples]

    @property
    def note(self) -> str:
        """Which samples calibrate; empty where all do."""
        if not self.left_out:
            return ""
        names = ", ".join(item.name for item in self.samples)
        return f"calibrated on {names}; not on {', '.join(self.left_out)}: only unquantised configurations"


@dataclass(frozen=True)
class Case:
    """A named computation of a suite.

    ``configurations`` are the (profile, scheme) pairs that samples without their own are lowered
    for, and ``tier`` is where they run: ``plan`` lists every sample with each of its pairs.
    ``delegated`` says that the computation must reach a delegate; where it is False the case
    documents a fall back to the CPU, and at least a part of it must stay there. ``lsb`` is the
    allowance, in quantisation steps, of the lowered program against the quantised one where the
    computation is too deep for a propagated bound to mean anything; it comes with ``lsb_reason``.
    ``floating`` names the TOSA operators that compute in floating point where the case is quantised in a
    profile that has both, because the quantiser leaves something alone: any other one is a failure.
    ``calibration`` gives the data that quantisation is calibrated on; None where it is each sample's
    own inputs. ``sequence`` says that the samples are calls of one module in their order, each with the
    buffers that the one before left. A model may have a ``task``, says what it is ``about``, and ``needs``
    packages (``name==version``) without which it is not run.
    """

    name: str
    kind: str
    operator: str
    samples: tuple[Sample, ...]
    configurations: tuple[Configuration, ...]
    tier: str = "smoke"
    delegated: bool = True
    budget: Budget | None = None
    lsb: float | None = None
    lsb_reason: str = ""
    floating: tuple[str, ...] = ()
    calibration: Callable[[], list[Inputs]] | OfSamples | None = None
    dynamic_shapes: Any = None
    configure_quantizer: Callable[[Any], None] | None = None
    task: Task | None = None
    about: About | None = None
    needs: tuple[str, ...] = ()
    sequence: bool = False
    file: str = ""

    def tier_of(self, item: Sample) -> str:
        """The tier that ``item`` runs in."""
        return item.tier or self.tier

    def plan(self) -> Iterator[tuple[Sample, Configuration]]:
        """Every sample with each (profile, scheme) pair that it is lowered for."""
        for item in self.samples:
            for configuration in item.declared(self.configurations):
                yield item, configuration

    def calibration_data(self, item: Sample, seed: int) -> list[Inputs]:
        """What ``item`` is calibrated on, where it is quantised."""
        if isinstance(self.calibration, OfSamples):
            return self.calibration.inputs(seed)
        return [item.inputs(seed)] if self.calibration is None else self.calibration()


class Apply(torch.nn.Module):
    """A function as a module, with its keyword arguments fixed."""

    def __init__(self, function: Callable[..., Any], keywords: dict[str, Any]) -> None:
        super().__init__()
        self._function = function
        self._keywords = keywords

    def forward(self, *inputs: Any) -> Any:
        """Call the function."""
        return self._function(*inputs, **self._keywords)


@dataclass(frozen=True)
class Declared:
    """A sample as written: the operator that it belongs to turns it into a Sample."""

    name: str
    draws: tuple[Draw | object, ...]
    args: tuple[Any, ...]
    configurations: tuple[Configuration, ...] | None
    tier: str
    keywords: dict[str, Any]

    def made(self, build: Callable[[], torch.nn.Module]) -> Sample:
        """The sample, for modules that ``build`` makes."""
        return Sample(self.name, self.draws, build, self.configurations, self.tier)


def sample(
    name: str,
    *draws: Draw | object,
    args: tuple[Any, ...] = (),
    configurations: tuple[Configuration, ...] | None = None,
    tier: str = "",
    **keywords: Any,
) -> Declared:
    """A named set of inputs; ``args`` and ``keywords`` go to the layer's constructor or the function.

    ``configurations`` and ``tier`` replace the case's for this sample alone.
    """
    return Declared(name, draws, args, configurations, tier, keywords)


#: What one int8 operator over a calibrated range keeps: about 6 dB for each of 8 bits, less the
#: headroom of the range over the standard deviation of normal data (12 dB) and the rounding of two
#: or three tensors. Measured over the smoke tier: 33 dB and more; a scale off by two gives under 12.
OPERATOR_BUDGET = Budget(20.0, "int8 over the calibrated range keeps more than 20 dB in one operator")


def operator(
    name: str,
    function: Callable[..., Any],
    samples: Sequence[Declared],
    *,
    configurations: tuple[Configuration, ...] = FLOATING,
    **options: Any,
) -> Case:
    """Declare an operator without weights; the case is named after the variable it is assigned to."""
    made = tuple(item.made(_builder(Apply, (function, item.keywords), {})) for item in samples)
    return _case(name, made, configurations, options)


def layer(
    name: str,
    module: Callable[..., torch.nn.Module],
    samples: Sequence[Declared],
    *,
    configurations: tuple[Configuration, ...] = WEIGHTED,
    **options: Any,
) -> Case:
    """Declare an operator that has weights: ``module`` builds it from each sample's arguments."""
    made = tuple(item.made(_builder(module, item.args, item.keywords)) for item in samples)
    return _case(name, made, configurations, options)


#: Narrow floating-point types, each with the configurations that have it.
NARROW: dict[torch.dtype, tuple[Configuration, ...]] = {
    torch.float16: (("FP", "none"),),
    torch.bfloat16: (("FP+bf16", "none"),),
}


def narrow(case: Case, *names: str) -> Case:
    """``case`` once more, in the nightly tier, with its samples of these ``names`` in float16 and bfloat16.

    Weights are narrowed as the inputs are; inputs that are not floating point stay as they are.
    """
    samples = tuple(_narrowed(item, dtype) for item in _named(case, names) for dtype in NARROW)
    return replace(case, samples=samples, tier="nightly")


def quantised(case: Case, scheme: str, *names: str, **options: Any) -> Case:
    """``case`` once more, in the nightly tier, with its samples of these ``names`` under another ``scheme``.

    ``options`` replace what the case declares: ``lsb`` with ``lsb_reason``, ``budget``.
    """
    samples = tuple(replace(item, configurations=EXTENDED[scheme], tier="") for item in _named(case, names))
    if isinstance(case.calibration, OfSamples):
        options.setdefault("calibration", OfSamples.among(samples, ()))
    return replace(case, samples=samples, tier="nightly", **options)


def _is_quantised(configurations: Sequence[Configuration]) -> bool:
    return any(scheme != "none" for _, scheme in configurations)


def _named(case: Case, names: Sequence[str]) -> list[Sample]:
    known = {item.name: item for item in case.samples}
    return [known[name] for name in names]


def _narrowed(item: Sample, dtype: torch.dtype) -> Sample:
    draws = tuple(
        draw.narrowed(dtype) if isinstance(draw, Tensor) and draw.dtype.is_floating_point else draw
        for draw in item.draws
    )
    name = f"{dtype_name(dtype)}_{item.name}"
    return Sample(name, draws, lambda: item.build().to(dtype), NARROW[dtype])


def model(
    build: Callable[[], torch.nn.Module],
    samples: Sequence[Declared],
    *,
    configurations: tuple[Configuration, ...] = FLOATING,
    **options: Any,
) -> Case:
    """Declare a model: several operators with a purpose of their own.

    It is calibrated on all its samples that a quantised configuration is declared for, so that samples
    of one shape share one artifact.
    """
    made = tuple(item.made(build) for item in samples)
    options.setdefault("calibration", OfSamples.among(made, configurations))
    return Case("", "model", "", made, configurations, **options)


def _case(
    name: str, samples: tuple[Sample, ...], configurations: tuple[Configuration, ...], options: dict[str, Any]
) -> Case:
    options.setdefault("budget", OPERATOR_BUDGET)
    return Case("", "operator", name, samples, configurations, **options)


def _builder(
    factory: Callable[..., torch.nn.Module], args: tuple[Any, ...], keywords: dict[str, Any]
) -> Callable[[], torch.nn.Module]:
    return lambda: factory(*args, **keywords)
