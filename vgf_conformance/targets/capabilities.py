"""Which driver, layers and device a target runs on, and what the device says that it can do.

Asked in a process of its own, by :mod:`vgf_conformance.targets.probe`: a driver may crash.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from vgf_conformance.targets import vulkan
from vgf_conformance.targets.asking import SECONDS, ask, why_no_device
from vgf_conformance.targets.validation import find_layer
from vgf_conformance.targets.vulkan import Driver, DriverChoice
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import PROGRAM_TARGET, VULKAN_TARGETS, UserError

_SECONDS = SECONDS

#: The kinds of devices in the order in which the scenario runner prefers them; of equals it takes the first.
_PREFERENCE = ("discrete", "integrated", "virtual", "cpu", "other")

#: What makes one device another for whoever compares results.
_IDENTITY = (
    *("vendor_id", "device_id", "name", "driver", "driver_info", "driver_version"),
    *("device_uuid", "driver_uuid"),
)


@dataclass(frozen=True)
class Device:
    """A physical device, as it describes itself below some layers. Sizes are in bytes.

    ``features`` are those that the emulation layers' shaders and the scenario runner need, by the names
    that Vulkan has for them; ``formats`` the data types of tensors that may be bound to a data graph.
    ``queues`` has the queue families, each with the ``operations`` of its data-graph engines and the
    quality that is claimed for them. Empty is what a device older than Vulkan 1.2 does not say.
    """

    name: str
    kind: str
    api: str
    vendor_id: int
    device_id: int
    driver_version: str
    extensions: Mapping[str, int]
    limits: Mapping[str, int]
    driver: str = ""
    driver_info: str = ""
    driver_id: int = 0
    conformance: str = ""
    device_uuid: str = ""
    driver_uuid: str = ""
    features: Mapping[str, bool] = field(default_factory=dict)
    tensor_features: Mapping[str, bool] = field(default_factory=dict)
    formats: Sequence[str] = ()
    queues: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Platform:
    """What a target runs on: a driver, the emulation layers over it, and the device that is then used.

    ``layers`` are some of ``vulkan.LAYERS``, from the application down; ``others`` are the names of
    further devices of the driver, which are not used; ``loader`` is the Vulkan version of the loader.
    ``validation`` is the folder of the validation layer where that is to watch the driver.
    """

    driver: Driver
    layers: tuple[str, ...]
    device: Device
    others: tuple[str, ...]
    loader: str
    validation: Path | None = None

    @property
    def layers_text(self) -> str:
        """The layers in words, for headers and records."""
        named = " and ".join(layer.lower() for layer in self.layers)
        return f"emulation layers: {named}" if self.layers else "no emulation layers"

    @property
    def identity(self) -> dict[str, Any]:
        """What stays the same for as long as device and driver do: ids, names, versions, UUIDs (hex)."""
        return {name: getattr(self.device, name) for name in _IDENTITY}

    def to_json(self) -> dict[str, Any]:
        """The capability report as plain data."""
        return {
            "driver": self.driver.name,
            "manifest": visible(self.driver.manifest.name),
            "layers": list(self.layers),
            "loader": self.loader,
            "identity": self.identity,
            "device": asdict(self.device),
            "others": list(self.others),
        }


def platforms(targets: Iterable[str], choice: DriverChoice) -> dict[str, Platform]:
    """What each of ``targets`` that needs a Vulkan driver runs on.

    Raises UserError where there is no such driver, where it loads no device or another than
    ``choice.expect``, where layers are missing, and where ``choice`` says what no target can follow.
    """
    wanted = [target for target in targets if target in VULKAN_TARGETS]
    if choice.layers != "auto" and not {"vulkan", PROGRAM_TARGET} & {*wanted}:
        raise UserError(
            f"--layers {choice.layers} is for --target vulkan or {PROGRAM_TARGET}: "
            "emulation always has its layers"
        )
    if choice.validation and not wanted:
        raise UserError(
            f"--validation is for the targets {' and '.join(VULKAN_TARGETS)}: no other has a driver"
        )
    if choice.name is not None:
        # A driver that does not exist is an error even where nothing would run on it.
        vulkan.choose_driver(choice.name)
    return {target: platform(target, choice) for target in wanted}


def platform(target: str, choice: DriverChoice) -> Platform:
    """What the Vulkan target ``target`` runs on; raises UserError as ``platforms`` does."""
    driver = vulkan.choose_driver(choice.name)
    found = _platform(driver, "emulation" if target == "emulation" else choice.layers, surroundings())
    names = (found.device.name, found.device.driver, found.device.driver_info)
    if not any(choice.expect.lower() in name.lower() for name in names):
        described = ", ".join(filter(None, names))
        others = f" (and not {', '.join(found.others)}, which this driver has too)" if found.others else ""
        raise UserError(
            f"{driver.manifest}: the device that would be used is {described}{others}, and nothing of that "
            f"contains {choice.expect!r}: choose another --driver, or expect this one"
        )
    return replace(found, validation=find_layer()) if choice.validation else found


@functools.cache
def _platform(driver: Driver, layers: str, surroundings: tuple[tuple[str, str], ...]) -> Platform:
    """``surroundings`` are part of what is asked, and so of what is remembered."""
    if layers == "none":
        return _asked(driver, ())
    if layers == "emulation":
        return _asked(driver, tuple(vulkan.LAYERS))
    own = _asked(driver, ())
    lacking = tuple(
        layer for layer, extension in vulkan.LAYERS.items() if extension not in own.device.extensions
    )
    # Graphs are made of tensors: without its own tensors a driver's graphs are of no use to it.
    return _asked(driver, tuple(vulkan.LAYERS) if "Tensor" in lacking else lacking)


def _asked(driver: Driver, layers: tuple[str, ...]) -> Platform:
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        variables = vulkan.layered_environment(driver, layers, Path(folder))
        answer = _probe(driver, variables)
        if answer["error"] or not answer["devices"]:
            why = why_no_device(driver, variables) or "its hardware may be absent, or its library unsound"
            raise UserError(
                f"{driver.manifest} loads no device ({answer['error']}): {why}; vgf-conformance doctor lists "
                "the drivers that work here"
            )
    known = {item.name for item in fields(Device)}
    devices = [
        Device(**{key: value for key, value in device.items() if key in known})
        for device in answer["devices"]
    ]
    used = min(devices, key=lambda device: _PREFERENCE.index(device.kind))
    others = tuple(device.name for device in devices if device is not used)
    return Platform(driver, layers, used, others, str(answer["loader"]))


def _probe(driver: Driver, variables: Mapping[str, str]) -> dict[str, Any]:
    answer = ask(variables, _SECONDS)
    if isinstance(answer, str):
        raise UserError(f"{driver.manifest} {answer}")
    return answer


def surroundings() -> tuple[tuple[str, str], ...]:
    """What of the environment has a say in which layers, drivers and libraries are found."""
    ours = ("VK_", "XDG_", "HOME", "LD_")
    return tuple(sorted(item for item in os.environ.items() if item[0].startswith(ours)))
