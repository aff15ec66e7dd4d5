"""Write a TOSA graph back into a flatbuffer (``*.tosa``): the inverse of ``formats.tosa.read_graph``.

The accessors that come with tosa-tools (package ``tosa``) have a function ``AddX`` for each field
and, for each vector, ``StartXVector``: with these every operator's attributes are written without
code of its own, as they are read. (tosa-tools' own serializer cannot make attributes from values.)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flatbuffers
import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats import tosa_schema
from vgf_conformance.formats.tosa import (
    DTYPES,
    ENUMERATIONS,
    TosaGraph,
    TosaOperator,
    TosaTensor,
    attribute_kind,
    schema,
    storage,
)

_IDENTIFIER = b"TOSA"


def write_graph(graph: TosaGraph) -> bytes:
    """The flatbuffer of ``graph``; reading it gives an equal graph.

    Raises ValueError for an operator, an attribute or a dtype that the schema does not have.
    """
    builder = flatbuffers.Builder(1024)
    regions = [_region(builder, "main", graph)]
    regions += [_region(builder, name, part) for name, part in graph.regions.items()]
    root = _table(
        builder,
        "TosaGraph",
        version=_version(builder, graph.version),
        regions=_offsets(builder, regions),
    )
    builder.Finish(root, _IDENTIFIER)
    return bytes(builder.Output())


def _region(builder: Any, name: str, graph: TosaGraph) -> int:
    shapes = [tensor for tensor in graph.tensors.values() if tensor.dtype == "shape"]
    tensors = [tensor for tensor in graph.tensors.values() if tensor.dtype != "shape"]
    block = _table(
        builder,
        "TosaBasicBlock",
        name=builder.CreateString(name),
        operators=_offsets(builder, [_operator(builder, item, graph) for item in graph.operators]),
        tensors=_offsets(builder, [_tensor(builder, tensor) for tensor in tensors]),
        shapes=_offsets(builder, [_shape(builder, tensor) for tensor in shapes]),
        inputs=_strings(builder, graph.inputs),
        outputs=_strings(builder, graph.outputs),
    )
    return _table(builder, "TosaRegion", name=builder.CreateString(name), blocks=_offsets(builder, [block]))


def _version(builder: Any, text: str) -> int:
    numbers, _, draft = text.partition("-")
    major, minor, patch = map(int, numbers.split("."))
    return _table(builder, "Version", _major=major, _minor=minor, _patch=patch, _draft=bool(draft))


def _tensor(builder: Any, tensor: TosaTensor) -> int:
    fields = {
        "name": builder.CreateString(tensor.name),
        "shape": _numbers(builder, tensor.shape),
        "type": _dtype_number(tensor.dtype),
    }
    if tensor.data is not None:
        fields["data"] = _bytes(builder, encode(tensor.data, tensor.dtype))
    return _table(builder, "TosaTensor", **fields)


def _shape(builder: Any, tensor: TosaTensor) -> int:
    fields = {"name": builder.CreateString(tensor.name), "rank": tensor.shape[0]}
    if tensor.data is not None and tensor.data.size:
        fields["data"] = _bytes(builder, encode(tensor.data, "shape"))
    return _table(builder, "TosaShape", **fields)


def _operator(builder: Any, operator: TosaOperator, graph: TosaGraph) -> int:
    kind = attribute_kind(operator.name)
    clamped = graph.tensors[operator.inputs[0]].dtype if operator.inputs else ""
    made = {
        name: _attribute(builder, name, value, clamped) for name, value in sorted(operator.attributes.items())
    }
    fields = {
        "op": _number("Op", operator.name),
        "attribute_type": _number("Attribute", kind),
        "attribute": _table(builder, kind, **made),
        "inputs": _strings(builder, operator.inputs),
        "outputs": _strings(builder, operator.outputs),
    }
    if operator.location:
        fields["location"] = _table(builder, "OpLocation", text=builder.CreateString(operator.location))
    return _table(builder, "TosaOperator", **fields)


def _attribute(builder: Any, name: str, value: Any, clamped: str) -> int:
    if name in ("min_val", "max_val"):
        return _bytes(builder, encode(np.asarray(value, storage(clamped)), clamped))
    if name == "acc_type":
        return _dtype_number(value)
    if name in ENUMERATIONS:
        return _number(ENUMERATIONS[name], value)
    if isinstance(value, str):
        return int(builder.CreateString(value))
    if isinstance(value, np.ndarray):
        return _bytes(builder, value.tobytes())
    return _numbers(builder, value) if isinstance(value, tuple) else int(value)


def encode(data: NDArray[Any], dtype: str) -> bytes:
    """The bytes of a constant: int4 two to a byte, the first one low, and int48 in six bytes."""
    if dtype == "int4":
        nibbles = np.append(data.reshape(-1), np.zeros(data.size % 2, np.int8)).astype(np.uint8) & 15
        return (nibbles[::2] | nibbles[1::2] << 4).astype(np.uint8).tobytes()
    if dtype == "int48":
        return data.astype("<i8").reshape(-1, 1).view(np.uint8)[:, :6].tobytes()
    return np.ascontiguousarray(data, storage(dtype)).tobytes()


@functools.cache
def _dtype_number(dtype: str) -> int:
    names = {ours: theirs for theirs, ours in DTYPES.items()}
    return _number("DType", names.get(dtype, dtype.upper()))


@functools.cache
def _number(enumeration: str, member: str) -> int:
    value = vars(schema(enumeration)).get(member)
    if not isinstance(value, int):
        raise ValueError(f"{member} is no {enumeration} of TOSA")
    return value


def _table(builder: Any, kind: str, **fields: Any) -> int:
    """Write a table; offsets of what it refers to and plain numbers are given by field."""
    adders = _adders(kind)
    getattr(tosa_schema, f"{kind}Start")(builder)
    for name, value in fields.items():
        adder = adders.get(_plain(name))
        if adder is None:
            raise ValueError(f"TOSA's {kind} has no field {name}")
        adder(builder, value)
    return int(getattr(tosa_schema, f"{kind}End")(builder))


@functools.cache
def _adders(kind: str) -> dict[str, Callable[[Any, Any], None]]:
    start = f"{kind}Add"
    return {
        _plain(name.removeprefix(start)): function
        for name, function in vars(tosa_schema).items()
        if name.startswith(start)
    }


@functools.cache
def _plain(name: str) -> str:
    return re.sub("_", "", name).lower()


def _offsets(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _strings(builder: Any, texts: Iterable[str]) -> int:
    return _offsets(builder, [builder.CreateString(text) for text in texts])


def _numbers(builder: Any, numbers: Iterable[int]) -> int:
    return int(builder.CreateNumpyVector(np.array([*numbers], np.int32)))


def _bytes(builder: Any, data: bytes) -> int:
    """A vector of bytes, aligned as TOSA's schema aligns constants: to eight."""
    builder.StartVector(1, len(data), 8)
    builder.head -= len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return int(builder.EndVector())
