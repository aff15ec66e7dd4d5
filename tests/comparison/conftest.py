"""Conformance tests that TOSA's own generator writes, as graphs with inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tosa_reference_model
from numpy.typing import NDArray

from vgf_conformance.comparison import operators
from vgf_conformance.formats.tosa import TosaGraph, read_graph, storage

#: Every operator that propagation covers, as the generator names them. The transforms want shapes of
#: their own: see test_transform.py.
OPERATORS = sorted(name.lower() for name in operators.OPERATORS if "FFT" not in name)

#: What the reference model's Python binding cannot hand over: it leaves such tensors empty.
_NOT_BOUND = {"int4", "int48"}


@dataclass(frozen=True)
class GeneratedCase:
    """One generated test."""

    name: str
    operator: str
    data: bytes
    graph: TosaGraph
    inputs: list[NDArray[Any]]

    def reference(self) -> list[NDArray[Any]] | None:
        """The reference model's outputs, or None where its binding cannot give them."""
        return run_reference(self.data, self.graph, self.inputs)


def run_reference(data: bytes, graph: TosaGraph, inputs: list[NDArray[Any]]) -> list[NDArray[Any]] | None:
    if _NOT_BOUND & {graph.tensors[name].dtype for name in graph.inputs + graph.outputs}:
        return None
    # bfloat16 travels as two raw bytes in both directions.
    raw = [item.view("V2") if item.dtype == ml_dtypes.bfloat16 else item for item in inputs]
    outputs, status = tosa_reference_model.run(data, raw)
    assert status == tosa_reference_model.GraphStatus.TOSA_VALID
    tensors = [graph.tensors[name] for name in graph.outputs]
    return [
        (item.view(storage(tensor.dtype)) if item.dtype.kind == "V" else item).reshape(tensor.shape)
        for tensor, item in zip(tensors, outputs, strict=True)
    ]


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[GeneratedCase]]:
    """Up to four cases per operator and dtype, by operator; written once for the session."""
    folder = tmp_path_factory.mktemp("tosa")
    names = [*OPERATORS, *(f"{name}_TEMPLATE" for name in OPERATORS)]
    selection = {"selection": {"default": {"permutes": ["type"], "maximum": 1}}}
    (folder / "selection.json").write_text(json.dumps(dict.fromkeys(names, selection)))
    library = Path(tosa_reference_model.__file__).parent / "libtosa_reference_generate_lib.so"
    subprocess.run(
        [
            *(sys.executable, "-m", "generator.tosa_verif_build_tests"),
            *("-o", str(folder), "--generate-lib-path", str(library), "--seed", "7"),
            *("--tosa-version", "1.0.0", "--test-type", "positive", "--no-special-tests"),
            *("--filter", f"({'|'.join(OPERATORS)})($|_[0-9])"),
            *("--extension", "tosa-ext-int16", "tosa-ext-int4", "tosa-ext-bf16", "tosa-ext-inexactround"),
            "tosa-ext-doubleround",
            *("--tensor-dim-range", "1,6", "--max-batch-size", "2", "--max-resize-output-dim", "16"),
            *("--test-selection-config", str(folder / "selection.json")),
        ],
        check=True,
        capture_output=True,
    )
    cases: dict[str, list[GeneratedCase]] = {name: [] for name in OPERATORS}
    for case in _cases(folder):
        cases[case.operator].append(case)
    return cases


def _cases(folder: Path) -> Iterator[GeneratedCase]:
    for description in sorted(folder.glob("*/*/desc.json")):
        data = (description.parent / "test.tosa").read_bytes()
        graph = read_graph(data)
        files = json.loads(description.read_text())["ifm_file"]
        inputs = [
            _load(description.parent / file, graph.tensors[name].dtype)
            for name, file in zip(graph.inputs, files, strict=True)
        ]
        kinds = [name for name in OPERATORS if name.upper() in graph.operator_counts()]
        operator = kinds[0] if kinds else description.parent.parent.name
        if operator in OPERATORS:
            yield GeneratedCase(description.parent.name, operator, data, graph, inputs)


def _load(path: Path, dtype: str) -> NDArray[Any]:
    data = np.load(path)
    return np.asarray(data.view(storage(dtype)) if dtype == "bfloat16" and data.dtype.kind == "V" else data)
