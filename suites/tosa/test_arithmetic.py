"""TOSA's own tests of the elementwise operators.

Random values and special ones: infinities, NaN, signed zeros, extremes, the same input twice.
"""

from vgf_conformance.tosatests.declare import FLOATS, INTEGERS, tosa_tests

add = tosa_tests("ADD", [*FLOATS, "int32"], smoke=["fp32", "int32"])
sub = tosa_tests("SUB", [*FLOATS, "int32"])
mul = tosa_tests("MUL", [*FLOATS, *INTEGERS], smoke=["fp16"])
intdiv = tosa_tests("INTDIV", ["int32"], each=4, smoke=["int32"])
# A base of zero or below and an exponent of zero or below are outside POW's domain: "s" in a test's name
# says which part of the domain it takes.
pow = tosa_tests("POW", FLOATS, each=4)
maximum = tosa_tests("MAXIMUM", [*FLOATS, "int32"], special=2)
minimum = tosa_tests("MINIMUM", [*FLOATS, "int32"], special=2, smoke=["fp32"])
abs = tosa_tests("ABS", [*FLOATS, "int32"])
negate = tosa_tests("NEGATE", [*FLOATS, *INTEGERS])
ceil = tosa_tests("CEIL", FLOATS)
floor = tosa_tests("FLOOR", FLOATS)
reciprocal = tosa_tests("RECIPROCAL", FLOATS)
rsqrt = tosa_tests("RSQRT", FLOATS)
exp = tosa_tests("EXP", FLOATS, smoke=["fp32"])
log = tosa_tests("LOG", FLOATS)
sin = tosa_tests("SIN", FLOATS)
cos = tosa_tests("COS", FLOATS)
clamp = tosa_tests("CLAMP", [*FLOATS, "int8", "int16"], special=2)
sigmoid = tosa_tests("SIGMOID", FLOATS)
tanh = tosa_tests("TANH", FLOATS)
erf = tosa_tests("ERF", FLOATS)
select = tosa_tests("SELECT", ["bool", *FLOATS, *INTEGERS], each=2)
table = tosa_tests("TABLE", ["int8", "int16"], smoke=["int8"])
