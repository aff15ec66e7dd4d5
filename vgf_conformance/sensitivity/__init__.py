"""Measures what the tolerances catch: known faults are put into results and graphs, and must be found."""
