"""Outputs on their way into a submission, and out of one."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vgf_conformance.formats.arrays import npy
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.packs.folder import output_limit, read_limited, read_output
from vgf_conformance.packs.manifest import PackedCase
from vgf_conformance.qualification.layout import output_name
from vgf_conformance.results.record import OutputDigest, Record
from vgf_conformance.targets.base import Array, Outputs, Target, TargetFailure
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict


class Keeping:
    """A Target that writes whatever another one gives into a shard's folder, by its SHA-256."""

    def __init__(self, target: Target, folder: Path) -> None:
        self._target = target
        self._folder = folder
        self.name = target.name
        self.driver = target.driver

    def load(self, delegates: Sequence[Delegate]) -> None:
        """As the other target."""
        self._target.load(delegates)

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        """As the other target; raises UserError where an output cannot be written."""
        outputs = self._target.run(index, inputs)
        for array in outputs.arrays:
            _keep(self._folder, npy(array))
        return outputs

    def close(self) -> None:
        """As the other target."""
        self._target.close()


def _keep(folder: Path, content: bytes) -> None:
    path = folder / output_name(hashlib.sha256(content).hexdigest())
    try:
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        # mkstemp's own mode is for its owner alone. Renamed when whole: a kill leaves no half output.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


class HandedIn:
    """A Target that ran already: it gives the outputs that a record of a submission names."""

    driver = ""

    def __init__(self, folder: Path, case: PackedCase, record: Record) -> None:
        self.name = record.target
        self._folder = folder
        self._case = case
        self._record = record

    def load(self, delegates: Sequence[Delegate]) -> None:
        """Nothing is built."""

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        """The outputs of call ``index``; raises TargetFailure where the record has none of it, or no such."""
        if index >= len(self._record.outputs):
            raise _refused("the results name no outputs of this call")
        shapes = [output.array.shape for output in self._case.calls[index].outputs]
        named = self._record.outputs[index]
        if len(named) != len(shapes):
            raise _refused(f"the results name {len(named)} outputs, should be {len(shapes)}")
        return Outputs([self._read(output, shape) for output, shape in zip(named, shapes, strict=True)])

    def close(self) -> None:
        """Nothing runs."""

    def _read(self, output: OutputDigest, shape: tuple[int, ...]) -> Array:
        name = output_name(output.sha256)
        try:
            content = read_limited(self._folder / name, output_limit(shape))
            if hashlib.sha256(content).hexdigest() != output.sha256:
                raise ValueError("its SHA-256 is not that of its name")
            return read_output(content, shape)
        except OSError as error:
            raise _refused(f"{name}: {error.strerror or error}") from error
        except ValueError as error:
            raise _refused(f"{name}: {error}") from error


def _refused(message: str) -> TargetFailure:
    return TargetFailure(Verdict.FAIL, Stage.RUN, Finding.INVALID, message)
