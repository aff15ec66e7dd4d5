"""A standalone folder that shows a wrong operator: for a driver's developer, without PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vgf_conformance import files
from vgf_conformance.attribution.bisect import Culprit
from vgf_conformance.formats.arrays import npy
from vgf_conformance.formats.scenario import write_scenario

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


def write_repro(culprit: Culprit, folder: Path, target: str, driver: str) -> Path:
    """Write the folder, and return it; files of an earlier run with these names are replaced."""
    write_scenario(folder, culprit.delegate.vgf, culprit.inputs)
    files.write(folder / "graph.tosa", culprit.delegate.tosa)
    for name, arrays in (("expected", culprit.expected), ("actual", culprit.actual)):
        for number, array in enumerate(arrays):
            files.write(folder / f"{name}{number}.npy", npy(np.asarray(array)))
    text = _README.format(
        operator=culprit.operator.name, message=culprit.message, target=target, driver=driver or "no driver"
    )
    files.write(folder / "README.txt", text)
    return folder
