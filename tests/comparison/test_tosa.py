"""Reading TOSA flatbuffers: every kind of content, and nothing but ValueError on what is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tosa_serializer as ts

from tests.comparison.build import PROPAGATE, GraphBuilder
from tests.comparison.conftest import GeneratedCase
from vgf_conformance.formats.tosa import read_graph, storage


def clamp() -> bytes:
    build = GraphBuilder()
    x = build.input("x", [2, 3], "float16")
    limits = {"min_val": list(np.float16(-1.5).tobytes()), "max_val": list(np.float16(math.inf).tobytes())}
    return build.finish(build.operator("CLAMP", [x], [2, 3], "float16", **limits, nan_mode=PROPAGATE))


def test_a_graph() -> None:
    graph = read_graph(clamp())
    assert graph.version == "1.0.0"
    assert graph.inputs == ("x",)
    (operator,) = graph.operators
    assert (operator.name, operator.inputs, operator.outputs) == ("CLAMP", ("x",), graph.outputs)
    assert operator.attributes == {"min_val": -1.5, "max_val": math.inf, "nan_mode": "PROPAGATE"}
    tensor = graph.tensors["x"]
    assert (tensor.shape, tensor.dtype, tensor.data) == ((2, 3), "float16", None)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int4", [-7, 7, -1]),
        ("int8", [-128, 127, 0]),
        ("int16", [-(2**15), 2**15 - 1, 5]),
        ("int32", [-(2**31), 2**31 - 1, 5]),
        ("int48", [-(2**47), 2**47 - 1, -1]),
        ("float32", [0.1, -math.inf, 1e-40]),
        ("float16", [0.5, math.inf, -2.0]),
        ("bfloat16", [0.5, math.inf, -2.0]),
        ("bool", [True, False, True]),
    ],
)
def test_constants(dtype: str, values: list[float]) -> None:
    build = GraphBuilder()
    name = build.constant(values, dtype)
    tensor = read_graph(build.finish(build.operator("IDENTITY", [name], [3], dtype))).tensors[name]
    assert tensor.data is not None
    assert tensor.data.dtype == storage(dtype)
    np.testing.assert_array_equal(tensor.data, np.array(values, storage(dtype)))


def test_shapes_are_tensors_of_integers(generated: dict[str, list[GeneratedCase]]) -> None:
    graph = generated["reshape"][0].graph
    (constant,) = [operator for operator in graph.operators if operator.name == "CONST_SHAPE"]
    shape = graph.tensors[constant.outputs[0]]
    assert shape.dtype == "shape"
    assert shape.data is not None
    assert tuple(shape.data) == graph.tensors[graph.outputs[0]].shape


def test_counts_leave_constants_out(generated: dict[str, list[GeneratedCase]]) -> None:
    assert generated["rescale"][0].graph.operator_counts() == {"RESCALE": 1}


def test_enumerations_come_by_name(generated: dict[str, list[GeneratedCase]]) -> None:
    (operator,) = [item for item in generated["conv2d"][0].graph.operators if item.name == "CONV2D"]
    assert operator.attributes["acc_type"] in {"int32", "int48", "float32", "float16"}
    assert len(operator.attributes["pad"]) == 4


@pytest.mark.parametrize(
    "data", [b"", b"TOSA", b"VGF1" * 8, bytes(64), b"\0\0\0\0TOSA", b"\xff" * 4 + b"TOSA" * 9]
)
def test_what_is_no_tosa(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a TOSA flatbuffer"):
        read_graph(data)


def test_cut_short_it_is_refused_or_read_in_full() -> None:
    data = clamp()
    for length in range(0, len(data), 3):
        try:
            # The last bytes are padding and a name that nothing uses.
            assert read_graph(data[:length]) == read_graph(data)
        except ValueError as error:
            assert str(error).startswith("not a TOSA flatbuffer")


def test_corrupt_it_is_refused_or_read_as_what_it_says() -> None:
    """One byte other in 400 ways: many are no TOSA any more, and a limit that became another is read so."""
    data, rng = clamp(), np.random.default_rng(3)
    refused, limits = 0, set()
    for _ in range(400):
        corrupt = bytearray(data)
        corrupt[int(rng.integers(8, len(data)))] ^= int(rng.integers(1, 256))
        try:
            graph = read_graph(bytes(corrupt))
        except ValueError as error:
            assert str(error).startswith("not a TOSA flatbuffer")
            refused += 1
        else:
            limits |= {operator.attributes.get("min_val") for operator in graph.operators}
    assert 100 < refused < 400
    assert len(limits) > 1
    place = data.index(np.float16(-1.5).tobytes())
    other = data[:place] + np.float16(-2.5).tobytes() + data[place + 2 :]
    assert read_graph(other).operators[0].attributes["min_val"] == -2.5


def test_several_blocks_in_a_region_are_refused_by_name() -> None:
    serializer = ts.TosaSerializer(targetMajor=1, targetMinor=0, targetPatch=0, targetDraft=False)
    serializer.startRegion("other", "")
    for name in ("one", "two"):
        serializer.currRegion.addBasicBlock(name)
    with pytest.raises(ValueError, match="the region 'other' has 2 blocks: only one is supported"):
        read_graph(bytes(serializer.serialize()))
