"""Propagation through graphs of several operators, and that every operator's bound is sound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tosa_serializer as ts
from numpy.typing import NDArray

from tests.comparison.build import PROPAGATE, GraphBuilder
from tests.comparison.conftest import run_reference
from vgf_conformance.comparison import bounds
from vgf_conformance.comparison.operators import OPERATORS
from vgf_conformance.comparison.operators.base import Bounded, Call
from vgf_conformance.comparison.propagation import NotCovered, exactly, propagate, single_operator
from vgf_conformance.formats.tosa import TosaGraph, TosaOperator, read_graph, storage

RNG = np.random.default_rng(5)


def reference(data: bytes, *inputs: NDArray[Any]) -> NDArray[Any]:
    outputs = run_reference(data, read_graph(data), list(inputs))
    assert outputs is not None
    return outputs[0]


def softmax(dtype: str) -> bytes:
    build = GraphBuilder()
    x = build.input("x", [4, 16], dtype)
    largest = build.operator("REDUCE_MAX", [x], [4, 1], dtype, axis=1, nan_mode=PROPAGATE)
    powers = build.operator("EXP", [build.operator("SUB", [x, largest], [4, 16], dtype)], [4, 16], dtype)
    total = build.operator("REDUCE_SUM", [powers], [4, 1], dtype, axis=1)
    inverse = build.operator("RECIPROCAL", [total], [4, 1], dtype)
    return build.finish(build.operator("MUL", [powers, inverse, build.constant([0], "int8")], [4, 16], dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_softmax_is_bounded_and_the_bound_is_worth_something(dtype: str) -> None:
    data = softmax(dtype)
    x = RNG.normal(size=(4, 16)).astype(storage(dtype))
    (result,) = propagate(read_graph(data), [x])
    shifted = np.exp(x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True))
    np.testing.assert_allclose(result.value, shifted / shifted.sum(1, keepdims=True))
    output = reference(data, x)
    assert bounds.within(output, result.value, result.error, dtype).all()
    # Below a hundred ULP: a wrong element cannot hide.
    assert (result.error <= 100 * bounds.ulp(result.value, 1, dtype)).all()


def rescale(
    build: GraphBuilder,
    x: str,
    shape: list[int],
    dtypes: tuple[str, str],
    scale: tuple[int, int],
    zp: int = 0,
) -> str:
    operands = [
        build.constant([scale[0]], "int32"),
        build.constant([scale[1]], "int8"),
        build.constant([zp if dtypes[0] == "int8" else 0], dtypes[0]),
        build.constant([zp if dtypes[1] == "int8" else 0], dtypes[1]),
    ]
    return build.operator(
        "RESCALE",
        [x, *operands],
        shape,
        dtypes[1],
        scale32=True,
        per_channel=False,
        rounding_mode=ts.RoundingMode.SINGLE_ROUND,
        input_unsigned=False,
        output_unsigned=False,
    )


def test_a_quantised_addition_may_differ_by_one_step_and_is_exact_in_tosa() -> None:
    build, shape = GraphBuilder(), [3, 7]
    operands = [
        rescale(build, build.input(name, shape, "int8"), shape, ("int8", "int32"), (3 << 28, 9), zp=-5)
        for name in ("a", "b")
    ]
    total = build.operator("ADD", operands, shape, "int32")
    data = build.finish(rescale(build, total, shape, ("int32", "int8"), (1431655765, 52), zp=3))
    inputs = [RNG.integers(-128, 128, shape).astype(np.int8) for _ in range(2)]
    (result,) = propagate(read_graph(data), inputs)
    np.testing.assert_array_equal(reference(data, *inputs), result.value)
    assert set(result.error.reshape(-1)) <= {0, 1}
    (exact,) = propagate(read_graph(data), inputs)
    assert exact.exact


def test_floats_between_integers() -> None:
    build, shape = GraphBuilder(), [64]
    x = build.operator("CAST", [build.input("x", shape, "int8")], shape, "float32")
    zero, scale = build.constant([0], "int8"), build.constant([0.05], "float32")
    curve = build.operator(
        "SIGMOID", [build.operator("MUL", [x, scale, zero], shape, "float32")], shape, "float32"
    )
    stretched = build.operator("MUL", [curve, build.constant([200.0], "float32"), zero], shape, "float32")
    data = build.finish(build.operator("CAST", [stretched], shape, "int16"))
    inputs = RNG.integers(-128, 128, shape).astype(np.int8)
    (result,) = propagate(read_graph(data), [inputs])
    assert (np.abs(reference(data, inputs) - result.value) <= result.error).all()
    # Few lie so near to a half that the sigmoid's error moves them to the next integer.
    assert np.count_nonzero(result.error) < 3


def test_rounded_constants() -> None:
    build = GraphBuilder()
    data = build.finish(
        build.operator(
            "MAXIMUM",
            [build.input("x", [2], "float32"), build.constant([0.1, 3.0], "float32")],
            [2],
            "float32",
            nan_mode=PROPAGATE,
        )
    )
    x = np.zeros(2, np.float32)
    assert propagate(read_graph(data), [x])[0].exact
    (rounded,) = propagate(read_graph(data), [x], rounded_constants=True)
    # 3 needs two bits of its fraction: nobody rounded it.
    np.testing.assert_allclose(rounded.error, [2.0**-28, 0.0])


def test_an_intermediate_overflow_bounds_nothing_but_what_clamps_it() -> None:
    build = GraphBuilder()
    x = build.input("x", [2], "float16")
    double = build.operator("ADD", [x, x], [2], "float16")
    graph = read_graph(build.finish(build.operator("SUB", [double, x], [2], "float16")))
    (result,) = propagate(graph, [np.array([60000.0, 1.0], np.float16)])
    assert result.error.tolist() == [math.inf, 0.0]


def test_subnormal_operands_may_be_flushed() -> None:
    build = GraphBuilder()
    graph = read_graph(
        build.finish(build.operator("RSQRT", [build.input("x", [1], "float32")], [1], "float32"))
    )
    (result,) = propagate(graph, [np.array([1e-40], np.float32)])
    assert result.error[0] == math.inf


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 2**24), ("float16", 2**11), ("bfloat16", 2**8)])
def test_sums_of_small_whole_numbers_are_exact(dtype: str, limit: int) -> None:
    def bound(*row: float) -> float:
        data, ones = np.array(row).reshape(1, 1, -1), np.ones((1, len(row), 1))
        operands = (exactly(data, dtype), exactly(ones, dtype), zero(dtype), zero(dtype))
        return float(OPERATORS["MATMUL"](call("MATMUL", operands, (1, 1, 1), dtype)).error.max())

    assert bound(limit - 2.0, -2.0) == 0
    assert bound(limit - 2.0, -3.0) > 0
    assert bound(0.5, 1.0) > 0


def test_the_draft_gives_room_by_the_operands_not_by_the_result() -> None:
    def bound(dtype: str) -> float:
        data = exactly(np.full((1, 1, 4), 1.5), dtype), exactly(np.ones((1, 4, 1)), dtype)
        operands = (*data, zero(dtype), zero(dtype))
        return float(
            OPERATORS["MATMUL"](Call("MATMUL", {}, operands, (1, 1, 1), "float32", "1.1-draft")).error.max()
        )

    # B = 6 and ksb = 4: 2 ksb half units of fp32 for bf16 operands, three times that for fp32 ones.
    assert bound("bfloat16") == 2 * 4 * 6 * 2.0**-24
    assert bound("float32") == 3 * bound("bfloat16")


def test_a_bias_of_zero_has_a_magnitude_too() -> None:
    # A kernel of one element spread with stride 2: the result in the middle is the bias alone.
    operands = (
        exactly(np.full((1, 1, 2, 1), 1.5), "float16"),
        exactly(np.ones((1, 1, 1, 1)), "float16"),
        *(zero("float16") for _ in range(3)),
    )
    attributes = {"stride": (1, 2), "out_pad": (0, 0, 0, 0), "acc_type": "float16", "local_bound": True}
    result = OPERATORS["TRANSPOSE_CONV2D"](
        call("TRANSPOSE_CONV2D", operands, (1, 1, 3, 1), "float16", **attributes)
    )
    # B there is the smallest normal number, and u no less: 2 ksb u with ksb = 1.
    assert result.value.ravel().tolist() == [1.5, 0.0, 1.5]
    assert result.error[0, 0, 1, 0] == 2 * 2.0**-14
    assert result.error[0, 0, 0, 0] == 2 * (1.5 + 2.0**-14) * 2.0**-11


def test_sums_of_bfloat16_are_added_up_in_float32() -> None:
    operand = exactly(np.full((1, 64), 1.25), "bfloat16")
    result = OPERATORS["REDUCE_SUM"](call("REDUCE_SUM", (operand,), (1, 1), "bfloat16", axis=1))
    # The accumulator has 16 more fraction bits, so that ksb = ceil(64 / 2^8) = 1: 2 half units of B = 80.
    assert result.error[0, 0] == 2 * 80 * 2.0**-8


def test_an_infinite_operand_makes_an_infinite_sum() -> None:
    operand = exactly(np.array([[np.inf, 1.5], [1.5, 2.5]]), "float32")
    result = OPERATORS["REDUCE_SUM"](call("REDUCE_SUM", (operand,), (2, 1), "float32", axis=1))
    for actual, expected in [(np.inf, True), (-np.inf, False), (np.nan, False), (0.0, False)]:
        candidate = np.array([[actual], [4.0]], np.float32)
        judged = bounds.within(candidate, result.value, result.error, "float32")
        assert judged.tolist() == [[expected], [True]]


def test_a_nan_spoils_no_other_results_bound() -> None:
    data = exactly(np.array([np.nan, 1.5, 2.5]).reshape(1, 1, 3, 1), "float32")
    operands = (data, exactly(np.ones((1, 1, 1, 1)), "float32"), *(zero() for _ in range(3)))
    attributes = {**_WINDOW, "pad": (0, 0, 0, 0), "acc_type": "float32", "local_bound": False}
    result = OPERATORS["CONV2D"](call("CONV2D", operands, (1, 1, 3, 1), "float32", **attributes))
    # B = 2.5, the largest number of the input, for each: 2 ksb half units with ksb = 1.
    assert result.error.ravel()[1:].tolist() == pytest.approx([2 * 2.5 * 2.0**-24] * 2)


def test_a_power_of_zero_or_to_it_has_no_error() -> None:
    base, exponent = (exactly(np.array(values), "float32") for values in ([3.0, 0.0, 3.0], [0.0, 2.0, 2.0]))
    result = OPERATORS["POW"](elementwise("POW", base, exponent))
    assert result.value.tolist() == [1.0, 0.0, 9.0]
    assert (result.error > 0).tolist() == [False, False, True]
    unsure = Bounded(exponent.value, np.full(3, 1e-3), "float32")
    assert OPERATORS["POW"](elementwise("POW", base, unsure)).error[0] > math.log(3.0) * 1e-3


def test_the_shape_and_the_window_of_the_draft() -> None:
    data = exactly(np.array([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]]).reshape(1, 2, 3, 1), "float16")
    size = OPERATORS["DIM"](call("DIM", (data,), (1,), "shape", axis=2))
    assert size.value.tolist() == [3]
    assert size.exact
    operands = (data, fixed("shape", 2, 2), fixed("shape", 1, 1), fixed("shape", 0, 0, 0, 0))
    pooled = OPERATORS["MAX_POOL2D_ADAPTIVE"](
        call("MAX_POOL2D_ADAPTIVE", operands, (1, 1, 2, 1), "float16", **_NAN)
    )
    assert pooled.value.ravel().tolist() == [5.0, 6.0]
    assert pooled.exact


def test_unknown_operators_are_named() -> None:
    operator = TosaOperator("CUSTOM", {}, ("x",), ("y",))
    tensor = read_graph(softmax("float32")).tensors["x"]
    graph = TosaGraph("1.0.0", {"x": tensor, "y": tensor}, (operator,), ("x",), ("y",))
    with pytest.raises(NotCovered, match="CUSTOM"):
        propagate(graph, [np.zeros(tensor.shape, np.float32)])
    with pytest.raises(ValueError, match="0 inputs for a graph of 1"):
        propagate(graph, [])
    assert single_operator(graph) == "CUSTOM"
    assert single_operator(read_graph(softmax("float32"))) is None


# Soundness: whatever exact operand is chosen within the error, the result lies within the result's.

_WINDOW: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "pad": (1, 0, 0, 1)}
_DOT: dict[str, Any] = {"acc_type": "float32", "local_bound": True}
_POOL: dict[str, Any] = {"kernel": (2, 2), "stride": (1, 1), "pad": (0, 0, 0, 0)}
_RESCALE: dict[str, Any] = {
    "scale32": True,
    "rounding_mode": "DOUBLE_ROUND",
    "per_channel": False,
    "input_unsigned": False,
    "output_unsigned": False,
}
_NAN: dict[str, Any] = {"nan_mode": "PROPAGATE"}


def zero(dtype: str = "float32") -> Bounded:
    return exactly(np.zeros(1, storage(dtype)), dtype)


def fixed(dtype: str, *values: int) -> Bounded:
    return exactly(np.array(values), dtype)


def floats(*shape: int, low: float = -3.0, high: float = 3.0) -> Bounded:
    value = RNG.uniform(low, high, shape)
    return Bounded(value, RNG.choice([0.0, 1e-3, 0.3], shape), "float32")


def integers(*shape: int, dtype: str = "int8") -> Bounded:
    value = RNG.integers(-100, 100, shape)
    return Bounded(value, RNG.integers(0, 3, shape).astype(np.float64), dtype)


def bools(*shape: int) -> Bounded:
    return Bounded(RNG.random(shape) < 0.5, (RNG.random(shape) < 0.3).astype(np.float64), "bool")


def test_nan_in_an_image_leaves_the_bounds_of_what_does_not_meet_it() -> None:
    image = np.ones((1, 3, 3, 1), np.float32)
    image[0, 0, 0, 0] = np.nan
    shapes = fixed("shape", 4, 2, 4, 2), fixed("shape", -1, 1), fixed("shape", 1, -1)
    operands = exactly(image, "float32"), *shapes
    result = OPERATORS["RESIZE"](call("RESIZE", operands, (1, 6, 4, 1), "float32", mode="BILINEAR"))
    apart = np.isfinite(result.value)
    assert apart[0, -1, -1, 0]
    assert not apart[0, 0, 0, 0]
    assert result.error[apart].max() == bounds.resize_bilinear(1.0, "float32")


def call(
    name: str, inputs: tuple[Bounded, ...], shape: tuple[int, ...], dtype: str, **attributes: Any
) -> Call:
    return Call(name, attributes, inputs, shape, dtype, "1.0.2")


def elementwise(name: str, *inputs: Bounded, dtype: str = "float32", **attributes: Any) -> Call:
    return call(name, inputs, inputs[0].value.shape, dtype, **attributes)


CALLS = [
    *(
        elementwise(name, floats(40))
        for name in ("EXP", "SIGMOID", "TANH", "ERF", "SIN", "COS", "ABS", "FLOOR", "CEIL")
    ),
    *(elementwise(name, floats(40, low=0.5)) for name in ("LOG", "RSQRT", "RECIPROCAL")),
    *(elementwise(name, floats(40), floats(40)) for name in ("ADD", "SUB")),
    *(elementwise(name, floats(40), floats(40), **_NAN) for name in ("MAXIMUM", "MINIMUM")),
    *(
        elementwise(name, floats(40), floats(40), dtype="bool")
        for name in ("EQUAL", "GREATER", "GREATER_EQUAL")
    ),
    elementwise("MUL", floats(40), floats(40), zero("int8")),
    elementwise("POW", floats(40, low=0.5), floats(40)),
    elementwise("NEGATE", floats(40), zero(), zero()),
    elementwise("CLAMP", floats(40), min_val=-1.0, max_val=1.0, **_NAN),
    elementwise("CAST", floats(40), dtype="int8"),
    elementwise("CAST", floats(40), dtype="bool"),
    elementwise("CAST", floats(40), dtype="float16"),
    elementwise("SELECT", bools(40), floats(40), floats(40)),
    call("ARGMAX", (floats(8, 5),), (8,), "int32", axis=1, **_NAN),
    call("REDUCE_MAX", (floats(8, 5),), (8, 1), "float32", axis=1, **_NAN),
    call("REDUCE_MIN", (floats(8, 5),), (1, 5), "float32", axis=0, **_NAN),
    call("REDUCE_SUM", (floats(8, 5),), (8, 1), "float32", axis=1),
    call("REDUCE_PRODUCT", (floats(8, 5),), (8, 1), "float32", axis=1),
    call("MATMUL", (floats(2, 3, 4), floats(2, 4, 5), zero(), zero()), (2, 3, 5), "float32"),
    call(
        "CONV2D",
        (floats(1, 4, 5, 3), floats(2, 2, 3, 3), floats(2), zero(), zero()),
        (1, 4, 4, 2),
        "float32",
        **_WINDOW,
        **_DOT,
    ),
    call(
        "DEPTHWISE_CONV2D",
        (floats(1, 4, 5, 3), floats(2, 3, 3, 2), floats(6), zero(), zero()),
        (1, 4, 4, 6),
        "float32",
        **_WINDOW,
        **_DOT,
    ),
    call(
        "TRANSPOSE_CONV2D",
        (floats(1, 3, 3, 2), floats(4, 2, 2, 2), floats(4), zero(), zero()),
        (1, 6, 5, 4),
        "float32",
        out_pad=(1, 0, -1, 1),
        stride=(2, 2),
        **_DOT,
    ),
    call(
        "AVG_POOL2D",
        (floats(1, 4, 4, 2), zero(), zero()),
        (1, 3, 3, 2),
        "float32",
        **_POOL,
        acc_type="float32",
    ),
    call(
        "MAX_POOL2D",
        (floats(1, 4, 4, 2),),
        (1, 4, 4, 2),
        "float32",
        kernel=(2, 2),
        stride=(1, 1),
        pad=(1, 0, 0, 1),
        **_NAN,
    ),
    call(
        "RESIZE",
        (floats(1, 3, 3, 2), fixed("shape", 4, 2, 4, 2), fixed("shape", -1, 1), fixed("shape", 1, -1)),
        (1, 6, 4, 2),
        "float32",
        mode="BILINEAR",
    ),
    *(
        elementwise(name, bools(40), bools(40), dtype="bool")
        for name in ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR")
    ),
    elementwise("LOGICAL_NOT", bools(40), dtype="bool"),
    *(call(name, (bools(12, 3),), (12, 1), "bool", axis=1) for name in ("REDUCE_ALL", "REDUCE_ANY")),
    elementwise("NEGATE", integers(40), fixed("int8", 3), fixed("int8", -7), dtype="int8"),
    elementwise("ARITHMETIC_RIGHT_SHIFT", integers(40), fixed("int8", *[2] * 40), dtype="int8", round=True),
    elementwise("INTDIV", integers(40, dtype="int32"), fixed("int32", *[-7] * 40), dtype="int32"),
    elementwise(
        "MUL", integers(40, dtype="int32"), integers(40, dtype="int32"), fixed("int8", 3), dtype="int32"
    ),
    elementwise("TABLE", integers(40), exactly(RNG.integers(-128, 128, 256), "int8"), dtype="int8"),
    elementwise(
        "TABLE", integers(40, dtype="int16"), exactly(RNG.integers(-999, 999, 513), "int16"), dtype="int32"
    ),
    elementwise(
        "RESCALE",
        integers(40),
        fixed("int32", 3 << 28),
        fixed("int8", 30),
        fixed("int8", 5),
        fixed("int8", 60),
        dtype="int8",
        **_RESCALE,
    ),
    call(
        "AVG_POOL2D",
        (integers(1, 4, 4, 2), fixed("int8", 2), fixed("int8", 100)),
        (1, 3, 3, 2),
        "int8",
        **_POOL,
        acc_type="int32",
    ),
    call("ARGMAX", (integers(9, 5),), (9,), "int32", axis=1, **_NAN),
]


def chosen(operand: Bounded) -> Bounded:
    """An exact operand somewhere within the error of ``operand``, often at its ends."""
    where = RNG.choice([-1.0, 1.0, 0.0, 0.5, -0.7], operand.value.shape)
    value = operand.value + np.rint(where * operand.error) if operand.value.dtype == np.int64 else None
    if value is None:
        flipped = (operand.error > 0) & (where > 0)
        value = operand.value ^ flipped if operand.dtype == "bool" else operand.value + where * operand.error
    return Bounded(np.asarray(value, operand.value.dtype), np.zeros(operand.error.shape), operand.dtype)


@pytest.mark.parametrize("item", CALLS, ids=lambda item: f"{item.name}-{item.dtype}")
def test_errors_are_sound(item: Call) -> None:
    meaning = OPERATORS[item.name]
    result = meaning(item)
    assert np.isfinite(result.error).all()
    for _ in range(60):
        operands = tuple(map(chosen, item.inputs))
        moved = meaning(Call(item.name, item.attributes, operands, item.shape, item.dtype, item.version))
        gap = np.abs(moved.value.astype(np.float64) - result.value.astype(np.float64))
        assert (gap <= result.error * (1 + 1e-12)).all()
