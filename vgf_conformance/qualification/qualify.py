"""Runs a pack twice on a driver and leaves a submission's shard."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vgf_conformance.files import append, write
from vgf_conformance.packs.pack import Pack
from vgf_conformance.packs.session import described_pack, make_folder, recorded
from vgf_conformance.qualification.layout import (
    CAPABILITIES,
    FILE,
    FOLDER,
    LOGS,
    OUTPUTS,
    RUNS,
    STATEMENT,
    WAIVERS,
    entries,
    files_of,
    is_known,
    is_output,
    is_partial,
    output_name,
    sha256_of,
    shard_folder,
    shard_named,
)
from vgf_conformance.qualification.machine import Machine, operating_system, useless
from vgf_conformance.qualification.outputs import Keeping
from vgf_conformance.qualification.statement import Statement, longest_line, this_tool
from vgf_conformance.report.environment import header
from vgf_conformance.report.summary import noisy_lines
from vgf_conformance.report.tally import outcome
from vgf_conformance.results.record import Record, plain
from vgf_conformance.results.shards import Shard
from vgf_conformance.results.store import read_results
from vgf_conformance.terminal import say
from vgf_conformance.untrusted import BadFile, kind_of
from vgf_conformance.vocabulary import UserError, Verdict

#: What a run line has beside the environment of its run.
_OF_THE_LINE = ("type", "schema", "started", "notes")


def qualify(pack: Pack, machine: Machine, product: str, folder: Path, shard: Shard) -> bool:
    """Run ``shard`` of the pack twice and write its folder below ``folder``.

    Goes on where a run was cut short. Returns whether every case passes in both runs with the same outputs.
    Raises UserError for bad input, and where the folder holds a finished shard, the beginning of another, or
    what is no part of a submission: before anything runs, and again before the statement is written.
    """
    described = {
        **machine.described,
        "os": operating_system(),
        "pack": described_pack(pack),
        "shard": str(shard),
        "product": product,
    }
    statement = _statement(pack, machine, product, described, shard)
    place = folder / shard_folder(shard)
    _require_room(folder, place, shard)
    make_folder(place)
    _require_own(place)
    _require_same_start(place, described)
    say("\n".join([*header(described), pack.summary()]))
    runs = [_run(pack, machine, place, described, shard, number) for number in (0, 1)]
    _remove_unnamed(place, [record for run in runs for record in run])
    write(place / CAPABILITIES, json.dumps(machine.platform.to_json(), indent=1).encode() + b"\n")
    _require_own(place)
    files = {entry.name: sha256_of(place / entry.name) for entry in files_of(place)}
    for name in filter(is_output, files):
        if name != output_name(files[name]):
            raise BadFile(place / name, f"was altered since it was written: remove {place} and run it again")
    write(place / STATEMENT, replace(statement, files=files).encode())
    return _tell(place, *runs)


def _statement(
    pack: Pack, machine: Machine, product: str, described: Mapping[str, Any], shard: Shard
) -> Statement:
    """The statement but for the files; raises UserError where it would be refused, so that nothing runs."""
    if not product.strip() or not product.isprintable():
        raise UserError("--product: name the product in one line of printable text")
    if len(product) > longest_line():
        raise UserError(f"--product: {len(product)} characters, where {longest_line()} are the most")
    if trouble := useless(machine.target.name, machine.platform):
        raise UserError(f"{trouble}: choose other --layers, or another driver")
    statement = Statement(
        product=product,
        shard=str(shard),
        pack=pack.sha256,
        tool=this_tool(),
        target=machine.target.name,
        device=machine.platform.identity,
        layers=machine.platform.layers_text,
        os=described["os"],
        cpu=described["cpu"],
        python=described["python"],
        versions=described["versions"],
        files={},
    )
    try:
        Statement.decode(statement.encode())
    except ValueError as error:
        raise UserError(f"this machine cannot be described in a statement: {error}") from error
    return statement


def _require_room(folder: Path, place: Path, shard: Shard) -> None:
    """Raise UserError where ``folder`` cannot become a submission with this shard."""
    if kind_of(place / STATEMENT):
        raise UserError(f"{place} is finished: name another folder, or remove it to run it again")
    if kind_of(folder) is None or not folder.is_dir():
        return
    for entry in entries(folder):
        path, other = folder / entry.name, shard_named(entry.name)
        if other is None and (entry.name != WAIVERS or entry.kind != FILE):
            raise UserError(
                f"{path} is no part of a submission ({entry.kind}): move it, or name another folder"
            )
        if other is not None and entry.kind != FOLDER:
            raise UserError(f"{path} is {_called(entry.kind)}, not a folder: move it")
        if other is not None and other.of != shard.of:
            raise UserError(
                f"{path} is of {other.of} shards, and this is {shard}: a submission is split in one way; "
                "name another folder"
            )


def _require_own(place: Path) -> None:
    """Raise BadFile where a shard's folder holds what no qualification puts there."""
    for entry in files_of(place):
        path = place / entry.name
        if is_partial(entry.name) and entry.kind == FILE:
            continue
        if not is_known(entry.name) and entry.name != OUTPUTS:
            raise BadFile(path, "is no file of a submission: move it and start again; what was run is kept")
        if entry.kind != FILE or entry.name == OUTPUTS:
            raise BadFile(path, f"is {_called(entry.kind)}: move it and start again; what was run is kept")


