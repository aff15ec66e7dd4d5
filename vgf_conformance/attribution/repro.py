"""A standalone folder that shows a wrong operator: for its developer, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vgf_conformance import files
from vgf_conformance.attribution.bisect import Culprit
from vgf_conformance.formats.arrays import npy
from vgf_conformance.formats.scenario import write_scenario
from vgf_conformance.targets.base import Array

_README = """\
{operator}: {message}

graph.tosa       the TOSA graph
graph.vgf        the same, converted
input*.npy       its inputs, in memory order
expected*.npy    what the TOSA reference model gives
actual*.npy      what {target} gave ({driver})

Run it with the ML SDK's scenario runner, on any driver (the emulation layers where it has no
VK_ARM_data_graph):

    scenario_runner --scenario scenario.json --output out

and compare out/output*.npy with expected*.npy. bfloat16 is stored as uint16.
"""

_LOWERED_README = """\
{operator}: {message}

graph.tosa       the TOSA operators that lowering made, alone
input*.npy       their inputs, in memory order
expected*.npy    what the PyTorch program gives, in memory order
actual*.npy      what the TOSA reference model gives

What is not there is not known. Run the graph with tosa_reference_model. bfloat16 is stored as uint16.
"""


@dataclass(frozen=True)
class Lowered:
    """The graph that shows what lowering got wrong, with arrays in memory order, as far as there are any."""

    tosa: bytes
    inputs: Sequence[Array] = ()
    expected: Sequence[Array] = ()
    actual: Sequence[Array] = ()


def write_repro(culprit: Culprit, folder: Path, target: str, driver: str) -> Path:
    """Write the folder, and return it; files of an earlier run with these names are replaced."""
    if culprit.delegate.vgf:
        write_scenario(folder, culprit.delegate.vgf, culprit.inputs)
    files.write(folder / "graph.tosa", culprit.delegate.tosa)
    _write_arrays(folder, "expected", culprit.expected)
    _write_arrays(folder, "actual", culprit.actual)
    text = _README.format(
        operator=culprit.operator.name, message=culprit.message, target=target, driver=driver or "no driver"
    )
    files.write(folder / "README.txt", text)
    return folder


def write_lowered(shown: Lowered, folder: Path, operator: str, message: str) -> Path:
    """Write the folder for a fault of the lowering, and return it; as write_repro."""
    files.write(folder / "graph.tosa", shown.tosa)
    _write_arrays(folder, "input", shown.inputs)
    _write_arrays(folder, "expected", shown.expected)
    _write_arrays(folder, "actual", shown.actual)
    files.write(folder / "README.txt", _LOWERED_README.format(operator=operator, message=message))
    return folder


def _write_arrays(folder: Path, name: str, arrays: Sequence[Array]) -> None:
    for number, array in enumerate(arrays):
        files.write(folder / f"{name}{number}.npy", npy(np.asarray(array)))
