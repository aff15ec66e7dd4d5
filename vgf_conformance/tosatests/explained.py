"""Where this harness's comparison and tosa-tools' verifier differ, why, and which of the two is right.

Each entry of ``EXPLAINED`` is narrow: operators, data types of the output, the verifier's rule, which
of the two refuses, and a condition on the numbers themselves. ``agreement`` holds every difference
against it, and reports an entry that covers nothing. Sections are those of TOSA 1.0.2, in the reading of
``comparison.bounds``; what the verifier does is what it was seen to do (tosa-tools 2026.5.0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vgf_conformance.comparison import bounds


@dataclass(frozen=True)
class Difference:
    """A planted result that one judge passes and the other fails.

    ``value`` is the element that was moved, ``exact`` and ``error`` our range for it (None where all
    elements were moved, or where we have no range); ``compliance`` is what the test's description
    tells the verifier of the output.
    """

    operator: str
    test: str
    dtype: str
    what: str
    output: int
    ours: bool
    value: float | None
    exact: float | None
    error: float | None
    attributes: Mapping[str, Any]
    compliance: Mapping[str, Any]

    @property
    def rule(self) -> str:
        """The verifier's."""
        return str(self.compliance["mode"])

    def __str__(self) -> str:
        words = {True: "passes", False: "fails"}
        return (
            f"{self.operator} {self.test}: {self.what} in output {self.output} ({self.value!r} for "
            f"{self.exact!r} +- {self.error!r}): {words[self.ours]} by our comparison, "
            f"{words[not self.ours]} by the verifier ({self.rule})"
        )


Condition = Callable[[Difference], bool]


@dataclass(frozen=True)
class Explained:
    """A kind of difference that is understood.

    ``passes`` and ``right`` name a judge: ``ours`` or ``the verifier``'s verdict passes the result, and
    is the specification's. ``reason`` names the section.
    """

    name: str
    operators: tuple[str, ...]
    dtypes: tuple[str, ...]
    rule: str
    passes: str
    right: str
    reason: str
    condition: Condition

    def covers(self, found: Difference) -> bool:
        """Whether this explains ``found``."""
        return (
            found.operator in self.operators
            and found.dtype in self.dtypes
            and found.rule == self.rule
            and found.ours == (self.passes == "ours")
            and self.condition(found)
        )


_FLOATS = tuple(bounds.FORMATS)


def _numbers(condition: Callable[[float, float, float, str], bool]) -> Condition:
    """A condition on the value, the exact result, our error and the data type."""

    def holds(found: Difference) -> bool:
        if found.value is None or found.exact is None or found.error is None:
            return False
        return condition(found.value, found.exact, found.error, found.dtype)

    return holds


@_numbers
def _no_rounding(value: float, exact: float, error: float, dtype: str) -> bool:
    """Whether ``value`` is neither of the two numbers that ``exact`` lies between, or not itself."""
    unit = float(bounds.ulp_size(np.array([exact]), dtype)[0])
    return not math.floor(exact / unit) * unit <= value <= math.ceil(exact / unit) * unit


@_numbers
def _beyond_untruncated_half(value: float, exact: float, error: float, dtype: str) -> bool:
    """Whether ``value`` is farther off than the bound with half the fraction bits untruncated."""
    half = bounds.FORMATS[dtype].fraction / 2
    return bool(abs(value - exact) > error * 2.0 ** (math.floor(half) - half))


@_numbers
def _limit(value: float, exact: float, error: float, dtype: str) -> bool:
    """Whether the result is one of the limits that functions have at infinity, which are exact."""
    return error == 0 and (math.isinf(exact) or exact in (-1, 0, 1))


def _within_described_maximum(found: Difference) -> bool:
    """Whether the value lies within 0.6 % (or 20 units) of the largest number that the data may have had."""
    if found.value is None or found.exact is None:
        return False
    info = found.compliance["max_relative_info"]
    unit = 2.0 ** -bounds.FORMATS[found.dtype].fraction
    error = info["max"] * max(info["scale"], info["ulp_bound"] * unit)
    return bool(
        bounds.within(np.array([found.value]), np.array([found.exact]), np.array([error]), found.dtype)[0]
    )


def _interpolated(found: Difference) -> bool:
    return found.attributes["mode"] == "BILINEAR" and _within_described_maximum(found)


def _picked(found: Difference) -> bool:
    return found.attributes["mode"] == "NEAREST" and _within_described_maximum(found)


@_numbers
def _same_sign(value: float, exact: float, error: float, dtype: str) -> bool:
    """Whether both are finite and have the same sign."""
    return (
        math.isfinite(value) and math.isfinite(exact) and math.copysign(1, value) == math.copysign(1, exact)
    )


@_numbers
def _other_sign(value: float, exact: float, error: float, dtype: str) -> bool:
    """Whether both are finite and have different signs, within our error."""
    return math.isfinite(value) and value * exact <= 0 and abs(value - exact) <= error


@_numbers
def _not_a_number(value: float, exact: float, error: float, dtype: str) -> bool:
    return math.isnan(value) and not math.isnan(exact)


