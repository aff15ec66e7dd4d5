"""What is checked of operator cases before any runs, and what the installed backend claims of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pytest

from vgf_conformance.plugin.settings import Settings
from vgf_conformance.results.claims import Claim, Computation, with_reasons
from vgf_conformance.vocabulary import UserError


class Operators:
    """Holds operator cases against torch and the backend's claims."""

    def __init__(self, settings: Settings, uncovered: Mapping[Computation, str]) -> None:
        """``uncovered`` has the reasons for claims that no case covers."""
        self._settings = settings
        self._uncovered = uncovered
        self._known = False
        #: Why there are no claims to compare with; empty where there are some, or nobody asked.
        self.claimless = ""

    def check(self, planned: Sequence[tuple[Any, Any]]) -> None:
        """Refuse what makes every verdict on an operator meaningless; raises UserError.

        That is a sample that eager PyTorch refuses, in the tiers that are run, and, told once, a claim for
        an operator that torch lacks. ``planned`` are cases with their samples.
        """
        operators = {(case.name, sample.name): (case, sample) for case, sample in planned}
        chosen = [pair for pair in operators.values() if pair[0].kind == "operator"]
        if not chosen:
            return
        from vgf_conformance.evaluation.claimed import require_known
        from vgf_conformance.evaluation.collect import require_eager

        if not self._known:
            self._known = True
            require_known(self._installed)
        for case, sample in chosen:
            if self._settings.tier in ("all", case.tier_of(sample)):
                require_eager(case, sample, self._settings.seed)

    def claims(self) -> list[Claim]:
        """The installed backend's claims, with the reasons for those that no case covers."""
        return with_reasons(self._installed, self._uncovered)

    @cached_property
    def _installed(self) -> Sequence[Claim]:
        from vgf_conformance.evaluation.claimed import installed_claims

        try:
            return installed_claims()
        except UserError as error:
            self.claimless = str(error)
            return ()


OPERATORS = pytest.StashKey[Operators]()
