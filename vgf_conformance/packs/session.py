"""One run of a pack on this machine: targets, results file, reports."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vgf_conformance import files
from vgf_conformance.packs.manifest import PackedCase
from vgf_conformance.packs.pack import Pack
from vgf_conformance.packs.run import run_cases
from vgf_conformance.report import summary_table, write_reports
from vgf_conformance.report.environment import header
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import Shard
from vgf_conformance.results.store import ResultsWriter, read_results, results_file, set_aside
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.capabilities import platform
from vgf_conformance.targets.environment import environment
from vgf_conformance.targets.process import vulkan_target
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.terminal import complain, say
from vgf_conformance.untrusted import is_folder, kind_of
from vgf_conformance.vocabulary import UserError, Verdict


def run_pack(
    pack: Pack,
    words: Sequence[str],
    target: str,
    choice: DriverChoice,
    folder: Path,
    *,
    shard: Shard | None = None,
    resume: bool = False,
) -> bool:
    """Run the cases of ``shard`` whose ids contain ``words`` on ``target``, over the driver of ``choice``.

    Records and reports go into ``folder`` and a summary to standard output. Returns whether every record
    there passes. Raises UserError for bad input: a pack, driver or folder.
    """
    pack.verify()
    cases = pack.chosen(words)
    described = {**environment([target], choice), "pack": described_pack(pack)}
    if shard:
        described["shard"] = str(shard)
    say("\n".join([*header(described), pack.summary()]))
    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as layers:
        opened = vulkan_target(target, platform(target, choice), Path(layers))
        try:
            return run_on(pack, cases, opened, folder, described, shard=shard, resume=resume)
        finally:
            opened.close()


def run_on(
    pack: Pack,
    cases: Sequence[PackedCase],
    target: Target,
    folder: Path,
    described: dict[str, Any],
    *,
    shard: Shard | None = None,
    resume: bool = False,
) -> bool:
    """As run_pack, on ``target``; ``described`` is the environment for the results."""
    make_folder(folder)
    for _ in recorded(pack, cases, target, results_file(folder), described, shard=shard, resume=resume):
        pass
    results = read_results([folder])
    reports = write_reports(results, folder)
    say(summary_table(results))
    say("\n".join(map(str, reports)))
    return all(record.verdict is Verdict.PASS for record in results.records)


def recorded(
    pack: Pack,
    cases: Sequence[PackedCase],
    target: Target,
    path: Path,
    described: dict[str, Any],
    *,
    shard: Shard | None,
    resume: bool,
) -> Iterator[Record]:
    """Run those of ``cases`` that are in ``shard`` and write each record to the file ``path``, as it comes.

    With ``resume`` only those that the file lacks. Raises UserError where it holds results of another
    pack, or cannot be written.
    """
    done = _done(pack, path, resume=resume)
    mine = [case for case in cases if shard is None or shard.holds(case.id)]
    waiting = [case for case in mine if case.id_on(target.name) not in done]
    others = len(pack.manifest.cases) - len(mine)
    notes = [f"not run: {others} other cases of the pack"] if others else []
    with ResultsWriter(path, {**described, "notes": notes}) as writer:
        writer.append_plan([case.id_on(target.name) for case in cases])
        for record in run_cases(pack, waiting, target):
            writer.append(record)
            yield record


def make_folder(folder: Path) -> None:
    """Make a folder for results; raises UserError where that cannot be done."""
    if not is_folder(folder) and kind_of(folder) is not None:
        raise UserError(f"{folder} is a file; name a folder for the results")
    files.make_folder(folder)


def _done(pack: Pack, path: Path, *, resume: bool) -> set[str]:
    """Ids that need not run again; without ``resume`` an earlier run's results are set aside.

    Raises UserError where they are of another pack.
    """
    if kind_of(path) is None:
        return set()
    if not resume:
        if said := set_aside(path):
            complain(said)
        return set()
    results = read_results([path])
    if any(run.get("pack") != described_pack(pack) for run in results.runs):
        raise UserError(
            f"{path} holds results of another pack, so the run cannot be resumed: name another folder"
        )
    return {record.id for record in results.records}


def described_pack(pack: Pack) -> dict[str, str]:
    """What results say of the pack."""
    return {"sha256": pack.sha256, "built by": f"vgf-conformance {pack.manifest.tool}"}
