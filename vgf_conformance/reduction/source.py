"""Writes a candidate as a user's model file: readable Python, with larger tensors in an .npz beside it."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vgf_conformance import files
from vgf_conformance.lowering.program import Ref, Step
from vgf_conformance.reduction.candidate import Candidate, Values
from vgf_conformance.reduction.trace import GETITEM, Unit

#: A tensor of more elements goes into the .npz, for the sake of who reads the file.
INLINE = 32
#: Names that the file itself uses.
_TAKEN = frozenset({"torch", "numpy", "self", "DATA", "Path", "inf", "nan"})
#: Dtypes that numpy lacks, with one of the same size that it has.
_BITS: dict[torch.dtype, torch.dtype] = {
    torch.bfloat16: torch.int16,
    torch.float8_e4m3fn: torch.uint8,
    torch.float8_e5m2: torch.uint8,
}
_WRITTEN_OUT = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class NotWritable(Exception):
    """The candidate reads something that a case file cannot hold."""


def write_case(path: Path, candidate: Candidate, profile: str, scheme: str, description: str) -> list[Path]:
    """Write ``candidate`` to ``path``, and the .npz beside it where one is needed; the files written.

    Raises NotWritable, and UserError where the disk refuses.
    """
    arrays = _Arrays()
    text = _source(candidate, profile, scheme, description, arrays)
    files.write(path, text)
    if not arrays.stored:
        return [path]
    beside = path.with_suffix(".npz")
    with files.replacing(beside) as file:
        np.savez(file, **arrays.stored)
    return [path, beside]


@dataclass
class _Arrays:
    """Tensors as expressions; ``stored`` are those that the expressions look up."""

    stored: dict[str, Any] = field(default_factory=dict)

    def expression(self, name: str, tensor: torch.Tensor) -> str:
        """Python for ``tensor``, bit for bit and with its axes in the same order in memory."""
        tensor = tensor.detach()
        order = _memory_order(tensor)
        if order != sorted(order):
            inverse = [order.index(axis) for axis in range(len(order))]
            return f"{self._plain(name, tensor.permute(order))}.permute({inverse})"
        return self._plain(name, tensor)

    def _plain(self, name: str, tensor: torch.Tensor) -> str:
        tensor = tensor.contiguous()
        return _uniform(tensor) or _written_out(tensor) or self._looked_up(name, tensor)

    def _looked_up(self, name: str, tensor: torch.Tensor) -> str:
        bits = _BITS.get(tensor.dtype)
        array: NDArray[Any] = (tensor.view(bits) if bits else tensor).numpy()
        self.stored[name] = array
        view = f".view({tensor.dtype})" if bits else ""
        return f'torch.from_numpy(DATA["{name}"]){view}'


def _memory_order(tensor: torch.Tensor) -> list[int]:
    """The axes from the slowest to the fastest where the memory is dense; else as they are."""
    plain = list(range(tensor.dim()))
    order = sorted(plain, key=lambda axis: -tensor.stride(axis))
    return order if tensor.permute(order).is_contiguous() and not tensor.is_contiguous() else plain


def _uniform(tensor: torch.Tensor) -> str:
    if tensor.numel() == 0:
        return f"torch.zeros({list(tensor.shape)}, dtype={tensor.dtype})"
    if tensor.numel() <= 2:
        return ""
    first = tensor.reshape(-1)[:1]
    if (text := _number(first)) and _same(tensor.reshape(-1), first.expand(tensor.numel())):
        return f"torch.full({list(tensor.shape)}, {text}, dtype={tensor.dtype})"
    return ""


def _written_out(tensor: torch.Tensor) -> str:
    if tensor.numel() > INLINE:
        return ""
    numbers = [_number(item) for item in tensor.reshape(-1).split(1)]
    if not all(numbers):
        return ""
    return f"torch.tensor({_nested(numbers, list(tensor.shape))}, dtype={tensor.dtype})"


def _nested(numbers: list[str], shape: list[int]) -> str:
    if not shape:
        return numbers[0]
    each = len(numbers) // shape[0]
    parts = (_nested(numbers[at : at + each], shape[1:]) for at in range(0, len(numbers), each))
    return f"[{', '.join(parts)}]"


def _number(item: torch.Tensor) -> str:
    """The shortest literal that gives the one element of ``item`` again; empty where none does."""
    value = item.item()
    if item.dtype in _WRITTEN_OUT:
        for text in (f"{value:.6g}", f"{value:.9g}", repr(value)):
            if _same(torch.tensor([float(text)], dtype=item.dtype), item.reshape(1)):
                return text if any(mark in text for mark in ".en") else f"{text}.0"
        return ""
    return repr(value) if isinstance(value, (bool, int)) else ""


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether the two are equal bit for bit, any NaN like another."""
    if not left.dtype.is_floating_point:
        return torch.equal(left, right)
    signs = torch.signbit(left) == torch.signbit(right)
    equal = (left == right) & signs | left.isnan() & right.isnan()
    return bool(equal.all())


