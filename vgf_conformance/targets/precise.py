"""A TOSA graph on the reference model in fp64: its precise mode, with bounds where a test's rules want them.

The Python binding does not have that mode, the program does.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats.arrays import npy, raw
from vgf_conformance.formats.tosa import TosaGraph
from vgf_conformance.launch import python_environment
from vgf_conformance.targets import toolkit

_TIME_LIMIT = 120.0
_GRAPH = "graph.tosa"


class PreciseFailure(Exception):
    """The reference model gives no exact result; the message says why."""


@dataclass(frozen=True)
class Exact:
    """One output in fp64 (integers as they are), and its bounds where its rule has some."""

    value: NDArray[Any]
    bounds: NDArray[Any] | None


def precise_results(tosa: bytes, graph: TosaGraph, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of any graph in fp64, in its order; ``inputs`` are as stored, in its order.

    Raises PreciseFailure where the run is unpredictable or the graph is invalid.
    """
    given = [f"input-{number}.npy" for number in range(len(graph.inputs))]
    description = {
        "tosa_file": _GRAPH,
        "ifm_name": list(graph.inputs),
        "ifm_file": given,
        "ofm_name": list(graph.outputs),
        "ofm_file": [f"output-{number}.npy" for number in range(len(graph.outputs))],
        "expected_failure": False,
    }
    files = {name: _saved(array) for name, array in zip(given, inputs, strict=True)}
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        found = run_description(description, {_GRAPH: tosa, **files}, Path(folder))
    return [found[name].value for name in graph.outputs]


def run_description(
    description: Mapping[str, Any], files: Mapping[str, bytes], folder: Path
) -> dict[str, Exact]:
    """Run a test as tosa-tools describe one, in ``folder``; results by output name. Raises PreciseFailure."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "desc.json").write_text(json.dumps(description), "utf-8")
    _run(folder / "desc.json")
    return {
        name: Exact(np.load(folder / file), _optional(folder / f"bounds_{file}"))
        for name, file in zip(description["ofm_name"], description["ofm_file"], strict=True)
    }


def _run(description: Path) -> None:
    command = [
        str(toolkit.reference_program()),
        f"--test_desc={description}",
        f"--operator_fbs={toolkit.operator_schema()}",
        "--precise_mode=1",
    ]
    # It starts gdb, found through PATH, for a backtrace of an invalid graph: that takes 8 to 17 s. An empty
    # PATH would mean the working directory.
    environment = python_environment({"PATH": os.devnull})
    try:
        done = subprocess.run(command, capture_output=True, env=environment, timeout=_TIME_LIMIT)
    except subprocess.TimeoutExpired:
        raise PreciseFailure(f"no answer within {_TIME_LIMIT:g} s") from None
    if done.returncode:
        ending = {1: "UNPREDICTABLE", 2: "ERROR"}.get(done.returncode, f"with exit status {done.returncode}")
        words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise PreciseFailure(f"the fp64 run ends {ending}: {words[-1] if words else 'it does not say why'}")


def _saved(array: NDArray[Any]) -> bytes:
    """The array as a ``.npy`` file; narrow floats as ``<V2``, which is how the program knows them."""
    data = raw(array)
    if data.dtype.kind != "V":
        return npy(data)
    file = io.BytesIO()
    # numpy itself would write |V2.
    header = {"descr": f"<V{data.dtype.itemsize}", "fortran_order": False, "shape": data.shape}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
    return file.getvalue() + data.tobytes()


def _optional(path: Path) -> NDArray[Any] | None:
    return np.load(path) if path.exists() else None
