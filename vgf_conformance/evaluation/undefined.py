"""What PyTorch leaves undefined: elements that no lowering can be blamed for.

UNDEFINED lists the operators with the sentence of the documentation of PyTorch 2.13 (docs/tolerance.md
quotes them). A Watch goes along while a program is walked, and carries such elements on: element by
element through operators that work so, with the data through those that only move it, and into the
whole of a result otherwise. Nothing is undefined in nearly all programs, and then it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from vgf_conformance.lowering.movement import moves_data
from vgf_conformance.lowering.program import Program, Ref, Step, function, writes_in_place

#: By position in the operator's results, which of their elements are undefined.
Masks = dict[int, torch.Tensor]
Find = Callable[[Step, tuple[Any, ...], Any], Masks]

_JOINS = frozenset({"cat", "concat", "stack", "flip", "roll", "chunk", "unbind", "movedim", "view_as", "T"})
_SELECTS = frozenset({"index_select", "gather", "index", "take_along_dim"})
_ELEMENTWISE = frozenset(
    {
        *("to", "type_as", "lift_fresh_copy", "lift_fresh", "dropout", "contiguous"),
        *("quantize_per_tensor", "dequantize_per_tensor", "quantize_per_channel", "dequantize_per_channel"),
    }
)


@dataclass(frozen=True)
class Undefined:
    """By user output, which elements are undefined (None where none is), and why; empty where nothing is."""

    masks: list[torch.Tensor | None] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def joined(self, other: Undefined) -> Undefined:
        """What is undefined in either of two forms of a program."""
        if len(self.masks) != len(other.masks):
            return other if other.masks else self
        masks = [
            one if two is None else two if one is None else one | two
            for one, two in zip(self.masks, other.masks, strict=True)
        ]
        return Undefined(masks, list(dict.fromkeys([*self.reasons, *other.reasons])))

    def without(self, actual: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """``actual`` with its undefined elements as ``right`` has them, so that nothing is found there."""
        masks = self.masks if len(self.masks) == len(actual) == len(right) else [None] * len(actual)
        return [
            value
            if mask is None or value.shape != right[number].shape
            else torch.where(mask, right[number].to(value.dtype), value)
            for number, (value, mask) in enumerate(zip(actual, masks, strict=True))
        ]

    @property
    def is_everything(self) -> bool:
        """Whether no element of any output is left to be judged."""
        return bool(self.masks) and all(mask is not None and bool(mask.all()) for mask in self.masks)

    def notes(self) -> list[str]:
        """``3 of 12 elements of output 0 not judged: PyTorch leaves undefined ...``."""
        return [
            f"{int(mask.sum())} of {mask.numel()} elements of output {number} not judged: "
            f"PyTorch leaves undefined {', and '.join(self.reasons)}"
            for number, mask in enumerate(self.masks)
            if mask is not None
        ]


@dataclass
class Watch:
    """Sees each step of a walk (``Program.walk``'s ``after``) and keeps what is undefined, and why."""

    steps: dict[str, Step] = field(default_factory=dict)
    masks: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)

    def __call__(self, step: Step, args: tuple[Any, ...], result: Any) -> Any:
        """Note what is undefined of ``result``, which stays as it is."""
        self.steps[step.name] = step
        carried = self._carried(step, args, result) if self.masks and self._touched(step) else None
        rule = UNDEFINED.get(_packet(step.operator))
        if rule is not None and (found := rule.find(step, args, result)):
            self.reasons[f"{rule.reason} ({_packet(step.operator)})"] = None
            fresh = [found.get(place, _none(value)) for place, value in enumerate(_listed(result))]
            carried = (
                fresh if carried is None else [one | two for one, two in zip(carried, fresh, strict=True)]
            )
        if carried is not None and any(bool(mask.any()) for mask in carried):
            self.masks[step.name] = carried if isinstance(result, (tuple, list)) else carried[0]
            self._written(step, args)
        return result

    def found(self, program: Program, outputs: Sequence[torch.Tensor]) -> Undefined:
        """What is undefined of the user's ``outputs``, once the walk that gave them is over."""
        names = [output.name if isinstance(output, Ref) else "" for output in program.outputs]
        masks = [
            self.masks[name].broadcast_to(value.shape) if name in self.masks else None
            for name, value in zip(names, outputs, strict=True)
        ]
        return (
            Undefined(masks, list(self.reasons)) if any(mask is not None for mask in masks) else Undefined()
        )

    def _touched(self, step: Step) -> bool:
        """Whether the step reads what is undefined, or one in its branches or bodies made such."""
        inside = f"{step.name}."
        return bool(step.reads & self.masks.keys()) or (
            bool(step.nested) and any(name.startswith(inside) for name in self.masks)
        )

    def _carried(self, step: Step, args: tuple[Any, ...], result: Any) -> list[torch.Tensor]:
        """What is undefined of the results because it is of the arguments."""
        packet = _packet(step.operator)
        if isinstance(result, torch.Tensor) and not step.nested:
            mine = [self._mask(symbol, value) for symbol, value in zip(step.args, args, strict=True)]
            if packet == "where" and len(args) == 3:
                return [(mine[0] | torch.where(args[0], mine[1], mine[2])).broadcast_to(result.shape)]
            if packet == "masked_fill":
                return [(mine[1] | (mine[0] & ~args[1]) | (mine[2] & args[1])).broadcast_to(result.shape)]
            if packet in _ELEMENTWISE or _is_pointwise(step.operator):
                return [_joined(mine, result)]
        moved = self._moved(step, packet, args)
        return [_all(value) for value in _listed(result)] if moved is None else _listed(moved)

    def _moved(self, step: Step, packet: str, args: tuple[Any, ...]) -> Any:
        """The masks moved as the step moves its data; None where it does more."""
        selects = packet in _SELECTS
        if not (selects or packet in _JOINS or moves_data(step.operator)):
            return None
        if selects and step.reads & self.masks.keys() != {step.args[0].name}:
            return None
        masks = [self._exchanged(symbol, value) for symbol, value in zip(step.args, args, strict=True)]
        keywords = {key: value for key, value in step.keywords.items() if key != "dtype"}
        return function(step.operator)(*(masks[:1] + list(args[1:]) if selects else masks), **keywords)

    def _exchanged(self, symbol: Any, value: Any) -> Any:
        if isinstance(symbol, (tuple, list)):
            return [self._exchanged(one, other) for one, other in zip(symbol, value, strict=True)]
        if isinstance(symbol, Ref) and isinstance(value, torch.Tensor):
            return self._mask(symbol, value).broadcast_to(value.shape)
        if isinstance(symbol, Ref) and isinstance(value, (tuple, list)):
            return self.masks[symbol.name] if symbol.name in self.masks else _none(value)
        return value

    def _mask(self, symbol: Any, value: Any) -> torch.Tensor:
        """The mask of one argument; of what is no tensor, whether any of it is undefined."""
        if isinstance(symbol, (tuple, list)):
            known = [isinstance(item, Ref) and item.name in self.masks for item in symbol]
            return torch.tensor(any(known))
        mask = self.masks.get(symbol.name) if isinstance(symbol, Ref) else None
        return (
            mask
            if isinstance(mask, torch.Tensor)
            else _none(value if isinstance(value, torch.Tensor) else None)
        )

    def _written(self, step: Step, args: tuple[Any, ...]) -> None:
        """Where a step writes in place, what it writes to is undefined too: all of it, seen through views."""
        if not writes_in_place(step):
            return
        target = step.args[0]
        assert isinstance(target, Ref)
        self.masks[target.name] = self.masks[step.name]
        while (made_by := self.steps.get(target.name)) is not None and _is_view(made_by):
            target = made_by.args[0]
            self.masks[target.name] = torch.ones((), dtype=torch.bool)


