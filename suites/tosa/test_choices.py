"""What TOSA leaves to an implementation, asked of each target: it is reported, and must be alike everywhere.

Covered: subnormal numbers kept or flushed to zero, the rounding of ties, and the width of what sums are
made in, which must be that of the declared accumulator at least.
"""

from vgf_conformance.arithmetic.accumulators import accumulators
from vgf_conformance.arithmetic.declare import arithmetic
from vgf_conformance.arithmetic.rounding import rounding
from vgf_conformance.arithmetic.subnormals import subnormal_operands, subnormal_results

FLOATS = ("float32", "float16", "bfloat16")

results_below_normal = arithmetic(subnormal_results, *FLOATS, alike=True)
operands_below_normal = arithmetic(subnormal_operands, *FLOATS, alike=True)
rounding_of_ties = arithmetic(rounding, *FLOATS, alike=True)
width_of_accumulators = arithmetic(accumulators, *FLOATS, alike=False)
