"""Results of several runs made into one, with reports, and what they lack in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vgf_conformance.report.files import write_reports
from vgf_conformance.report.summary import summary_table
from vgf_conformance.results.merge import Results, merge
from vgf_conformance.results.shards import Gaps, gaps, shards_of
from vgf_conformance.results.store import FILE_NAME, read_results, results_file, write_results
from vgf_conformance.terminal import complain, one_line, say
from vgf_conformance.untrusted import FILE, kind_of
from vgf_conformance.vocabulary import UserError


def merge_files(paths: Sequence[Path], folder: Path) -> bool:
    """Join results files, or folders of them, and write results and reports into ``folder``.

    Returns whether all that was planned is there once and nothing failed unexpectedly. Raises UserError
    where results cannot be read or written, or would be written over what is read.
    """
    target = folder / FILE_NAME
    if any(_same(results_file(path), target) for path in paths):
        raise UserError(f"{target} is one of the results to merge: name another folder")
    parts = [read_results([path]) for path in paths]
    joined = merge(parts)
    found = gaps(parts, joined)
    for warning in (text for part in parts for text in part.warnings):
        complain(warning)
    if said := write_results(target, parts):
        complain(said)
    joined.warnings = []
    reports = write_reports(joined, folder, map(results_file, paths))
    say(summary_table(joined))
    say("\n".join(map(str, (target, *reports))))
    say("\n".join([*_devices(joined), *found.lines(shards_of(joined)), _summary(joined, found)]))
    return not found.any and not any(record.unexpected for record in joined.records)


def _same(path: Path, other: Path) -> bool:
    """Whether both name one regular file; what else there is refuses to be read."""
    return kind_of(path) == kind_of(other) == FILE and path.samefile(other)


def _summary(joined: Results, found: Gaps) -> str:
    if not joined.plan:
        return f"{len(joined.records)} cases; no run says what it was to have, so none can be missed"
    return f"{len(joined.plan) - len(found.missing)} of {len(joined.plan)} planned cases are there"


def _devices(joined: Results) -> list[str]:
    """Which run was on which device, where they are not all on one."""
    devices: dict[str, list[str]] = {}
    for run in joined.runs:
        described = one_line(", ".join(str(value) for value in run.get("driver", {}).values()))
        devices.setdefault(described or "no device", []).append(
            f"shard {run['shard']}" if run.get("shard") else "a run"
        )
    if len(devices) < 2:
        return []
    return [f"device of {', '.join(dict.fromkeys(runs))}: {device}" for device, runs in devices.items()]
