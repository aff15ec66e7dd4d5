"""report.html: one self-contained page that shows the whole run."""

from __future__ import annotations

import dataclasses
import json
import math
from importlib import resources
from typing import Any

from vgf_conformance.comparison.metrics import HISTOGRAM_EDGES
from vgf_conformance.report.claims import Coverage, State, emitted, observed_kinds, tosa_coverage
from vgf_conformance.report.tally import (
    clipped,
    columns,
    duration,
    environment,
    notes,
    sqnr,
    started,
    timespan,
    used,
)
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Comparison, Record
from vgf_conformance.terminal import visible

#: What the page knows of a record, in the order of its rows.
FIELDS = [
    *("id", "name", "file", "case", "sample", "kind", "operator", "dtypes", "claims", "tier"),
    *("profile", "scheme", "target", "driver"),
    *("verdict", "stage", "finding", "message", "expected", "unexpected", "expectation_note"),
    *(
        "comparisons",
        "delegates",
        "leftovers",
        "quantise_fault",
        "first_wrong",
        "task",
        "accuracy",
        "about",
        "pte_bytes",
    ),
    *("notes", "seconds", "artifact", "cached", "repro", "log"),
]


def html_report(results: Results) -> str:
    """The page: the template with the results as JSON in it, which a script shows."""
    template = resources.files(__package__).joinpath("template.html").read_text("utf-8")
    # "<" would let a record's text end the script element that holds the data.
    data = json.dumps(_page(results), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return template.replace("@DATA@", data)


def _page(results: Results) -> dict[str, Any]:
    pool = _Pool()
    shown = {
        "started": started(results),
        "duration": timespan(duration(results)),
        "environment": environment(results),
        "notes": notes(results),
        "claims": _claims(Coverage.of(results)),
        "tosa": tosa_coverage(emitted(results.records)),
        "columns": columns(results.records),
    }
    return {
        **_visible(shown),
        "edges": HISTOGRAM_EDGES,
        "fields": FIELDS,
        "rows": [_row(record, pool) for record in results.records],
        "pool": pool.values,
    }


def _claims(coverage: Coverage) -> dict[str, Any] | None:
    """What the page shows of the claims, states by number; None where the results have none."""
    if not coverage.claims or not coverage.targets:
        return None
    states = list(State)
    return {
        "targets": coverage.targets,
        "states": [state.value for state in states],
        "symbols": [state.symbol for state in states],
        "kinds": coverage.kinds,
        "pairs": [coverage.pairs(target) for target in coverage.targets],
        "rows": [
            [
                operator,
                {
                    kind: [
                        [states.index(item.state), item.records, clipped(item.why, 300)]
                        for item in by_target.values()
                    ]
                    for kind, by_target in found.items()
                },
            ]
            for operator, found in coverage.table().items()
        ],
        "unclaimed": [[item.operator, item.kind, item.records] for item in coverage.unclaimed],
    }


class _Pool:
    """Values that are stored once and named by number: most texts and delegates repeat."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        key = json.dumps(value, sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


def _row(record: Record, pool: _Pool) -> list[int]:
    values = _visible(
        {
            **record.to_json(),
            "name": record.name,
            "file": record.suite_file,
            "claims": observed_kinds(record),
            "message": clipped(record.message, 4000),
            "log": clipped(record.log, 8000),
            "comparisons": [_comparison(item) for item in record.comparisons],
            "seconds": {stage: _rounded(value) for stage, value in record.seconds.items()},
        }
    )
    # The page puts the id back: most ids are in the command as they are.
    values["repro"] = values["repro"].replace(values["id"], "\0")
    values["comparisons"] = [pool.place(item) for item in values["comparisons"]]
    return [pool.place(values[name]) for name in FIELDS]


def _visible(value: Any) -> Any:
    """``value`` with every text in it, names too, made visible: browsers reorder what they show as well."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(name): _visible(item) for name, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, (list, tuple)) else value


#: Metrics that the page does not show.
_UNSHOWN = {"max_rel", "cosine", "zero_sign_mismatches"}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    """A comparison, rounded, without what is empty and with the metrics beside the rest."""
    values = {**dataclasses.asdict(comparison), "stage": comparison.stage.value}
    values.update(values.pop("metrics") or {})
    if comparison.metrics:
        values["sqnr_db"] = sqnr(comparison.metrics)
        values["nonfinite_mismatches"] = comparison.metrics.nonfinite_mismatches or None
    values["headroom"] = used(comparison)
    values["message"] = clipped(comparison.message, 1000)
    return {
        name: _rounded(value)
        for name, value in values.items()
        if name not in _UNSHOWN and value not in (None, "", [])
    }


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)
