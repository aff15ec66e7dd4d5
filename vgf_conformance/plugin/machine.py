"""The machine that a run, or an xdist worker elsewhere, runs on: looked at once."""

from __future__ import annotations

import platform
import shlex
from typing import Any

import pytest

from vgf_conformance.plugin.settings import Settings, selection
from vgf_conformance.plugin.workers import describes_its_machine
from vgf_conformance.targets.environment import environment
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import UserError


class Machine:
    """Looks at the machine at the start of the session."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        #: As the run line of results has it; empty in a worker on the controller's machine.
        self.environment: dict[str, Any] = {}

    def pytest_sessionstart(self) -> None:
        """Look, before the header is printed."""
        if not describes_its_machine(self._config):
            return
        settings = self._settings
        try:
            self.environment = environment(settings.targets, settings.choice, settings.runtime)
        except UserError as error:
            raise pytest.UsageError(visible(str(error))) from error
        self.environment["hostname"] = platform.node()
        self.environment["options"] = shlex.join(self._config.invocation_params.args)
        self.environment["selection"] = selection(settings, self._config)
        self.environment["seed"] = settings.seed
        if settings.shard:
            self.environment["shard"] = str(settings.shard)

    def pytest_report_header(self) -> list[str]:
        """The environment that matters."""
        from vgf_conformance.report.environment import header

        return [visible(line) for line in header(self.environment)] if self.environment else []
