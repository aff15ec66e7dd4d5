"""What ``compare`` is given: results of a run, or a submission with its raw outputs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vgf_conformance.comparison.drivers import Look
from vgf_conformance.formats.arrays import read_npy
from vgf_conformance.packs.archive import MEMBER_LIMIT
from vgf_conformance.packs.folder import read_limited
from vgf_conformance.qualification.layout import RUNS, output_name, shard_named
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import OutputDigest
from vgf_conformance.results.store import read_results
from vgf_conformance.untrusted import is_folder
from vgf_conformance.vocabulary import UserError


def read_side(path: Path) -> tuple[Results, Look]:
    """Results, with the outputs that lie beside them: a submission's first run, or a results file's none.

    Raises UserError where there are none, or where they cannot be read.
    """
    listed = sorted(path.glob("shard-*")) if is_folder(path) else []
    shards = [folder for folder in listed if shard_named(folder.name)]
    if not shards:
        return read_results([path]), lambda output: None
    return read_results([shard / RUNS[0] for shard in shards]), lambda output: _look(shards, output)


def _look(shards: list[Path], output: OutputDigest) -> NDArray[Any] | None:
    for shard in shards:
        path = shard / output_name(output.sha256)
        try:
            content = read_limited(path, MEMBER_LIMIT)
            if hashlib.sha256(content).hexdigest() != output.sha256:
                raise ValueError("altered: its SHA-256 is not that of its name")
            return read_npy(content)
        except FileNotFoundError:
            continue
        except (ValueError, OSError) as error:
            raise UserError(f"{path}: {error}") from error
    return None
