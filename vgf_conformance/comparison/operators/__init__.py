"""The exact meaning of each TOSA operator, and how errors pass through it.

One small function per operator, entered by name into ``OPERATORS``; importing this
package fills it.
"""

from vgf_conformance.comparison.operators import dot, elementwise, integer, layout, reduction, transform
from vgf_conformance.comparison.operators.base import OPERATORS

__all__ = ["OPERATORS", "dot", "elementwise", "integer", "layout", "reduction", "transform"]
