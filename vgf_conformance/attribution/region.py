"""The operators of a TOSA graph that lie between tensors known to be right and one that is not.

Where tensors of a lowered graph are held against the program that it was made from, those that agree bound
the search: what makes a wrong one is among the operators behind them, whatever these are called. So an
operator that was fused into another, or that a pass made without a note, is a suspect all the same.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vgf_conformance.attribution.cut import Piece, alone, as_delegate, pieces, visible
from vgf_conformance.attribution.origin import origin
from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.formats.tosa import CONSTANTS, TosaGraph, TosaOperator, read_graph
from vgf_conformance.targets.base import Array, Target

#: Operators that a pass may insert anywhere to change a layout; where one comes from says little.
MOVEMENT = frozenset({"IDENTITY", "RESHAPE", "TRANSPOSE"})


@dataclass(frozen=True)
class Made:
    """A TOSA tensor, its value, and the operator that made it, by position in the graph of a call."""

    call: int
    position: int
    operator: TosaOperator
    tensor: str
    array: Array


@dataclass
class Seen:
    """The graph of one delegate call with the value of every tensor that can be seen.

    ``steps`` says from which step of the program an operator was made, by position; an operator of which
    nothing is known is not in it.
    """

    delegate: str
    graph: TosaGraph
    values: Mapping[str, Array]
    steps: Mapping[int, str]
    _makers: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._makers = {
            name: position
            for position, operator in enumerate(self.graph.operators)
            for name in operator.outputs
        }

    def made(self, call: int) -> Iterator[Made]:
        """Every tensor that an operator computes, in the graph's order."""
        for position, operator in enumerate(self.graph.operators):
            if operator.name in CONSTANTS:
                continue
            for name in operator.outputs:
                if name in self.values:
                    yield Made(call, position, operator, name, self.values[name])

    def maker(self, tensor: str) -> int | None:
        """The position of the operator that computes ``tensor``; None for inputs and constants."""
        position = self._makers.get(tensor)
        return None if position is None or self._is_constant(position) else position

    def region(self, tensor: str, right: Container[str]) -> list[int]:
        """The operators that lead to ``tensor`` from inputs and ``right`` tensors, in the graph's order."""
        found: set[int] = set()
        waiting = [tensor]
        while waiting:
            position = self.maker(waiting.pop())
            if position is None or position in found:
                continue
            found.add(position)
            waiting += [name for name in self.graph.operators[position].inputs if name not in right]
        return sorted(found)

    def read_by(self, positions: Sequence[int]) -> list[str]:
        """What the operators read from outside, constants left out."""
        inside = {name for position in positions for name in self.graph.operators[position].outputs}
        read = dict.fromkeys(name for position in positions for name in self.graph.operators[position].inputs)
        return [name for name in read if name not in inside and not self._is_constant(self._makers.get(name))]

    def cut(self, positions: Sequence[int], tensor: str) -> TosaGraph:
        """The graph of the operators alone, whose output is ``tensor``."""
        return alone(self.graph, Piece(tuple(positions), tuple(self.read_by(positions)), (tensor,)))

    def source(self, tensor: str) -> str:
        """``tensor`` or, where operators only moved it there, the tensor that it was moved from."""
        position = self.maker(tensor)
        while position is not None and self.graph.operators[position].name in MOVEMENT:
            tensor = self.graph.operators[position].inputs[0]
            position = self.maker(tensor)
        return tensor

    def _is_constant(self, position: int | None) -> bool:
        return position is not None and self.graph.operators[position].name in CONSTANTS


def see(delegate: Delegate, inputs: Sequence[Array], reference: Target, operators: Mapping[str, str]) -> Seen:
    """Run a delegate's graph on the reference model with every intermediate result visible.

    ``operators`` has the program's steps: their operators by name. Raises TargetFailure.
    """
    graph = read_graph(delegate.tosa)
    shown = visible(graph, pieces(graph))
    values = dict(zip(graph.inputs, inputs, strict=True))
    reference.load([as_delegate(shown, values)])
    values |= dict(zip(shown.outputs, reference.run(0, list(inputs)).arrays, strict=True))
    steps = {}
    for position, operator in enumerate(graph.operators):
        if step := step_of(operator, operators):
            steps[position] = step
    return Seen(delegate.name, graph, values, steps)


def step_of(operator: TosaOperator, operators: Mapping[str, str]) -> str:
    """The step that ``operator`` was made from, empty where it is not known.

    Of the names that its node had, the oldest that is a step's: the newer ones are those of programs in
    between, and may by chance be another step's. One whose operator is the step's too is preferred for that.
    """
    nodes = [node for node in reversed(origin(operator).trace) if node.name in operators]
    same = (node for node in nodes if _packet(node.operator) == _packet(operators[node.name]))
    return next((node.name for node in [*same, *nodes]), "")


def _packet(operator: str) -> str:
    return operator.rpartition(".")[0] or operator
