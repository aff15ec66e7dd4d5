"""Is the lowering right? The TOSA graph on the reference model against the PyTorch program.

Each user output is judged with the first of these rules that applies (docs/tolerance.md):

* ``exact``: integers and booleans that no floating-point value went into;
* ``ties propagated``: quantised programs, against the converted PT2E program: what rounding to either side
  at a tie can do to the output (``evaluation.ties``); or the number of LSB that the case states;
* ``propagated``: floating point, against eager in fp64: within the error that TOSA's own bounds
  allow, carried through the graph element by element, with constants taken as rounded to half an
  ULP where the compiler may have folded them; and with no more noise than ``comparison.signal``
  allows, since the bound is a worst case;
* ``sqnr >= N dB``: the same without the bound, for floating-point programs of several delegates or
  more than MANY_OPERATORS operators.

An element that equals eager bit for bit is right whatever the rule. NaN and infinities must stand
where eager has them, in its own type or, where the bound is finite, in fp64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.comparison.bounds import FORMATS, headroom, within
from vgf_conformance.comparison.metrics import histogram, measure, same_class
from vgf_conformance.comparison.signal import noise_share, signal_budget
from vgf_conformance.results.record import Comparison
from vgf_conformance.vocabulary import Finding, Stage

Array = NDArray[Any]

#: TOSA operators (layout aside) above which the propagated bound is not used for floating point.
MANY_OPERATORS = 256


@dataclass(frozen=True)
class Expected:
    """What one user output should be.

    ``value`` is eager in fp64 or the quantised program's output, ``native`` eager (or the quantised
    program) in the dtype that the user sees, ``error`` the propagated bound in the output's units or
    None where there is none. ``lsb`` is the output's quantisation step where it has one. ``rounded`` gives
    what the TOSA graph comes to where each operator rounds correctly, None where that is not known. ``bits``
    asks for equality bit for bit (the sign of zero and subnormals included; any NaN is one) wherever
    ``error`` allows nothing. ``name`` is what messages call it, where it is no output.
    """

    pair: str
    value: Array
    native: Array
    error: Array | None
    lsb: float | None = None
    quantised: bool = False
    allowance: float | None = None
    rounded: Callable[[], Array | None] = lambda: None
    bits: bool = False
    name: str = ""


def judge_output(number: int, actual: Array, expected: Expected) -> Comparison:
    """Judge user output ``number``; shape and dtype first."""
    native, name = expected.native, expected.name or f"output {number}"
    dtype = str(native.dtype)
    if actual.shape != native.shape or actual.dtype != native.dtype:
        message = (
            f"{name} is {actual.dtype}{list(actual.shape)}, should be {native.dtype}{list(native.shape)}"
        )
        return Comparison(expected.pair, Stage.LOWER, number, False, "shape and dtype", None, message=message)
    right, rule, share = _judged(actual, expected, dtype)
    noisy = not right.all() and _only_noisy(actual, expected, dtype)
    counts, unit = histogram(actual, native, dtype, expected.lsb)
    metrics = measure(actual, native, dtype, expected.lsb)
    metrics.wrong = int(np.count_nonzero(~right))
    return Comparison(
        pair=expected.pair,
        stage=Stage.LOWER,
        output=number,
        passed=bool(right.all()),
        rule=rule,
        metrics=metrics,
        headroom=share,
        message="" if right.all() else describe_wrong(name, actual, native, right),
        histogram=counts,
        histogram_unit=unit,
        finding=Finding.NOISY if noisy else None,
    )


def _only_noisy(actual: Array, expected: Expected, dtype: str) -> bool:
    """Whether nothing but the limit to noise fails, and the noise is the reference model's.

    A graph that is too far from eager although each operator rounds correctly is another matter: it was
    lowered to operators that approximate, or lose digits.
    """
    error = expected.error
    if error is None or expected.quantised or dtype not in FORMATS:
        return False
    right = within(actual, expected.value, error, dtype) & _same_class_as_eager(actual, expected, error)
    if not (right | _identical(actual, expected.native)).all():
        return False
    rounded = expected.rounded()
    if rounded is None or rounded.shape != actual.shape:
        return False
    return noise_share(rounded, expected.value, expected.native, dtype) <= 1


def _judged(actual: Array, expected: Expected, dtype: str) -> tuple[NDArray[np.bool_], str, float | None]:
    """Which elements are right, by which rule, and the share of the bound used."""
    if expected.bits:
        return _bitwise(actual, expected)
    same = _identical(actual, expected.native)
    if expected.allowance is not None and expected.lsb is not None:
        error = np.full(actual.shape, expected.allowance * expected.lsb)
        return same | _near(actual, expected.native, error), f"<= {expected.allowance:g} LSB", None
    if expected.error is not None:
        return _propagated(actual, expected, dtype, same)
    if dtype not in FORMATS:
        return same, "exact", 0.0 if same.all() else None
    return _deep(actual, expected, dtype, same)


def _bitwise(actual: Array, expected: Expected) -> tuple[NDArray[np.bool_], str, float | None]:
    same, error = same_bits(actual, expected.native), expected.error
    if error is None or not error.any():
        return same, "exact", 0.0 if same.all() else None
    right = same | ((error > 0) & _near(actual, expected.native, error))
    share = 0.0 if same.all() else _share(actual, expected.native, error)
    return right, "exact, ties propagated", share


def same_bits(actual: Array, expected: Array) -> NDArray[np.bool_]:
    """Whether, element by element, two arrays of one shape and dtype are equal bit for bit, or both NaN."""
    if expected.dtype.kind in "biu":
        return np.asarray(actual == expected)
    unsigned = f"u{expected.dtype.itemsize}"
    equal = np.ascontiguousarray(actual).view(unsigned) == np.ascontiguousarray(expected).view(unsigned)
    both_nan = (actual != actual) & (expected != expected)
    return np.asarray(equal.reshape(expected.shape) | both_nan)


def _propagated(
    actual: Array, expected: Expected, dtype: str, same: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], str, float | None]:
    error = expected.error
    assert error is not None
    if expected.quantised or dtype not in FORMATS:
        right = _near(actual, expected.native, error)
        share = _share(actual, expected.native, error)
        rule = "ties propagated" if expected.quantised else "propagated"
    else:
        right = within(actual, expected.value, error, dtype) & _same_class_as_eager(actual, expected, error)
        # The bound is TOSA's, for any device; eager and the reference model are both good ones.
        noise = noise_share(actual, expected.value, expected.native, dtype)
        right &= noise <= 1
        share = max(headroom(actual, expected.value, error, dtype), noise)
        rule = f"propagated, sqnr >= {signal_budget(dtype):.4g} dB"
    if not error.any():
        rule = "exact"
    right |= same
    return right, rule, 0.0 if same.all() else share


def _same_class_as_eager(actual: Array, expected: Expected, error: Array) -> NDArray[np.bool_]:
    """Whether NaN, infinities and numbers stand where eager has them, in its own type or in fp64.

    Eager in fp32 is no authority on overflow: its kernel for gelu gives inf above 1.7e38 and NaN at
    infinity where there are several elements, the right results where there is one. fp64 counts where
    it gives no number, or a bound holds the element to the number.
    """
    with np.errstate(over="ignore"):
        precise = expected.value.astype(expected.native.dtype)
    bounded = np.isfinite(error) | ~np.isfinite(precise.astype(np.float64))
    right: NDArray[np.bool_] = same_class(actual, expected.native) | (same_class(actual, precise) & bounded)
    return right


def _deep(
    actual: Array, expected: Expected, dtype: str, same: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], str, float | None]:
    noise = noise_share(actual, expected.value, expected.native, dtype)
    right = same_class(actual, expected.native) & (noise <= 1)
    rule = f"sqnr >= {signal_budget(dtype):.4g} dB"
    return right | same, rule, 0.0 if same.all() else noise


def _identical(actual: Array, native: Array) -> NDArray[np.bool_]:
    one, two = _plain(actual), _plain(native)
    same: NDArray[np.bool_] = (one == two) | ((one != one) & (two != two))
    return same


def _near(actual: Array, native: Array, error: Array) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        # Dequantised values carry the rounding of scale * integer in fp32.
        slack = 2.0**-22 * np.abs(_plain(native)) if actual.dtype.kind not in "biu" else 0.0
        near: NDArray[np.bool_] = np.abs(_plain(actual) - _plain(native)) <= error + slack
    return near


def _share(actual: Array, native: Array, error: Array) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.abs(_plain(actual) - _plain(native))
        shares = (
            difference[(difference > 0) & np.isfinite(error)] / error[(difference > 0) & np.isfinite(error)]
        )
    return float(shares.max(initial=0.0))


def _plain(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind not in "iu" else array.astype(np.int64)


def describe_wrong(name: str, actual: Array, expected: Array, right: NDArray[np.bool_]) -> str:
    """``output 0, 3 of 16 elements, worst at [0, 6]: -0.402, should be 0.0``."""
    with np.errstate(invalid="ignore"):
        distance = np.abs(_plain(actual) - _plain(expected)).astype(np.float64)
    distance = np.where(np.isnan(distance), np.inf, distance)
    distance = np.where(right, -1.0, distance)
    index = tuple(int(axis) for axis in np.unravel_index(int(np.argmax(distance)), distance.shape))
    shown, wanted = _shown(actual[index]), _shown(expected[index])
    if shown == wanted:
        # Every digit that the dtype has.
        shown, wanted = str(actual[index]), str(expected[index])
    return (
        f"{name}, {int((~right).sum())} of {right.size} elements, worst at {list(index)}: "
        f"{shown}, should be {wanted}"
    )


def _shown(value: Any) -> str:
    return f"{float(value):.6g}" if np.asarray(value).dtype.kind not in "biu" else str(value)


def outputs_count(
    pair: str, stage: Stage, actual: Sequence[Any], expected: Sequence[Any]
) -> Comparison | None:
    """A failed Comparison where the number of outputs differs."""
    if len(actual) == len(expected):
        return None
    message = f"{len(actual)} outputs, should be {len(expected)}"
    return Comparison(pair, stage, 0, False, "number of outputs", None, message=message)
