"""What a device says of VK_ARM_tensors and VK_ARM_data_graph: structures that the Vulkan binding lacks.

Layouts and numbers are those of the published headers. Imported by the probe alone: it loads Vulkan.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from ctypes import POINTER, byref, c_char, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any, ClassVar

TENSORS = "VK_ARM_tensors"
DATA_GRAPH = "VK_ARM_data_graph"
TOSA = "VK_ARM_data_graph_instruction_set_tosa"

#: What VGF tensors are made of, by the name of numpy's or ml_dtypes' type.
FORMATS = {
    "bool": 1000460000,
    "uint8": 13,
    "int8": 14,
    "uint16": 74,
    "int16": 75,
    "uint32": 98,
    "int32": 99,
    "int64": 111,
    "float16": 76,
    "bfloat16": 1000460001,
    "float32": 100,
    "float8_e4m3fn": 1000460002,
    "float8_e5m2": 1000460003,
}

_FEATURES_2, _PROPERTIES_2, _FORMAT_2 = 1000059000, 1000059001, 1000059002
_TENSOR_PROPERTIES, _TENSOR_FORMAT, _TENSOR_FEATURES = 1000460004, 1000460005, 1000460009
_GRAPH_FEATURES, _GRAPH_PROPERTIES, _TOSA_PROPERTIES = 1000507006, 1000507018, 1000508000
#: That tensors of a format may be bound to a data graph.
_FOR_DATA_GRAPHS = 1 << 48
_QUALITIES = {1: "accelerated", 2: "conformant", 4: "experimental", 8: "deprecated"}
_LEVELS = {0: "none", 1: "8K"}


_Fields = Sequence[tuple[str, Any]]


class _Head(ctypes.Structure):
    _fields_: ClassVar[_Fields] = (("sType", c_uint32), ("pNext", c_void_p))


class _Core(_Head):
    """Any of Vulkan's own extensible structures: what it is asked for hangs on ``pNext``."""

    _fields_: ClassVar[_Fields] = (("room", c_uint8 * 4096),)


class _TensorFeatures(_Head):
    _fields_: ClassVar[_Fields] = tuple(
        (name, c_uint32)
        for name in (
            "tensorNonPacked",
            "shaderTensorAccess",
            "shaderStorageTensorArrayDynamicIndexing",
            "shaderStorageTensorArrayNonUniformIndexing",
            "descriptorBindingStorageTensorUpdateAfterBind",
            "tensors",
        )
    )


class _GraphFeatures(_Head):
    _fields_: ClassVar[_Fields] = tuple(
        (name, c_uint32)
        for name in (
            "dataGraph",
            "dataGraphUpdateAfterBind",
            "dataGraphSpecializationConstants",
            "dataGraphDescriptorBuffer",
            "dataGraphShaderModule",
        )
    )


class _TensorProperties(_Head):
    _fields_: ClassVar[_Fields] = (
        ("maxTensorDimensionCount", c_uint32),
        ("maxTensorElements", c_uint64),
        ("maxPerDimensionTensorElements", c_uint64),
        ("maxTensorStride", c_int64),
        ("maxTensorSize", c_uint64),
        ("maxTensorShaderAccessArrayLength", c_uint32),
        ("maxTensorShaderAccessSize", c_uint32),
        ("maxDescriptorSetStorageTensors", c_uint32),
        ("maxPerStageDescriptorSetStorageTensors", c_uint32),
        ("maxDescriptorSetUpdateAfterBindStorageTensors", c_uint32),
        ("maxPerStageDescriptorUpdateAfterBindStorageTensors", c_uint32),
        ("shaderStorageTensorArrayNonUniformIndexingNative", c_uint32),
        ("shaderTensorSupportedStages", c_uint32),
    )


class _TensorFormat(_Head):
    _fields_: ClassVar[_Fields] = (("optimal", c_uint64), ("linear", c_uint64))


class _GraphProperties(_Head):
    _fields_: ClassVar[_Fields] = (
        ("engine", c_int32),
        ("foreign", c_uint32),
        ("kind", c_int32),
        ("name", c_char * 128),
        ("version", c_uint32),
    )


class _NameQuality(ctypes.Structure):
    _fields_: ClassVar[_Fields] = (("name", c_char * 128), ("quality", c_uint32))


class _TosaProperties(_Head):
    _fields_: ClassVar[_Fields] = (
        ("profileCount", c_uint32),
        ("profiles", POINTER(_NameQuality)),
        ("extensionCount", c_uint32),
        ("extensions", POINTER(_NameQuality)),
        ("level", c_int32),
    )


