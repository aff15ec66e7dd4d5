"""What a program gives back: how many outputs, of what, and in which form.

Covered: an output given twice, equal outputs of unlike nodes, an input as an output, outputs that
lowering folds onto an input, views, nested outputs, twenty outputs, rank 0, booleans beside floats,
integers beside floats, channels_last results, one computation used inside and given back.
"""

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, model, sample
from vgf_conformance.cases.inputs import booleans, normal, special_values, values

INT = (("INT", "none"),)


class SameTwice(nn.Module):
    """One result in two places, and the input in a third."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rectified = torch.relu(tensor)
        return rectified, rectified, tensor


class EqualRectifiers(nn.Module):
    """Two nodes that compute the same: lowering makes one CLAMP of them, the outputs stay two."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.relu(tensor), tensor.clamp(min=0.0)


class EqualSums(nn.Module):
    """The same sum written both ways round."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return left + right, right + left


class EqualPermutations(nn.Module):
    """A transposition by two names: only data is moved."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor.permute(0, 2, 1).contiguous(), tensor.transpose(1, 2).contiguous(), -tensor


class TimesOne(nn.Module):
    """A multiplication by one, which folding takes away, beside a computation that stays."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor * 1.0, torch.exp(tensor)


class PlusZero(nn.Module):
    """As TimesOne, with an addition of zero."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor + 0.0, torch.exp(tensor)


class InterpolatedByOne(nn.Module):
    """An interpolation to the same size, beside a computation that stays."""

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.interpolate(image, scale_factor=1.0, mode="bilinear"), torch.exp(image)


class UnpaddedAndWhole(nn.Module):
    """A padding by nothing and a slice of everything, beside a computation that stays."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.pad(tensor, (0, 0)), tensor[:, 0:3], torch.exp(tensor)


class Views(nn.Module):
    """Nothing but views of the input."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor.view(6), tensor.t()


class ViewsOfResult(nn.Module):
    """A result with two views of it."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        doubled = tensor * 2.0
        return doubled, doubled.view(6), doubled.t()


class Nested(nn.Module):
    """A dictionary with a tuple and a list in it."""

    def forward(self, tensor: torch.Tensor) -> dict[str, object]:
        return {"rectified": torch.relu(tensor), "others": (tensor + 1.0, [tensor * 2.0])}


class Twenty(nn.Module):
    """Twenty outputs of one delegate."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(tensor * float(factor) for factor in range(2, 22))


class RankZero(nn.Module):
    """Numbers without dimensions, in and out."""

    def forward(self, number: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return number + 1.0, torch.exp(number)


class ChannelsLast(nn.Module):
    """A result in another memory format than the input."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.relu(image).to(memory_format=torch.channels_last)


class MaskAndItself(nn.Module):
    """A mask, given back beside its negation."""

    def forward(self, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.logical_not(mask), mask


class EveryLogic(nn.Module):
    """Six answers from two masks, two of them reductions."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            left & right,
            left | right,
            torch.logical_xor(left, right),
            torch.logical_not(left),
            left.any(-1),
            left.all(-1),
        )


class TypesTogether(nn.Module):
    """A float, a boolean and an int32 result of one input."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor * 2.0, tensor > 0.0, torch.argmax(tensor, -1).to(torch.int32)


class InsideAndOut(nn.Module):
    """What is computed first is used for what follows, and given back: its memory must not be reused."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = torch.tanh(tensor)
        second = first * first
        return first, second, torch.sigmoid(second) - first


class Reductions(nn.Module):
    """Four reductions of one input, of three shapes."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor.mean((1, 2)), tensor.sum(1), tensor.amax(2), tensor.amin(1)


class Rank5Mixture(nn.Module):
    """Sum, softmax and mean of rank 5, each along another dimension."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor.sum(2), torch.softmax(tensor, 3), tensor.mean((0, 4))


