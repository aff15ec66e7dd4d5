"""What the Vulkan loader and its drivers offer, as one JSON: ``python -m vgf_conformance.targets.probe``.

To be started in a process of its own, under the environment that
:mod:`vgf_conformance.targets.vulkan` gives: a driver may crash.
"""

from __future__ import annotations

import json
from typing import Any

try:
    import vulkan as vk
except OSError:  # the binding loads libvulkan.so.1 when it is imported
    vk = None

#: What the emulation layers' shaders need, under the structure that says whether a driver has it.
_FEATURES_11 = ("storageBuffer16BitAccess",)
_FEATURES_12 = ("shaderFloat16", "shaderInt8", "storageBuffer8BitAccess")
_FEATURES = ("shaderInt16", "shaderInt64")


def probe() -> dict[str, Any]:
    """Return the loader's version and what each physical device is and can do.

    The answer has ``loader`` (the Vulkan version that the loader speaks, None
    without a loader), ``devices``, and ``error``: what Vulkan answered where it
    gave no devices, else None.
    """
    if vk is None:
        return {"loader": None, "devices": [], "error": "no Vulkan loader (libvulkan.so.1)"}
    loader = version(vk.vkEnumerateInstanceVersion())
    application = vk.VkApplicationInfo(
        pApplicationName="vgf-conformance", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0)
    )
    try:
        instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
        devices = [_device(device) for device in vk.vkEnumeratePhysicalDevices(instance)]
    except (vk.VkError, vk.VkException) as error:
        return {"loader": loader, "devices": [], "error": type(error).__name__}
    vk.vkDestroyInstance(instance, None)
    return {"loader": loader, "devices": devices, "error": None if devices else "no device"}


def version(number: int) -> str:
    """Return a packed Vulkan version as ``major.minor.patch``."""
    return f"{number >> 22 & 0x7F}.{number >> 12 & 0x3FF}.{number & 0xFFF}"


def _device(device: Any) -> dict[str, Any]:
    basic = vk.vkGetPhysicalDeviceProperties(device)
    described: dict[str, Any] = {
        "name": basic.deviceName,
        "api": version(basic.apiVersion),
        "driver_version": version(basic.driverVersion),
        "extensions": {
            extension.extensionName: extension.specVersion
            for extension in vk.vkEnumerateDeviceExtensionProperties(device, None)
            if extension.extensionName.startswith("VK_ARM_")
        },
    }
    if basic.apiVersion < vk.VK_MAKE_VERSION(1, 2, 0):
        # The structures asked for below came with Vulkan 1.2.
        return {**described, "driver": "", "driver_info": "", "features": {}}
    return {**described, **_driver(device), "features": _features(device)}


def _driver(device: Any) -> dict[str, str]:
    driver = vk.VkPhysicalDeviceDriverProperties()
    properties = vk.VkPhysicalDeviceProperties2(pNext=driver)
    vk.vkGetPhysicalDeviceProperties2(device, vk.ffi.addressof(properties))
    return {"driver": _text(driver.driverName), "driver_info": _text(driver.driverInfo)}


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


def _text(characters: Any) -> str:
    return str(vk.ffi.string(characters).decode())


if __name__ == "__main__":
    print(json.dumps(probe()))
