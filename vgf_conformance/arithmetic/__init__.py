"""How a target computes where TOSA leaves it a choice: subnormal numbers, rounding, accumulators.

Each property is asked of several operators of one type, by numbers whose results give the answer
away. One implementation must answer alike everywhere: TOSA lets it flush subnormal numbers, but not
here and there.
"""