class SizeOneReductions(nn.Module):
    """A kept dimension beside reductions to rank 0."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor.sum(1, keepdim=True), tensor.sum(), tensor.mean(), tensor.amax()


class Pieces(nn.Module):
    """Pieces of one input: two are computed with, one is given back as it is."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left, right = torch.split(tensor, [2, 3], 1)
        return left * 2.0, right + 1.0, torch.unbind(tensor, 0)[1]


class BooleanArithmetic(nn.Module):
    """A mask as numbers, and whether any and all of it holds."""

    def forward(self, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return mask.to(torch.float32) * 2.0, mask.any(0, keepdim=True), mask.all(0, keepdim=True)


class CountedMask(nn.Module):
    """How many of a mask are true, as int64."""

    def forward(self, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return mask.sum(), mask.any()


same_twice = model(SameTwice, [sample("rank2", normal(2, 3))], tier="nightly")
equal_rectifiers = model(EqualRectifiers, [sample("rank2", normal(2, 3))], tier="nightly")
equal_sums = model(
    EqualSums, [sample("rank2", normal(2, 3), normal(2, 3))], configurations=SEPARATE, tier="nightly"
)
equal_permutations = model(
    EqualPermutations, [sample("rank3", normal(2, 3, 4))], configurations=SEPARATE, tier="nightly"
)
times_one = model(TimesOne, [sample("signed_zeros", values([0.0, -0.0, 1.0]))], tier="nightly")
plus_zero = model(
    PlusZero, [sample("ones", values([0.5, -0.5, 1.0]))], configurations=SEPARATE, tier="nightly"
)
interpolated_by_one = model(InterpolatedByOne, [sample("image", normal(1, 2, 3, 4))], tier="nightly")
unpadded_and_whole = model(
    UnpaddedAndWhole, [sample("rank2", normal(2, 3))], configurations=SEPARATE, tier="nightly"
)
views = model(Views, [sample("rank2", normal(2, 3))], configurations=SEPARATE, tier="nightly")
views_of_result = model(
    ViewsOfResult, [sample("rank2", normal(2, 3))], configurations=SEPARATE, tier="nightly"
)
nested = model(Nested, [sample("rank2", normal(2, 3))], configurations=SEPARATE, tier="nightly")
twenty = model(Twenty, [sample("rank2", normal(2, 3))], configurations=FLOATING_ONLY, tier="nightly")
rank_zero = model(RankZero, [sample("half", normal())], configurations=SEPARATE, tier="nightly")
channels_last = model(
    ChannelsLast, [sample("image", normal(1, 3, 4, 5))], configurations=SEPARATE, tier="nightly"
)
mask_and_itself = model(
    MaskAndItself, [sample("rank1", booleans(5))], configurations=(("FP", "none"), *INT), tier="nightly"
)
every_logic = model(
    EveryLogic,
    [sample("rank2", booleans(2, 3), booleans(2, 3))],
    configurations=(("FP", "none"), *INT),
    tier="nightly",
)
types_together = model(
    TypesTogether,
    [sample("rank2", normal(2, 3)), sample("special", special_values())],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
inside_and_out = model(InsideAndOut, [sample("rank2", normal(3, 5))], configurations=SEPARATE, tier="nightly")
reductions = model(Reductions, [sample("rank3", normal(2, 5, 7))], configurations=SEPARATE, tier="nightly")
rank5_mixture = model(
    Rank5Mixture, [sample("odd", normal(2, 3, 2, 3, 2))], configurations=FLOATING_ONLY, tier="nightly"
)
size_one_reductions = model(
    SizeOneReductions, [sample("rank3", normal(1, 1, 1))], configurations=SEPARATE, tier="nightly"
)
pieces = model(Pieces, [sample("rank2", normal(2, 5))], configurations=SEPARATE, tier="nightly")
boolean_arithmetic = model(
    BooleanArithmetic, [sample("rank1", booleans(5))], configurations=FLOATING_ONLY, tier="nightly"
)
counted_mask = model(
    CountedMask, [sample("rank1", booleans(5))], configurations=FLOATING_ONLY, tier="nightly"
)
