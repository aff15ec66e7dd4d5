"""What ``compare`` is given: results of a run, or a submission with its raw outputs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vgf_conformance.comparison.drivers import Look
from vgf_conformance.formats.arrays import read_npy
from vgf_conformance.packs.archive import MEMBER_LIMIT
from vgf_conformance.qualification.layout import FOLDER, RUNS, entries, output_name, shard_named
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import OutputDigest
from vgf_conformance.results.store import read_results
from vgf_conformance.untrusted import BadFile, is_folder, kind_of, read_bytes


def read_side(path: Path) -> tuple[Results, Look]:
    """Results, with the outputs that lie beside them: a submission's first run, or a results file's none.

    Raises UserError where there are none, or where they cannot be read.
    """
    listed = entries(path) if is_folder(path) else []
    shards = [path / entry.name for entry in listed if entry.kind == FOLDER and shard_named(entry.name)]
    if not shards:
        return read_results([path]), lambda output: None
    return read_results([shard / RUNS[0] for shard in shards]), lambda output: _look(shards, output)


def _look(shards: list[Path], output: OutputDigest) -> NDArray[Any] | None:
    for shard in shards:
        path = shard / output_name(output.sha256)
        if kind_of(path) is None:
            continue
        content = read_bytes(path, MEMBER_LIMIT)
        if hashlib.sha256(content).hexdigest() != output.sha256:
            raise BadFile(path, "altered: its SHA-256 is not that of its name")
        try:
            return read_npy(content)
        except ValueError as error:
            raise BadFile(path, str(error)) from error
    return None
