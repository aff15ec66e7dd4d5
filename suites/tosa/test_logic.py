"""TOSA's own tests of comparisons, logical and bitwise operators."""

from vgf_conformance.tosatests.declare import FLOATS, INTEGERS, tosa_tests

equal = tosa_tests("EQUAL", [*FLOATS, "int32"])
greater = tosa_tests("GREATER", [*FLOATS, "int32"], smoke=["bf16"])
greater_equal = tosa_tests("GREATER_EQUAL", [*FLOATS, "int32"])
logical_and = tosa_tests("LOGICAL_AND", ["bool"])
logical_or = tosa_tests("LOGICAL_OR", ["bool"])
logical_xor = tosa_tests("LOGICAL_XOR", ["bool"], smoke=["bool"])
logical_not = tosa_tests("LOGICAL_NOT", ["bool"])
bitwise_and = tosa_tests("BITWISE_AND", INTEGERS)
bitwise_or = tosa_tests("BITWISE_OR", INTEGERS)
bitwise_xor = tosa_tests("BITWISE_XOR", INTEGERS)
bitwise_not = tosa_tests("BITWISE_NOT", INTEGERS)
arithmetic_right_shift = tosa_tests("ARITHMETIC_RIGHT_SHIFT", INTEGERS, smoke=["int16"])
logical_left_shift = tosa_tests("LOGICAL_LEFT_SHIFT", INTEGERS)
logical_right_shift = tosa_tests("LOGICAL_RIGHT_SHIFT", INTEGERS)
clz = tosa_tests("CLZ", ["int32"])