@_numbers
def _whole(value: float, exact: float, error: float, dtype: str) -> bool:
    """Whether the sum is a whole number without error, for which we leave no room."""
    return error == 0 and exact.is_integer() and abs(exact) <= 2.0 ** (bounds.FORMATS[dtype].fraction + 1)


def _biased(found: Difference) -> bool:
    """Whether all results are moved the same way, of a data set with a mean of zero."""
    return (
        found.what in ("all too high", "all too low") and 3 <= found.compliance["dot_product_info"]["s"] <= 5
    )


_SUMS = ("AVG_POOL2D", "CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "MATMUL", "REDUCE_SUM", "TRANSPOSE_CONV2D")

EXPLAINED = (
    Explained(
        "a number that no rounding gives",
        ("ADD", "CAST", "CEIL", "FLOOR", "SUB"),
        _FLOATS,
        "ULP",
        passes="the verifier",
        right="the verifier",
        reason=(
            "the formula (tosa_reference_check_fp) also admits the neighbour of an exact result, one ULP "
            "away in bf16 or half a ULP below a power of two; ours is stricter on purpose: nothing that "
            "rounds gives it"
        ),
        condition=_no_rounding,
    ),
    Explained(
        "half of an odd number of fraction bits",
        ("COS", "SIN"),
        ("bfloat16", "float32"),
        "ABS_ERROR",
        passes="ours",
        right="ours",
        reason=(
            "calcAbsErrorBound of 1.0.2 takes exp2 of a whole number, -23 / 2 truncated to -11; the verifier "
            "takes 2^-11.5 (in bf16 2^-3.5 rather than 2^-3)"
        ),
        condition=_beyond_untruncated_half,
    ),
    Explained(
        "the largest input that there might have been",
        ("RESIZE",),
        _FLOATS,
        "MAX_RELATIVE",
        passes="the verifier",
        right="ours",
        reason=(
            "RESIZE, precision requirements: the bound follows the largest magnitude of the input; the "
            "test's description has the end of the range that its data were drawn from"
        ),
        condition=_interpolated,
    ),
    Explained(
        "an element that is picked",
        ("RESIZE",),
        _FLOATS,
        "MAX_RELATIVE",
        passes="the verifier",
        right="ours",
        reason=(
            "RESIZE: NEAREST_NEIGHBOR returns an element of the input; the generator describes both modes "
            "alike, with the room that interpolation needs"
        ),
        condition=_picked,
    ),
    Explained(
        "a result among special values that is merely of the right sign",
        ("REDUCE_SUM", "RFFT2D"),
        _FLOATS,
        "FP_SPECIAL",
        passes="the verifier",
        right="ours",
        reason=(
            "dot product accuracy requirements: a finite result has a bound; for special data the verifier "
            "compares only NaN, infinity and sign"
        ),
        condition=_same_sign,
    ),
    Explained(
        "a result among special values that is close, of the other sign",
        ("REDUCE_SUM",),
        _FLOATS,
        "FP_SPECIAL",
        passes="ours",
        right="ours",
        reason=(
            "dot product accuracy requirements: the bound reaches beyond zero; for special data the verifier "
            "compares the sign, and not how far off a result is"
        ),
        condition=_other_sign,
    ),
    Explained(
        "a sine that is zero by definition",
        ("RFFT2D",),
        ("float32",),
        "FP_SPECIAL",
        passes="the verifier",
        right="ours",
        reason=(
            "RFFT2D: the imaginary sum leaves out the terms whose sine is zero by definition; the verifier "
            "also takes the NaN that infinity times zero gives"
        ),
        condition=_not_a_number,
    ),
    Explained(
        "sums of small whole numbers",
        ("CONV2D", "TRANSPOSE_CONV2D"),
        _FLOATS,
        "DOT_PRODUCT",
        passes="the verifier",
        right="the verifier",
        reason=(
            "dot product accuracy requirements: the bound follows B alone; ours is stricter on purpose where "
            "no partial sum is ever rounded, as under a window that lies in the padding altogether"
        ),
        condition=_whole,
    ),
    *(
        Explained(
            f"a limit at infinity, by {rule}",
            operators,
            _FLOATS,
            rule,
            passes="the verifier",
            right="ours",
            reason=(
                "the operators' tables of special values: of an infinite operand, and of a logarithm's 0, "
                "the result is exact; the verifier's bound grows with the operand, or is that of any result"
            ),
            condition=_limit,
        )
        for rule, operators in (("ABS_ERROR", ("LOG", "SIGMOID", "TANH")), ("ULP", ("ERF",)))
    ),
    Explained(
        "errors with a mean of their own",
        (*_SUMS, "RFFT2D"),
        _FLOATS,
        "DOT_PRODUCT",
        passes="ours",
        right="the verifier",
        reason=(
            "dot product accuracy requirements: in data sets 3 to 5 the sum of the errors has a limit as "
            "well; our comparison is not told the data set, and has no such limit"
        ),
        condition=_biased,
    ),
)
