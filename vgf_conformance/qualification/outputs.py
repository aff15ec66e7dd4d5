"""Outputs on their way into a submission, and out of one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from vgf_conformance import files
from vgf_conformance.formats.arrays import as_dtype, npy, read_npy
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.packs.archive import MEMBER_LIMIT
from vgf_conformance.packs.folder import output_limit
from vgf_conformance.packs.manifest import PackedCase
from vgf_conformance.packs.pack import Pack
from vgf_conformance.qualification.layout import output_name
from vgf_conformance.results.record import OutputDigest, Record
from vgf_conformance.targets.base import Array, Outputs, Target, TargetFailure
from vgf_conformance.untrusted import FILE, BadFile, kind_of, read_bytes
from vgf_conformance.vocabulary import Finding, Stage, Verdict


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
    if kind_of(path) != FILE or read_bytes(path, MEMBER_LIMIT) != content:
        files.write(path, content)


def read_outputs(folder: Path, case: PackedCase, record: Record) -> list[list[Array]]:
    """The outputs of the calls that a record names, out of a shard's folder.

    Raises ValueError where there are more or fewer than the pack's calls have, and, naming the file, where
    one is not as ``qualify`` writes it.
    """
    found = []
    for number, (named, call) in enumerate(zip(record.outputs, case.calls, strict=False)):
        if len(named) != len(call.outputs):
            raise ValueError(f"names {len(named)} outputs of call {number}, should be {len(call.outputs)}")
        shapes = [output.array.shape for output in call.outputs]
        found.append([_read(folder, output, shape) for output, shape in zip(named, shapes, strict=True)])
    return found


def read_visible(folder: Path, pack: Pack, case: PackedCase, record: Record) -> dict[int, list[Array]]:
    """The intermediate results that a record names, by the number of their call; raises as read_outputs."""
    found = {}
    for number, (named, call) in enumerate(zip(record.visible, case.calls, strict=False)):
        if not named:
            continue
        shown = pack.load(call).visible
        ports = () if shown is None else shown.outputs
        if len(named) != len(ports):
            raise ValueError(
                f"names {len(named)} intermediate results of call {number}, should be {len(ports)}"
            )
        found[number] = [_read(folder, item, port.shape) for item, port in zip(named, ports, strict=True)]
    return found


def _read(folder: Path, output: OutputDigest, shape: tuple[int, ...]) -> Array:
    name = output_name(output.sha256)
    try:
        content = read_bytes(folder / name, output_limit(shape))
        if hashlib.sha256(content).hexdigest() != output.sha256:
            raise ValueError("its SHA-256 is not that of its name")
        array = as_dtype(read_npy(content), output.dtype)
        # One array has one file: the order of its axes in memory and the header are ours.
        if npy(array) != content:
            raise ValueError("not written as qualify writes outputs")
    except BadFile as error:
        raise ValueError(f"{name}: {error.why}") from error
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return array


class HandedIn:
    """A Target that ran already: it gives the outputs that a record of a submission names.

    ``visible`` are the intermediate results of its noisy calls: call n of so many ``calls`` has them as call
    ``calls`` + n (``attribution.noisy``).
    """

    def __init__(
        self,
        name: str,
        driver: str,
        outputs: Sequence[Sequence[Array]],
        *,
        calls: int,
        visible: Mapping[int, Sequence[Array]],
    ) -> None:
        self.name = name
        self.driver = driver
        self._outputs = {
            **dict(enumerate(outputs)),
            **{calls + number: item for number, item in visible.items()},
        }

    def load(self, delegates: Sequence[Delegate]) -> None:
        """Nothing is built."""

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        """The outputs of call ``index``; raises TargetFailure where the record names none."""
        if index not in self._outputs:
            message = f"the results name no outputs of call {index}"
            raise TargetFailure(Verdict.FAIL, Stage.RUN, Finding.INVALID, message)
        return Outputs(list(self._outputs[index]))

    def close(self) -> None:
        """Nothing runs."""
