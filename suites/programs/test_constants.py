"""Constants in a program, and operators that lowering folds, drops or takes apart.

Covered: constants of NaN, infinities, signed zeros and denormals; multiplication by zero, which is
not zero for every operand; parameters and buffers, one used twice; constants that the program makes
itself; empty slices; negative padding before other operators; a chain whose middle underflows.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, Budget, model, sample
from vgf_conformance.cases.inputs import normal, special_values, values

BUDGET = Budget(15.0, "int8 operators in a row: what keeps less has lost a scale")


class SpecialConstant(nn.Module):
    """A constant of special values, added and subtracted."""

    constant: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("constant", torch.tensor([math.nan, math.inf, -0.0, 1e-40]))

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tensor + self.constant, tensor - self.constant


class ChosenSpecial(nn.Module):
    """A constant of special values that only data movement touches."""

    constant: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("constant", torch.tensor([math.nan, math.inf, -math.inf, -0.0, 3.4e38, 1.0]))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor, self.constant.flip(0)])


class TimesZero(nn.Module):
    """Multiplied by the number zero: infinity and NaN become NaN."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor * 0.0


class TimesZeros(nn.Module):
    """Multiplied by a parameter of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.zeros = nn.Parameter(torch.zeros(3))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor * self.zeros


class MinusItself(nn.Module):
    """The difference of infinity and itself is NaN."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor - tensor


class OverItself(nn.Module):
    """The quotient of zero and itself is NaN."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor / tensor


class MadeInside(nn.Module):
    """Constants that the program makes: zeros, ones, a filled tensor and a range."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        ramp = torch.arange(4, dtype=torch.float32)
        return tensor * torch.ones(3, 4) + torch.full((3, 1), 0.5) + ramp + torch.zeros_like(tensor)


class Folded(nn.Module):
    """A factor and a summand that are computed from parameters alone, which lowering does in advance."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.tensor([[0.5], [-1.0], [2.0]]))
        self.columns = nn.Parameter(torch.tensor([3.0, -0.5, 1.0, -2.0]))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        factor = torch.exp(self.rows) - 1.5
        return tensor * factor + torch.cat([self.columns[1:], self.columns[:1] * 0.25]).flip(0)


class SharedParameter(nn.Module):
    """One parameter, used as a weight and as a summand."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(4, 4))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return F.linear(tensor, self.matrix) + self.matrix


class ConstantOutput(nn.Module):
    """One output does not depend on the input."""

    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))

    def forward(self, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.exp(tensor), self.row * 2.0


class EmptySlice(nn.Module):
    """A slice of nothing, concatenated."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor[:, :0], tensor], 1) + 1.0


class NegativePadding(nn.Module):
    """Cut on one side, padded on the other."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return F.pad(tensor, (-1, 1)) + 1.0


class LogOfExp(nn.Module):
    """From -90 on the exponential is a denormal number, which a device may flush to zero."""

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.log(torch.exp(tensor * 10.0 - 95.0))


class Undone(nn.Module):
    """Operators that undo each other, and dropout, which does nothing in a trained model."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        turned = tensor.transpose(0, 1).transpose(0, 1).reshape(15).reshape(3, 5)
        dropped: torch.Tensor = self.dropout(torch.neg(torch.neg(turned)))
        return dropped + 0.25


special_constant = model(
    SpecialConstant, [sample("special", normal(4))], configurations=FLOATING_ONLY, tier="nightly"
)
chosen_special = model(
    ChosenSpecial, [sample("special", special_values())], configurations=FLOATING_ONLY, tier="nightly"
)
SPECIAL = values([math.inf, math.nan, 1.0])
times_zero = model(TimesZero, [sample("special", SPECIAL)], configurations=FLOATING_ONLY, tier="nightly")
times_zeros = model(TimesZeros, [sample("special", SPECIAL)], configurations=FLOATING_ONLY, tier="nightly")
minus_itself = model(
    MinusItself,
    [
        sample("special", SPECIAL, configurations=FLOATING_ONLY),
        sample("finite", normal(2, 3), configurations=SEPARATE),
    ],
    calibration=None,
    tier="nightly",
)
over_itself = model(
    OverItself,
    [sample("special", values([0.0, math.inf, math.nan, -3.0]))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
made_inside = model(
    MadeInside, [sample("rank2", normal(3, 4))], configurations=SEPARATE, tier="nightly", budget=BUDGET
)
folded = model(Folded, [sample("rank2", normal(3, 4))], budget=BUDGET)
shared_parameter = model(
    SharedParameter,
    [sample("rank2", normal(4, 4))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
constant_output = model(
    ConstantOutput, [sample("rank1", normal(3))], configurations=SEPARATE, tier="nightly", budget=BUDGET
)
empty_slice = model(
    EmptySlice, [sample("rank2", normal(2, 5))], configurations=SEPARATE, tier="nightly", budget=BUDGET
)
negative_padding = model(
    NegativePadding,
    [sample("rank2", normal(2, 5))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
log_of_exp = model(
    LogOfExp, [sample("denormal", normal(1, 20))], configurations=FLOATING_ONLY, tier="nightly"
)
undone = model(
    Undone, [sample("rank2", normal(3, 5))], configurations=SEPARATE, tier="nightly", budget=BUDGET
)
