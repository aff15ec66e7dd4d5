"""Weights drawn for a purpose: norms that have an effect, whole numbers whose sums are exact."""

from __future__ import annotations

import torch
from torch import nn


def with_drawn_norms(module: nn.Module) -> nn.Module:
    """Draw scales, shifts and running statistics of normalisation layers, which start as 1 and 0."""
    for part in module.modules():
        if isinstance(part, (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm)):
            for scale in (part.weight, getattr(part, "running_var", None)):
                if scale is not None:
                    nn.init.uniform_(scale, 0.5, 1.5)
            for shift in (part.bias, getattr(part, "running_mean", None)):
                if shift is not None:
                    nn.init.normal_(shift, std=0.5)
    return module


def with_whole_weights(module: nn.Module, limit: int, share: float = 1.0) -> nn.Module:
    """Draw weights from the whole numbers in [-limit, limit]; all but a ``share`` of them are 0."""
    with torch.no_grad():
        for parameter in module.parameters():
            kept = torch.rand(parameter.shape) < share
            parameter.copy_(torch.randint(-limit, limit + 1, parameter.shape) * kept)
    return module
