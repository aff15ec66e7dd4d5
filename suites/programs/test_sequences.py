"""Attention, recurrent cells, masks and positions.

Covered: multi-head and scaled dot product attention, causal and not, additive masks of minus
infinity as input and as constant, masks of booleans, a masked softmax in INT, GRU, RNN and LSTM
cells, embeddings of positions and of tokens, log-softmax of far logits, a cache that is written to
in one place, rotated positions.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from vgf_conformance.cases.case import FLOATING_ONLY, SEPARATE, Budget, model, sample
from vgf_conformance.cases.inputs import Draw, Tensor, integers, normal, values

INT = (("INT", "a8w8-pc"),)

BUDGET = Budget(15.0, "int8 layers in a row: what keeps less has lost a scale")
MASKED = Budget(20.0, "int8 logits, masked by a number that does not widen their range by much, keep 31 dB")


def causal(size: int) -> Draw:
    """Minus infinity above the diagonal, zero elsewhere."""

    def fill(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        return torch.triu(torch.full(shape, -math.inf), 1)

    return Tensor((size, size), fill, torch.float32)


class SelfAttention(nn.Module):
    """PyTorch's own multi-head attention, of a sequence with itself."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.attention(tokens, tokens, tokens)[0]
        return made


class CrossAttention(nn.Module):
    """Multi-head attention to a longer sequence, with the weights that it averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens: torch.Tensor, memory: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made: tuple[torch.Tensor, ...] = self.attention(tokens, memory, memory)
        return made


class DotProductAttention(nn.Module):
    """The functional form."""

    def __init__(self, *, is_causal: bool = False) -> None:
        super().__init__()
        self.is_causal = is_causal

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(query, key, value, is_causal=self.is_causal)


class MaskedAttention(nn.Module):
    """The functional form with a mask of booleans."""

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


class AddedMask(nn.Module):
    """A mask that is added to the logits."""

    def forward(self, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(logits + mask, -1)


class ConstantMask(nn.Module):
    """A causal mask that the model holds, filled with ``filler``."""

    mask: torch.Tensor

    def __init__(self, filler: float) -> None:
        super().__init__()
        self.filler = filler
        self.register_buffer("mask", torch.triu(torch.ones(4, 4), 1).bool())

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return torch.softmax(logits.masked_fill(self.mask, self.filler), -1)


class Outputs(nn.Module):
    """A recurrent layer's outputs without its last state."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.layer(sequence)[0]
        return made


class OutputsAndState(nn.Module):
    """A recurrent layer from a state that is given, with its last one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(4, 5, batch_first=True)

    def forward(self, sequence: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made: tuple[torch.Tensor, ...] = self.layer(sequence, state)
        return made


class Positions(nn.Module):
    """Adds an embedding of the positions, which the program counts itself."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return tokens + self.table(torch.arange(4))


class TokensAndPositions(nn.Module):
    """The sum of two embeddings, normed."""

    positions: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 4)
        self.places = nn.Embedding(5, 4)
        self.norm = nn.LayerNorm(4)
        self.register_buffer("positions", torch.arange(5, dtype=torch.int32))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.norm(self.tokens(tokens) + self.places(self.positions))
        return made


class FarLogits(nn.Module):
    """A log-softmax of logits far apart: the exponential of most is nothing in eight bits."""

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(logits * 5.0, -1)


