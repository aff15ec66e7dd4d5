"""Where in the PyTorch program a TOSA operator comes from, as ExecuTorch notes it.

With debug information asked for, the backend leaves a JSON document with each operator: the node that it
was made from, the names that this node had in every program before it, and the stack of modules.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from vgf_conformance.formats.tosa import TosaOperator

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
#: What lies in these is not the user's.
_LIBRARIES = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Node:
    """A node's name in one program, and its operator there."""

    name: str
    operator: str


@dataclass(frozen=True)
class Origin:
    """``trace`` is the node in the programs from the edge program back to the exported one.

    ``operator`` is the one that it was exported with. ``module`` is the path of the submodule
    (``layers.3.conv``, empty for the model itself) and ``kind`` its class; ``source`` is
    ``file.py:12`` where the user's own code is known, else empty.
    """

    trace: tuple[Node, ...] = ()
    operator: str = ""
    module: str = ""
    kind: str = ""
    source: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The node's names, newest first, each once."""
        return tuple(dict.fromkeys(node.name for node in self.trace))

    def __str__(self) -> str:
        place = f"{self.module} ({self.kind})" if self.module else self.kind
        return ", ".join(filter(None, (self.operator, place, self.source)))


def origin(operator: TosaOperator) -> Origin:
    """The origin of ``operator``; an empty one where nothing was noted."""
    try:
        noted = json.loads(operator.location)["torch_info"]
        trace = noted["node_trace"] if isinstance(noted["node_trace"], list) else []
        stack = noted["nn_module_stack"]
        module, kind = list(stack.values())[-1] if isinstance(stack, dict) and stack else ("", "")
        return Origin(
            trace=tuple(Node(str(entry["name"]), str(entry["target"])) for entry in trace),
            operator=str(trace[-1]["target"]) if trace else "",
            module=module,
            kind=str(kind).rpartition(".")[2],
            source=source_line("\n".join(noted["stack_trace"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Origin()


def source_line(stack_trace: str) -> str:
    """The innermost frame of ``stack_trace`` in the user's own code, as ``file.py:12``; empty without one."""
    frames = [
        match
        for match in _FRAME.finditer(stack_trace)
        if not any(name in match["file"] for name in _LIBRARIES)
    ]
    return f"{frames[-1]['file'].rpartition('/')[2]}:{frames[-1]['line']}" if frames else ""
