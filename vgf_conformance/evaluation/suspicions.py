"""What is wrong with a subject before anything is lowered: faults, and what is only worth a note."""

from __future__ import annotations

import torch

from vgf_conformance.evaluation.eager import leaves
from vgf_conformance.evaluation.fault import Fault
from vgf_conformance.evaluation.subject import Subject
from vgf_conformance.vocabulary import Finding, Stage, Verdict


def input_faults(subject: Subject) -> list[Fault]:
    """Weights that are no numbers, and parts that stay in train mode: nothing can be said of such a model.

    An operator may be given such weights on purpose.
    """
    module, messages = subject.module, []
    if subject.kind == "model" and (broken := _not_numbers(module)):
        messages.append(f"the model's weights hold NaN: {_listed(broken)}")
    if training := [name or "the model itself" for name, part in module.named_modules() if part.training]:
        messages.append(f"in train mode in spite of eval(): {_listed(training)}")
    return [Fault(Verdict.ERROR, Stage.EXPORT, Finding.INPUT, message) for message in messages]


def calibration_notes(subject: Subject) -> list[str]:
    """Which samples calibrate, where not all do; floating-point inputs that are one number in all data."""
    sets = [leaves(inputs) for inputs in subject.calibration]
    notes = [subject.calibrated] if subject.calibrated else []
    for position, values in enumerate(zip(*sets, strict=False)):
        tensors = [value.reshape(-1) for value in values if isinstance(value, torch.Tensor)]
        if not tensors or not tensors[0].is_floating_point():
            continue
        together = torch.cat(tensors)
        if together.numel() > 1 and bool((together == together[0]).all()):
            notes.append(
                f"calibration data: input {position} is {float(together[0]):g} everywhere, "
                "which says nothing of its range"
            )
    return notes


def _not_numbers(module: torch.nn.Module) -> list[str]:
    """Parameters and running statistics with NaN; other buffers may hold it on purpose."""
    tensors = {
        **dict(module.named_parameters()),
        **{name: value for name, value in module.named_buffers() if "running_" in name},
    }
    return [
        name for name, value in tensors.items() if value.is_floating_point() and bool(value.isnan().any())
    ]


def _listed(names: list[str], most: int = 3) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
