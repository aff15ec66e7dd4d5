"""Recorded headrooms: how much of each bound was used, so that a jump inside the bound is seen too.

``golden/baselines/<target>.json`` holds the largest headroom of each sample by suite file, case, profile
and scheme, with the driver, the versions and the seed it was measured with. A share that grew by
more than half, and by more than 5 % of the bound, is a regression: results repeat bit for bit on one
driver, so that a smaller change has a cause as well, but not one worth a person's time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgf_conformance import files
from vgf_conformance.formats import schema
from vgf_conformance.results.record import Record
from vgf_conformance.untrusted import read_json
from vgf_conformance.vocabulary import UserError

_RATIO = 1.5
_SHARE = 0.05


@dataclass(frozen=True)
class Baseline:
    """What one target used of its bounds: headroom by key, for the driver and versions named."""

    target: str
    made_with: dict[str, str]
    headroom: dict[str, float]


@dataclass(frozen=True)
class Regression:
    """A share of the bound that jumped; ``same`` says whether all that it depends on is the baseline's."""

    key: str
    target: str
    was: float
    now: float
    same: bool

    def __str__(self) -> str:
        why = "" if self.same else " (with another driver or other versions than the baseline's)"
        return (
            f"{self.key} on {self.target}: {self.was:.1%} of the bound used before, {self.now:.1%} now{why}"
        )


def largest(records: Iterable[Record], target: str) -> dict[str, float]:
    """The largest headroom of each sample on ``target``, where it is within the bound."""
    found: dict[str, float] = {}
    for record in records:
        if record.target != target:
            continue
        key = key_of(record)
        shares = [item.headroom for item in record.comparisons if item.headroom is not None and item.passed]
        if shares and max(shares) <= 1.0:
            found[key] = max(found.get(key, 0.0), *shares)
    return dict(sorted(found.items()))


def key_of(record: Record) -> str:
    """What headrooms are recorded by: the record's id without its target."""
    return f"{record.suite_file}::{record.case}[{record.sample}-{record.profile}-{record.scheme}]"


def tools(environment: Mapping[str, Any], target: str) -> dict[str, str]:
    """What headrooms on ``target`` depend on: versions, processor, seed, and the driver if there is one."""
    versions = environment.get("versions", {})
    names = ("torch", "executorch", "ai-ml-sdk-model-converter", "tosa-tools")
    found = {name: str(versions[name]) for name in names if name in versions}
    found |= {name: str(environment.get(name, "")) for name in ("cpu", "seed")}
    if target == "reference":
        return found
    layer = "ai-ml-emulation-layer-for-vulkan"
    driver = environment.get("driver", {}).get("driver", "")
    return {**found, layer: str(versions.get(layer, "")), "driver": str(driver)}


def load_baselines(folder: Path) -> list[Baseline]:
    """The baselines of ``folder``, none where it does not exist; raises UserError for a bad file."""
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def regressions(
    baselines: Iterable[Baseline], records: Iterable[Record], made_with: Mapping[str, Mapping[str, str]]
) -> list[Regression]:
    """What jumped, worst first; ``made_with`` names driver and versions by target."""
    records = list(records)
    found = [
        Regression(key, baseline.target, was, now, dict(made_with[baseline.target]) == baseline.made_with)
        for baseline in baselines
        if baseline.target in made_with
        for key, now in largest(records, baseline.target).items()
        if (was := baseline.headroom.get(key)) is not None and now > was * _RATIO and now > was + _SHARE
    ]
    return sorted(found, key=lambda item: item.was - item.now)


def update_baselines(
    folder: Path, records: Iterable[Record], made_with: Mapping[str, Mapping[str, str]]
) -> list[Path]:
    """Record what ``records`` used; cases that were not run keep what is on file. Returns the files."""
    records, known = list(records), {item.target: item for item in load_baselines(folder)}
    paths = []
    for target, tools in made_with.items():
        before = known[target].headroom if target in known else {}
        headroom = {**before, **largest(records, target)}
        document = {
            "target": target,
            "made_with": dict(tools),
            "headroom": {key: float(f"{share:.4g}") for key, share in sorted(headroom.items())},
        }
        path = folder / f"{target}.json"
        files.write(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        paths.append(path)
    return paths


def _read(path: Path) -> Baseline:
    document = read_json(path)
    if refusal := schema.refusal(document, __package__, "baseline.json"):
        raise UserError(
            f"{path}: not a baseline of headrooms ({refusal}); make it again with --update-baselines"
        )
    return Baseline(document["target"], document["made_with"], document["headroom"])
