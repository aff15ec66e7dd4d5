"""Runs a delegate's VGF through the ML SDK scenario runner, in process.

The Vulkan loader, layers and driver are those of the process's environment, which
``targets.vulkan`` prepares.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import scenario_runner_py as scenario_runner
import vulkan as vk

from vgf_conformance.formats.arrays import plain
from vgf_conformance.formats.delegate import Delegate, Port
from vgf_conformance.formats.vgf import Vgf, VgfTensor, read_vgf
from vgf_conformance.targets.base import Array
from vgf_conformance.targets.runner import Refused
from vgf_conformance.targets.sentinel import filled
from vgf_conformance.vocabulary import Finding, Stage, Verdict

_FORMAT = {
    "bool": scenario_runner.Format.R8BoolArm,
    "uint8": scenario_runner.Format.R8Uint,
    "int8": scenario_runner.Format.R8Sint,
    "uint16": scenario_runner.Format.R16Uint,
    "int16": scenario_runner.Format.R16Sint,
    "uint32": scenario_runner.Format.R32Uint,
    "int32": scenario_runner.Format.R32Sint,
    "int64": scenario_runner.Format.R64Sint,
    "float16": scenario_runner.Format.R16Sfloat,
    "bfloat16": scenario_runner.Format.R16Bfloat16Arm,
    "float32": scenario_runner.Format.R32Sfloat,
    "float8_e4m3fn": scenario_runner.Format.R8Float8E4M3Arm,
    "float8_e5m2": scenario_runner.Format.R8Float8E5M2Arm,
}


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """The numpy dtype of a dtype name, including the narrow floats of ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


class VgfPipeline:
    """One VGF built into Vulkan pipelines, with its tensors allocated.

    What lies between its segments (tensors, images, samplers and buffers of custom shaders) is the
    scenario runner's.
    """

    def __init__(self, delegate: Delegate, vgf: Vgf) -> None:
        builder = scenario_runner.ScenarioBuilder()
        # The scenario runner reads its VGF from a file while it builds.
        with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
            path = Path(folder) / "delegate.vgf"
            path.write_bytes(delegate.vgf)
            info = scenario_runner.VgfInfo()
            info.load_source(str(path))
            dispatch = scenario_runner.DispatchVgfData(builder.add_vgf(info))
            inputs = [
                _tensor(builder, slot, port) for slot, port in zip(vgf.inputs, delegate.inputs, strict=True)
            ]
            outputs = [
                _tensor(builder, slot, port) for slot, port in zip(vgf.outputs, delegate.outputs, strict=True)
            ]
            dispatch.bindings = [binding for _, binding in inputs + outputs]
            builder.add_dispatch_vgf(dispatch)
            self._scenario = builder.build()
        #: Outputs in an input's storage: filling one would overwrite the input.
        self._aliased = {number for number in range(len(vgf.outputs)) if vgf.shared_inputs(number)}
        self._inputs = [
            (tensor, numpy_dtype(slot.dtype))
            for (tensor, _), (_, slot) in zip(inputs, vgf.inputs, strict=True)
        ]
        self._outputs = [
            (tensor, slot.shape, numpy_dtype(slot.dtype), port.physical_shape)
            for (tensor, _), (_, slot), port in zip(outputs, vgf.outputs, delegate.outputs, strict=True)
        ]

    def run(self, inputs: Sequence[Array], sentinel: int) -> list[Array]:
        """Upload, run and download once."""
        for (tensor, dtype), array in zip(self._inputs, inputs, strict=True):
            self._scenario.upload(tensor, plain(np.ascontiguousarray(array.astype(dtype, copy=False))))
        for number, (tensor, shape, dtype, _) in enumerate(self._outputs):
            if number not in self._aliased:
                self._scenario.upload(tensor, plain(filled(shape, dtype, sentinel)))
        self._scenario.run()
        return [
            np.frombuffer(self._scenario.download(tensor).tobytes(), dtype).reshape(shape)
            for tensor, _, dtype, shape in self._outputs
        ]


class VgfRunner:
    """The runner of the targets that execute VGF files on a Vulkan driver."""

    def __init__(self) -> None:
        # Kept as long as the process: see there.
        self._instance = _instance()

    def build(self, delegate: Delegate) -> VgfPipeline:
        """Build the pipelines; raises Refused where the runner or the driver says no."""
        try:
            return VgfPipeline(delegate, read_vgf(delegate.vgf))
        except RuntimeError as error:
            raise Refused(
                Verdict.FAIL, Stage.RUN, Finding.RAISED, f"building the VGF's pipelines: {error}"
            ) from error


def _instance() -> Any:
    """A Vulkan instance that keeps the driver loaded; None where the driver has none to give.

    The scenario runner makes an instance for each pipeline. Without another one the loader unloads the
    driver in between, and NVIDIA's cannot be loaded more than some thirty times in one process.
    """
    application = vk.VkApplicationInfo(
        pApplicationName="vgf-conformance", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0)
    )
    # The first pipeline meets the same refusal, and reports it.
    with contextlib.suppress(vk.VkError, vk.VkException):
        return vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=application), None)
    return None


def _tensor(
    builder: scenario_runner.ScenarioBuilder, slot: tuple[int, VgfTensor], port: Port
) -> tuple[scenario_runner.TensorId, scenario_runner.TypedBinding]:
    binding, tensor = slot
    identity = builder.add_tensor(list(tensor.shape), _FORMAT[tensor.dtype])
    return identity, scenario_runner.TypedBinding(
        0, binding, identity, scenario_runner.DescriptorType.TensorArm
    )
