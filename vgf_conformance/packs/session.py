"""One run of a pack on this machine: targets, results file, reports."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vgf_conformance.packs.manifest import PackedCase
from vgf_conformance.packs.pack import Pack
from vgf_conformance.packs.run import run_cases
from vgf_conformance.report import summary_table, write_reports
from vgf_conformance.report.environment import header
from vgf_conformance.results.store import ResultsWriter, read_results, results_file, set_aside
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.capabilities import platform
from vgf_conformance.targets.environment import environment
from vgf_conformance.targets.process import vulkan_target
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import UserError, Verdict


def run_pack(
    pack: Pack, words: Sequence[str], target: str, choice: DriverChoice, folder: Path, *, resume: bool
) -> bool:
    """Run the cases whose ids contain ``words`` on ``target``, over the driver of ``choice``.

    Records and reports go into ``folder`` and a summary to standard output. Returns whether every record
    there passes. Raises UserError for bad input: a pack, driver or folder.
    """
    pack.verify()
    cases = pack.chosen(words)
    described = {**environment([target], choice), "pack": _pack(pack)}
    print("\n".join([*header(described), pack.summary()]), flush=True)
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as layers:
        opened = vulkan_target(target, platform(target, choice), Path(layers))
        try:
            return run_on(pack, cases, opened, folder, described, resume=resume)
        finally:
            opened.close()


def run_on(
    pack: Pack,
    cases: Sequence[PackedCase],
    target: Target,
    folder: Path,
    described: dict[str, Any],
    *,
    resume: bool,
) -> bool:
    """As run_pack, on ``target``; ``described`` is the environment for the results."""
    _make(folder)
    done = _done(pack, folder, resume=resume)
    waiting = [case for case in cases if case.id_on(target.name) not in done]
    notes = [f"not run: {len(pack.manifest.cases) - len(cases)} other cases of the pack"]
    with ResultsWriter(
        results_file(folder), {**described, "notes": notes if len(cases) < len(pack.manifest.cases) else []}
    ) as writer:
        for record in run_cases(pack, waiting, target):
            writer.append(record)
    results = read_results([folder])
    print(summary_table(results))
    for path in write_reports(results, folder):
        print(path)
    return all(record.verdict is Verdict.PASS for record in results.records)


def _make(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder for the results")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write results to {folder}: {error.strerror or error}") from error


def _done(pack: Pack, folder: Path, *, resume: bool) -> set[str]:
    """Ids that need not run again; without ``resume`` an earlier run's results are set aside.

    Raises UserError where they are of another pack.
    """
    path = results_file(folder)
    if not path.exists():
        return set()
    if not resume:
        set_aside(path)
        return set()
    results = read_results([path])
    if any(run.get("pack") != _pack(pack) for run in results.runs):
        raise UserError(f"{path} holds results of another pack, so they cannot be gone on with")
    return {record.id for record in results.records}


def _pack(pack: Pack) -> dict[str, str]:
    """What results say of the pack."""
    return {"sha256": pack.sha256, "built by": f"vgf-conformance {pack.manifest.tool}"}