def _called(kind: str) -> str:
    return f"a {kind}" if kind in (FILE, FOLDER) else kind


def _require_same_start(place: Path, described: dict[str, Any]) -> None:
    """Raise UserError where the folder holds the beginning of another qualification."""
    # As a run line has it once it is read.
    mine: dict[str, Any] = plain(described)
    for path in (place / name for name in RUNS):
        for run in read_results([path]).runs if kind_of(path) else []:
            theirs = {key: value for key, value in run.items() if key not in _OF_THE_LINE}
            if what := next(_different(mine, theirs), None):
                raise UserError(f"{path} was begun with another {what}: name another folder")


def _different(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """What is another, the most telling first."""
    telling = ("pack", "product", "shard", "targets", "device", "layers", "driver")
    for name in dict.fromkeys([*telling, *mine, *theirs]):
        if mine.get(name) != theirs.get(name):
            yield "target" if name == "targets" else name


def _run(
    pack: Pack, machine: Machine, place: Path, described: dict[str, Any], shard: Shard, number: int
) -> list[Record]:
    path, log = place / RUNS[number], place / LOGS[number]
    keeping = Keeping(machine.target, place)
    # A shard without cases has an empty log.
    append(log, "")
    for record in recorded(pack, pack.manifest.cases, keeping, path, described, shard=shard, resume=True):
        append(log, _logged(record))
    # What a run before this one left is part of it.
    return read_results([path]).records


def _logged(record: Record) -> str:
    lines = [f"{record.id}: {outcome(record)}, {record.seconds.get('run', 0.0):.3f} s"]
    lines += [f"    {line}" for text in (record.message, record.log) for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _remove_unnamed(place: Path, records: Sequence[Record]) -> None:
    """Remove what a run left that was killed: outputs of a record that was not written, and half files."""
    calls = [call for record in records for call in (*record.outputs, *record.visible)]
    named = {output_name(item.sha256) for call in calls for item in call}
    for entry in list(files_of(place)):
        if is_partial(entry.name) or (is_output(entry.name) and entry.name not in named):
            (place / entry.name).unlink()


def _tell(place: Path, first: Sequence[Record], second: Sequence[Record]) -> bool:
    other = {record.id: (record.outputs, record.visible) for record in second}
    wrong = [record for record in (*first, *second) if record.verdict is not Verdict.PASS]
    unsteady = [record.id for record in first if (record.outputs, record.visible) != other[record.id]]
    for number, run in enumerate((first, second), 1):
        for record in run:
            if record.verdict is not Verdict.PASS:
                say(f"run {number}: {record.id}: {outcome(record)}")
    for line in noisy_lines(first):
        say(line)
    for case in unsteady:
        say(f"{case}: the two runs gave other outputs")
    counts = f"{len(wrong)} verdicts other than pass, {len(unsteady)} not repeatable"
    say(f"{place}: {len(first)} cases, twice; {counts}")
    return not wrong and not unsteady
