"""Shards: a stable split of a run by case id, and what its parts lack when they are joined again."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vgf_conformance.results.merge import Results
from vgf_conformance.vocabulary import UserError

_TEXT = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


@dataclass(frozen=True, order=True)
class Shard:
    """One of ``of`` parts, counted from 1.

    An artifact is in the part that its id without the target names: the first 8 bytes of the SHA-256 of
    its UTF-8 bytes, as a big-endian number, modulo ``of``. So the targets of an artifact stay together, and
    a further case moves no other.
    """

    of: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``I/N``; raises UserError unless 1 <= I <= N <= 9999."""
        match = _TEXT.fullmatch(text)
        if match is None or int(match[1]) > int(match[2]):
            raise UserError(
                f"unknown shard {text[:100]!r}: write I/N, as 1/4 for the first of four (at most 9999)"
            )
        return cls(number=int(match[1]), of=int(match[2]))

    @classmethod
    def with_artifact(cls, artifact: str, of: int) -> Shard:
        """The one of ``of`` shards that an artifact (a case's id without the target) is in."""
        digest = hashlib.sha256(artifact.encode("utf-8", "surrogateescape")).digest()
        return cls(number=int.from_bytes(digest[:8], "big") % of + 1, of=of)

    def holds(self, artifact: str) -> bool:
        """Whether an artifact (a case's id without the target) is in this shard."""
        return self == Shard.with_artifact(artifact, self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def artifact_of(case_id: str) -> str:
    """A case's id without its target: ``...::add[same-FP-none]`` for ``...::add[same-FP-none-emulation]``."""
    return f"{case_id.rpartition('-')[0]}]"


#: In how many ways the runs may have been split whose results are joined: each has thousands of shards.
MOST_SPLITS = 8


@dataclass(frozen=True)
class Gaps:
    """What results lack, or have too often, when they are joined.

    ``lost`` are shards of which there are no results at all; ``missing`` are ids that were planned and
    have no record, nor a reason why they could not be run; ``double`` are ids that more than one has.
    """

    lost: list[Shard]
    missing: list[str]
    double: list[str]

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.lost or self.missing or self.double)

    def lines(self, shards: Iterable[Shard]) -> list[str]:
        """Each in words; a missing case with the shard, among those of ``shards``, that it is in."""
        counts = sorted({shard.of for shard in shards})
        return [
            *(f"lost: shard {shard} has no results" for shard in self.lost),
            *(
                f"missing: {case}{''.join(f' (shard {_of(case, count)})' for count in counts)}"
                for case in self.missing
            ),
            *(
                f"double: {case} is in more than one of the results: the last one is kept"
                for case in self.double
            ),
        ]


def _of(case_id: str, count: int) -> Shard:
    return Shard.with_artifact(artifact_of(case_id), count)


def shards_of(results: Results) -> set[Shard]:
    """The shards that the runs say they are."""
    return {Shard.parse(run["shard"]) for run in results.runs if run.get("shard")}


def gaps(parts: Sequence[Results], joined: Results) -> Gaps:
    """What is lacking, or too much, in ``joined``, which ``parts`` were joined to.

    Raises UserError where runs were split in more ways than MOST_SPLITS.
    """
    there = shards_of(joined)
    counts = {shard.of for shard in there}
    if len(counts) > MOST_SPLITS:
        raise UserError(f"shards of runs that were split in {len(counts)} ways: give those of one run")
    every = {Shard(number=number, of=count) for count in counts for number in range(1, count + 1)}
    known = {record.id for record in joined.records} | {item.id for item in joined.not_run}
    times = Counter(record.id for part in parts for record in part.records)
    return Gaps(
        lost=sorted(every - there),
        missing=[case for case in joined.plan if case not in known],
        double=[case for case, count in times.items() if count > 1],
    )
