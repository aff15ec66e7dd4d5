"""TOSA's own tests of convolutions, matrix products, averages and transforms.

The shapes give each of the six data sets of TOSA's dot product requirements the thousand results
that it needs.
"""

from vgf_conformance.tosatests.declare import CONVOLVED, FLOATS, tosa_tests

conv2d = tosa_tests("CONV2D", CONVOLVED, shapes=[(1, 33, 35, 3)], kernels=[(3, 3)], smoke=["int8", "fp16"])
conv2d_wide = tosa_tests("CONV2D", ["int8", *FLOATS], each=1, shapes=[(1, 33, 33, 2)], kernels=[(1, 5)])
conv3d = tosa_tests("CONV3D", CONVOLVED, each=2, shapes=[(1, 9, 9, 9, 2)], kernels=[(2, 2, 2)])
depthwise_conv2d = tosa_tests("DEPTHWISE_CONV2D", CONVOLVED, shapes=[(1, 24, 25, 3)], kernels=[(3, 2)])
transpose_conv2d = tosa_tests("TRANSPOSE_CONV2D", CONVOLVED, shapes=[(1, 16, 17, 3)], kernels=[(2, 3)])
matmul = tosa_tests("MATMUL", ["int8", "int16", *FLOATS], sizes=(11, 20), smoke=["int8", "fp32"])
avg_pool2d = tosa_tests("AVG_POOL2D", ["int8", "int16", *FLOATS], shapes=[(1, 15, 14, 7)], smoke=["bf16"])
fft2d = tosa_tests("FFT2D", ["fp32"], shapes=[(1, 4, 8), (2, 8, 16), (2, 16, 32)])
rfft2d = tosa_tests("RFFT2D", ["fp32"], shapes=[(1, 4, 8), (2, 8, 16), (2, 16, 32)])
