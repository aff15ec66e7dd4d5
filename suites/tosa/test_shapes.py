"""TOSA's own tests of shape arithmetic and of pooling with a computed window: operators of TOSA 1.1.

The tests of shape arithmetic give a boolean tensor the shape that they compute.
"""

from vgf_conformance.tosatests.declare import FLOATS, INTEGERS, tosa_tests

_VERSION = "1.1.0"

add_shape = tosa_tests("ADD_SHAPE", ["bool"], version=_VERSION, smoke=["bool"])
sub_shape = tosa_tests("SUB_SHAPE", ["bool"], version=_VERSION)
mul_shape = tosa_tests("MUL_SHAPE", ["bool"], version=_VERSION)
div_ceil_shape = tosa_tests("DIV_CEIL_SHAPE", ["bool"], version=_VERSION)
div_floor_shape = tosa_tests("DIV_FLOOR_SHAPE", ["bool"], version=_VERSION)
mod_shape = tosa_tests("MOD_SHAPE", ["bool"], version=_VERSION)
max_shape = tosa_tests("MAX_SHAPE", ["bool"], version=_VERSION)
min_shape = tosa_tests("MIN_SHAPE", ["bool"], version=_VERSION)
exp2_shape = tosa_tests("EXP2_SHAPE", ["bool"], version=_VERSION)
log2_ceil_shape = tosa_tests("LOG2_CEIL_SHAPE", ["bool"], version=_VERSION)
log2_floor_shape = tosa_tests("LOG2_FLOOR_SHAPE", ["bool"], version=_VERSION)
concat_shape = tosa_tests("CONCAT_SHAPE", ["bool"], version=_VERSION)
slice_shape = tosa_tests("SLICE_SHAPE", ["bool"], version=_VERSION)
dim = tosa_tests("DIM", ["bool", *FLOATS, *INTEGERS], each=1, version=_VERSION)
avg_pool2d_adaptive = tosa_tests("AVG_POOL2D_ADAPTIVE", ["int8", "int16"], version=_VERSION)
max_pool2d_adaptive = tosa_tests("MAX_POOL2D_ADAPTIVE", ["int8", "int16", "fp32"], version=_VERSION)
