"""Reads a VGF container: its resources, its inputs and outputs, and what each segment writes.

Format: VGF 0.5 as written by the ML SDK model converter 0.11; the decoding itself is
the VGF library's (``vgfpy``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import vgfpy

from vgf_conformance.formats.budget import Budget
from vgf_conformance.untrusted import Malformed

#: VkFormat of a VGF tensor -> numpy dtype name (Vulkan 1.3 core, VK_ARM_tensors).
DTYPE_OF_FORMAT: dict[int, str] = {
    13: "uint8",
    14: "int8",
    74: "uint16",
    75: "int16",
    76: "float16",
    98: "uint32",
    99: "int32",
    100: "float32",
    111: "int64",
    1000460000: "bool",
    1000460001: "bfloat16",
    1000460002: "float8_e4m3fn",
    1000460003: "float8_e5m2",
}

ITEMSIZE: dict[str, int] = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "uint16": 2,
    "int16": 2,
    "float16": 2,
    "bfloat16": 2,
    "uint32": 4,
    "int32": 4,
    "float32": 4,
    "int64": 8,
    "float64": 8,
}

#: How a file begins, where its header has major, minor and patch version, a byte each, and what the first
#: two must be.
_MAGIC = b"VGF1"
_VERSION = slice(8, 11)
_SUPPORTED = bytes([0, 5])

#: VK_DESCRIPTOR_TYPE_TENSOR_ARM
_TENSOR_DESCRIPTOR = 1000460000


@dataclass(frozen=True)
class VgfTensor:
    """One resource of the model resource table.

    ``dtype`` is a numpy name, or ``VkFormat <n>`` where the format has none.
    ``is_tensor`` is False for images and buffers of custom shaders. Resources of one ``alias_group``
    share their storage; None where a resource shares it with none.
    """

    index: int
    category: str
    shape: tuple[int, ...]
    dtype: str
    is_tensor: bool
    alias_group: int | None

    def shares(self, other: VgfTensor) -> bool:
        """Whether the two are one resource, or lie in one storage."""
        grouped = self.alias_group is not None and self.alias_group == other.alias_group
        return grouped or self.index == other.index

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor, densely packed; 0 where the dtype is unknown."""
        return math.prod(self.shape) * ITEMSIZE.get(self.dtype, 0)


@dataclass(frozen=True)
class Vgf:
    """What a VGF file says of itself.

    ``inputs`` and ``outputs`` are pairs of binding number and tensor, in model order;
    ``written`` holds the resource indices that a segment has among its outputs.
    """

    version: tuple[int, int, int]
    resources: tuple[VgfTensor, ...]
    inputs: tuple[tuple[int, VgfTensor], ...]
    outputs: tuple[tuple[int, VgfTensor], ...]
    written: frozenset[int]
    segments: tuple[str, ...]

    def shared_inputs(self, output: int) -> list[int]:
        """The inputs, by number, in whose storage output ``output`` lies.

        The converter folds an output that equals an input onto it: no segment writes it, and it is right.
        """
        tensor = self.outputs[output][1]
        return [number for number, (_, other) in enumerate(self.inputs) if other.shares(tensor)]

    def shared_outputs(self, output: int) -> list[int]:
        """The other outputs, by number, that lie in the storage of output ``output``."""
        tensor = self.outputs[output][1]
        found = [number for number, (_, other) in enumerate(self.outputs) if other.shares(tensor)]
        return [number for number in found if number != output]

    def is_written(self, output: int) -> bool:
        """Whether a segment writes the storage of output ``output``."""
        tensor = self.outputs[output][1]
        return any(self.resources[index].shares(tensor) for index in self.written)


def read_vgf(data: bytes) -> Vgf:
    """Decode a VGF file; raises Malformed ("not a valid VGF file: ...") where it is none."""
    try:
        return _read(data)
    except Malformed as error:
        raise Malformed(f"not a valid VGF file: {error}") from error
    except Exception as error:  # whatever the VGF library makes of corrupt data
        raise Malformed(f"not a valid VGF file: {type(error).__name__}: {error}") from error


