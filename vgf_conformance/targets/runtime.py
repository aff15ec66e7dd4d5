"""The target ``runtime``: a whole program (.pte) in an ExecuTorch runtime that has the VGF backend.

Nothing here imports executorch: the runtime lives in a worker or is a program of its own, and what it has is
asked by :mod:`vgf_conformance.runtime.probe` in a process too.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.pte import BACKEND, Executable
from vgf_conformance.launch import python_command, python_environment, signal_name
from vgf_conformance.targets import vulkan
from vgf_conformance.targets.base import Array, Outputs, Target
from vgf_conformance.targets.capabilities import Platform, surroundings
from vgf_conformance.targets.executor import ExecutorRunner
from vgf_conformance.targets.logs import runtime_says
from vgf_conformance.targets.process import ProcessTarget
from vgf_conformance.targets.programs import run
from vgf_conformance.targets.runtime_choice import LIBRARY, RuntimeChoice
from vgf_conformance.terminal import one_line
from vgf_conformance.untrusted import parse_json
from vgf_conformance.vocabulary import PROGRAM_TARGET, UserError

#: Seconds in which torch, the runtime and a library must be loaded, on a busy machine too.
_SECONDS = 300.0

HOW_TO_GET_ONE = (
    "give a library that registers it (--runtime-library FILE, or the environment variable "
    f"{LIBRARY}), or a stand-alone runner (--executor-runner FILE); docs/runtime.md says how to build them"
)


class _Executes(Protocol):
    def execute(self, program: Executable, inputs: Sequence[Any]) -> Outputs:
        """As RuntimeTarget.execute."""

    def close(self) -> None:
        """Give all processes back."""


class InProcess:
    """Executes programs in a worker that has the wheel's runtime, and ``library`` where that is given."""

    def __init__(self, library: Path | None, environment: Mapping[str, str], time_limit: float) -> None:
        self.worker = ProcessTarget(
            PROGRAM_TARGET,
            "vgf_conformance.runtime.runner:RuntimeRunner",
            environment={**environment, LIBRARY: str(library or "")},
            time_limit=time_limit,
            worker="the worker of the ExecuTorch runtime",
            explain=runtime_says,
        )

    def execute(self, program: Executable, inputs: Sequence[Any]) -> Outputs:
        """Run twice; raises TargetFailure for a refusal, a crash or a hang."""
        self.worker.load([program])
        return self.worker.run(0, inputs)

    def close(self) -> None:
        """End the worker."""
        self.worker.close()


class RuntimeTarget:
    """Executes whole programs; ``peer`` runs single delegates, on the same driver below the same layers.

    So whatever a program's outputs differ in from a walk over its delegates is the runtime's.
    """

    name = PROGRAM_TARGET

    def __init__(self, peer: Target, executes: _Executes) -> None:
        self.peer = peer
        self.driver = peer.driver
        self.executes = executes

    def execute(self, program: Executable, inputs: Sequence[Any]) -> Outputs:
        """Run ``program`` twice. Inputs and outputs are in logical order, outputs without what is None.

        Inputs that are no tensors are plain values. Raises TargetFailure.
        """
        return self.executes.execute(program, inputs)

    def load(self, delegates: Sequence[Delegate]) -> None:
        """The peer's."""
        self.peer.load(delegates)

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        """The peer's."""
        return self.peer.run(index, inputs)

    def close(self) -> None:
        """End all processes."""
        self.executes.close()
        self.peer.close()


def open_runtime_target(
    choice: RuntimeChoice, platform: Platform, peer: Target, folder: Path, time_limit: float
) -> RuntimeTarget:
    """The target on ``platform``, beside ``peer``, which runs its delegates there.

    ``folder`` takes layer manifests. Raises UserError where no runtime here has the VGF backend.
    """
    require_backend(choice, platform)
    environment = vulkan.layered_environment(platform.driver, platform.layers, folder, platform.validation)
    if choice.runner is not None:
        return RuntimeTarget(peer, ExecutorRunner(choice.runner, environment, time_limit))
    return RuntimeTarget(peer, InProcess(choice.library, environment, time_limit))


def require_backend(choice: RuntimeChoice, platform: Platform, backend: str = BACKEND) -> None:
    """Raise UserError unless the runtime of ``choice`` has ``backend``; a stand-alone runner is not asked."""
    if choice.runner is None and (
        fault := backend_fault(choice.library, platform.driver, platform.layers, backend)
    ):
        raise UserError(fault)


def backend_fault(
    library: Path | None, driver: vulkan.Driver, layers: tuple[str, ...], backend: str = BACKEND
) -> str:
    """Why the wheel's runtime cannot run programs for ``backend`` on ``driver``; empty where it can."""
    return _fault(library, driver, layers, backend, surroundings())


@functools.cache
def _fault(
    library: Path | None,
    driver: vulkan.Driver,
    layers: tuple[str, ...],
    backend: str,
    around: tuple[tuple[str, str], ...],
) -> str:
    """``around`` is part of what is asked, and so of what is remembered."""
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        answer = _asked(library, backend, vulkan.layered_environment(driver, layers, Path(folder)))
    who = f"the runtime library {library}" if library else "the runtime of the installed executorch"
    if isinstance(answer, str):
        return f"{who} {answer}"
    if answer["fault"]:
        return f"{who} cannot be loaded: {answer['fault']}"
    if backend not in answer["registered"]:
        has = ", ".join(answer["registered"]) or "none"
        advice = "build it with the VGF backend (docs/runtime.md)" if library else HOW_TO_GET_ONE
        return f"{who} does not register {backend} (there are {has}): {advice}"
    if not answer["available"]:
        return f"{who} registers {backend}, which says that it is not available on {driver.manifest}"
    return ""


def _is_answer(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("fault"), str)
        and isinstance(value.get("registered"), list)
        and all(isinstance(name, str) for name in value["registered"])
        and isinstance(value.get("available"), bool)
    )


def _asked(library: Path | None, backend: str, variables: Mapping[str, str]) -> dict[str, Any] | str:
    """The probe's answer, or what became of it."""
    command = python_command("vgf_conformance.runtime.probe", backend, *([str(library)] if library else []))
    done = run(command, python_environment(variables), _SECONDS)
    if done is None:
        return f"did not load within {_SECONDS:g} s"
    if done.status < 0:
        return f"ended the process that loaded it by {signal_name(done.status)}"
    for line in reversed(done.out.splitlines()):
        # A library may write to standard output as well.
        with contextlib.suppress(ValueError):
            answer = parse_json(line.encode())
            if _is_answer(answer):
                return dict(answer)
    words = done.err.strip().splitlines()
    return f"could not be asked: {one_line(words[-1]) if words else f'exit status {done.status}'}"
