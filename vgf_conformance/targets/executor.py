"""Runs whole programs with ExecuTorch's stand-alone executor_runner, a process for each run.

The program, its inputs and its outputs are files in a folder that is the runner's working directory:
``executor_runner --model_path=program.pte --inputs=input0.bin,input1.bin --output_file=output`` reads an
input of raw bytes in memory order for each input of the method, and leaves ``output-N.bin``, likewise, for
each output that is a tensor.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vgf_conformance.formats.delegate import Port
from vgf_conformance.formats.pte import Executable
from vgf_conformance.formats.tosa import storage
from vgf_conformance.launch import python_environment, signal_name
from vgf_conformance.targets.base import Array, Outputs, TargetFailure
from vgf_conformance.targets.logs import runtime_says
from vgf_conformance.targets.process import LAST_WORDS
from vgf_conformance.targets.programs import said, wait
from vgf_conformance.targets.sentinel import compare_runs
from vgf_conformance.targets.validation import messages
from vgf_conformance.untrusted import BadFile, kind_of, read_bytes
from vgf_conformance.vocabulary import Finding, Stage, Verdict


class ExecutorRunner:
    """Executes programs with the executor_runner at ``path``; ``environment`` is added to its environment."""

    def __init__(self, path: Path, environment: Mapping[str, str], time_limit: float) -> None:
        self._path = path.absolute()
        self._environment = dict(environment)
        self._time_limit = time_limit

    def execute(self, program: Executable, inputs: Sequence[Any]) -> Outputs:
        """Run twice on logical arrays; raises TargetFailure where the runner fails or leaves no output."""
        _require_static_tensors(program)
        with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
            here = Path(folder)
            (here / "program.pte").write_bytes(program.pte)
            for number, (value, port) in enumerate(zip(inputs, program.inputs, strict=True)):
                # What is no tensor has its value in the program; the runner counts it all the same.
                content = b"" if port is None else np.asarray(value).transpose(port.dim_order).tobytes()
                (here / f"input{number}.bin").write_bytes(content)
            (first, text), (second, _) = (self._run(here, program) for _ in range(2))
        outputs = compare_runs(first, second)
        outputs.validation = messages(text)
        return outputs

    def close(self) -> None:
        """Nothing is left running."""

    def _run(self, folder: Path, program: Executable) -> tuple[list[Array], str]:
        for left in folder.glob("output-*.bin"):
            left.unlink()
        files = ",".join(f"input{number}.bin" for number in range(len(program.inputs)))
        command = [str(self._path), "--model_path=program.pte", f"--inputs={files}", "--output_file=output"]
        with (folder / "log.txt").open("w+b") as log:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=python_environment(self._environment),
                    start_new_session=True,
                )
            except OSError as error:
                message = f"{self._path} does not start ({error.strerror})"
                raise TargetFailure(Verdict.ERROR, Stage.RUN, Finding.RAISED, message) from error
            status = wait(process, self._time_limit)
            text = said(log.fileno())
        if status != 0:
            raise self._failure(status, text)
        return [
            _output(folder, number, port, text)
            for number, port in enumerate(program.outputs)
            if port is not None
        ], text

    def _failure(self, status: int | None, text: str) -> TargetFailure:
        name, words = f"the ExecuTorch runtime: {self._path.name}", text[-LAST_WORDS:].strip()
        if status is None:
            message = f"{name} did not end within {self._time_limit:g} s: it was killed"
            return TargetFailure(Verdict.TIMEOUT, Stage.RUN, Finding.HUNG, message, words)
        if status < 0:
            message = f"{name} was ended by {signal_name(status)}"
            return TargetFailure(Verdict.CRASH, Stage.RUN, Finding.CRASHED, message, words)
        message = f"{name} ended with exit status {status}{runtime_says(text)}"
        return TargetFailure(Verdict.FAIL, Stage.RUN, Finding.RAISED, message, words)


def _require_static_tensors(program: Executable) -> None:
    """The runner takes every input at its largest shape, and writes tensors only."""
    ports = (*program.inputs, *program.outputs)
    lacks = ""
    if any(port is not None and -1 in port.shape for port in ports):
        lacks = "runs dynamic shapes at their upper bound only"
    elif None in program.outputs:
        lacks = "writes no outputs but tensors"
    if lacks:
        raise TargetFailure(
            Verdict.UNSUPPORTED, Stage.RUN, Finding.CAPABILITY, f"the stand-alone executor_runner {lacks}"
        )


def _output(folder: Path, number: int, port: Port, words: str) -> Array:
    """Output ``number`` as a logical array; raises TargetFailure where its file is not what it must be."""
    dtype = storage(port.dtype)
    wanted = int(np.prod(port.shape, dtype=np.int64)) * dtype.itemsize
    path = folder / f"output-{number}.bin"
    try:
        content = read_bytes(path, wanted)
        wrong = f"has {len(content)} bytes, should have {wanted}" if len(content) != wanted else ""
    except BadFile as error:
        content, wrong = b"", "was not written" if kind_of(path) is None else error.why
    if wrong:
        message = f"the ExecuTorch runtime: executor_runner: {path.name} {wrong}"
        raise TargetFailure(Verdict.FAIL, Stage.RUN, Finding.UNWRITTEN, message, words[-LAST_WORDS:].strip())
    array = np.frombuffer(content, dtype).reshape(port.physical_shape)
    return array.transpose([port.dim_order.index(axis) for axis in range(len(port.dim_order))])
