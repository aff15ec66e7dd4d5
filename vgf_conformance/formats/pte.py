"""Reads the delegates and the boundary of an ExecuTorch program (.pte), without ExecuTorch.

The layout is ``schema/program.fbs`` of ExecuTorch 1.5 (file identifier ``ET12``) and its extended
header (``eh00``: at byte 8 magic, length, program size, segment base offset). A delegate's data lies
inline in the flatbuffer or in a segment behind it.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from flatbuffers import encode, number_types, packer
from flatbuffers.table import Table

from vgf_conformance.formats.budget import Budget
from vgf_conformance.formats.delegate import Port
from vgf_conformance.untrusted import Malformed

#: The backend's name, in programs and in the runtime's registry.
BACKEND = "VgfBackend"
#: Bytes that a program may have.
FILE_LIMIT = 4 << 30
#: Delegates that a program may have: models have some tens.
DELEGATE_LIMIT = 10_000
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


class _Table(Table):  # type: ignore[misc] # flatbuffers has no types
    """A table of a flatbuffer; ``budget`` is what may still be read of the file."""

    def __init__(self, data: bytes, position: int, budget: Budget) -> None:
        super().__init__(data, position)
        self.budget = budget


def read_delegates(data: bytes) -> list[bytes]:
    """The VGF of each delegate, in the program's order; delegates that share their data share it here too.

    Raises Malformed where ``data`` is no .pte, is corrupt, or holds no VGF delegate.
    """
    found = _guarded(data, _delegates)
    if not found:
        raise Malformed("the program holds no VGF delegate: nothing was delegated, or to another backend")
    return found


def read_executable(data: bytes) -> Executable:
    """``data`` with the boundary of its first method; raises Malformed where it is no sound .pte."""
    return _guarded(data, _executable)


_Read = TypeVar("_Read")


def _guarded(data: bytes, read: Callable[[bytes, _Table], _Read]) -> _Read:
    """What ``read`` makes of the program's root table; raises Malformed for whatever goes wrong in it."""
    if data[4:6] != b"ET":
        raise Malformed("not an ExecuTorch program (.pte): the file identifier is missing")
    try:
        return read(data, _Table(data, encode.Get(packer.uoffset, data, 0), Budget(len(data))))
    except Malformed as error:
        raise Malformed(f"corrupt .pte: {error}") from error
    except Exception as error:  # flatbuffers does not verify: anything may be raised on corrupt data
        raise Malformed(f"corrupt .pte: {type(error).__name__}: {error}") from error


def _executable(data: bytes, program: _Table) -> Executable:
    plans = _tables(program, _PLANS)
    if not plans:
        raise Malformed("it has no method")
    plan = plans[0]
    values = _tables(plan, _PLAN_VALUES)
    inputs, outputs = (
        tuple(
            _port(_entry(values, index, "value")) for index in _numbers(plan, field, number_types.Int32Flags)
        )
        for field in (_PLAN_INPUTS, _PLAN_OUTPUTS)
    )
    return Executable(data, _string(plan, _PLAN_NAME), inputs, outputs)


def _port(value: _Table) -> Port | None:
    if _scalar(value, _VALUE_KIND, number_types.Uint8Flags) != _TENSOR:
        return None
    tensor = _table(value, _VALUE)
    sizes = _numbers(tensor, _TENSOR_SIZES, number_types.Int32Flags)
    order = _numbers(tensor, _TENSOR_DIM_ORDER, number_types.Uint8Flags)
    dtype = _scalar(tensor, _TENSOR_DTYPE, number_types.Int8Flags)
    if sorted(order) != list(range(len(sizes))) or min(sizes, default=0) < 0:
        raise Malformed(f"a tensor of sizes {sizes[:8]} with its axes in the order {order[:8]}")
    if dtype not in _DTYPES:
        raise Malformed(f"a tensor of the type {dtype}, which no VGF program has at its boundary")
    if _scalar(tensor, _TENSOR_DYNAMISM, number_types.Int8Flags):
        # The program has an upper bound only.
        sizes = [-1] * len(sizes)
    return Port(tuple(sizes), _DTYPES[dtype], tuple(order))


