"""scikit-learn's handwritten digits, and models trained on them where they are used.

1797 images of 8x8 pixels come with scikit-learn (BSD-3-Clause). 360 of them, chosen once at random,
are held out for the tasks; the others train. Training takes seconds, is drawn from the run's seed, and
is kept in the artifact cache.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import io
import zlib
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import About, Inputs
from vgf_conformance.cases.inputs import Draw
from vgf_conformance.cases.task import PSNR, TOP_1, Example, Task
from vgf_conformance.lowering.cache import Cache, default_folder

HELD_OUT = 360
#: Images in one call: enough to keep the task's calls few.
BATCH = 12
NOISE = 0.3
EPOCHS = 25

ABOUT = About(
    source="suites/models, trained on scikit-learn's digits",
    licence="Apache-2.0; digits BSD-3-Clause",
    weights="trained in the suite",
)


@functools.cache
def _digits() -> tuple[torch.Tensor, torch.Tensor]:
    from sklearn.datasets import load_digits

    found = load_digits()
    order = torch.randperm(len(found.images), generator=torch.Generator().manual_seed(0))
    scaled = torch.tensor(found.images, dtype=torch.float32).unsqueeze(1) / 16
    return scaled[order], torch.tensor(found.target)[order]


def noisy(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The images with noise."""
    return (images + NOISE * torch.randn(images.shape, generator=generator)).clamp(0, 1)


def halved(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The images at half their resolution."""
    return F.avg_pool2d(images, 2)


def plain(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The images as they are."""
    return images


#: What is done to images before a model is given them.
Given = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


def images(given: Given = plain) -> Draw:
    """Draw a batch of the digits held out."""

    def draw(generator: torch.Generator) -> torch.Tensor:
        chosen = torch.randperm(HELD_OUT, generator=generator)[:BATCH]
        return given(_digits()[0][-HELD_OUT:][chosen], generator)

    return draw


def calibration(given: Given = plain) -> Callable[[], list[Inputs]]:
    """Eight batches of what the models were trained on."""

    def batches() -> list[Inputs]:
        known = given(_digits()[0][: 8 * BATCH], torch.Generator().manual_seed(1))
        return [(batch,) for batch in known.split(BATCH)]

    return batches


def _held_out(given: Given = plain) -> list[Example]:
    """All that was held out: with labels, or where images are to be restored with the right images."""
    found, labels = (data[-HELD_OUT:] for data in _digits())
    answers = labels if given is plain else found
    seen = given(found, torch.Generator().manual_seed(2))
    return [
        Example((batch,), answer)
        for batch, answer in zip(seen.split(BATCH), answers.split(BATCH), strict=True)
    ]


RECOGNITION = Task(TOP_1, _held_out, 0.02, "seven digits in 360: about what two trainings differ by")


def restoration(given: Given) -> Task:
    """To get the images back."""
    return Task(PSNR, lambda: _held_out(given), 0.5, "half a decibel is about the least that an eye notices")


def recogniser(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """The module that ``make`` makes, trained to name digits."""
    return lambda: _trained(make(), plain)


def restorer(make: Callable[[], nn.Module], given: Given) -> Callable[[], nn.Module]:
    """The module that ``make`` makes, trained to get back the images from what is ``given``."""
    return lambda: _trained(make(), given)


def _trained(module: nn.Module, given: Given) -> nn.Module:
    """Train ``module``, or take its weights from the cache, by all that they depend on."""
    cache = Cache(default_folder())
    key = _key(module, given)
    weights = cache.get(key)
    if weights is None:
        _train(module, given)
        weights = module.state_dict()
        cache.put(key, weights)
    module.load_state_dict(weights)
    return module


def _key(module: nn.Module, given: Given) -> str:
    sources = {inspect.getsource(type(part)) for part in module.modules()}
    sources |= {inspect.getsource(function) for function in (_digits, _train, given)}
    first = io.BytesIO()
    torch.save([value for value in module.state_dict().values()], first)
    parts = [torch.__version__, str(EPOCHS), str(module), *sorted(sources)]
    return hashlib.sha256("\0".join(parts).encode() + first.getvalue()).hexdigest()


def _train(module: nn.Module, given: Given) -> None:
    """Adam with a falling rate, one thread: the same weights each time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found, labels = (data[:-HELD_OUT] for data in _digits())
        order = torch.Generator().manual_seed(zlib.crc32(b"digits"))
        optimiser = torch.optim.Adam(module.parameters(), 6e-3)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
        module.train()
        for _ in range(EPOCHS):
            for chosen in torch.randperm(len(found), generator=order).split(64):
                optimiser.zero_grad()
                clean = found[chosen]
                answers = module(given(clean, order))
                loss = (
                    F.cross_entropy(answers, labels[chosen]) if given is plain else F.mse_loss(answers, clean)
                )
                loss.backward()
                optimiser.step()
            falling.step()
        module.eval()
    finally:
        torch.set_num_threads(threads)
