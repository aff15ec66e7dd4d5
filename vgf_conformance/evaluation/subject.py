"""What is evaluated: a module with its inputs, whoever declared it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from vgf_conformance.cases.case import About, Budget, Case, Inputs, OfSamples, Sample
from vgf_conformance.cases.task import Task
from vgf_conformance.lowering.lower import Request
from vgf_conformance.vocabulary import Profile


@dataclass
class Subject:
    """A module, one set of inputs, and what its declaration asks for.

    ``example`` is what the module is exported with; it differs from ``inputs`` where
    several samples share one artifact. ``delegated`` says that some of it must reach a delegate
    (True), that some must stay on the CPU (False), or that nothing was promised (None). ``min_sqnr``
    is what the outputs on every target must keep against eager, in decibels. ``floating`` names the TOSA
    operators that may compute in floating point where it is quantised, None where that was not said.
    ``notes`` go into each record, ``calibrated`` says in those of quantised configurations what was
    calibrated on.

    ``before`` are the inputs of the calls before this one where samples are calls in sequence: what they
    leave in buffers counts, and so does what this one leaves. It is None where each sample is a first call.
    """

    case: str
    sample: str
    kind: str
    suite: str
    file: str
    operator: str
    tier: str
    module: torch.nn.Module
    inputs: Inputs
    example: Inputs
    calibration: list[Inputs]
    delegated: bool | None = None
    budget: Budget | None = None
    lsb: float | None = None
    min_sqnr: float | None = None
    floating: tuple[str, ...] | None = None
    dynamic_shapes: Any = None
    configure_quantizer: Callable[[Any], None] | None = None
    task: Task | None = None
    about: About | None = None
    notes: tuple[str, ...] = ()
    calibrated: str = ""
    before: tuple[Inputs, ...] | None = None


def request_of(subject: Subject, profile: Profile, scheme: str, *, located: bool = False) -> Request:
    """What ``subject`` is lowered from; ``located`` as in Request."""
    return Request(
        module=subject.module,
        inputs=subject.example,
        profile=profile,
        scheme=scheme,
        calibration=subject.calibration,
        dynamic_shapes=subject.dynamic_shapes,
        configure_quantizer=subject.configure_quantizer,
        located=located,
    )


def subject_of(case: Case, sample: Sample, seed: int) -> Subject:
    """The subject that a suite's case and sample stand for, drawn from ``seed``."""
    inputs = sample.inputs(seed)
    return Subject(
        case=case.name,
        sample=sample.name,
        kind=case.kind,
        suite=case.file,
        file=case.file,
        operator=case.operator,
        tier=case.tier_of(sample),
        module=sample.module(seed),
        inputs=inputs,
        example=inputs,
        calibration=case.calibration_data(sample, seed),
        delegated=case.delegated,
        budget=case.budget,
        lsb=case.lsb,
        floating=case.floating,
        dynamic_shapes=case.dynamic_shapes,
        configure_quantizer=case.configure_quantizer,
        task=case.task,
        about=case.about,
        calibrated=case.calibration.note if isinstance(case.calibration, OfSamples) else "",
        before=_before(case, sample, seed) if case.sequence else None,
    )


def _before(case: Case, sample: Sample, seed: int) -> tuple[Inputs, ...]:
    names = [item.name for item in case.samples]
    return tuple(item.inputs(seed) for item in case.samples[: names.index(sample.name)])
