"""Cases: named computations with named samples, declared in suites or read from a user's file."""
