"""What the reader tells of TOSA graphs beside their content."""

from __future__ import annotations

import importlib.metadata
import subprocess
from pathlib import Path

import torch

from tests.subjects import INT, randn, request
from vgf_conformance.formats import tosa_schema
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, TosaTensor, read_graph
from vgf_conformance.lowering.cache import Cache
from vgf_conformance.lowering.lower import lower

TENSORS = {
    name: TosaTensor(name, (2,), dtype)
    for name, dtype in {
        "mask": "bool",
        "x": "float32",
        "y": "float32",
        "q": "int8",
        "w": "int4",
        "v": "int8",
        "acc": "int32",
        "dims": "shape",
    }.items()
}


def graph(*operators: tuple[str, str, str]) -> TosaGraph:
    made = [
        TosaOperator(name, {}, tuple(inputs.split()), tuple(outputs.split()))
        for name, inputs, outputs in operators
    ]
    return TosaGraph("1.0.0", TENSORS, tuple(made), (), ())


def test_operators_are_counted_by_the_dtype_that_they_work_on() -> None:
    counted = graph(
        ("CONST", "", "x"),
        ("ADD", "x y", "y"),
        ("ADD", "acc acc", "acc"),
        ("ADD", "x x", "x"),
        # A comparison by what it compares, a selection by what it chooses from, a cast by what it takes.
        ("GREATER", "x y", "mask"),
        ("SELECT", "mask q q", "q"),
        ("CAST", "q", "acc"),
        ("RESHAPE", "x dims", "y"),
        # Weights of another type than the data are worth saying, those of the same are not.
        ("CONV2D", "q w acc", "acc"),
        ("CONV2D", "q v acc", "acc"),
        ("CUSTOM", "", "x"),
        ("VARIABLE_WRITE", "", ""),
    )
    assert counted.operator_dtypes() == {
        "ADD": {"float32": 2, "int32": 1},
        "CAST": {"int8": 1},
        "CONV2D": {"int8": 1, "int8 x int4": 1},
        "CUSTOM": {"float32": 1},
        "GREATER": {"float32": 1},
        "RESHAPE": {"float32": 1},
        "SELECT": {"int8": 1},
        "VARIABLE_WRITE": {"": 1},
    }
    assert {name: sum(found.values()) for name, found in counted.operator_dtypes().items()} == (
        counted.operator_counts()
    )


def test_the_schema_is_what_flatc_makes_of_tosa_tools(tmp_path: Path) -> None:
    """``tosa_schema.py`` stands in for tosa-tools, which is too large for whoever only reads graphs."""
    tools = Path(importlib.metadata.distribution("tosa-tools").locate_file("bin"))  # type: ignore[arg-type]
    subprocess.run(
        [tools / "flatc", "--python", "--gen-onefile", "-o", tmp_path, tools / "tosa.fbs"], check=True
    )
    generated = (tmp_path / "tosa_generated.py").read_text()
    assert Path(tosa_schema.__file__).read_text() == generated


def test_a_constant_with_more_bytes_than_its_shape_needs(cache: Cache) -> None:
    """ExecuTorch writes a zero point for each of 16 channels into a constant of one number."""
    layer = torch.nn.Conv2d(3, 16, 3)
    (delegate,) = lower(request(layer, randn(1, 3, 8, 8), profile=INT, scheme="a8w8-pc"), cache).delegates
    read = read_graph(delegate.tosa)
    (points,) = (tensor for name, tensor in read.tensors.items() if name.endswith("_weight_zp"))
    assert points.data is not None
    assert points.data.tolist() == [0]
