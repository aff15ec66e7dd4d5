"""Runs whole programs in the ExecuTorch runtime, inside a worker process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from vgf_conformance.formats.delegate import Port
from vgf_conformance.formats.pte import Executable
from vgf_conformance.lowering.tensors import from_numpy, to_numpy
from vgf_conformance.runtime.loading import open_runtime
from vgf_conformance.targets.base import Array
from vgf_conformance.targets.runner import Refused
from vgf_conformance.targets.runtime_choice import LIBRARY
from vgf_conformance.vocabulary import Finding, Stage, Verdict

#: What the runtime calls an operator that it has no kernel for.
_OPERATOR_MISSING = "0x:14"


class LoadedProgram:
    """One program; the runtime allocates outputs itself, so no sentinel applies."""

    def __init__(self, runtime: Any, program: Executable) -> None:
        self._runtime = runtime
        self._program = program

    def run(self, inputs: Sequence[Any], sentinel: int) -> list[Array]:
        """Load the method and run it once on logical arrays; raises Refused where the runtime says no.

        Loaded anew for each run: a program may change its own state.
        """
        try:
            method = self._runtime.load_program(self._program.pte).load_method(self._program.method)
            outputs = method.execute(list(map(_value, inputs, self._program.inputs)))
        except RuntimeError as error:
            raise _refusal(str(error)) from error
        return [
            to_numpy(value if isinstance(value, torch.Tensor) else torch.tensor(value))
            for value in outputs
            if value is not None
        ]


class RuntimeRunner:
    """The runner of the target ``runtime``; the environment names the backend library."""

    def __init__(self) -> None:
        self._runtime = open_runtime(os.environ.get(LIBRARY))
        # Quantised programs quantise their inputs, with operators that the wheel keeps in a library apart.
        import executorch.kernels.quantized  # noqa: F401

    def build(self, program: Executable) -> LoadedProgram:
        """Nothing is kept from one run to the next."""
        return LoadedProgram(self._runtime, program)


def _value(value: Any, port: Port | None) -> Any:
    """What the method is given.

    The runtime takes a tensor's bytes as they are, in the dimension order that the program wants, and its
    binding refuses most strides: so the bytes are laid in that order under the strides of no permutation.
    """
    if port is None:
        return value
    return from_numpy(np.ascontiguousarray(value.transpose(port.dim_order)).reshape(value.shape))


def _refusal(message: str) -> Refused:
    if _OPERATOR_MISSING in message:
        return Refused(
            Verdict.UNSUPPORTED,
            Stage.RUN,
            Finding.CAPABILITY,
            f"the ExecuTorch runtime has no kernel for an operator outside the delegates: {message}",
        )
    return Refused(Verdict.FAIL, Stage.RUN, Finding.RAISED, f"the ExecuTorch runtime: {message}")
