"""What PyTorch and ExecuTorch do at first use, done ahead of it for all processes that are forked."""

from __future__ import annotations

import contextlib

import torch

from vgf_conformance.evaluation.eager import one_thread
from vgf_conformance.lowering.lower import Request, lower
from vgf_conformance.lowering.versions import versions
from vgf_conformance.quiet import quiet
from vgf_conformance.vocabulary import Profile


def warm_export() -> None:
    """Export a model, and look at the installed files."""
    versions()
    with quiet():
        torch.export.export(torch.nn.ReLU(), (torch.ones(1),))


# A forked process has none of this one's threads, and would wait for them.
@one_thread()
def warm_lowering() -> None:
    """Lower a model, quantised and not; where that cannot be done, who needs it will say so."""
    inputs = (torch.ones(1, 2),)
    for profile, scheme in (("FP", "none"), ("INT", "a8w8-pc")):
        request = Request(torch.nn.Linear(2, 2).eval(), inputs, Profile.parse(profile), scheme, [inputs])
        with contextlib.suppress(Exception):
            lower(request)
