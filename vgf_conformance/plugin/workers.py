"""What the controller of pytest-xdist told this process, where it is a worker."""

from __future__ import annotations

from typing import Any

import pytest

DONE, REMOTE = "vgf_done", "vgf_remote"


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs cases for a controller."""
    return hasattr(config, "workerinput")


def done_by_controller(config: pytest.Config) -> list[str] | None:
    """The ids that need not run again, in a worker; None in the controller."""
    return _told(config)[DONE] if is_worker(config) else None


def describes_its_machine(config: pytest.Config) -> bool:
    """Whether this process is the first on its machine: the controller, or a worker elsewhere."""
    return not is_worker(config) or _told(config)[REMOTE]


def _told(config: pytest.Config) -> Any:
    return config.workerinput  # type: ignore[attr-defined]
