"""Control flow, and checks while a program runs: claimed in the documentation alone.

Covered: a branch, a loop and an assertion, each around one addition. More of them, lowered and walked, are in
``programs/test_control_flow.py``.
"""

from __future__ import annotations

import torch
from torch._higher_order_ops.while_loop import while_loop

from vgf_conformance.cases.case import FLOATING_ONLY, operator, sample
from vgf_conformance.cases.inputs import integers, uniform

QUANTISED_ONLY = (("INT", "a8w8-pc"),)

cond = operator(
    "higher_order.cond",
    lambda x: torch.cond(x.sum() > 0, lambda x: x + 1.0, lambda x: x - 1.0, (x,)),
    [sample("taken", uniform(3, 4))],
    configurations=QUANTISED_ONLY,
    tier="nightly",
)

while_loop_until = operator(
    "higher_order.while_loop",
    lambda x: while_loop(lambda x: (x.sum() < 10.0).squeeze(), lambda x: (x + 1.0,), (x,))[0],
    [sample("once", uniform(3, 4))],
    configurations=QUANTISED_ONLY,
    tier="nightly",
)


def _asserted(x: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
    torch.ops.aten._assert_scalar(limit.item() > 0, "too small")
    return x + 1.0


assert_scalar = operator(
    "aten._assert_scalar.default",
    _asserted,
    [sample("holds", uniform(3, 4), integers(1, low=1, high=9, dtype=torch.int64))],
    configurations=FLOATING_ONLY,
    tier="nightly",
)
