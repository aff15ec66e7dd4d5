"""TOSA's own tests of operators that move data, of casts and of rescaling."""

from vgf_conformance.tosatests.declare import FLOATS, INTEGERS, tosa_tests

_ALL = ["bool", *FLOATS, *INTEGERS]

concat = tosa_tests("CONCAT", _ALL, each=2, smoke=["int8"])
const = tosa_tests("CONST", [*_ALL, "int4", "int48"], each=1)
identity = tosa_tests("IDENTITY", [*_ALL, "int4", "int48"], each=1)
pad = tosa_tests("PAD", _ALL, each=2)
reshape = tosa_tests("RESHAPE", _ALL, each=2)
reverse = tosa_tests("REVERSE", _ALL, each=2)
slice = tosa_tests("SLICE", _ALL, each=2)
tile = tosa_tests("TILE", _ALL, each=2)
transpose = tosa_tests("TRANSPOSE", _ALL, each=2, smoke=["int16"])
gather = tosa_tests("GATHER", [*FLOATS, *INTEGERS], each=2)
scatter = tosa_tests("SCATTER", [*FLOATS, *INTEGERS], each=2, smoke=["fp32"])
resize = tosa_tests("RESIZE", ["int8", "int16", *FLOATS], each=4)
cast = tosa_tests("CAST", _ALL, each=6, special=2, smoke=["fp32"])
rescale = tosa_tests("RESCALE", [*INTEGERS, "int48"], each=6, smoke=["int8", "int32"])
