"""The artifact: all that lowering made of one (module, inputs, profile, scheme)."""

from __future__ import annotations

from dataclasses import dataclass, field

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.lowering.program import Program
from vgf_conformance.lowering.steps import Steps
from vgf_conformance.vocabulary import Finding, Stage, Verdict


@dataclass(frozen=True)
class LeftoverNode:
    """An edge operator outside every delegate, with the partitioner's reason."""

    operator: str
    reason: str


@dataclass(frozen=True)
class Artifact:
    """A lowered program.

    ``quantised`` is the converted PT2E program, ``steps`` is how it was made; both are None where the scheme
    is ``none``.
    ``output_scales`` gives each user output's quantisation step where it has one.
    ``seconds`` are wall times by stage; ``versions`` those of every tool in the chain. ``made`` is when it
    was lowered (ISO 8601, UTC), ``cached`` whether that was an earlier time, and it lay in the cache since.
    ``passes`` are the backend's passes that changed a graph on the way, sorted by name.
    ``refusals`` has the converter's words on the graphs with control flow that it refuses, by delegate: these
    have no VGF, and the program no .pte.
    """

    key: str
    program: Program
    steps: Steps | None
    quantised: Program | None
    output_scales: tuple[float | None, ...]
    delegates: tuple[Delegate, ...]
    leftovers: tuple[LeftoverNode, ...]
    pte: bytes
    seconds: dict[str, float]
    versions: dict[str, str]
    made: str
    cached: bool = False
    passes: tuple[str, ...] = ()
    refusals: dict[int, str] = field(default_factory=dict)

    @property
    def nodes_delegated(self) -> int:
        """Edge operators inside delegates."""
        return sum(delegate.nodes for delegate in self.delegates)


@dataclass
class LoweringFailure(Exception):
    """Lowering ended early: at which stage, how, and the innermost cause.

    ``tosa`` is the graph that the converter rejected, where it got that far; ``log`` the
    whole traceback or the converter's output. ``made`` and ``cached`` are as an artifact's, and so
    are ``steps`` where lowering came so far.
    """

    verdict: Verdict
    stage: Stage
    finding: Finding
    message: str
    log: str = ""
    tosa: bytes = b""
    seconds: dict[str, float] = field(default_factory=dict)
    made: str = ""
    cached: bool = False
    steps: Steps | None = None

    def __str__(self) -> str:
        return self.message