def _delegates(data: bytes, program: _Table) -> list[bytes]:
    segments = [_segment(table) for table in _tables(program, _SEGMENTS)]
    inline = _tables(program, _INLINE_DATA)
    places = [
        _place(data, delegate, segments, inline)
        for plan in _tables(program, _PLANS)
        for delegate in _tables(plan, _PLAN_DELEGATES)
        if _string(delegate, _DELEGATE_ID) == BACKEND
    ]
    if len(places) > DELEGATE_LIMIT:
        raise Malformed(f"{len(places)} delegates, where {DELEGATE_LIMIT} are the most")
    contents = {place: data[place.offset : place.offset + place.size] for place in _apart(places)}
    return [contents[place] for place in places]


def _apart(places: list[_Segment]) -> list[_Segment]:
    """Each place once; raises Malformed where two lie over each other, which would multiply the file."""
    found = sorted({place for place in places if place.size}, key=lambda place: place.offset)
    for first, second in itertools.pairwise(found):
        if first.offset + first.size > second.offset:
            raise Malformed("the data of two delegates lie over each other")
    return list({*found, *places})


def _place(data: bytes, delegate: _Table, segments: list[_Segment], inline: list[_Table]) -> _Segment:
    """Where a delegate's data lie."""
    reference = _table(delegate, _DELEGATE_PROCESSED)
    index = int(_scalar(reference, 1, number_types.Uint32Flags))
    if _scalar(reference, 0, number_types.Int8Flags) == _IN_SEGMENT:
        segment = _entry(segments, index, "segment")
        place = _Segment(_segment_base(data) + segment.offset, segment.size)
    else:
        place = _Segment(*_list(_entry(inline, index, "delegate's data"), 0, 1))
    end = place.offset + place.size
    if end > len(data):
        raise Malformed(f"a delegate ends at byte {end}, the file at {len(data)}")
    return place


_Entry = TypeVar("_Entry")


def _entry(entries: list[_Entry], index: int, what: str) -> _Entry:
    if not 0 <= index < len(entries):
        raise Malformed(f"it names {what} {index} of {len(entries)}")
    return entries[index]


def _segment_base(data: bytes) -> int:
    magic, _, _, base = _HEADER.unpack_from(data, 8)
    if magic != b"eh00":
        raise Malformed("it has segments but no extended header")
    return int(base)


def _segment(table: _Table) -> _Segment:
    return _Segment(
        int(_scalar(table, 0, number_types.Uint64Flags)), int(_scalar(table, 1, number_types.Uint64Flags))
    )


def _field(table: _Table, field: int) -> int:
    """Where a table's field lies, relative to the table; 0 where it is absent."""
    return int(table.Offset(4 + 2 * field))


def _scalar(table: _Table, field: int, flags: Any) -> Any:
    offset = _field(table, field)
    return table.Get(flags, table.Pos + offset) if offset else 0


def _string(table: _Table, field: int) -> str:
    start, length = _list(table, field, 1)
    table.budget.spend(length)
    return bytes(table.Bytes[start : start + length]).decode()


def _table(table: _Table, field: int) -> _Table:
    offset = _field(table, field)
    if not offset:
        raise Malformed("a delegate or a tensor has no data")
    return _Table(table.Bytes, table.Indirect(table.Pos + offset), table.budget)


def _tables(table: _Table, field: int) -> list[_Table]:
    start, count = _list(table, field, 4)
    table.budget.spend(4 * count)
    return [_Table(table.Bytes, table.Indirect(start + 4 * index), table.budget) for index in range(count)]


def _numbers(table: _Table, field: int, flags: Any) -> list[int]:
    start, count = _list(table, field, flags.bytewidth)
    table.budget.spend(4 * count)
    return [int(table.Get(flags, start + flags.bytewidth * index)) for index in range(count)]


def _list(table: _Table, field: int, width: int) -> tuple[int, int]:
    """Where a list begins and how many entries of ``width`` bytes it has."""
    offset = _field(table, field)
    if not offset:
        return 0, 0
    start, count = table.Vector(offset), table.VectorLen(offset)
    if start + count * width > len(table.Bytes):
        raise Malformed(f"a list of {count} entries ends behind byte {len(table.Bytes)}")
    return start, count
