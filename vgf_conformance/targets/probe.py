"""What the Vulkan loader and its drivers offer, as one JSON: ``python -m vgf_conformance.targets.probe``.

To be started in a process of its own, under the environment that
:mod:`vgf_conformance.targets.vulkan` gives: a driver may crash.
"""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

from vgf_conformance.targets.arm import ArmDevice
from vgf_conformance.targets.vulkan import OVERRIDES, library_of
from vgf_conformance.vocabulary import UserError

try:
    import vulkan as vk
except OSError:  # the binding loads libvulkan.so.1 when it is imported
    vk = None

#: What the emulation layers' shaders need, under the structure that says whether a driver has it.
_FEATURES_11 = ("storageBuffer16BitAccess",)
_FEATURES_12 = ("shaderFloat16", "shaderInt8", "storageBuffer8BitAccess")
_FEATURES = ("shaderInt16", "shaderInt64")

#: What else the scenario runner makes use of, or what says how tensors and graphs are done.
_EXTENSIONS = (
    "VK_ARM_",
    "VK_KHR_shader_bfloat16",
    "VK_EXT_shader_float8",
    "VK_EXT_shader_replicated_composites",
    "VK_KHR_maintenance5",
    "VK_KHR_deferred_host_operations",
    "VK_EXT_custom_border_color",
    "VK_EXT_frame_boundary",
)
_LIMITS = (
    "maxStorageBufferRange",
    "maxComputeSharedMemorySize",
    "maxComputeWorkGroupInvocations",
    "maxMemoryAllocationCount",
    "maxPerStageDescriptorStorageBuffers",
)
_KINDS = ("other", "integrated", "discrete", "virtual", "cpu")
_QUEUES = {1: "graphics", 2: "compute", 4: "transfer", 0x400: "data graph"}


def probe() -> dict[str, Any]:
    """Return the loader's version and what each physical device is and can do.

    The answer has ``loader`` (the Vulkan version that the loader speaks, None
    without a loader), ``devices``, and ``error``: what Vulkan answered where it
    gave no devices, else None. Where it gave none, ``unloadable`` is what the
    dynamic linker says of the driver's library, empty if it can be loaded.
    """
    if vk is None:
        return _no_device(None, "no Vulkan loader (libvulkan.so.1)")
    loader = version(vk.vkEnumerateInstanceVersion())
    application = vk.VkApplicationInfo(
        pApplicationName="vgf-conformance", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0)
    )
    try:
        instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
        devices = [_device(instance, device) for device in vk.vkEnumeratePhysicalDevices(instance)]
    except (vk.VkError, vk.VkException) as error:
        return _no_device(loader, type(error).__name__)
    vk.vkDestroyInstance(instance, None)
    if not devices:
        return _no_device(loader, "no device")
    return {"loader": loader, "devices": devices, "error": None}


def _no_device(loader: str | None, error: str) -> dict[str, Any]:
    return {"loader": loader, "devices": [], "error": error, "unloadable": _unloadable()}


def _unloadable() -> str:
    """What the dynamic linker says of the driver's library; the loader says it to nobody."""
    try:
        ctypes.CDLL(library_of(Path(os.environ.get(OVERRIDES[0], os.devnull))))
    except OSError as error:
        return str(error)
    except UserError:
        # Nothing but the loader is asked for, or there is no such manifest.
        return ""
    return ""


def version(number: int) -> str:
    """Return a packed Vulkan version as ``major.minor.patch``."""
    return f"{number >> 22 & 0x7F}.{number >> 12 & 0x3FF}.{number & 0xFFF}"


def _device(instance: Any, device: Any) -> dict[str, Any]:
    basic = vk.vkGetPhysicalDeviceProperties(device)
    extensions = {
        name: extension.specVersion
        for extension in vk.vkEnumerateDeviceExtensionProperties(device, None)
        if (name := _text(extension._extensionName)).startswith(_EXTENSIONS)
    }
    described: dict[str, Any] = {
        "name": _text(basic._deviceName),
        "kind": _KINDS[basic.deviceType] if basic.deviceType < len(_KINDS) else "other",
        "api": version(basic.apiVersion),
        "vendor_id": basic.vendorID,
        "device_id": basic.deviceID,
        "driver_version": version(basic.driverVersion),
        "extensions": extensions,
        "limits": {name: getattr(basic.limits, name) for name in _LIMITS},
    }
    if basic.apiVersion < vk.VK_MAKE_VERSION(1, 2, 0):
        # The structures asked for below came with Vulkan 1.2.
        return described
    arm = ArmDevice(_address(instance), _address(device), extensions)
    return {
        **described,
        **_driver(device),
        "features": _features(device),
        "tensor_features": arm.features(),
        "limits": {**described["limits"], **arm.limits()},
        "formats": arm.formats(),
        "queues": [
            {**queue, "operations": arm.operations(number)} for number, queue in enumerate(_queues(device))
        ],
    }


def _driver(device: Any) -> dict[str, str]:
    """What identifies driver and device, for as long as neither is replaced."""
    identity = vk.VkPhysicalDeviceIDProperties()
    driver = vk.VkPhysicalDeviceDriverProperties(pNext=identity)
    properties = vk.VkPhysicalDeviceProperties2(pNext=driver)
    vk.vkGetPhysicalDeviceProperties2(device, vk.ffi.addressof(properties))
    passed = driver.conformanceVersion
    return {
        "driver": _text(driver.driverName),
        "driver_info": _text(driver.driverInfo),
        "driver_id": driver.driverID,
        "conformance": f"{passed.major}.{passed.minor}.{passed.subminor}.{passed.patch}",
        "device_uuid": bytes(identity.deviceUUID).hex(),
        "driver_uuid": bytes(identity.driverUUID).hex(),
    }


def _queues(device: Any) -> list[dict[str, Any]]:
    return [
        {
            "count": family.queueCount,
            "does": [word for bit, word in _QUEUES.items() if family.queueFlags & bit],
        }
        for family in vk.vkGetPhysicalDeviceQueueFamilyProperties(device)
    ]


def _features(device: Any) -> dict[str, bool]:
    features_12 = vk.VkPhysicalDeviceVulkan12Features()
    features_11 = vk.VkPhysicalDeviceVulkan11Features(pNext=features_12)
    features = vk.VkPhysicalDeviceFeatures2(pNext=features_11)
    vk.vkGetPhysicalDeviceFeatures2(device, vk.ffi.addressof(features))
    return {
        **{name: bool(getattr(features.features, name)) for name in _FEATURES},
        **{name: bool(getattr(features_11, name)) for name in _FEATURES_11},
        **{name: bool(getattr(features_12, name)) for name in _FEATURES_12},
    }


def _address(handle: Any) -> int:
    return int(vk.ffi.cast("uintptr_t", handle))


def _text(characters: Any) -> str:
    """A driver's text; what is not UTF-8 in it is replaced."""
    return str(vk.ffi.string(characters).decode(errors="replace"))


if __name__ == "__main__":
    print(json.dumps(probe()))
