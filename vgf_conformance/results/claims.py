"""What the backend claims, beside what was observed: one set of tuples for both.

A claim, and what a record computed, is an operator in a profile with a dtype and a quantisation mode.
Claims are read where executorch is installed (``vgf_conformance.claims``) and travel in a results
file's ``claims`` line, so that reports need neither executorch nor torch.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from vgf_conformance.untrusted import read_toml
from vgf_conformance.vocabulary import UserError

#: The element type that each quantisation mode is claimed under. For int4 weights it is that of the
#: weights: the activations of a8w4 are int8, as those of a8w8 are.
QUANTISED = {"a8w8": "int8", "a16w8": "int16", "a8w4": "int4"}


class Source(str, enum.Enum):
    """Where a claim is made."""

    REGISTRY = "registry"
    DOCUMENTATION = "documentation"
    BOTH = "registry and documentation"


class Computation(NamedTuple):
    """What is claimed and what is observed. ``dtype`` and ``mode`` are empty where only a pair is claimed."""

    operator: str
    profile: str
    dtype: str
    mode: str

    @property
    def kind(self) -> str:
        """All but the operator, in words: ``FP float32``, ``INT int16 a16w8``, ``FP any``."""
        mode = "" if self.mode == "none" else self.mode
        return " ".join(filter(None, (self.profile, self.dtype or "any", mode)))

    def __str__(self) -> str:
        return f"{self.operator} {self.kind}"


@dataclass(frozen=True, order=True)
class Claim:
    """The backend says that it takes ``operator`` in ``profile``.

    ``dtype`` and ``mode`` (none, a8w8, a16w8, a8w4) are empty where only the registry claims it.
    ``reason`` says why no case covers the claim, and is empty where one does.
    """

    operator: str
    profile: str
    dtype: str
    mode: str
    source: Source
    reason: str = ""

    @property
    def computation(self) -> Computation:
        """What is claimed."""
        return Computation(self.operator, self.profile, self.dtype, self.mode)

    def to_json(self) -> dict[str, str]:
        """The claim as plain JSON values; no reason is left out."""
        return {
            name: str(value)
            for name, value in {**asdict(self), "source": self.source.value}.items()
            if value or name != "reason"
        }

    @classmethod
    def from_json(cls, document: Mapping[str, str]) -> Claim:
        """The inverse of to_json."""
        return cls(**{**document, "source": Source(document["source"])})  # type: ignore[arg-type]


def observed(operator: str, profile: str, scheme: str, dtypes: Iterable[str]) -> set[Computation]:
    """What one lowering of ``operator`` says something about; ``dtypes`` as in Record.dtypes.

    - Extensions belong to their profile: ``FP+bf16`` counts for FP, ``INT+int16`` and ``INT+int4`` for
      INT. ``FP+INT`` counts for neither: its graphs mix what each profile is claimed for by itself.
    - The mode is the scheme without its granularity: ``a8w8-pc`` and ``a8w8-pt`` are both a8w8.
    - Each dtype counts, so that ``where`` on float32 with its condition counts for bool too.
    - int8 tensors in INT that no quantiser touched count for a8w8 as well: there is nothing to
      quantise, and the backend's documentation knows no other mode for them.
    - Everything counts for a claim that names no dtype.
    """
    bases = {"FP", "INT"}.intersection(profile.split("+"))
    if len(bases) != 1:
        return set()
    base = bases.pop()
    mode = scheme.partition("-")[0]
    found = {Computation(operator, base, dtype, mode) for dtype in dtypes}
    if (base, mode) == ("INT", "none") and "int8" in dtypes:
        found.add(Computation(operator, base, "int8", "a8w8"))
    return found | {Computation(operator, base, "", "")}


def with_reasons(claims: Iterable[Claim], reasons: Mapping[Computation, str]) -> list[Claim]:
    """The claims, each with the reason why no case covers it where ``reasons`` has one."""
    return [Claim(*claim.computation, claim.source, reasons.get(claim.computation, "")) for claim in claims]


@dataclass(frozen=True)
class Gaps:
    """How the declared cases and the table of reasons leave the claims.

    ``unexplained`` are claimed, not covered and not in the table; ``stale`` are in the table and
    covered after all, or not claimed.
    """

    claimed: int
    uncovered: list[Computation]
    unexplained: list[Computation]
    stale: list[Computation]

    @classmethod
    def of(
        cls,
        claims: Iterable[Claim],
        covered: Collection[Computation],
        reasons: Collection[Computation],
    ) -> Gaps:
        """Compare the three."""
        claimed = {claim.computation for claim in claims}
        uncovered = claimed.difference(covered)
        return cls(
            len(claimed),
            sorted(uncovered),
            sorted(uncovered.difference(reasons)),
            sorted(set(reasons) - uncovered),
        )

    @property
    def covered_share(self) -> float:
        """The share of the claims that cases cover."""
        return 1.0 - len(self.uncovered) / self.claimed if self.claimed else 1.0


def load_reasons(path: Path) -> dict[Computation, str]:
    """Why claims are covered by no case: ``golden/uncovered.toml``. Empty where there is no such file.

    Each ``[[uncovered]]`` has a profile, a dtype, a mode, a list of operators and the reason they share.
    Raises UserError for a table that is malformed or names a claim twice.
    """
    if not path.exists():
        return {}
    entries = read_toml(path).get("uncovered", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path}: uncovered has to be an array of tables, [[uncovered]]")
    reasons: dict[Computation, str] = {}
    for number, entry in enumerate(entries, 1):
        where = f"{path.name}, entry {number}"
        for computation in _computations(entry, where):
            if computation in reasons:
                raise UserError(f"{where}: {computation} is named twice")
            reasons[computation] = entry["reason"]
    return reasons


def _computations(entry: Mapping[str, Any], where: str) -> list[Computation]:
    texts = ("profile", "dtype", "mode", "reason")
    wrong = {*texts, "operators"} ^ entry.keys() or {
        name for name in texts if not isinstance(entry[name], str)
    }
    if wrong:
        raise UserError(
            f"{where}: {', '.join(sorted(wrong))}: "
            f"an entry has the texts {', '.join(texts)} and a list of operators"
        )
    operators = entry["operators"]
    if not entry["reason"] or not operators or not isinstance(operators, list):
        raise UserError(f"{where}: the reason and the list of operators may not be empty")
    if not all(isinstance(operator, str) for operator in operators):
        raise UserError(f"{where}: operators has to be a list of names")
    return [Computation(operator, entry["profile"], entry["dtype"], entry["mode"]) for operator in operators]
