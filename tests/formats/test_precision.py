"""What a mixed graph computes in floating point, apart from what enters and leaves its quantised part."""

from __future__ import annotations

import numpy as np

from vgf_conformance.formats.precision import computed_in_floating_point, requantisations
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, TosaTensor


def operator(name: str, inputs: str, output: str) -> TosaOperator:
    return TosaOperator(name, {}, tuple(inputs.split()), (output,))


def graph(dtypes: dict[str, str], *operators: TosaOperator) -> TosaGraph:
    """A graph of tensors of two elements; those whose names begin with ``c`` are constants."""
    tensors = {
        name: TosaTensor(name, (2,), dtype, np.ones(2, np.float32) if name.startswith("c") else None)
        for name, dtype in dtypes.items()
    }
    return TosaGraph("1.0.0", tensors, operators, ("x",), (operators[-1].outputs[0],))


def floats(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), "float32")


#: As the backend writes quantize_per_tensor: round(x / s) to even or away from zero, + z, limits, int8.
QUANTISE = (
    operator("MUL", "x c_scale", "scaled"),
    operator("ADD", "scaled c_half", "up"),
    operator("FLOOR", "up", "floor"),
    operator("SUB", "scaled c_half", "down"),
    operator("CEIL", "down", "ceil"),
    operator("GREATER_EQUAL", "scaled c_zero", "sign"),
    operator("SELECT", "sign floor ceil", "rounded"),
    operator("ADD", "rounded c_zp", "shifted"),
    operator("CLAMP", "shifted", "clamped"),
    operator("CAST", "clamped", "q"),
)
#: As it writes dequantize_per_tensor, with the image turned on the way.
DEQUANTISE = (
    operator("CAST", "q", "wide"),
    operator("SUB", "wide c_zp32", "less"),
    operator("CAST", "less", "number"),
    operator("TRANSPOSE", "number", "turned"),
    operator("MUL", "turned c_scale", "y"),
)
DTYPES = {
    **floats("x c_scale scaled c_half up floor down ceil c_zero rounded c_zp shifted clamped"),
    **{"sign": "bool", "q": "int8", "wide": "int32", "c_zp32": "int32", "less": "int32"},
    **floats("number turned y"),
}


def test_quantising_and_dequantising_do_not_count() -> None:
    assert computed_in_floating_point(graph(DTYPES, *QUANTISE, *DEQUANTISE)) == {}


def test_what_is_left_in_floating_point_counts() -> None:
    dtypes = {**DTYPES, **floats("t s")}
    found = graph(dtypes, *QUANTISE, *DEQUANTISE, operator("TANH", "y", "t"), operator("ADD", "t t", "s"))
    assert computed_in_floating_point(found) == {"ADD": 1, "TANH": 1}


def test_operators_before_the_factor_of_a_quantisation_count() -> None:
    dtypes = {**DTYPES, **floats("z")}
    before = (operator("FLOOR", "z", "x"), *QUANTISE)
    assert computed_in_floating_point(graph(dtypes, *before)) == {"FLOOR": 1}


def test_a_factor_that_dequantises_is_constant() -> None:
    dtypes = {**DTYPES, **floats("z")}
    cast, shift, number, turn, _ = DEQUANTISE
    product = operator("MUL", "turned z", "y")
    assert computed_in_floating_point(graph(dtypes, cast, shift, number, turn, product)) == {"MUL": 1}


def test_requantisations_are_counted_by_dtypes() -> None:
    dtypes = {"x": "int8", "a": "int32", "b": "int8"}
    found = graph(
        dtypes, operator("RESCALE", "x", "a"), operator("ADD", "a a", "a"), operator("RESCALE", "a", "b")
    )
    assert requantisations(found) == {"int32 to int8": 1, "int8 to int32": 1}
