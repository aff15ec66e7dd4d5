"""A target that refuses what its device says that it cannot do, instead of finding out by a crash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import read_graph
from vgf_conformance.targets.base import Array, Outputs, Target, TargetFailure
from vgf_conformance.targets.capabilities import Platform
from vgf_conformance.targets.vulkan import LAYERS
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: What the emulation layers' shaders declare for any graph, ABS of float32 too.
_ANY = ("shaderInt8", "shaderInt16", "shaderInt64", "shaderFloat16")

#: What they need besides, by the data types of a graph's tensors.
_SHADER_FEATURES = {
    **dict.fromkeys(("bool", "int4", "int8", "float8_e4m3fn", "float8_e5m2"), ("storageBuffer8BitAccess",)),
    **dict.fromkeys(("int16", "bfloat16", "float16"), ("storageBuffer16BitAccess",)),
}


class CapableTarget:
    """``target`` on ``platform``: a delegate that needs more than the device has never gets there."""

    def __init__(self, target: Target, platform: Platform) -> None:
        self.name = target.name
        self.driver = target.driver
        self.inner = target
        self._platform = platform
        self._refusals: list[str] = []

    def load(self, delegates: Sequence[Delegate]) -> None:
        """Look at each delegate; the target gets them where it can run one of them."""
        self._refusals = ["; ".join(lacking(self._platform, delegate)) for delegate in delegates]
        if not all(self._refusals):
            self.inner.load(delegates)

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        """Run delegate ``index``; raises TargetFailure, with the verdict unsupported for what was refused."""
        if self._refusals[index]:
            message = f"{self._platform.device.name} lacks {self._refusals[index]}"
            raise TargetFailure(Verdict.UNSUPPORTED, Stage.RUN, Finding.CAPABILITY, message)
        return self.inner.run(index, inputs)

    def close(self) -> None:
        """Give the target's process back."""
        self.inner.close()


def lacking(platform: Platform, delegate: Delegate) -> Iterator[str]:
    """What ``delegate`` needs and the device lacks below the platform's layers, each with what it is for."""
    device = platform.device
    missing = [extension for extension in LAYERS.values() if extension not in device.extensions]
    if missing:
        yield f"{' and '.join(missing)} (with {platform.layers_text})"
        return
    if platform.layers:
        yield from _shader_features(platform, delegate)
    bound = {port.dtype for port in (*delegate.inputs, *delegate.outputs)}
    if absent := sorted(bound - set(device.formats)):
        yield f"tensors of {' and '.join(absent)} in data graphs"


def _shader_features(platform: Platform, delegate: Delegate) -> Iterator[str]:
    inside = {tensor.dtype for tensor in read_graph(delegate.tosa).tensors.values()}
    needs = {
        "any graph": _ANY,
        **{name: _SHADER_FEATURES[name] for name in sorted(inside & _SHADER_FEATURES.keys())},
    }
    for wanted_for, features in needs.items():
        if absent := [name for name in features if not platform.device.features.get(name)]:
            yield f"{' and '.join(absent)}, which the emulation layers' shaders need for {wanted_for}"
