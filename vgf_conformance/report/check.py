"""What ``vgf-conformance check`` prints: tables for people as results come, or one JSON document."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
from collections.abc import Iterable

from tabulate import tabulate

from vgf_conformance.report.failure import Cause, first_wrong_text, quantise_fault_text
from vgf_conformance.report.tally import accuracy_text, grouped, nonfinite_text
from vgf_conformance.results.record import SCHEMA_VERSION, Accuracy, Comparison, Record
from vgf_conformance.terminal import complain, say, warn
from vgf_conformance.vocabulary import Finding, Stage, Verdict

_HEADERS = (
    "profile",
    "scheme",
    "target",
    "verdict",
    "stage",
    "accuracy",
    "measured on",
    "max error vs eager",
    "vs quantised",
    "device bound used",
)


def print_json(records: Iterable[Record]) -> list[Record]:
    """Print ``{"schema": 2, "records": [...]}``; progress and bad input go to standard error."""
    found: list[Record] = []
    try:
        # Whatever a model prints must not get into the document.
        with contextlib.redirect_stdout(sys.stderr):
            for record in records:
                found.append(record)
                summary = (
                    f"{record.file} {record.profile} {record.scheme} {record.target} {record.verdict.value}"
                )
                warn(summary)
                if record.finding is Finding.INPUT:
                    complain(record.message)
    finally:
        # An interrupted run loses nothing that it found.
        documents = [record.to_json() for record in found]
        say(json.dumps({"schema": SCHEMA_VERSION, "records": documents}, indent=1))
    return found


def print_tables(records: Iterable[Record]) -> list[Record]:
    """Print one table a file, and below it why each failure failed and how to see it again."""
    found: list[Record] = []
    for _, group in itertools.groupby(records, lambda record: record.file):
        members = list(group)
        found += members
        bad = [record for record in members if record.finding is Finding.INPUT and not record.profile]
        for record in bad:
            complain(record.message)
        run = [record for record in members if record not in bad]
        if run:
            say(_file_report(run))
    return found


def _file_report(records: list[Record]) -> str:
    lines = [f"{records[0].file}", ""]
    for profile, group in itertools.groupby(records, lambda record: (record.profile, record.scheme)):
        lines.append(f"  {profile[0]} {profile[1]}: {_delegation(next(iter(group)))}")
    lines += ["", tabulate([_row(record) for record in records], _HEADERS, tablefmt="plain"), ""]
    lines += sorted({f"note: {note}" for record in records for note in record.notes})
    failed = [record for record in records if record.verdict is not Verdict.PASS]
    for same in grouped(failed, Cause.of).values():
        lines += _explanation(same)
    return "\n".join(lines)


def _delegation(record: Record) -> str:
    if not record.artifact:
        return "not lowered"
    inside = sum(delegate.nodes for delegate in record.delegates)
    left = sum(leftover.count for leftover in record.leftovers)
    delegates = len(record.delegates)
    many = "" if delegates == 1 else "s"
    text = f"{inside + left} nodes: {inside} in {delegates} delegate{many}, {left} on the CPU"
    reasons = "; ".join(f"{leftover.operator}: {leftover.reason}" for leftover in record.leftovers)
    return f"{text} ({reasons})" if reasons else text


def _row(record: Record) -> tuple[str, ...]:
    return (
        record.profile,
        record.scheme,
        record.target,
        record.verdict.value if record.verdict is Verdict.PASS else record.verdict.value.upper(),
        record.stage.value if record.stage else "",
        *_accuracy(record.accuracy),
        _error(_last(record, f"{record.target}/eager")),
        _steps(_last(record, f"{record.target}/quantised") or _last(record, "reference/quantised")),
        _share(_last(record, f"{record.target}/reference")),
    )


def _accuracy(found: Accuracy | None) -> tuple[str, str]:
    """``41 dB, good``, and the sample that this was measured on."""
    if found is None:
        return "-", ""
    calibrated = " (calibrated on)" if found.calibrated else ""
    return accuracy_text(found), found.sample + calibrated


def _last(record: Record, pair: str) -> Comparison | None:
    """The worst output of a pair: by NaN and infinity for something else, then by absolute error."""
    found = [(item.metrics, item) for item in record.comparisons if item.pair == pair and item.metrics]
    key = [(metrics.nonfinite_mismatches > 0, metrics.max_abs or 0.0) for metrics, _ in found]
    return found[key.index(max(key))][1] if found else None


def _error(comparison: Comparison | None) -> str:
    if comparison is None or comparison.metrics is None:
        return "-"
    metrics = comparison.metrics
    if metrics.nonfinite_mismatches:
        return nonfinite_text(metrics)
    if metrics.max_abs is None:
        return "-"
    if metrics.differing == 0:
        return "exact"
    ulp = f" ({metrics.max_ulp:.3g} ULP)" if metrics.max_ulp is not None and metrics.max_ulp < 1e4 else ""
    return f"{metrics.max_abs:.2g}{ulp}"


def _steps(comparison: Comparison | None) -> str:
    if comparison is None or comparison.metrics is None:
        return "-"
    if comparison.metrics.differing == 0:
        return "exact"
    if comparison.metrics.max_lsb is not None and not comparison.metrics.nonfinite_mismatches:
        return f"{comparison.metrics.max_lsb:.3g} LSB"
    return _error(comparison)


def _share(comparison: Comparison | None) -> str:
    if comparison is None or comparison.headroom is None:
        return "-"
    return f"{comparison.headroom:.0%}"


#: What a stage's failure means, for somebody who reads the word for the first time.
_MEANING = {
    Stage.EXPORT: "torch.export refuses the model",
    Stage.QUANTISE: "the quantised program is already wrong",
    Stage.LOWER: "the TOSA graph is wrong before any device runs it",
    Stage.CONVERT: "the model converter's VGF is not what the TOSA graph says",
    Stage.RUN: "the target's results differ from the reference model's",
}


def _explanation(records: list[Record]) -> list[str]:
    """Why records failed of one cause, and how to see the first of them again."""
    record = records[0]
    places = "; ".join(
        f"{profile} {scheme} on {' and '.join(item.target for item in members)}"
        for (profile, scheme), members in grouped(records, lambda item: (item.profile, item.scheme)).items()
    )
    what = f" ({record.finding.value})" if record.finding else ""
    meaning = f": {_MEANING[record.stage]}" if record.verdict is Verdict.FAIL and record.stage else ""
    if record.finding is Finding.RAISED and record.stage is Stage.LOWER:
        meaning = ": lowering raises where it should leave the operator to the CPU"
    where = f" at {record.stage.value}" if record.stage else ""
    lines = [
        f"{places}: {record.verdict.value}{where}{what}{meaning}",
        f"  {record.message}",
    ]
    if record.sample != "inputs":
        lines.append(f"  sample: {record.sample}")
    if record.quantise_fault:
        lines += [f"  {line}" for line in quantise_fault_text(record.quantise_fault).splitlines()]
    if record.first_wrong:
        lines += [f"  {line}" for line in first_wrong_text(record.first_wrong).splitlines()]
    return [*lines, f"  reproduce: {record.repro}", ""]