def _packet(operator: str) -> str:
    """``to`` for ``aten.to.dtype``; one that writes in place goes by the name of its sibling."""
    packet = operator.partition(".")[2].partition(".")[0]
    return packet if packet.startswith("__") else packet.removesuffix("_")


def _is_pointwise(operator: str) -> bool:
    return ":" not in operator and torch.Tag.pointwise in getattr(function(operator), "tags", ())


def _is_view(step: Step) -> bool:
    """Whether the step's result may share its first argument's memory."""
    if not step.args or not isinstance(step.args[0], Ref):
        return False
    if ":" in step.operator:
        return moves_data(step.operator)
    operator: Any = function(step.operator)
    returns = operator._schema.returns
    return bool(returns) and returns[0].alias_info is not None


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _none(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_none(item) for item in value]
    return torch.zeros(value.shape if isinstance(value, torch.Tensor) else (), dtype=torch.bool)


def _all(value: Any) -> torch.Tensor:
    return ~_none(value if isinstance(value, torch.Tensor) else None)


def _joined(masks: Sequence[torch.Tensor], result: torch.Tensor) -> torch.Tensor:
    """Undefined where any argument is; all of ``result`` where one is of a shape that does not fit."""
    joined = _none(result)
    for mask in masks:
        if mask.any():
            fits = mask.shape == torch.Size() or _broadcasts(mask, result)
            joined = joined | (mask if fits else _all(result))
    return joined


