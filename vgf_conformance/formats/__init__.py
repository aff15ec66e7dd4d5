"""Readers of the files that lowering makes: TOSA graphs, VGF containers, .pte programs."""
