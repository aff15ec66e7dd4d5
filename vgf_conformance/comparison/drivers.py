"""Two drivers on the same cases: verdicts, bits, how far apart, headroom and seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from vgf_conformance.comparison.metrics import measure, ulp_apart
from vgf_conformance.formats.arrays import as_dtype
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Metrics, OutputDigest, Record
from vgf_conformance.results.shards import artifact_of
from vgf_conformance.vocabulary import Stage, UserError, Verdict

#: Gives the content of an output's ``.npy`` file as an array, None where it is not at hand.
Look = Callable[[OutputDigest], "NDArray[Any] | None"]


@dataclass(frozen=True)
class Side:
    """One driver's results: what it is called, its records by id without the target, and its raw outputs."""

    name: str
    records: Mapping[str, Record]
    look: Look


@dataclass(frozen=True)
class CasePair:
    """One case on both drivers.

    ``same_bits`` says whether all outputs are equal, and is None where one side does not say. ``apart`` has a
    measure of each pair of outputs that differ, as far as both are at hand: the first side's against the
    second's.
    """

    id: str
    first: Record
    second: Record
    same_bits: bool | None
    apart: tuple[Metrics, ...]

    @property
    def both_pass(self) -> bool:
        """Whether both drivers conform."""
        return self.first.verdict is self.second.verdict is Verdict.PASS

    @property
    def max_ulp(self) -> float | None:
        """The largest distance in units in the last place; None where none is known."""
        return max((item.max_ulp for item in self.apart if item.max_ulp is not None), default=None)

    @property
    def max_lsb(self) -> float | None:
        """The largest distance of integers; None where none is known."""
        return max((item.max_lsb for item in self.apart if item.max_lsb is not None), default=None)


@dataclass(frozen=True)
class DriverComparison:
    """What both sides have, by case, and the ids, without a target, that only one of them has."""

    first: Side
    second: Side
    pairs: list[CasePair]
    only_first: list[str]
    only_second: list[str]

    @property
    def agree(self) -> bool:
        """Whether both have the same cases with the same verdicts."""
        same = all(pair.first.verdict is pair.second.verdict for pair in self.pairs)
        return same and not self.only_first and not self.only_second


def device_names(results: Results) -> list[str]:
    """The devices, with drivers, that the runs were on, each once."""
    described = [run["driver"] for run in results.runs if isinstance(run.get("driver"), dict)]
    names = [", ".join(filter(None, (item.get("device"), item.get("driver")))) for item in described]
    return list(dict.fromkeys(filter(None, names)))


def on_two_drivers(old: Results, new: Results) -> bool:
    """Whether both say which devices they were on, and these are others."""
    before, after = set(device_names(old)), set(device_names(new))
    return bool(before and after) and before != after


def side(results: Results, look: Look) -> Side:
    """One driver's side; raises UserError where results hold several targets beside reference."""
    ours = [record for record in results.records if record.target != "reference"]
    targets = sorted({record.target for record in ours})
    if len(targets) > 1:
        raise UserError(f"results of several targets ({', '.join(targets)}) cannot be compared by driver")
    return Side("; ".join(device_names(results)), {artifact_of(record.id): record for record in ours}, look)


def compare_drivers(first: Side, second: Side) -> DriverComparison:
    """Compare two drivers; raises UserError where they have no case in common."""
    shared = [key for key in first.records if key in second.records]
    if not shared:
        raise UserError("no case is in the results of both drivers")
    return DriverComparison(
        first,
        second,
        [_pair(key, first, second) for key in shared],
        [key for key in first.records if key not in second.records],
        [key for key in second.records if key not in first.records],
    )


def used(record: Record) -> float | None:
    """The largest share of a bound that the device used; None where nothing was judged."""
    shares = [item.headroom for item in record.comparisons if item.stage is Stage.RUN]
    return max((share for share in shares if share is not None), default=None)


def _pair(key: str, first: Side, second: Side) -> CasePair:
    ours, theirs = first.records[key], second.records[key]
    if not ours.outputs or not theirs.outputs:
        return CasePair(key, ours, theirs, None, ())
    outputs = [
        (mine, other)
        for calls in zip(ours.outputs, theirs.outputs, strict=False)
        for mine, other in zip(*calls, strict=False)
        if mine != other
    ]
    found = (_measured(mine, other, first.look, second.look) for mine, other in outputs)
    same = ours.outputs == theirs.outputs
    return CasePair(key, ours, theirs, same, tuple(item for item in found if item is not None))


def _measured(mine: OutputDigest, other: OutputDigest, look: Look, look_there: Look) -> Metrics | None:
    one, two = look(mine), look_there(other)
    if one is None or two is None or mine.dtype != other.dtype or one.shape != two.shape:
        return None
    try:
        ours, theirs = as_dtype(one, mine.dtype), as_dtype(two, mine.dtype)
    except ValueError as error:
        raise UserError(f"an output called {mine.dtype} {error}") from error
    metrics = measure(ours, theirs, mine.dtype)
    if metrics.max_ulp is not None:
        metrics.max_ulp = ulp_apart(ours, theirs, mine.dtype)
    return metrics
