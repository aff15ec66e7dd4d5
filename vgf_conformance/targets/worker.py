"""The worker process: builds and runs delegates, so that a crash or a hang takes nothing else down.

Started by ``targets.process`` with one end of a pipe. It imports numpy and one runner
only. Requests are ``("load", delegates)`` and ``("run", index, inputs)``; replies are
``("ok", value)``, ``("refused", ...)`` or ``("error", traceback)``.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import importlib
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from vgf_conformance.formats.delegate import Delegate
from vgf_conformance.targets.memory import resident
from vgf_conformance.targets.runner import Built, Refused, Runner
from vgf_conformance.targets.sentinel import SENTINELS, compare_runs


class Worker:
    """Holds the delegates of one artifact, each built on first use."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._delegates: tuple[Delegate, ...] = ()
        self._built: dict[int, Built] = {}

    def handle(self, request: tuple[Any, ...]) -> tuple[Any, ...]:
        """Answer one request; whatever a runner raises becomes a reply."""
        try:
            if request[0] == "load":
                self._built.clear()
                self._delegates = request[1]
                return ("ok", None)
            _, index, inputs = request
            if index not in self._built:
                self._built[index] = self._runner.build(self._delegates[index])
            first, second = (self._built[index].run(inputs, sentinel) for sentinel in SENTINELS)
            return ("ok", dataclasses.replace(compare_runs(first, second), worker_bytes=resident()))
        except Refused as refused:
            return ("refused", refused.verdict, refused.stage, refused.finding, refused.message)
        except Exception:  # the worker outlives any fault of a runner and reports it
            return ("error", traceback.format_exc())


def main(descriptor: int, runner_name: str) -> None:
    """Serve requests until the other end hangs up."""
    faulthandler.enable()
    module, _, name = runner_name.partition(":")
    connection = Connection(descriptor)
    worker = Worker(getattr(importlib.import_module(module), name)())
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        connection.send(worker.handle(request))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
