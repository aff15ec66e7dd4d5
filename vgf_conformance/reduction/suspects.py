"""Which nodes to try first: those that an attribution, or a compiler's last words, name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from vgf_conformance.evaluation.attribute import Attribution
from vgf_conformance.reduction.trace import Trace
from vgf_conformance.results.record import Record
from vgf_conformance.vocabulary import Finding

#: Attributes one failure; None where nothing is to blame.
Attribute = Callable[[], "Attribution | None"]
#: Sole suspects that are tried: every node of a common operator is one where only the operator is named.
_MOST = 4
#: How far around a suspect the windows reach.
_REACHES = (2, 5)


def suspects(trace: Trace, record: Record, attribute: Attribute) -> list[int]:
    """Units by number, the likeliest first; empty where nothing points at any."""
    if record.finding is Finding.WRONG:
        return _attributed(trace, attribute)
    # The TOSA operator's name, in the message itself, says most.
    by_tosa = [
        number
        for number, unit in enumerate(trace.units)
        if re.search(rf"\b{re.escape(_packet(unit.operator).upper())}\b", record.message)
    ]
    named = _named(trace, f"{record.message}\n{record.log}")
    return list(dict.fromkeys([*by_tosa, *named]))[:_MOST]


def _packet(operator: str) -> str:
    """``add`` of ``aten.add.Tensor``."""
    return operator.partition(".")[2].partition(".")[0]


def _attributed(trace: Trace, attribute: Attribute) -> list[int]:
    try:
        found = attribute()
    except Exception:
        # It only says where to look first: the search finds the nodes without it.
        return []
    if found is None:
        return []
    names = set(found.origin.nodes)
    return [
        number
        for number, unit in enumerate(trace.units)
        if names.intersection(step.name for step in unit.steps)
    ]


def _named(trace: Trace, text: str) -> list[int]:
    """The units that ``text`` names, by themselves or by their operator, the last named first."""
    found: dict[int, int] = {}
    for number, unit in enumerate(trace.units):
        operator = re.escape(_packet(unit.operator))
        pattern = rf"aten[._]{operator}[._]|%{re.escape(unit.name)}\b"
        positions = [match.start() for match in re.finditer(pattern, text)]
        if positions:
            found[number] = positions[-1]
    return sorted(found, key=lambda number: -found[number])


def neighbourhoods(trace: Trace, numbers: list[int]) -> Iterator[tuple[int, ...]]:
    """Parts around the suspects, small ones first: alone, with what they read, with what reads them."""
    for number in numbers:
        yield (number,)
    for number in numbers[:1]:
        before, behind = trace.producers(number), trace.readers(number)
        for more in (before, behind, before | behind):
            yield tuple(sorted({number, *more}))
        for reach in _REACHES:
            low, high = max(0, number - reach), min(len(trace.units), number + reach + 1)
            yield tuple(range(low, high))
