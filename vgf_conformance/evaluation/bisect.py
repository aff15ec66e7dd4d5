"""Names the first wrong step and operator of a user's model, for the verdict that ``check`` gives it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from vgf_conformance.cases.userfile import load_user_model
from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.forkserver import Send
from vgf_conformance.evaluation.userfiles import judged, subject_of_file
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.report.failure import bisection_text
from vgf_conformance.targets.base import Target
from vgf_conformance.vocabulary import Finding, Profile, Stage, UserError, Verdict

#: What is asked one after the other: whether the lowering is right, and whether a device computes it.
_TARGETS = ("reference", "emulation")


def bisect_file(
    send: Send,
    file: str,
    targets: Mapping[str, Target],
    profile: Profile,
    scheme: str | None,
    seed: int,
    output: Path,
) -> bool:
    """Send the first failure of ``file`` on the reference model and emulation, over all samples, in words.

    Nothing is sent where all pass. Called by ``evaluation.forkserver``. Raises UserError for a file that
    cannot be used, and for a model that raises or does not repeat: there is nothing to compare then.
    """
    here = Path.cwd()
    evaluator = Evaluator(targets, Cache(default_folder().absolute()))
    user = load_user_model(file, seed)
    # The model may have changed the working directory, on which the output depends.
    os.chdir(here)
    subjects = [subject_of_file(user, number) for number in range(len(user.samples))]
    for chosen in (scheme,) if scheme else user.schemes(profile):
        for target in _TARGETS:
            record = judged(evaluator, subjects, profile, chosen, target, output)
            if record.verdict is Verdict.ERROR and record.finding in (Finding.INPUT, Finding.UNREPEATABLE):
                raise UserError(f"{file}: {record.message}")
            unable = record.verdict is Verdict.UNSUPPORTED and record.stage is Stage.RUN
            if record.verdict is not Verdict.PASS and not (unable and target != _TARGETS[-1]):
                send("found", bisection_text(record))
                return True
    return True
