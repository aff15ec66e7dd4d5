"""Evaluates items: by kind, on targets that are opened once, each failure of a driver looked into."""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from pathlib import Path
from typing import Any, Protocol

import pytest

from vgf_conformance.plugin.items import ArithmeticItem, ProgramItem, SuiteItem, TosaItem
from vgf_conformance.plugin.settings import Settings
from vgf_conformance.quiet import quiet
from vgf_conformance.results.expectations import Expectations
from vgf_conformance.results.record import Record
from vgf_conformance.targets.isolation import Isolation, of_the_driver
from vgf_conformance.vocabulary import DEFAULT_TARGETS, PROGRAM_TARGET, VULKAN_TARGETS


class ItemEvaluator(Protocol):
    """Evaluates the items of one kind."""

    def run(self, item: SuiteItem) -> Record:
        """The record of ``item`` on its target."""

    def measure(self, item: SuiteItem, record: Record) -> None:
        """Add to ``record`` the share of planted faults that its comparison catches."""

    def attribute(self, item: SuiteItem, record: Record, folder: Path) -> None:
        """Add to a failed ``record`` what is wrong first; what shows it goes below ``folder``."""

    def restart(self, target: str) -> None:
        """End the target's worker, so that the next item begins with a fresh one."""

    def close(self) -> None:
        """Close the targets."""


class ProgramEvaluator:
    """Evaluates what is lowered. Items of one sample follow each other and share its module and inputs."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        with quiet():
            from vgf_conformance.evaluation.session import open_evaluator

        targets = ProgramItem.targets(settings)
        self._evaluator = open_evaluator(
            targets, settings.choice, folder, settings.time_limit, settings.runtime
        )
        self._seed = settings.seed
        self._subject: tuple[tuple[str, ...], Any] | None = None
        self.restart, self.close = self._evaluator.restart, self._evaluator.close

    def run(self, item: SuiteItem) -> Record:
        """As ItemEvaluator.run."""
        return self._evaluator.evaluate(self._subject_of(item), item.profile, item.scheme, item.target)

    def measure(self, item: SuiteItem, record: Record) -> None:
        """As ItemEvaluator.measure."""
        self._evaluator.measure_sensitivity(record, self._subject_of(item), item.profile, item.scheme)

    def attribute(self, item: SuiteItem, record: Record, folder: Path) -> None:
        """As ItemEvaluator.attribute."""
        self._evaluator.attribute(record, self._subject_of(item), item.profile, item.scheme, folder)

    def _subject_of(self, item: SuiteItem) -> Any:
        from vgf_conformance.evaluation.subject import subject_of

        key = item.case_id[:3]
        if self._subject is None or self._subject[0] != key:
            self._subject = (key, subject_of(item.case, item.sample, self._seed))
        return self._subject[1]


class GraphEvaluator:
    """Evaluates what is a TOSA graph by itself: there is no program to measure or to look for a step in."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator
        self.restart, self.close = evaluator.restart, evaluator.close

    def run(self, item: SuiteItem) -> Record:
        """As ItemEvaluator.run."""
        record: Record = self._evaluator.evaluate(item.case, item.sample, item.target)
        return record

    def measure(self, item: SuiteItem, record: Record) -> None:
        """Nothing."""

    def attribute(self, item: SuiteItem, record: Record, folder: Path) -> None:
        """Nothing."""


def open_item_evaluator(kind: type[SuiteItem], settings: Settings, folder: Path) -> ItemEvaluator:
    """What evaluates items of ``kind``; ``folder`` takes the layer manifests and must outlive it."""
    opening = kind.targets(settings), settings.choice, folder, settings.time_limit
    if issubclass(kind, TosaItem):
        from vgf_conformance.tosatests.session import open_tosa_evaluator

        return GraphEvaluator(open_tosa_evaluator(*opening, seed=settings.seed))
    if issubclass(kind, ArithmeticItem):
        from vgf_conformance.arithmetic.evaluate import open_arithmetic_evaluator

        return GraphEvaluator(open_arithmetic_evaluator(*opening))
    return ProgramEvaluator(settings, folder)


class Evaluation:
    """Evaluates every item of a process."""

    def __init__(self, settings: Settings, expectations: Expectations) -> None:
        self._settings = settings
        self._expectations = expectations
        self._evaluators: dict[type[SuiteItem], ItemEvaluator] = {}
        self._isolations: dict[tuple[type[SuiteItem], str], Isolation[SuiteItem]] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def evaluate(self, item: SuiteItem) -> Record:
        """Evaluate one item and say whether its failure is known."""
        record = self._isolation(item).judge(item)
        evaluator = self._evaluator(type(item))
        # What is measured is the comparison of the artifact, the same on every target.
        if self._settings.sensitivity and item.target == self._settings.targets[0]:
            evaluator.measure(item, record)
        applied: Record = self._expectations.apply(record)
        if applied.unexpected:
            evaluator.attribute(item, applied, self._settings.results / "first-wrong" / item.name)
        return applied

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Close the targets."""
        for evaluator in self._evaluators.values():
            evaluator.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _isolation(self, item: SuiteItem) -> Isolation[SuiteItem]:
        """The cases that one worker has run: those of one evaluator on one target."""
        kind, target = type(item), item.target
        if (kind, target) not in self._isolations:
            self._isolations[kind, target] = Isolation(
                run=self._run,
                restart=lambda: self._evaluator(kind).restart(target),
                name=lambda item: item.nodeid,
                suspicious=self._unforeseen,
            )
        return self._isolations[kind, target]

    def _unforeseen(self, record: Record) -> bool:
        """Whether running it again may say more: failures of drivers that nobody expects."""
        applied: Record = self._expectations.apply(record)
        return record.target in VULKAN_TARGETS and of_the_driver(record) and applied.unexpected

    def _run(self, item: SuiteItem) -> Record:
        record = self._evaluator(type(item)).run(item)
        return dataclasses.replace(record, id=item.nodeid, repro=self._repro(item))

    def _evaluator(self, kind: type[SuiteItem]) -> ItemEvaluator:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="vgf-conformance-")
        if kind not in self._evaluators:
            self._evaluators[kind] = open_item_evaluator(kind, self._settings, Path(self._folder.name))
        return self._evaluators[kind]

    def _repro(self, item: SuiteItem) -> str:
        command = ["pytest", item.nodeid, "--tier", item.tier]
        if item.target not in DEFAULT_TARGETS:
            command += ["--target", item.target]
        command += self._settings.choice.options(item.target)
        if item.target == PROGRAM_TARGET:
            command += self._settings.runtime.options
        if self._settings.seed:
            command += ["--seed", str(self._settings.seed)]
        return shlex.join(command)