def _broadcasts(mask: torch.Tensor, result: torch.Tensor) -> bool:
    try:
        return torch.broadcast_shapes(mask.shape, result.shape) == result.shape
    except RuntimeError:
        return False


def _cast(step: Step, args: tuple[Any, ...], result: Any) -> Masks:
    copies = _packet(step.operator) == "copy"
    return _out_of_range(args[1] if copies else args[0], result)


def _out_of_range(value: Any, result: torch.Tensor) -> Masks:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not _is_integer(result):
        return {}
    limits, whole = torch.iinfo(result.dtype), value.double().trunc()
    # The largest int64 is no double, the number above it is.
    fits = (whole >= float(limits.min)) & (whole < float(limits.max + 1))
    return _some(~fits, result)


def _shift(step: Step, args: tuple[Any, ...], result: Any) -> Masks:
    if not _is_integer(result):
        return {}
    distance = torch.as_tensor(args[1])
    return _some((distance < 0) | (distance >= torch.iinfo(result.dtype).bits), result)


def _order(step: Step, args: tuple[Any, ...], result: Any) -> Masks:
    """Positions of equal elements; where ``topk`` need not sort, the order of its values as well."""
    packet = _packet(step.operator)
    if _argument(step, None, "stable", False):
        return {}
    if packet == "topk" and not _argument(step, 4, "sorted", True):
        return {0: _all(result[0]), 1: _all(result[1])}
    if packet in ("median", "nanmedian") and not isinstance(result, (tuple, list)):
        return {}
    place = 0 if packet == "argsort" else 1
    indices, value = _listed(result)[place], args[0]
    dim = _argument(step, 2 if packet == "topk" else 1, "dim", -1)
    if value.ndim == 0 or not value.numel() or not indices.numel():
        return {}
    kept = indices.ndim == value.ndim
    tied = _tied(value, indices if kept else indices.unsqueeze(dim), dim)
    return _some(tied if kept else tied.squeeze(dim), indices, place)


def _tied(value: torch.Tensor, indices: torch.Tensor, dim: int) -> torch.Tensor:
    """Whether the element at each index is equal to another one along ``dim``."""
    if value.is_floating_point():
        # All NaN are one, and an infinity beside them counts as their like: none is overlooked.
        value = value.double().nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
    elif value.dtype is torch.bool:
        value = value.int()
    rows = value.movedim(dim, -1).contiguous().sort(dim=-1).values
    found = torch.take_along_dim(value, indices, dim).movedim(dim, -1).contiguous()
    equal = torch.searchsorted(rows, found, right=True) - torch.searchsorted(rows, found)
    return (equal > 1).movedim(-1, dim)


