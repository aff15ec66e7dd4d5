"""How wrong a failure is, and whether it is clearly worse or better than what is on file.

A known failure that says only which verdict is foreseen hides every regression behind it. So an entry
records the worst that was seen, and a failure beyond it, by the margins below, is no longer the known one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vgf_conformance.results.record import Comparison, Metrics, Record
from vgf_conformance.vocabulary import Finding, Verdict

#: Worse is an error that grew by more than half, better one that shrank as much: results repeat bit for
#: bit on one machine, but kernels of another processor or driver round differently, which moves the largest
#: error and the elements just beyond a tolerance.
RATIO = 1.5

#: The same ratio as an amplitude of noise.
DECIBELS = 20 * math.log10(RATIO)

#: What an error must grow or shrink by besides, since half of a small number is little: one quantisation
#: step, and the few units in the last place by which two good kernels differ.
STEP = {"lsb": 1.0, "ulp": 4.0}

_DIGITS = 4
_WORDS = {
    "wrong": "{:.3%} of the elements wrong",
    "nonfinite": "{:.3%} of the elements with NaN or infinity for something else",
    "lsb": "{:.4g} LSB",
    "ulp": "{:.4g} ULP",
    "sqnr_db": "SQNR {:.4g} dB",
    "drop": "a score {:.4g} below eager's",
}


@dataclass(frozen=True, kw_only=True)
class Severity:
    """The worst of one or several failures; None where a measure has no meaning for them.

    ``wrong`` is the share of elements beyond the tolerance, ``nonfinite`` of those with NaN or an infinity
    for something else (0 to 1); ``lsb`` is the largest error in quantisation steps, for outputs that have
    them, ``ulp`` in units in the last place for all others; ``sqnr_db`` is the signal-to-quantisation-noise
    ratio, ``drop`` how far a model's mean score fell below eager's.
    """

    wrong: float | None = None
    nonfinite: float | None = None
    lsb: float | None = None
    ulp: float | None = None
    sqnr_db: float | None = None
    drop: float | None = None

    @classmethod
    def parse(cls, table: Any) -> Severity:
        """What a person wrote; raises ValueError, saying what is wrong, where that is malformed."""
        if not isinstance(table, dict) or not table:
            raise ValueError(f"must be a table of {', '.join(MEASURES)}, not {table!r}")
        for name, value in table.items():
            if name not in MEASURES:
                raise ValueError(f"has an unknown measure {name!r}: choose from {', '.join(MEASURES)}")
            if type(value) not in (int, float) or not math.isfinite(value):
                raise ValueError(f"must give {name} as a finite number, not {value!r}")
            if value < 0 and name != "sqnr_db":
                raise ValueError(f"must give {name} as 0 or more, not {value!r}")
            if value > 1 and name in ("wrong", "nonfinite"):
                raise ValueError(f"must give {name} as a share from 0 to 1, not {value!r}")
        return cls(**{name: float(value) for name, value in table.items()})

    def measures(self) -> dict[str, float]:
        """What is known, by name."""
        return {name: value for name in MEASURES if (value := getattr(self, name)) is not None}

    def rounded(self) -> Severity | None:
        """With the digits that are kept on file; None where no measure is finite."""
        kept = {
            name: float(f"{value:.{_DIGITS}g}")
            for name, value in self.measures().items()
            if math.isfinite(value)
        }
        return Severity(**kept) if kept else None

    def worse_than(self, bound: Severity) -> str:
        """By which measures of ``bound`` this is clearly worse, in words with both numbers; else empty."""
        return self._compared(bound, lambda name, seen, known: _exceeds(name, seen, known))

    def better_than(self, bound: Severity) -> str:
        """By which measures of ``bound`` this is clearly better, in words; empty where it is worse in any."""
        if self.worse_than(bound):
            return ""
        return self._compared(bound, lambda name, seen, known: _exceeds(name, known, seen))

    def _compared(self, bound: Severity, apart: Any) -> str:
        own = self.measures()
        return "; ".join(
            f"{_WORDS[name].format(own[name])}, known: {known:.3%}"
            if name in ("wrong", "nonfinite")
            else f"{_WORDS[name].format(own[name])}, known: {known:.4g}"
            for name, known in bound.measures().items()
            if name in own and apart(name, own[name], known)
        )


MEASURES = tuple(item.name for item in dataclasses.fields(Severity))


def severity_of(record: Record) -> Severity | None:
    """How wrong a failure is, by the comparisons that failed at its stage and by its task's scores.

    None where nothing says: another verdict than fail, a failure without numbers, or an output that
    cannot be compared at all. What stands in an output that was never written is chance.
    """
    if record.verdict is not Verdict.FAIL or record.finding is Finding.UNWRITTEN:
        return None
    failed = [item for item in record.comparisons if item.passed is False and item.stage is record.stage]
    if any(item.metrics is None for item in failed):
        return None
    return worst([*map(_of_comparison, failed), *_of_task(record)])


def worst(severities: Iterable[Severity]) -> Severity | None:
    """The worst by each measure; None where there are none."""
    found = [severity.measures() for severity in severities]
    values = {name: [item[name] for item in found if name in item] for name in MEASURES}
    picked = {name: max(seen, key=lambda value: _rank(name, value)) for name, seen in values.items() if seen}
    return Severity(**picked) if picked else None


def _of_comparison(comparison: Comparison) -> Severity:
    metrics = comparison.metrics
    assert metrics is not None
    stepped = metrics.max_lsb is not None
    return Severity(
        wrong=_share(metrics.wrong, metrics),
        nonfinite=None if stepped else _share(metrics.nonfinite_mismatches, metrics),
        lsb=metrics.max_lsb,
        ulp=None if stepped else metrics.max_ulp,
        sqnr_db=metrics.sqnr_db,
    )


def _share(count: int | None, metrics: Metrics) -> float | None:
    return None if count is None or not metrics.elements else count / metrics.elements


def _of_task(record: Record) -> list[Severity]:
    if record.task is None or not record.task.message or len(record.task.scores) < 2:
        return []
    eager, *others = record.task.scores
    return [Severity(drop=max(eager.mean - score.mean for score in others))]


def _rank(name: str, value: float) -> float:
    """The larger, the worse; NaN is worst."""
    if math.isnan(value):
        return math.inf
    return -value if name == "sqnr_db" else value


def _exceeds(name: str, seen: float, known: float) -> bool:
    """Whether ``seen`` is worse than ``known`` by more than the margins."""
    worse, limit = _rank(name, seen), _rank(name, known)
    if name == "sqnr_db":
        return worse > limit + DECIBELS
    return worse > limit * RATIO and worse > limit + STEP.get(name, 0.0)
