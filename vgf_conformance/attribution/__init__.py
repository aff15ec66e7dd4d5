"""Names the first TOSA operator of a delegate that a target computes wrongly."""
