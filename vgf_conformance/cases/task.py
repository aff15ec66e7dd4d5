"""A task: examples with known answers, a metric, and the drop that quantisation and lowering may cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

#: A program's outputs on one set of inputs, flattened.
Outputs = list[torch.Tensor]
Program = Callable[..., Outputs]


@dataclass(frozen=True)
class Metric:
    """How well outputs answer: ``score`` gives one number for each example that they hold, larger is better.

    A ``proportion`` scores 0 or 1.
    """

    name: str
    score: Callable[[Outputs, Any], torch.Tensor]
    unit: str = ""
    proportion: bool = False


@dataclass(frozen=True)
class Example:
    """Inputs and what is right for them: whatever the metric compares with, None for eager's own outputs.

    The inputs may hold several examples as a batch.
    """

    inputs: tuple[Any, ...]
    answer: Any = None


def once(program: Program, inputs: tuple[Any, ...]) -> Outputs:
    """One call for one example."""
    return program(*inputs)


@dataclass(frozen=True)
class Task:
    """What a model is for. ``drop`` is how far the mean score may fall below eager's, with its ``reason``.

    ``run`` puts an example's inputs through a program: once, or step by step where the model has a state.
    """

    metric: Metric
    examples: Callable[[], Sequence[Example]]
    drop: float
    reason: str
    run: Callable[[Program, tuple[Any, ...]], Outputs] = once


def _top1(outputs: Outputs, answer: torch.Tensor) -> torch.Tensor:
    return outputs[0].argmax(-1) == answer


def _agreement(outputs: Outputs, eager: Outputs) -> torch.Tensor:
    return _top1(outputs, eager[0].argmax(-1))


def _cosine(outputs: Outputs, answer: torch.Tensor | Outputs) -> torch.Tensor:
    right = answer if isinstance(answer, torch.Tensor) else answer[0]
    return torch.nn.functional.cosine_similarity(outputs[0].flatten(1), right.flatten(1))


def _psnr(outputs: Outputs, answer: torch.Tensor) -> torch.Tensor:
    noise = (outputs[0] - answer).flatten(1).square().mean(1)
    return -10 * noise.clamp_min(1e-12).log10()


#: The class with the largest logit is the right one.
TOP_1 = Metric("top-1", _top1, proportion=True)
#: The class with the largest logit is the one that eager chooses: where no labels are at hand.
TOP_1_AGREEMENT = Metric("top-1 agreement with eager", _agreement, proportion=True)
#: Cosine of the angle between the first output and the answer, or eager's.
COSINE = Metric("cosine", _cosine)
#: Peak signal to noise of images in [0, 1], image by image.
PSNR = Metric("PSNR", _psnr, "dB")
