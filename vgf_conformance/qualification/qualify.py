"""Runs a pack twice on a driver and leaves a submission's shard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vgf_conformance.packs.pack import Pack
from vgf_conformance.packs.session import described_pack, make_folder, recorded
from vgf_conformance.qualification.layout import (
    CAPABILITIES,
    LOGS,
    OUTPUTS,
    RUNS,
    STATEMENT,
    files_of,
    output_name,
    sha256_of,
    shard_folder,
)
from vgf_conformance.qualification.machine import Machine, device_of, operating_system
from vgf_conformance.qualification.outputs import Keeping
from vgf_conformance.qualification.statement import Statement, this_tool
from vgf_conformance.report.environment import header
from vgf_conformance.report.tally import outcome
from vgf_conformance.results.record import Record
from vgf_conformance.results.shards import Shard
from vgf_conformance.results.store import read_results
from vgf_conformance.vocabulary import UserError, Verdict


def qualify(pack: Pack, machine: Machine, product: str, folder: Path, shard: Shard) -> bool:
    """Run ``shard`` of the pack twice and write its folder below ``folder``.

    Goes on where a run was cut short. Returns whether every case passes in both runs with the same outputs.
    Raises UserError for bad input, and where the folder holds a finished shard or the beginning of another.
    """
    if not product.strip() or not product.isprintable():
        raise UserError("--product: name the product in one line of printable text")
    place = folder / shard_folder(shard)
    if (place / STATEMENT).exists():
        raise UserError(f"{place} is finished: name another folder, or remove it to run it again")
    make_folder(place)
    described = {
        **machine.described,
        "pack": described_pack(pack),
        "shard": str(shard),
        "product": product,
    }
    _require_same_start(place, described)
    print("\n".join([*header(described), pack.summary()]), flush=True)
    runs = [_run(pack, machine, place, described, shard, number) for number in (0, 1)]
    _remove_unnamed_outputs(place, [record for run in runs for record in run])
    _write(place / CAPABILITIES, json.dumps(machine.capabilities, indent=1).encode() + b"\n")
    statement = Statement(
        product=product,
        shard=str(shard),
        pack=pack.sha256,
        tool=this_tool(),
        target=machine.target.name,
        device=machine.device,
        layers=machine.layers,
        os=operating_system(),
        cpu=described["cpu"],
        python=described["python"],
        versions=described["versions"],
        files={name: sha256_of(place / name) for name, _ in files_of(place)},
    )
    _write(place / STATEMENT, statement.encode())
    return _tell(place, *runs)


def _require_same_start(place: Path, described: dict[str, Any]) -> None:
    """Raise UserError where the folder holds the beginning of another qualification."""
    for path in (place / name for name in RUNS):
        for run in read_results([path]).runs if path.exists() else []:
            for what, mine, theirs in (
                ("pack", described["pack"], run.get("pack")),
                ("product", described["product"], run.get("product")),
                ("device", device_of(described), device_of(run)),
                ("versions", described["versions"], run.get("versions")),
            ):
                if mine != theirs:
                    raise UserError(f"{path} was begun with another {what}: name another folder")


def _run(
    pack: Pack, machine: Machine, place: Path, described: dict[str, Any], shard: Shard, number: int
) -> list[Record]:
    path, log = place / RUNS[number], place / LOGS[number]
    keeping = Keeping(machine.target, place)
    for record in recorded(pack, pack.manifest.cases, keeping, path, described, shard=shard, resume=True):
        _log(log, record)
    # What a run before this one left is part of it.
    return read_results([path]).records


def _log(path: Path, record: Record) -> None:
    lines = [f"{record.id}: {outcome(record)}, {record.seconds.get('run', 0.0):.3f} s"]
    lines += [f"    {line}" for text in (record.message, record.log) for line in text.splitlines()]
    try:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _remove_unnamed_outputs(place: Path, records: Sequence[Record]) -> None:
    """Remove what no record names: outputs of a run that was killed before its record was written."""
    named = {output_name(item.sha256) for record in records for call in record.outputs for item in call}
    for name, _ in list(files_of(place)):
        if name.startswith(f"{OUTPUTS}/") and name not in named:
            (place / name).unlink()


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _tell(place: Path, first: Sequence[Record], second: Sequence[Record]) -> bool:
    other = {record.id: record.outputs for record in second}
    wrong = [record for record in (*first, *second) if record.verdict is not Verdict.PASS]
    unsteady = [record.id for record in first if record.outputs != other[record.id]]
    for number, run in enumerate((first, second), 1):
        for record in run:
            if record.verdict is not Verdict.PASS:
                print(f"run {number}: {record.id}: {outcome(record)}")
    for case in unsteady:
        print(f"{case}: the two runs gave other outputs")
    counts = f"{len(wrong)} verdicts other than pass, {len(unsteady)} not repeatable"
    print(f"{place}: {len(first)} cases, twice; {counts}")
    return not wrong and not unsteady
