"""From a failing user model to the fewest operators and the smallest inputs that still fail alike."""
