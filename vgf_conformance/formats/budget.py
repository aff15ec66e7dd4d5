"""How much a reader may take out of a file, whose parts may refer to the same bytes any number of times."""

from __future__ import annotations

from vgf_conformance.untrusted import Malformed

#: How many times over a file may be read: compilers share equal strings and tables, but not often.
TIMES_OVER = 16
#: Bytes that any file may take, however small it is.
FREE = 1 << 20


class Budget:
    """Counts the bytes that a reader makes of a file of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self._left = FREE + TIMES_OVER * size

    def spend(self, size: int) -> int:
        """Take ``size`` bytes and return them; raises Malformed where no honest file has so many."""
        self._left -= size
        if self._left < 0:
            raise Malformed("it refers to the same bytes again and again: more than any file of its size")
        return size