class WrittenCache(nn.Module):
    """A cache with one place written over, attended to."""

    def forward(self, cache: torch.Tensor, new: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        cache = torch.cat([cache[:, :2], new, cache[:, 3:]], 1)
        return torch.softmax(query @ cache.transpose(1, 2), -1) @ cache


class RotatedPositions(nn.Module):
    """Halves that are turned against each other by an angle that grows with the position."""

    angles: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        frequencies = 10000.0 ** (-torch.arange(2) / 2)
        self.register_buffer("angles", torch.outer(torch.arange(5.0), frequencies).repeat(1, 2))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        left, right = tokens.chunk(2, -1)
        return tokens * self.angles.cos() + torch.cat([-right, left], -1) * self.angles.sin()


HEADS = (normal(1, 2, 4, 8), normal(1, 2, 4, 8), normal(1, 2, 4, 8))
#: Logits whose exponentials overflow unless the largest is taken off first.
LOUD_HEADS = (normal(1, 2, 4, 8, scale=60.0), *HEADS[1:])

self_attention = model(
    SelfAttention,
    [
        sample("five_tokens", normal(1, 5, 8)),
        sample("loud_tokens", normal(1, 5, 8, scale=60.0), configurations=FLOATING_ONLY),
    ],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
cross_attention = model(
    CrossAttention,
    [
        sample("three_to_seven", normal(1, 3, 8), normal(1, 7, 8)),
        sample("loud", normal(1, 3, 8, scale=60.0), normal(1, 7, 8, scale=60.0)),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
dot_product_attention = model(
    DotProductAttention,
    [sample("four_tokens", *HEADS), sample("loud", *LOUD_HEADS, configurations=FLOATING_ONLY)],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
causal_attention = model(
    lambda: DotProductAttention(is_causal=True),
    [sample("four_tokens", *HEADS), sample("loud", *LOUD_HEADS, configurations=FLOATING_ONLY)],
    configurations=SEPARATE,
    tier="nightly",
    budget=MASKED,
)
SEEN = values([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1], 4, 4, dtype=torch.bool)

masked_attention = model(
    MaskedAttention,
    # Each query sees itself at least: a row without any would be NaN.
    [
        sample(
            "lower_triangle",
            *HEADS,
            SEEN,
        ),
        sample("loud", *LOUD_HEADS, SEEN),
    ],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
LOUD = normal(4, 4, scale=60.0)

added_mask = model(
    AddedMask,
    [sample("minus_infinity", normal(4, 4), causal(4)), sample("loud", LOUD, causal(4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
# The mask alone takes the whole range of eight bits, if it is not bounded.
added_mask_quantised = model(
    AddedMask,
    [sample("minus_infinity", normal(4, 4), causal(4))],
    configurations=INT,
    tier="nightly",
    budget=MASKED,
)
constant_mask = model(
    lambda: ConstantMask(-math.inf),
    [sample("minus_infinity", normal(4, 4)), sample("loud", LOUD, configurations=FLOATING_ONLY)],
    configurations=SEPARATE,
    tier="nightly",
    budget=MASKED,
)
constant_mask_least = model(
    lambda: ConstantMask(torch.finfo(torch.float32).min),
    [sample("lowest_finite", normal(4, 4)), sample("loud", LOUD, configurations=FLOATING_ONLY)],
    configurations=SEPARATE,
    tier="nightly",
    budget=MASKED,
)
constant_mask_far = model(
    lambda: ConstantMask(-30.0),
    [sample("minus_30", normal(4, 4)), sample("loud", LOUD, configurations=FLOATING_ONLY)],
    configurations=SEPARATE,
    tier="nightly",
    budget=MASKED,
)
gru = model(
    lambda: Outputs(nn.GRU(4, 5, batch_first=True)),
    [sample("three_steps", normal(1, 3, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
gru_with_state = model(
    OutputsAndState,
    [sample("two_steps", normal(1, 2, 4), normal(1, 1, 5))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
rnn = model(
    lambda: Outputs(nn.RNN(4, 5, batch_first=True)),
    [sample("three_steps", normal(1, 3, 4))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
bidirectional_lstm = model(
    lambda: Outputs(nn.LSTM(3, 2, batch_first=True, bidirectional=True)),
    [sample("two_steps", normal(1, 2, 3))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
positions = model(
    Positions, [sample("four", normal(2, 4, 3))], configurations=SEPARATE, tier="nightly", budget=BUDGET
)
tokens_and_positions = model(
    TokensAndPositions,
    [sample("int32", integers(1, 5, low=0, high=9))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
far_logits = model(
    FarLogits,
    [
        sample("ten_classes", normal(4, 10)),
        sample("loud", normal(4, 10, scale=60.0), configurations=FLOATING_ONLY),
    ],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
written_cache = model(
    WrittenCache,
    [
        sample("third_place", normal(1, 5, 4), normal(1, 1, 4), normal(1, 1, 4)),
        sample(
            "loud",
            normal(1, 5, 4, scale=60.0),
            normal(1, 1, 4, scale=60.0),
            normal(1, 1, 4, scale=60.0),
            configurations=FLOATING_ONLY,
        ),
    ],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
rotated_positions = model(
    RotatedPositions,
    [sample("five", normal(1, 5, 4))],
    configurations=SEPARATE,
    tier="nightly",
    budget=BUDGET,
)
