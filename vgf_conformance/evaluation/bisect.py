"""Names the first wrong operator of a user's model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from vgf_conformance.cases.userfile import load_user_model
from vgf_conformance.evaluation.attribute import Attributor
from vgf_conformance.evaluation.eager import EagerFailure, NotRepeatable, repeated_eager
from vgf_conformance.evaluation.forkserver import Send
from vgf_conformance.evaluation.userfiles import subject_of_file
from vgf_conformance.formats.convert import convert
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.targets.base import Target, TargetFailure
from vgf_conformance.vocabulary import Profile, UserError


def bisect_file(
    send: Send,
    file: str,
    targets: Mapping[str, Target],
    profile: Profile,
    scheme: str | None,
    seed: int,
    output: Path,
) -> bool:
    """Send the first wrong operator of ``file`` on emulation, over all its samples, in words.

    Nothing is sent where all are right. Called by ``evaluation.forkserver``. Raises UserError for a file that
    cannot be used, for a model that raises or does not repeat, and where the model cannot be lowered or its
    graph not run at all: there is nothing to compare then.
    """
    attributor = Attributor(
        reference=targets["reference"],
        target=targets["emulation"],
        convert=convert,
        cache=Cache(default_folder().absolute()),
        folder=output,
    )
    here = Path.cwd()
    user = load_user_model(file, seed)
    # The model may have changed the working directory, on which the output depends.
    os.chdir(here)
    try:
        for chosen in (scheme,) if scheme else user.schemes(profile):
            for number in range(len(user.samples)):
                subject = subject_of_file(user, number)
                repeated_eager(subject.module, subject.inputs)
                found = attributor.attribute(subject, profile, chosen)
                if found is not None:
                    send("found", str(found))
                    return True
    except NotRepeatable as error:
        raise UserError(f"{file}: {error}") from error
    except EagerFailure as error:
        raise UserError(f"{file}: the model itself raises on these inputs: {error}") from error
    except (LoweringFailure, TargetFailure) as failure:
        raise UserError(
            f"{file}: {failure.message} ({failure.stage.value}): nothing to compare operator by operator; "
            "vgf-conformance check says more"
        ) from failure
    return True
