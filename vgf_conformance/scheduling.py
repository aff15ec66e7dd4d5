"""How pytest-xdist shares the cases out: all targets of one artifact to one worker."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from vgf_conformance.results.shards import artifact_of


class ArtifactScheduling(LoadScopeScheduling):
    """Scopes are artifacts: a case id without its target."""

    def _split_scope(self, nodeid: str) -> str:
        """``add[same-FP-none-emulation]`` belongs with ``add[same-FP-none-reference]``."""
        return artifact_of(nodeid) if nodeid.startswith("suites/") else nodeid