def _source(candidate: Candidate, profile: str, scheme: str, description: str, arrays: _Arrays) -> str:
    module = _module(candidate, arrays)
    functions = [_function("inputs", [f"    return {_tuple(_values('', candidate.inputs, arrays))}"])]
    if candidate.calibration:
        sets = [
            f"        {_tuple(_values(f'calibration{number}_', values, arrays))},"
            for number, values in enumerate(candidate.calibration)
        ]
        functions.append(_function("calibration", ["    return [", *sets, "    ]"]))
    body = [
        *module,
        *_function("model", ["    return Reduced()"]).splitlines(),
        "",
        "",
        "\n\n\n".join(functions),
    ]
    numbers = _uses_of_infinity("\n".join(body))
    head = [f'"""{_docstring(description)}\n"""', ""]
    if arrays.stored:
        head += ["from pathlib import Path", ""]
    head += [*(["import numpy"] if arrays.stored else []), "import torch", ""]
    head += [f'profiles = ["{profile}"]', f'scheme = "{scheme}"', *numbers]
    if arrays.stored:
        head.append('DATA = numpy.load(Path(__file__).with_suffix(".npz"), allow_pickle=False)')
    return "\n".join([*head, "", "", *body, ""])


def _uses_of_infinity(text: str) -> list[str]:
    lines = {"inf": 'inf = float("inf")', "nan": 'nan = float("nan")'}
    words = set("".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split())
    return [line for name, line in lines.items() if name in words]


def _docstring(text: str) -> str:
    return text.replace("\\", "/").replace('"""', "'''").rstrip()


def _function(name: str, lines: list[str]) -> str:
    return "\n".join([f"def {name}():", *lines])


def _values(prefix: str, values: Values, arrays: _Arrays) -> list[str]:
    return [arrays.expression(f"{prefix}{name}", value) for name, value in values.items()]


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _module(candidate: Candidate, arrays: _Arrays) -> list[str]:
    names: dict[str, str] = {name: f"self.{name}" for name in candidate.constants}
    names |= {name: _literal(value) for name, value in candidate.literals.items()}
    arguments = [_identifier(name) for name in candidate.inputs]
    lines = ["class Reduced(torch.nn.Module):"]
    if candidate.constants:
        lines += ["    def __init__(self):", "        super().__init__()"]
        lines += [f"        {_held(candidate, name, arrays)}" for name in candidate.constants]
        lines.append("")
    lines.append(f"    def forward({', '.join(['self', *arguments])}):")
    read = set().union(candidate.outputs, *(unit.reads for unit in candidate.units))
    for unit in candidate.units:
        lines += _lines(unit, read, names)
    outputs = [_identifier(name) for name in candidate.outputs]
    answer = outputs[0] if len(outputs) == 1 else _tuple(outputs)
    return [*lines, f"        return {answer}", "", ""]


def _held(candidate: Candidate, name: str, arrays: _Arrays) -> str:
    """The statement that gives the module its constant ``name``, as what it was in the user's model."""
    tensor = candidate.constants[name]
    if not isinstance(tensor, torch.Tensor):
        raise NotWritable(f"{name} is a {type(tensor).__name__}")
    value = arrays.expression(name, tensor)
    if name in candidate.trace.parameters:
        return f"self.{name} = torch.nn.Parameter({value}, requires_grad=False)"
    if name in candidate.trace.buffers:
        return f'self.register_buffer("{name}", {value})'
    return f"self.{name} = {value}"


def _lines(unit: Unit, read: set[str], names: Mapping[str, str]) -> list[str]:
    """One line for each step of ``unit``, those left out that take apart what nobody reads."""
    lines = []
    for step in unit.steps:
        if step is unit.steps[0] or step.name in read or _read_inside(step, unit):
            comment = f"  # {unit.source}" if unit.source and step is unit.steps[0] else ""
            lines.append(f"        {_identifier(step.name)} = {_call(step, names)}{comment}")
    return lines


def _read_inside(step: Step, unit: Unit) -> bool:
    return any(step.name in other.reads for other in unit.steps)


def _call(step: Step, names: Mapping[str, str]) -> str:
    args = [_rendered(item, names) for item in step.args]
    if step.operator == GETITEM:
        return f"{args[0]}[{args[1]}]"
    keywords = [f"{key}={_rendered(item, names)}" for key, item in step.keywords.items()]
    if ":" in step.operator:
        raise NotWritable(f"{step.name} calls {step.operator}")
    return f"torch.ops.{step.operator}({', '.join([*args, *keywords])})"


def _rendered(value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, Ref):
        return names.get(value.name) or _identifier(value.name)
    if isinstance(value, tuple):
        return _tuple([_rendered(item, names) for item in value])
    if isinstance(value, list):
        return f"[{', '.join(_rendered(item, names) for item in value)}]"
    return _literal(value)


def _literal(value: Any) -> str:
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if value is None or isinstance(
        value, (bool, int, float, str, torch.dtype, torch.layout, torch.memory_format)
    ):
        return repr(value)
    raise NotWritable(f"a {type(value).__name__} as an argument")


def _identifier(name: str) -> str:
    return f"{name}_" if name in _TAKEN or keyword.iskeyword(name) else name
