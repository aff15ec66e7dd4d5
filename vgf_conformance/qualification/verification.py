"""What a check of a submission comes to, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from vgf_conformance.qualification.statement import Statement
from vgf_conformance.terminal import one_line
from vgf_conformance.vocabulary import Verdict

#: Reasons that are shown; who hands in nonsense gets no book of it.
_SHOWN = 50


@dataclass
class Verification:
    """Why a submission is refused, a line for each reason; none where it is accepted.

    ``verdicts`` has that of each of the pack's cases, by id without a target, as far as it is known;
    ``lacking`` those of them that the device does not support, by its capability report, and ``waived`` those
    that one of the ``waivers`` excuses, ``mandatory`` ones among them.
    """

    reasons: list[str] = field(default_factory=list)
    statement: Statement | None = None
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    waived: list[str] = field(default_factory=list)
    mandatory: list[str] = field(default_factory=list)
    waivers: int = 0

    def summary(self) -> str:
        """What was accepted: target, layers and what does not pass before names that a vendor chose."""
        assert self.statement is not None
        said = self.statement
        device = ", ".join(filter(None, (said.device["name"], said.device.get("driver_info"))))
        with_waivers = f" with {self.waivers} waiver{'s' * (self.waivers > 1)}" * bool(self.waivers)
        waived = f"{len(self.waived)} waived"
        if self.mandatory:
            waived += f" ({len(self.mandatory)} of them mandatory)"
        return one_line(
            f"accepted{with_waivers}: target {said.target} ({said.layers}), {waived}, {len(self.lacking)} "
            f"unsupported by the device, {len(self.verdicts)} cases: {said.product} on {device}"
        )

    def lines(self) -> list[str]:
        """The summary, or the reasons and the word ``refused``; each is one line that a terminal may show."""
        if not self.reasons:
            return [self.summary()]
        more = len(self.reasons) - _SHOWN
        return [*self.reasons[:_SHOWN], *([f"... and {more} more reasons"] if more > 0 else []), "refused"]
