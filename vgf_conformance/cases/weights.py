"""Weights that a constructor leaves without effect, drawn so that a computation shows them."""

from __future__ import annotations

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
