"""Names the first wrong operator of a user's model."""

from __future__ import annotations

from pathlib import Path

from vgf_conformance.cases.userfile import load_user_model
from vgf_conformance.evaluation.attribute import Attribution, Attributor
from vgf_conformance.evaluation.check import subject_of_file
from vgf_conformance.evaluation.eager import EagerFailure, NotRepeatable, repeated_eager
from vgf_conformance.formats.convert import convert
from vgf_conformance.lowering.artifact import LoweringFailure
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.targets.base import TargetFailure
from vgf_conformance.targets.opening import open_targets
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.vocabulary import Profile, UserError


def bisect_file(
    file: str,
    profile: Profile,
    scheme: str | None,
    *,
    seed: int,
    choice: DriverChoice,
    output: Path,
    folder: Path,
) -> Attribution | None:
    """The first wrong operator of ``file`` on emulation, over all its samples; None where all are right.

    ``folder`` takes the layer manifests. Raises UserError for a file that cannot be used, for a
    model that raises or does not repeat, and where the model cannot be lowered or its graph not run at
    all: there is nothing to compare then.
    """
    user = load_user_model(file, seed)
    schemes = (scheme,) if scheme else user.schemes(profile)
    targets = open_targets(["emulation"], choice, folder)
    attributor = Attributor(
        reference=targets["reference"],
        target=targets["emulation"],
        convert=convert,
        cache=Cache(default_folder()),
        folder=output,
    )
    try:
        for chosen in schemes:
            for number in range(len(user.samples)):
                subject = subject_of_file(user, number)
                repeated_eager(subject.module, subject.inputs)
                found = attributor.attribute(subject, profile, chosen)
                if found is not None:
                    return found
    except NotRepeatable as error:
        raise UserError(f"{file}: {error}") from error
    except EagerFailure as error:
        raise UserError(f"{file}: the model itself raises on these inputs: {error}") from error
    except (LoweringFailure, TargetFailure) as failure:
        raise UserError(
            f"{file}: {failure.message} ({failure.stage.value}): nothing to compare operator by operator; "
            "vgf-conformance check says more"
        ) from failure
    finally:
        for target in targets.values():
            target.close()
    return None