def _read(data: bytes) -> Vgf:
    header, budget = _header(data), Budget(len(data))
    resources = _resources(
        _section(
            data, "resource table", header.GetModelResourceTableOffset(), header.GetModelResourceTableSize()
        ),
        budget,
    )
    section = _section(
        data, "sequence table", header.GetModelSequenceTableOffset(), header.GetModelSequenceTableSize()
    )
    sequence = vgfpy.CreateModelSequenceTableDecoder(section, len(section))
    if sequence is None:
        raise Malformed("its sequence table does not decode")
    slots = _Slots(sequence, resources, budget)
    segments = range(_bounded(budget, sequence.modelSequenceTableSize()))
    return Vgf(
        version=(header.GetMajor(), header.GetMinor(), header.GetPatch()),
        resources=resources,
        inputs=slots.of(sequence.getModelSequenceInputBindingSlotsHandle()),
        outputs=slots.of(sequence.getModelSequenceOutputBindingSlotsHandle()),
        written=frozenset(
            tensor.index
            for segment in segments
            for _, tensor in slots.of(sequence.getSegmentOutputBindingSlotsHandle(segment))
        ),
        segments=tuple(sequence.getSegmentType(segment).name.lower() for segment in segments),
    )


def _header(data: bytes) -> vgfpy.HeaderDecoder:
    size = vgfpy.HeaderSize()
    if len(data) < size:
        raise Malformed(f"{len(data)} bytes, the header alone takes {size}")
    if data[: len(_MAGIC)] != _MAGIC:
        raise Malformed("the header does not start with the VGF magic number")
    header = vgfpy.CreateHeaderDecoder(data, size, len(data))
    if header is None or not header.IsValid() or not header.CheckVersion():
        if data[_VERSION][:2] == _SUPPORTED:
            raise Malformed("its header is corrupt, or the file is cut short")
        raise Malformed(f"VGF version {'.'.join(map(str, data[_VERSION]))} is not supported here")
    return header


def _section(data: bytes, name: str, offset: int, size: int) -> bytes:
    if offset + size > len(data):
        raise Malformed(f"the {name} ends at byte {offset + size}, the file at {len(data)}")
    return data[offset : offset + size]


def _bounded(budget: Budget, count: int) -> int:
    # Each entry of a list takes four bytes at least.
    budget.spend(4 * count)
    return count


def _resources(section: bytes, budget: Budget) -> tuple[VgfTensor, ...]:
    table = vgfpy.CreateModelResourceTableDecoder(section, len(section))
    if table is None:
        raise Malformed("its resource table does not decode")
    tensors = []
    for index in range(_bounded(budget, table.size())):
        shape = table.getTensorShape(index)
        vk_format = table.getVkFormat(index)
        budget.spend(8 * len(shape or ()))
        tensors.append(
            VgfTensor(
                index=index,
                category=table.getCategory(index).name.lower(),
                shape=() if shape is None else tuple(int(size) for size in shape),
                dtype=DTYPE_OF_FORMAT.get(vk_format, f"VkFormat {vk_format}"),
                is_tensor=table.getDescriptorType(index) in (None, _TENSOR_DESCRIPTOR),
                alias_group=table.getAliasGroupId(index),
            )
        )
    return tuple(tensors)


@dataclass(frozen=True)
class _Slots:
    """Reads lists of binding slots."""

    sequence: vgfpy.ModelSequenceTableDecoder
    resources: tuple[VgfTensor, ...]
    budget: Budget

    def of(self, handle: vgfpy.BindingSlotArrayHandle_s) -> tuple[tuple[int, VgfTensor], ...]:
        """The slots of ``handle``, as binding number and tensor."""
        slots = []
        for slot in range(_bounded(self.budget, self.sequence.getBindingsSize(handle))):
            index = self.sequence.getBindingSlotMrtIndex(handle, slot)
            if index >= len(self.resources):
                raise Malformed(f"a binding names resource {index} of {len(self.resources)}")
            slots.append((self.sequence.getBindingSlotBinding(handle, slot), self.resources[index]))
        return tuple(slots)
