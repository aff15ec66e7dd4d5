"""A delegate: one compiled subgraph, and the tensors at its boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Port:
    """One tensor at a delegate's boundary, as the program around it sees it.

    ``shape`` is the logical shape (NCHW for an image whatever its layout); a
    dimension is -1 where the program leaves it open. ``dtype`` is a numpy name
    (``float32``, ``int8``, ``bool``, ``bfloat16`` ...). ``dim_order`` lists the
    logical axes from outermost to innermost in memory.
    """

    shape: tuple[int, ...]
    dtype: str
    dim_order: tuple[int, ...]

    @property
    def physical_shape(self) -> tuple[int, ...]:
        """The shape in memory order: what the VGF and the TOSA graph are given."""
        return tuple(self.shape[axis] for axis in self.dim_order)


@dataclass(frozen=True)
class Delegate:
    """One delegate of a lowered program.

    ``tosa`` and ``vgf`` are file contents. ``inputs`` and ``outputs`` are in the
    order of the delegate call. ``nodes`` counts the edge operators inside. ``scales`` are those that
    the backend wanted of each RESCALE, one or one for each channel, by the name of its output;
    ``parameters`` those of the quantised program's tensors inside, one or one for each channel.
    """

    name: str
    tosa: bytes
    vgf: bytes
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: int
    scales: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    parameters: tuple[tuple[float, ...], ...] = ()
