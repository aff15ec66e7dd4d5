"""What pytest-xdist's workers and their controller tell each other, and which worker gets what."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from vgf_conformance.plugin.selection import Selection
from vgf_conformance.plugin.workers import DONE, REMOTE, is_worker

_COLLECTED = "vgf_collected"


class Distribution:
    """Sends the controller's part to workers, and theirs back."""

    def __init__(self, config: pytest.Config, selection: Selection) -> None:
        self._config = config
        self._selection = selection

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what is done already, and whether to describe its machine: another one."""
        node.workerinput[DONE] = sorted(self._selection.done)
        node.workerinput[REMOTE] = not node.gateway.spec.popen

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """All targets of one artifact go to one worker, so that it is lowered once."""
        from vgf_conformance.scheduling import ArtifactScheduling

        return ArtifactScheduling(config, log)

    def pytest_sessionfinish(self) -> None:
        """In a worker: tell what it found while it collected."""
        if is_worker(self._config):
            collected = dataclasses.asdict(self._selection.collected)
            self._config.workeroutput[_COLLECTED] = collected  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker found while it collected; one that crashed says nothing."""
        output = getattr(node, "workeroutput", {})
        collected = self._selection.collected
        self._selection.collected = dataclasses.replace(collected, **output.get(_COLLECTED, {}))
