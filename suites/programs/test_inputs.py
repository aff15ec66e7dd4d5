"""What a program is given: inputs that it does not use, shares, or holds in another memory order.

Covered: unused inputs, one tensor given twice, one input used by many, transposed and permuted
memory, channels_last beside contiguous, inputs of unlike types, empty dimensions, non-overlapping
slices as inputs, an input that is written to.
"""

import torch
from torch import nn

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, model, sample
from vgf_conformance.cases.inputs import booleans, integers, normal, values


class Unused(nn.Module):
    """The second input is not used; the runtime passes inputs by position."""

    def forward(self, used: torch.Tensor, unused: torch.Tensor) -> torch.Tensor:
        return used * 2.0


class UnusedBetween(nn.Module):
    """The input in the middle is not used."""

    def forward(self, first: torch.Tensor, unused: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        return first - last


class Difference(nn.Module):
    """Which of two inputs is which shows in the sign."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return left - right


class UsedByMany(nn.Module):
    """One input is an operand of everything."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return (tensor * tensor + tensor) * torch.sigmoid(tensor) - tensor


class SumAndRunningSum(nn.Module):
    """Reductions along two dimensions: the order in memory must be known."""

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor.sum(1), torch.cumsum(tensor, 2)


class Affine(nn.Module):
    """Two elementwise operators: any order in memory will do, if it is the same for all."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor * 2.0 + 1.0


class ImageAndBias(nn.Module):
    """An image beside a row that is widened over it."""

    def forward(self, image: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        return image * row + image


class UnlikeTypes(nn.Module):
    """Data, a mask and rows to choose."""

    def forward(self, tensor: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        chosen = torch.index_select(tensor, 0, rows)
        return torch.where(mask, chosen, -chosen)


class RectifiedPlusOne(nn.Module):
    """Two elementwise operators, for inputs without elements."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.relu(tensor) + 1.0


class WrittenTo(nn.Module):
    """Writes to its input: PyTorch's caller sees that, and so must the runtime's."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        tensor.add_(1.0)
        return tensor * 2.0


class InPlaceInside(nn.Module):
    """In-place operators on a tensor of its own."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        own = tensor * 2.0
        own.add_(1.0).relu_()
        own[:, 1:3] = own[:, 1:3] * 0.5
        return own


class ListOfInputs(nn.Module):
    """The inputs come as a list."""

    def forward(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat(tensors, 1) * 2.0


class DictOfInputs(nn.Module):
    """The inputs come by name, not in the order of their names."""

    def forward(self, named: dict[str, torch.Tensor]) -> torch.Tensor:
        return named["second"] - named["first"]


#: Given in both places: one object, not two that are equal.
SHARED = torch.tensor([0.5, -1.25, 2.0])


def together(generator: torch.Generator) -> list[object]:
    """Two tensors in a list."""
    return [normal(2, 3)(generator), normal(2, 2)(generator)]


def by_name(generator: torch.Generator) -> dict[str, object]:
    """Two tensors by name, the second first."""
    return {"second": normal(2, 3)(generator), "first": normal(2, 3)(generator)}


unused = model(Unused, [sample("second", normal(2, 3), normal(3))], configurations=SEPARATE, tier="nightly")
unused_between = model(
    UnusedBetween,
    [sample("of_another_shape", normal(2, 3), normal(4), normal(2, 3))],
    configurations=SEPARATE,
    tier="nightly",
)
difference = model(
    Difference,
    [
        sample("one_tensor_twice", SHARED, SHARED),
        sample("unlike", normal(3), normal(3)),
        sample("channels_last_first", normal(1, 3, 4, 5, channels_last=True), normal(1, 3, 4, 5)),
        sample("channels_last_second", normal(1, 3, 4, 5), normal(1, 3, 4, 5, channels_last=True)),
        sample("transposed_second", normal(4, 6), normal(4, 6, transposed=True)),
        sample("transposed_both", normal(4, 6, transposed=True), normal(4, 6, transposed=True)),
    ],
    # Of unlike shapes: each is calibrated on itself.
    calibration=None,
    configurations=SEPARATE,
    tier="nightly",
)
used_by_many = model(UsedByMany, [sample("rank2", normal(3, 5))], configurations=SEPARATE, tier="nightly")
sum_and_running_sum = model(
    SumAndRunningSum,
    [sample("memory_210", normal(4, 2, 3, transposed=True)), sample("contiguous", normal(4, 2, 3))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
affine = model(
    Affine,
    [
        sample("transposed", normal(6, 4, transposed=True)),
        sample("rank4_reversed", normal(2, 3, 4, 5, transposed=True)),
        # Channels_last and contiguous at once: which one it is called must not matter.
        sample("channels_last_of_one_channel", normal(1, 1, 4, 5, channels_last=True)),
        sample("channels_last_of_one_pixel", normal(2, 3, 1, 1, channels_last=True)),
    ],
    calibration=None,
    configurations=SEPARATE,
    tier="nightly",
)
image_and_bias = model(
    ImageAndBias,
    [
        sample("channels_last_by_rank1", normal(1, 3, 4, 5, channels_last=True), normal(5)),
        sample("channels_last_by_channel", normal(1, 3, 4, 5, channels_last=True), normal(3, 1, 1)),
        sample(
            "both_channels_last",
            normal(2, 3, 4, 5, channels_last=True),
            normal(1, 3, 1, 1, channels_last=True),
        ),
    ],
    calibration=None,
    configurations=SEPARATE,
    tier="nightly",
)
unlike_types = model(
    UnlikeTypes,
    [sample("float_bool_int32", normal(5, 3), booleans(4, 3), values([4, 0, 2, 2], dtype=torch.int32))],
    configurations=SEPARATE,
    tier="nightly",
)
rectified_plus_one = model(
    RectifiedPlusOne,
    [sample("no_rows", normal(0, 3)), sample("no_columns", normal(3, 0))],
    calibration=None,
    configurations=FLOATING_ONLY,
    tier="nightly",
)
written_to = model(WrittenTo, [sample("rank2", normal(2, 3))], configurations=FLOATING_ONLY, tier="nightly")
in_place_inside = model(
    InPlaceInside, [sample("rank2", normal(3, 5))], configurations=SEPARATE, tier="nightly"
)


class WholeNumbers(nn.Module):
    """Comparisons of integers beside arithmetic on floats: the former fall back where TOSA has them not."""

    def forward(self, whole: torch.Tensor, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return whole < 3, whole == 1, tensor * 2.0


whole_numbers = model(
    WholeNumbers,
    [sample("int32_in_FP", integers(5, low=-5, high=5), normal(5))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
list_of_inputs = model(ListOfInputs, [sample("two", together)], configurations=SEPARATE, tier="nightly")
dict_of_inputs = model(DictOfInputs, [sample("two", by_name)], configurations=SEPARATE, tier="nightly")
