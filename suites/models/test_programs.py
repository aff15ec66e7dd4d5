"""Models whose programs are not one delegate with one input and one output.

Partly delegated, several delegates, several inputs and outputs, and a state carried between calls.
"""

from typing import Any

import torch
from torch import nn

from vgf_conformance.cases.case import About, Budget, model, sample
from vgf_conformance.cases.inputs import normal
from vgf_conformance.cases.task import COSINE, Example, Outputs, Program, Task

SEEDED = About("suites/models", "Apache-2.0", "drawn from the seed")
BUDGET = Budget(15.0, "a few int8 layers on seeded weights")


class Ranked(nn.Module):
    """Features, their three largest by an operator that stays on the CPU, and a layer over these."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
        self.after = nn.Linear(3, 4)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.after(torch.topk(self.before(values), 3)[0])


class TwoTowers(nn.Module):
    """An image and a vector in; their joint features, and how like they are, out."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.vector = nn.Linear(5, 8)

    def forward(self, image: torch.Tensor, vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen, told = self.image(image).flatten(1), torch.tanh(self.vector(vector))
        return seen + told, (seen * told).sum(-1)


class Step(nn.Module):
    """One step of a gated recurrence: the caller keeps the state."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(10, 6), nn.Linear(10, 6)

    def forward(self, given: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.cat([given, state], -1)
        share = torch.sigmoid(self.gate(both))
        state = share * state + (1 - share) * torch.tanh(self.value(both))
        return state.sum(-1), state


def twelve_steps(program: Program, inputs: tuple[Any, ...]) -> Outputs:
    state, found = torch.zeros(1, 6), []
    for given in inputs[0].split(1):
        answer, state = program(given, state)
        found.append(answer)
    return [torch.stack(found, 1)]


def _walks(seed: int, count: int) -> list[Example]:
    generator = torch.Generator().manual_seed(seed)
    return [Example((torch.randn(12, 4, generator=generator),)) for _ in range(count)]


two_delegates = model(
    Ranked,
    [sample("two_rows", normal(2, 6)), sample("small_rows", normal(2, 6, scale=0.3))],
    about=SEEDED,
    budget=BUDGET,
)

two_inputs_two_outputs = model(
    TwoTowers, [sample("pair", normal(1, 3, 8, 8), normal(1, 5))], about=SEEDED, budget=BUDGET
)

carried_state = model(
    Step,
    [sample("step", normal(1, 4), normal(1, 6, scale=0.5))],
    about=SEEDED,
    task=Task(
        COSINE,
        lambda: _walks(0, 16),
        0.05,
        "twelve steps, each with the state that the one before gave: errors may not build up",
        run=twelve_steps,
    ),
    calibration=lambda: [
        (given, torch.randn(1, 6, generator=torch.Generator().manual_seed(number)) / 2)
        for number, example in enumerate(_walks(1, 4))
        for given in example.inputs[0].split(1)
    ],
    budget=BUDGET,
)
