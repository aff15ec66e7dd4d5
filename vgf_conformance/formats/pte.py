"""Reads the delegates and the boundary of an ExecuTorch program (.pte), without ExecuTorch.

The layout is ``schema/program.fbs`` of ExecuTorch 1.5 (file identifier ``ET12``) and its extended
header (``eh00``: at byte 8 magic, length, program size, segment base offset). A delegate's data lies
inline in the flatbuffer or in a segment behind it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from flatbuffers import encode, number_types, packer
from flatbuffers.table import Table

from vgf_conformance.formats.delegate import Port

#: The backend's name, in programs and in the runtime's registry.
BACKEND = "VgfBackend"
_HEADER = struct.Struct("<4sIQQ")
#: Field positions in the schema's tables.
_PLANS, _INLINE_DATA, _SEGMENTS = 1, 3, 4
_PLAN_NAME, _PLAN_VALUES, _PLAN_INPUTS, _PLAN_OUTPUTS, _PLAN_DELEGATES = 0, 2, 3, 4, 7
_VALUE_KIND, _VALUE = 0, 1
_TENSOR_DTYPE, _TENSOR_SIZES, _TENSOR_DIM_ORDER, _TENSOR_DYNAMISM = 0, 2, 3, 8
_DELEGATE_ID, _DELEGATE_PROCESSED = 0, 1
_IN_SEGMENT = 1
#: ``Tensor`` in the union of what a value may be.
_TENSOR = 5
#: Names of element types by their number; others are none that a VGF program has at its boundary.
_DTYPES = {
    **{0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32"},
    **{7: "float64", 11: "bool", 15: "bfloat16", 23: "float8_e5m2", 24: "float8_e4m3fn"},
    **{27: "uint16", 28: "uint32", 29: "uint64"},
}


@dataclass(frozen=True)
class Executable:
    """A whole program with what stands at its boundary; None is what is no tensor.

    ``method`` is the name of the program's first method. Shapes are open (-1) where they are dynamic.
    """

    pte: bytes
    method: str
    inputs: tuple[Port | None, ...]
    outputs: tuple[Port | None, ...]


@dataclass(frozen=True)
class _Segment:
    offset: int
    size: int


def read_delegates(data: bytes) -> list[bytes]:
    """The VGF of each delegate, in the program's order.

    Raises ValueError where ``data`` is no .pte, is corrupt, or holds no VGF delegate.
    """
    if data[4:6] != b"ET":
        raise ValueError("not an ExecuTorch program (.pte): the file identifier is missing")
    try:
        found = _read(data)
    except (struct.error, IndexError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"corrupt .pte: {error}") from error
    if not found:
        raise ValueError("the program holds no VGF delegate: nothing was delegated, or to another backend")
    return found


def read_executable(data: bytes) -> Executable:
    """``data`` with the boundary of its first method; raises ValueError where it is no sound .pte."""
    if data[4:6] != b"ET":
        raise ValueError("not an ExecuTorch program (.pte): the file identifier is missing")
    try:
        plan = _tables(Table(data, encode.Get(packer.uoffset, data, 0)), _PLANS)[0]
        values = _tables(plan, _PLAN_VALUES)
        inputs, outputs = (
            tuple(_port(values[index]) for index in _numbers(plan, field, number_types.Int32Flags))
            for field in (_PLAN_INPUTS, _PLAN_OUTPUTS)
        )
        return Executable(data, _string(plan, _PLAN_NAME), inputs, outputs)
    except (struct.error, IndexError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"corrupt .pte: {type(error).__name__}: {error}") from error


def _port(value: Table) -> Port | None:
    if _scalar(value, _VALUE_KIND, number_types.Uint8Flags) != _TENSOR:
        return None
    tensor = _table(value, _VALUE)
    sizes = _numbers(tensor, _TENSOR_SIZES, number_types.Int32Flags)
    if _scalar(tensor, _TENSOR_DYNAMISM, number_types.Int8Flags):
        # The program has an upper bound only.
        sizes = [-1] * len(sizes)
    order = _numbers(tensor, _TENSOR_DIM_ORDER, number_types.Uint8Flags)
    return Port(tuple(sizes), _DTYPES[_scalar(tensor, _TENSOR_DTYPE, number_types.Int8Flags)], tuple(order))


def _read(data: bytes) -> list[bytes]:
    program = Table(data, encode.Get(packer.uoffset, data, 0))
    segments = [_segment(table) for table in _tables(program, _SEGMENTS)]
    inline = _tables(program, _INLINE_DATA)
    found = []
    for plan in _tables(program, _PLANS):
        for delegate in _tables(plan, _PLAN_DELEGATES):
            if _string(delegate, _DELEGATE_ID) == BACKEND:
                found.append(_data(data, delegate, segments, inline))
    return found


def _data(data: bytes, delegate: Table, segments: list[_Segment], inline: list[Table]) -> bytes:
    reference = _table(delegate, _DELEGATE_PROCESSED)
    index = int(_scalar(reference, 1, number_types.Uint32Flags))
    if _scalar(reference, 0, number_types.Int8Flags) == _IN_SEGMENT:
        segment = segments[index]
        start = _segment_base(data) + segment.offset
        size = segment.size
    else:
        offset = inline[index].Offset(4)
        start, size = inline[index].Vector(offset), inline[index].VectorLen(offset)
    if start + size > len(data):
        raise ValueError(f"corrupt .pte: a delegate ends at byte {start + size}, the file at {len(data)}")
    return data[start : start + size]


def _segment_base(data: bytes) -> int:
    magic, _, _, base = _HEADER.unpack_from(data, 8)
    if magic != b"eh00":
        raise ValueError("corrupt .pte: it has segments but no extended header")
    return int(base)


def _segment(table: Table) -> _Segment:
    return _Segment(
        int(_scalar(table, 0, number_types.Uint64Flags)), int(_scalar(table, 1, number_types.Uint64Flags))
    )


def _field(table: Table, field: int) -> int:
    """Where a table's field lies, relative to the table; 0 where it is absent."""
    return int(table.Offset(4 + 2 * field))


def _scalar(table: Table, field: int, flags: Any) -> Any:
    offset = _field(table, field)
    return table.Get(flags, table.Pos + offset) if offset else 0


def _string(table: Table, field: int) -> str:
    offset = _field(table, field)
    return bytes(table.String(table.Pos + offset)).decode() if offset else ""


def _table(table: Table, field: int) -> Table:
    offset = _field(table, field)
    if not offset:
        raise ValueError("corrupt .pte: a delegate or a tensor has no data")
    return Table(table.Bytes, table.Indirect(table.Pos + offset))


def _tables(table: Table, field: int) -> list[Table]:
    start, count = _list(table, field, 4)
    return [Table(table.Bytes, table.Indirect(start + 4 * index)) for index in range(count)]


def _numbers(table: Table, field: int, flags: Any) -> list[int]:
    start, count = _list(table, field, flags.bytewidth)
    return [int(table.Get(flags, start + flags.bytewidth * index)) for index in range(count)]


def _list(table: Table, field: int, width: int) -> tuple[int, int]:
    """Where a list begins and how many entries of ``width`` bytes it has."""
    offset = _field(table, field)
    if not offset:
        return 0, 0
    start, count = table.Vector(offset), table.VectorLen(offset)
    if count * width > len(table.Bytes):
        raise ValueError(f"corrupt .pte: a list of {count} entries in {len(table.Bytes)} bytes")
    return start, count
