"""TOSA's own tests of reductions, of the position of the largest, and of the largest of a window."""

from vgf_conformance.tosatests.declare import FLOATS, INTEGERS, tosa_tests

reduce_all = tosa_tests("REDUCE_ALL", ["bool"])
reduce_any = tosa_tests("REDUCE_ANY", ["bool"], smoke=["bool"])
reduce_max = tosa_tests("REDUCE_MAX", [*FLOATS, *INTEGERS], special=2)
reduce_min = tosa_tests("REDUCE_MIN", [*FLOATS, *INTEGERS], special=2)
reduce_product = tosa_tests("REDUCE_PRODUCT", FLOATS)
reduce_sum = tosa_tests("REDUCE_SUM", ["int32"])
# Long enough for TOSA's data sets of dot products, which need a thousand sums.
reduce_sum_float = tosa_tests("REDUCE_SUM", FLOATS, shapes=[(37, 31, 5)], smoke=["fp32"])
argmax = tosa_tests("ARGMAX", [*FLOATS, "int8", "int16"], special=2)
max_pool2d = tosa_tests("MAX_POOL2D", ["int8", "int16", *FLOATS], special=2, smoke=["int8"])
