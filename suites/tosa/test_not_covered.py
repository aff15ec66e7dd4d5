"""What TOSA's test generator has beside what is declared in this folder, and why it is left out.

Every reason was found by trying. ``tests/tosatests/test_coverage.py`` tries again: an operator of the
generator's that no file declares fails there, and so does one that the converter takes after all.
"""

from vgf_conformance.tosatests.declare import not_covered

control_flow = not_covered(
    "the converter refuses control flow: 'tosa.cond_if' is explicitly marked illegal", "COND_IF", "WHILE_LOOP"
)
block_scaled = not_covered(
    "the converter refuses block-scaled types (MXFP, TOSA 1.1): '... is explicitly marked illegal'",
    "CAST_FROM_BLOCK_SCALED",
    "CAST_TO_BLOCK_SCALED",
    "RESHAPE_BLOCK_SCALED",
    "ROW_GATHER_BLOCK_SCALED",
    # Without tests at the generator's default shapes.
    "CONV2D_BLOCK_SCALED",
    "MATMUL_T_BLOCK_SCALED",
)
shape_checks = not_covered(
    "the converter refuses it: 'tosa.assert_equal_shape' is explicitly marked illegal", "ASSERT_EQUAL_SHAPE"
)
shape_outputs = not_covered(
    "its test's output is a shape, which no VGF resource can be: 'expected shaped value when serializing'",
    "CONST_SHAPE",
)
without_tests = not_covered(
    "the generator has no tests of it, and the backend does not emit it",
    "CUSTOM",
    "VARIABLE",
    "VARIABLE_READ",
    "VARIABLE_WRITE",
)

narrow_floats = not_covered(
    "they convert, but the comparison has no bounds for floats of 8 bits yet",
    extensions=["tosa-ext-fp8e4m3", "tosa-ext-fp8e5m2"],
)
wide_integers = not_covered(
    "the converter silently makes int32 of int64, and the verifier's Python binding takes int64 for int48",
    extensions=["tosa-ext-int64"],
)
dynamic_operands = not_covered(
    "the converter refuses operands that are not constant: 'cannot retrieve the zero points from op'",
    extensions=["tosa-ext-dynamic"],
)
of_operators_left_out = not_covered(
    "only operators that are left out need them", extensions=["tosa-ext-controlflow", "tosa-ext-mxfp"]
)
