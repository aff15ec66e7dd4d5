"""The workers of targets that processes which are forked from this one use, one process after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vgf_conformance.targets.base import Target
from vgf_conformance.targets.capable import CapableTarget
from vgf_conformance.targets.process import ProcessTarget
from vgf_conformance.targets.runtime import InProcess, RuntimeTarget


def workers(targets: Iterable[Target]) -> list[ProcessTarget]:
    """The workers that ``targets`` ask, each once."""
    return list({id(worker): worker for target in targets for worker in _workers(target)}.values())


def _workers(target: Target) -> Iterator[ProcessTarget]:
    if isinstance(target, ProcessTarget):
        yield target
    elif isinstance(target, CapableTarget):
        yield from _workers(target.inner)
    elif isinstance(target, RuntimeTarget):
        yield from _workers(target.peer)
        if isinstance(target.executes, InProcess):
            yield target.executes.worker
