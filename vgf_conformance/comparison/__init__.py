"""How far two results lie apart, how far they may, and whose fault it is. Numpy and scipy only.

``metrics`` measures, ``bounds`` holds the specification's table, ``propagation`` runs a
TOSA graph in exact arithmetic with an error bound beside every element (one small
function per operator in ``operators``), and ``device`` judges a device by it.
"""
