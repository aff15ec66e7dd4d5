"""A pack as folders that the stand-alone scenario runner runs on any device, and the outputs brought back."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from vgf_conformance import files
from vgf_conformance.formats.arrays import HEADER_LIMIT, read_npy
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.packs.manifest import Call, PackedCase
from vgf_conformance.packs.pack import Array, Pack
from vgf_conformance.packs.run import run_case
from vgf_conformance.results.record import Record
from vgf_conformance.targets.base import Outputs, TargetFailure
from vgf_conformance.terminal import one_line
from vgf_conformance.untrusted import FOLDER, BadFile, Malformed, is_folder, kind_of, read_bytes
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

#: The target's word in records of outputs that were brought back: nobody here saw what made them.
DEVICE = "device"

_README = """\
{cases} cases of the golden pack {name} (SHA-256 {sha256}).

One folder for each case, and in it call0, call1 ... for each call of a compiled graph:

    scenario.json    for the ML SDK's stand-alone scenario runner
    graph.vgf        what it runs
    input*.npy       the inputs, in memory order
    expected*.npy    what the TOSA reference model gives
    exact*.npy       the same in fp64
    graph.tosa       the graph as TOSA, by which results are judged

On the device, with the emulation layers where the driver lacks VK_ARM_tensors or VK_ARM_data_graph:

    for call in */call*; do
        (cd "$call" && scenario_runner --scenario scenario.json --output .) || echo "failed: $call"
    done

leaves output0.npy, output1.npy ... in each call's folder. Bring this folder back, or those files alone in
their folders, and have them judged:

    vgf-conformance pack verify {file} --outputs {folder}

bfloat16 is stored as uint16, fp8 as uint8.
"""


def unpack(pack: Pack, folder: Path) -> None:
    """Write the pack into ``folder``, which must be empty or not exist; raises UserError.

    No name of a file comes from the pack as it is (see ``PackedCase.folder``), and the scenarios, which say
    what the runner reads and writes, are made here.
    """
    try:
        if kind_of(folder) is not None and (not is_folder(folder) or any(folder.iterdir())):
            raise UserError(f"{folder} exists and is not an empty folder: name another")
        for case in pack.manifest.cases:
            for number, call in enumerate(case.calls):
                target = _call_folder(folder, case, number)
                target.mkdir(parents=True)
                for name, member in _files(call):
                    files.write(target / name, pack.content(member))
                files.write(target / "scenario.json", pack.scenario(call))
        text = _README.format(
            cases=len(pack.manifest.cases),
            name=one_line(pack.path.name),
            sha256=pack.sha256,
            file=_word(pack.path.name),
            folder=_word(folder.name or "."),
        )
        files.write(folder / "README.txt", text)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}") from error


def _word(name: str) -> str:
    """A file's name as one word of a shell command, on one line whatever it holds."""
    return shlex.quote(one_line(name))


def _files(call: Call) -> Iterator[tuple[str, str]]:
    """The files of a call's folder that are members, each with its member."""
    yield from (("graph.vgf", call.vgf), ("graph.tosa", call.tosa))
    for number, array in enumerate(call.inputs):
        yield f"input{number}.npy", array.member
    for number, output in enumerate(call.outputs):
        yield f"expected{number}.npy", output.array.member
        if output.exact is not None:
            yield f"exact{number}.npy", output.exact.member


def _call_folder(folder: Path, case: PackedCase, number: int) -> Path:
    return folder / case.folder / f"call{number}"


def judge_outputs(pack: Pack, folder: Path) -> list[Record]:
    """A record for each case, of the outputs in an unpacked folder; a missing output is a failure.

    Raises UserError where the folder is none of this pack's, or an output is no ``.npy`` of numbers.
    """
    if not any(kind_of(folder / case.folder) == FOLDER for case in pack.manifest.cases):
        raise UserError(f"{folder}: no folder of a case of {pack.path}; see vgf-conformance pack unpack")
    return [run_case(pack, case, _BroughtBack(folder, case)) for case in pack.manifest.cases]


class _BroughtBack:
    """A Target that ran already: it gives the outputs that lie in a case's folder."""

    name = DEVICE
    driver = ""

    def __init__(self, folder: Path, case: PackedCase) -> None:
        self._folder = folder
        self._case = case

    def load(self, delegates: Sequence[Delegate]) -> None:
        """Nothing is built."""

    def run(self, index: int, inputs: Sequence[Array]) -> Outputs:
        """The outputs of call ``index``; raises TargetFailure where one is missing."""
        if index >= len(self._case.calls):
            message = "an unpacked folder has no graph with them"
            raise TargetFailure(Verdict.UNSUPPORTED, Stage.RUN, Finding.CAPABILITY, message)
        folder = _call_folder(self._folder, self._case, index)
        outputs = self._case.calls[index].outputs
        return Outputs(
            [
                _output(folder / f"output{number}.npy", number, output.array.shape)
                for number, output in enumerate(outputs)
            ]
        )

    def close(self) -> None:
        """Nothing runs."""


def read_output(content: bytes, shape: tuple[int, ...]) -> Array:
    """An output of ``shape`` in a ``.npy`` file, narrow floats as integers; raises Malformed."""
    array = read_npy(content)
    # A VGF has a rank-0 tensor as one of shape [1].
    return array.reshape(shape) if array.size == 1 and set(shape) <= {1} else array


def output_limit(shape: tuple[int, ...]) -> int:
    """Bytes that the file of an output may have: eight is the widest element that a device gives."""
    return HEADER_LIMIT + 8 * max(1, math.prod(shape))


def _output(path: Path, number: int, shape: tuple[int, ...]) -> Array:
    # Neither the case's folder nor the call's may lead elsewhere.
    for folder in (path.parent.parent, path.parent):
        if kind_of(folder) not in (FOLDER, None):
            raise BadFile(folder, f"is {kind_of(folder)}, not a folder")
    if kind_of(path) is None:
        message = f"output {number} is missing: {path.parent.parent.name}/{path.parent.name}/{path.name}"
        raise TargetFailure(Verdict.FAIL, Stage.RUN, Finding.UNWRITTEN, message)
    content = read_bytes(path, output_limit(shape))
    try:
        return read_output(content, shape)
    except Malformed as error:
        raise BadFile(path, str(error)) from error