class ArmDevice:
    """One physical device, by the addresses of its handle and its instance's.

    Asks only for what ``extensions`` has.
    """

    def __init__(self, instance: int, device: int, extensions: Mapping[str, int]) -> None:
        self._loader = ctypes.CDLL("libvulkan.so.1")
        self._loader.vkGetInstanceProcAddr.restype = c_void_p
        self._instance = c_void_p(instance)
        self._device = c_void_p(device)
        self._extensions = extensions

    def features(self) -> dict[str, bool]:
        """Features of tensors and data graphs."""
        found: dict[str, bool] = {}
        for extension, kind, number in (
            (TENSORS, _TensorFeatures, _TENSOR_FEATURES),
            (DATA_GRAPH, _GraphFeatures, _GRAPH_FEATURES),
        ):
            if extension in self._extensions:
                asked = kind(number)
                self._ask("vkGetPhysicalDeviceFeatures2", _FEATURES_2, asked)
                found |= {name: bool(value) for name, value in _members(asked)}
        return found

    def limits(self) -> dict[str, int]:
        """Limits of tensors."""
        if TENSORS not in self._extensions:
            return {}
        asked = _TensorProperties(_TENSOR_PROPERTIES)
        self._ask("vkGetPhysicalDeviceProperties2", _PROPERTIES_2, asked)
        return dict(_members(asked))

    def formats(self) -> list[str]:
        """Data types of tensors that may be bound to a data graph, or that exist where no graphs do."""
        if TENSORS not in self._extensions:
            return []
        wanted = _FOR_DATA_GRAPHS if DATA_GRAPH in self._extensions else ~0
        return [name for name, number in FORMATS.items() if self._format(number) & wanted]

    def operations(self, family: int) -> list[dict[str, Any]]:
        """What the queue family's data-graph engines execute, each with the quality claimed for TOSA."""
        ask = self._function("vkGetPhysicalDeviceQueueFamilyDataGraphPropertiesARM")
        if DATA_GRAPH not in self._extensions or ask is None:
            return []
        count = c_uint32(0)
        if ask(self._device, c_uint32(family), byref(count), None):
            return []
        found = (_GraphProperties * count.value)(*[_GraphProperties(_GRAPH_PROPERTIES)] * count.value)
        if ask(self._device, c_uint32(family), byref(count), found):
            return []
        return [
            {
                "name": item.name.decode(errors="replace"),
                "version": item.version,
                "foreign": bool(item.foreign),
                **self._quality(family, item),
            }
            for item in found
        ]

    def _quality(self, family: int, operation: _GraphProperties) -> dict[str, Any]:
        ask = self._function("vkGetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM")
        tosa = operation.name.startswith(b"TOSA") and TOSA in self._extensions
        claimed = _TosaProperties(_TOSA_PROPERTIES)
        if not tosa or ask is None or ask(self._device, c_uint32(family), byref(operation), byref(claimed)):
            return {}
        return {
            "profiles": _qualities(claimed.profileCount, claimed.profiles),
            "extensions": _qualities(claimed.extensionCount, claimed.extensions),
            "level": _LEVELS.get(claimed.level, str(claimed.level)),
        }

    def _format(self, number: int) -> int:
        asked = _TensorFormat(_TENSOR_FORMAT)
        core = _Core(_FORMAT_2, ctypes.addressof(asked))
        self._loader.vkGetPhysicalDeviceFormatProperties2(self._device, c_uint32(number), byref(core))
        return int(asked.optimal | asked.linear)

    def _ask(self, function: str, number: int, asked: _Head) -> None:
        core = _Core(number, ctypes.addressof(asked))
        getattr(self._loader, function)(self._device, byref(core))

    def _function(self, name: str) -> Any:
        address = self._loader.vkGetInstanceProcAddr(self._instance, name.encode())
        return ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint32, c_void_p, c_void_p)(address) if address else None


def _members(structure: _Head) -> Iterator[tuple[str, int]]:
    return ((name, getattr(structure, name)) for name, *_ in type(structure)._fields_)


def _qualities(count: int, items: Any) -> dict[str, list[str]]:
    """Names with what is claimed of each; nothing where a driver counts what it does not give."""
    return {
        items[number].name.decode(errors="replace"): [
            word for bit, word in _QUALITIES.items() if items[number].quality & bit
        ]
        for number in range(count if items else 0)
    }
