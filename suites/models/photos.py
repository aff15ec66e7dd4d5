"""scikit-learn's two photographs in crops, and lines of drawn text."""

from __future__ import annotations

import functools

import torch
from torch.nn import functional as F

from vgf_conformance.cases.inputs import Draw

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@functools.cache
def _photos() -> tuple[torch.Tensor, ...]:
    from sklearn.datasets import load_sample_images

    return tuple(
        torch.tensor(photo, dtype=torch.float32).permute(2, 0, 1) / 255
        for photo in load_sample_images().images
    )


def crops(count: int, size: int, seed: int) -> torch.Tensor:
    """Square crops of 120 to 400 pixels, scaled to ``size`` and normalised as ImageNet's networks expect."""
    return _crops(count, size, torch.Generator().manual_seed(seed))


def crop(size: int) -> Draw:
    """Draw one such crop."""
    return lambda generator: _crops(1, size, generator)


def _crops(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    found = []
    for _ in range(count):
        which, edge, top, left = torch.rand(4, generator=generator).tolist()
        photo = _photos()[int(which * 2)]
        side = int(120 + edge * 280)
        y, x = int(top * (photo.shape[1] - side)), int(left * (photo.shape[2] - side))
        cut = photo[None, :, y : y + side, x : x + side]
        found.append(F.interpolate(cut, size=(size, size), mode="bilinear", antialias=True))
    mean, deviation = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (MEAN, DEVIATION))
    return (torch.cat(found) - mean) / deviation


def line(text: str, width: int) -> torch.Tensor:
    """Dark ``text`` on light ground, 32 pixels high, in [-1, 1], drawn with Pillow's own font."""
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("L", (width, 32), 245)
    ImageDraw.Draw(image).text((3, 15), text, fill=20, font=ImageFont.load_default(22), anchor="lm")
    return torch.tensor(np.array(image), dtype=torch.float32)[None, None] / 127.5 - 1