def _duplicates(step: Step, args: tuple[Any, ...], result: Any) -> Masks:
    """Elements to which a value was written that did not stay: of several equal ones any may be the last."""
    packet, counts = _packet(step.operator), torch.zeros(result.shape, dtype=torch.int64)
    if packet == "index_put":
        if _argument(step, 3, "accumulate", False):
            return {}
        # Unlike Tensor.index_put, the operators take None for an axis that is written whole.
        indices = list(args[1])
        lost = _differs(torch.ops.aten.index.Tensor(result, indices), args[2]).long()
        return _some(torch.ops.aten.index_put.default(counts, indices, lost, True) > 0, result)
    if packet == "index_copy":
        lost = _differs(result.index_select(args[1], args[2]), args[3]).long()
        return _some(counts.index_add(args[1], args[2], lost) > 0, result)
    if not step.operator.endswith(".src"):
        return {}
    written = args[3][tuple(slice(size) for size in args[2].shape)]
    lost = _differs(result.gather(args[1], args[2]), written).long()
    return _some(counts.scatter_add(args[1], args[2], lost) > 0, result)


def _differs(kept: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
    """Where the two are not the same number: NaN is NaN, and zeros differ by their sign."""
    same = (kept == written) & (kept.signbit() == written.signbit())
    return ~(same | (kept.isnan() & written.isnan()))


def _argument(step: Step, place: int | None, name: str, default: Any) -> Any:
    if name in step.keywords:
        return step.keywords[name]
    return step.args[place] if place is not None and len(step.args) > place else default


def _is_integer(result: Any) -> bool:
    kinds = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    return isinstance(result, torch.Tensor) and result.dtype in kinds


def _some(mask: torch.Tensor, result: torch.Tensor, place: int = 0) -> Masks:
    return {place: mask.broadcast_to(result.shape)} if mask.any() else {}


@dataclass(frozen=True)
class Rule:
    """How to find what is undefined of an operator's results, and the reason that a record gives."""

    find: Find
    reason: str


_CAST = Rule(_cast, "a cast of NaN or of a number that the integer type does not hold")
_SHIFT = Rule(_shift, "a shift by less than 0 or by the width or more")
_ORDER = Rule(_order, "the order of equal elements")
_DUPLICATES = Rule(_duplicates, "which of several values written to one element stays")

#: By operator packet. The sources, all of PyTorch 2.13:
#: Tensor.to, "If the truncated value cannot fit into the target type ..., the behavior is undefined";
#: bitwise_right_shift, "if the value of the right operand is negative or is greater or equal to the number
#: of bits in the promoted left operand, the behavior is undefined" (the page of its sibling is silent: C++,
#: [expr.shift], says the same of both);
#: sort, argsort, "If False, the relative order of values which compare equal is not guaranteed"; topk,
#: "the indices of tied elements are not guaranteed to be stable"; median, "indices does not necessarily
#: contain the first occurrence of each median value found";
#: Tensor.index_put_, "If accumulate is False, the behavior is undefined if indices contain duplicate
#: elements"; Tensor.index_copy_, "nondeterministic since it depends on which copy occurs last";
#: Tensor.scatter_, "one of the values from src will be picked arbitrarily".
UNDEFINED: dict[str, Rule] = {
    **dict.fromkeys(("to", "_to_copy", "type_as", "copy"), _CAST),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__"), _SHIFT),
    **dict.fromkeys(("sort", "argsort", "topk", "median", "nanmedian"), _ORDER),
    **dict.fromkeys(("index_put", "index_copy", "scatter"), _DUPLICATES),
}
