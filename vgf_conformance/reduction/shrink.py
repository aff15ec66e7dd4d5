"""Smaller inputs: fewer outputs and calibration sets, shorter axes, plainer numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from vgf_conformance.reduction.candidate import Candidate, Values
from vgf_conformance.reduction.search import fewest

Fails = Callable[[Candidate], bool]
#: An axis of an input, by the input's name.
Axis = tuple[str, int]

#: More elements than this are not looked at one by one.
_FEW = 64
#: Questions that setting elements to zero may take: its results are read, not measured.
_QUESTIONS = 24


def shrunk(candidate: Candidate, fails: Fails) -> Candidate:
    """``candidate`` with whatever can be made smaller while it ``fails``."""
    for step in (_fewer_outputs, _less_calibration, _shorter_axes, _plainer_values):
        candidate = step(candidate, fails)
    return candidate


def _fewer_outputs(candidate: Candidate, fails: Fails) -> Candidate:
    """Outputs that other kept units read as well may not be needed."""
    inside = set().union(*(unit.reads for unit in candidate.units))
    for name in candidate.outputs:
        rest = tuple(output for output in candidate.outputs if output != name)
        siblings = {result for unit in candidate.units if name in unit.results for result in unit.results}
        if siblings & inside.union(rest) and fails(tried := replace(candidate, outputs=rest)):
            candidate = tried
    return candidate


def _less_calibration(candidate: Candidate, fails: Fails) -> Candidate:
    sets = candidate.calibration
    if not sets:
        return candidate
    choices: list[tuple[Values, ...]] = [()]
    if len(sets) > 1:
        choices += [sets[:1], sets[-1:], sets[: len(sets) // 2], sets[len(sets) // 2 :]]
    for chosen in choices:
        if fails(tried := replace(candidate, calibration=chosen)):
            return tried
    return candidate


def _shorter_axes(candidate: Candidate, fails: Fails) -> Candidate:
    """Axes of one length are cut together, then each alone: they mostly mean the same thing."""
    for group in _groups(candidate):
        candidate = _shorter(candidate, group, fails)
    for name, value in candidate.inputs.items():
        for axis in range(value.dim()):
            candidate = _shorter(candidate, [(name, axis)], fails)
    return candidate


def _groups(candidate: Candidate) -> list[list[Axis]]:
    """Axes of more than one input or place by their length; batches first, then the longest."""
    groups: dict[int, list[Axis]] = {}
    for name, value in candidate.inputs.items():
        for axis, length in enumerate(value.shape):
            if length > 1:
                groups.setdefault(length, []).append((name, axis))
    batches = {length: all(axis == 0 for _, axis in group) for length, group in groups.items()}
    order = sorted(groups, key=lambda length: (not batches[length], -length))
    return [groups[length] for length in order if len(groups[length]) > 1]


def _shorter(candidate: Candidate, axes: list[Axis], fails: Fails) -> Candidate:
    name, axis = axes[0]
    while (length := candidate.inputs[name].shape[axis]) > 1:
        halves = [(0, (length + 1) // 2), (length // 2, length)]
        pieces = list(dict.fromkeys([(0, 1), *halves]))
        tries = (_cut(candidate, axes, low, high) for low, high in pieces)
        found = next((tried for tried in tries if fails(tried)), None)
        if found is None:
            break
        candidate = found
    return candidate


def _cut(candidate: Candidate, axes: list[Axis], low: int, high: int) -> Candidate:
    def cut(values: Values) -> Values:
        made = dict(values)
        for name, axis in axes:
            piece = made[name].narrow(axis, low, high - low)
            made[name] = piece.clone(memory_format=torch.preserve_format)
        return made

    return candidate.with_values(cut(candidate.inputs), tuple(map(cut, candidate.calibration)))


def _plainer_values(candidate: Candidate, fails: Fails) -> Candidate:
    """All zeros or ones, or fewer digits; then zeros wherever another value is not needed."""
    for name in candidate.inputs:
        for value in _plainer(candidate.inputs[name]):
            if fails(tried := _with_value(candidate, name, value)):
                candidate = tried
                break
        candidate = _zeroed(candidate, name, fails)
    return candidate


def _plainer(value: torch.Tensor) -> Iterator[torch.Tensor]:
    plainer = [torch.zeros_like(value), torch.ones_like(value)]
    if value.is_floating_point():
        plainer += [_rounded(value, digits) for digits in (1, 2, 3)]
    for simple in plainer:
        if torch.equal(simple, value):
            return
        yield simple


def _rounded(value: torch.Tensor, digits: int) -> torch.Tensor:
    """To so many significant digits; what is no number, or would become none, stays."""
    wide = value.double()
    scale = 10.0 ** (digits - 1 - torch.floor(torch.log10(wide.abs())))
    rounded = (torch.round(wide * scale) / scale).to(value.dtype)
    return torch.where(rounded.isfinite(), rounded, value)


def _zeroed(candidate: Candidate, name: str, fails: Fails) -> Candidate:
    value = candidate.inputs[name]
    others = value.reshape(-1).ne(0).nonzero().reshape(-1).tolist()
    if value.numel() > _FEW or len(others) < 2:
        return candidate
    asked = 0
    best = candidate

    def still(kept: tuple[int, ...]) -> bool:
        nonlocal asked, best
        asked += 1
        if asked > _QUESTIONS:
            return False
        dropped = torch.ones(value.numel(), dtype=torch.bool)
        dropped[list(kept)] = False
        # In place, which keeps the order of the axes in memory.
        zeroed = value.clone().masked_fill_(dropped.reshape(value.shape), 0)
        tried = _with_value(candidate, name, zeroed)
        if fails(tried):
            best = tried
            return True
        return False

    fewest(others, still)
    return best


def _with_value(candidate: Candidate, name: str, value: torch.Tensor) -> Candidate:
    return candidate.with_values({**candidate.inputs, name: value})
