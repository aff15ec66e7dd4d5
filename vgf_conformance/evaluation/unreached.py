"""Which of the backend's passes no case reaches: those that changed no graph of any record.

Run as ``python -m vgf_conformance.evaluation.unreached RESULTS --reasons golden/unreached.toml``. Nobody sees
a fault in such a pass. Why no case reaches it stands in the file of reasons: a pass that is neither reached
nor listed there fails, and so does one that is both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import torch

from vgf_conformance.lowering.lower import Request, lower
from vgf_conformance.results.record import Record
from vgf_conformance.results.store import read_results
from vgf_conformance.terminal import complain, say
from vgf_conformance.untrusted import read_toml
from vgf_conformance.vocabulary import Profile, UserError


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both lists; 0 where each pass is reached or has a reason, 1 where not, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="unreached", description="List the passes that no case reaches.")
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS", help="folder or results.jsonl")
    parser.add_argument("--reasons", type=Path, required=True, metavar="FILE.toml")
    parsed = parser.parse_args(arguments)
    try:
        reasons = load_reasons(parsed.reasons)
        reached = reached_passes(read_results(parsed.results).records)
    except UserError as error:
        complain(str(error))
        return 2
    return report(backend_passes(), reached, reasons)


def backend_passes() -> set[str]:
    """The names of all passes that the backend runs, in both profiles, before annotation and afterwards."""
    ones = (torch.ones(2, 2),)
    request = Request(torch.nn.Hardtanh().eval(), ones, Profile.parse("FP+INT"), "a8w8-pc", [ones])
    lower(request)
    return request.passes.ran


def reached_passes(records: Collection[Record]) -> set[str]:
    """The passes that changed a graph of ``records``; raises UserError where no record says."""
    reached = {name for record in records for name in record.passes}
    if not reached:
        raise UserError(
            f"none of {len(records)} records says which passes changed its graph: run the suites again"
        )
    return reached


def load_reasons(path: Path) -> dict[str, str]:
    """Reasons by pass: each ``[[unreached]]`` has a list of passes and the reason that they share.

    Raises UserError for a file that is missing or malformed, and for a pass that is there twice.
    """
    entries = read_toml(path).get("unreached", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UserError(f"{path}: unreached has to be an array of tables, [[unreached]]")
    reasons: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        passes, reason = entry.get("passes"), entry.get("reason")
        if not isinstance(passes, list) or not isinstance(reason, str) or not reason or len(entry) != 2:
            raise UserError(f"{path}, entry {number}: an entry has a list of passes and a reason")
        for name in map(str, passes):
            if name in reasons:
                raise UserError(f"{path}, entry {number}: {name} is named twice")
            reasons[name] = reason
    return reasons


def report(passes: Collection[str], reached: Collection[str], reasons: Mapping[str, str]) -> int:
    """Say which of ``passes`` nothing reached, and which reasons do not hold; 1 where that is unforeseen."""
    unreached = sorted({*passes} - {*reached})
    say(f"{len(passes)} passes of the backend, {len({*passes} & {*reached})} change a graph of these cases")
    for name in unreached:
        say(f"  {name}: {reasons.get(name, 'no case reaches it, and no reason is given')}")
    stale = sorted({*reasons} - {*unreached})
    for name in stale:
        why = "a case reaches it" if name in reached else "the backend does not run it"
        say(f"  {name}: has a reason, but {why}")
    return 1 if stale or {*unreached} - reasons.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
