"""What pytest collects: suite files, and an item for each case, sample, configuration and target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from vgf_conformance.plugin.operators import OPERATORS
from vgf_conformance.plugin.settings import SETTINGS, SUITES, Settings
from vgf_conformance.quiet import quiet
from vgf_conformance.results.expectations import CaseId
from vgf_conformance.results.record import Record
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import PROGRAM_TARGET, Profile, UserError


class ConformanceFailure(Exception):
    """A record whose verdict nobody expected."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.message)
        self.record = record


class SuiteItem(pytest.Item):
    """One (case, sample, profile, scheme, target)."""

    #: Whether there is a whole program to execute, beside delegates.
    has_program: ClassVar[bool] = False

    case: Any
    sample: Any
    profile: Profile
    scheme: str
    target: str
    record: Record | None = None
    not_run: str = ""

    @classmethod
    def targets(cls, settings: Settings) -> tuple[str, ...]:
        """The targets of ``settings`` on which such items run."""
        return tuple(name for name in settings.targets if cls.has_program or name != PROGRAM_TARGET)

    def declare(self, case: Any, sample: Any, profile: Profile, scheme: str, target: str) -> None:
        """Say what this item stands for."""
        self.case, self.sample, self.profile, self.scheme, self.target = case, sample, profile, scheme, target

    @property
    def tier(self) -> str:
        """The tier that it runs in."""
        tier: str = self.case.tier_of(self.sample)
        return tier

    @property
    def case_id(self) -> CaseId:
        """What known failures are looked up by."""
        return CaseId(
            self.case.file, self.case.name, self.sample.name, self.profile.name, self.scheme, self.target
        )

    def runtest(self) -> None:
        """Evaluate; an unexpected verdict fails, an expected failure is an xfail."""
        self.not_run = self.lacks()
        if self.not_run:
            pytest.skip(self.not_run)
        self.record = self.config.stash[EVALUATES](self)
        if self.record.unexpected:
            raise ConformanceFailure(self.record)
        if self.record.expected is not None:
            stage = self.record.stage.value if self.record.stage else ""
            pytest.xfail(visible(f"{stage}: {self.record.expected}"))

    def lacks(self) -> str:
        """Which packages the item needs and has not got, with the remedy; empty where it can run."""
        return ""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What a person needs: verdict, stages, last words, and the command that reproduces it."""
        if isinstance(excinfo.value, ConformanceFailure):
            from vgf_conformance.report.failure import failure_text

            return visible(failure_text(excinfo.value.record))
        if isinstance(excinfo.value, UserError):
            return visible(f"error: {excinfo.value}")
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the case is declared."""
        return self.path, None, self.name


class ProgramItem(SuiteItem):
    """A sample of an operator, a program or a model, lowered for one profile and scheme."""

    has_program = True

    def lacks(self) -> str:
        """As SuiteItem.lacks: what the case declares."""
        from vgf_conformance.cases.needs import missing

        return missing(self.case.needs)


class TosaItem(SuiteItem):
    """A test of TOSA's own."""


class ArithmeticItem(SuiteItem):
    """A property of a target's arithmetic, asked for one type."""


#: Evaluates an item, and says whether its failure is known.
EVALUATES = pytest.StashKey[Callable[[SuiteItem], Record]]()


class SuiteModule(pytest.Module):
    """A suite file: its items are the cases that it declares."""

    def collect(self) -> Iterator[SuiteItem]:
        """One item for each sample, configuration and target."""
        with quiet():
            module = self.obj

        file = self.path.relative_to(self.config.rootpath / SUITES).as_posix()
        try:
            planned = [*_plan(module, file)]
            self.config.stash[OPERATORS].check(
                [(case, sample) for kind, case, sample, *_ in planned if kind is ProgramItem]
            )
        except UserError as error:
            raise self.CollectError(visible(str(error))) from error
        settings = self.config.stash[SETTINGS]
        for kind, case, sample, profile, scheme in planned:
            for target in kind.targets(settings):
                name = f"{case.name}[{sample.name}-{profile}-{scheme}-{target}]"
                item: SuiteItem = kind.from_parent(self, name=name)
                item.declare(case, sample, Profile.parse(profile), scheme, target)
                yield item


def _plan(module: Any, file: str) -> Iterator[tuple[type[SuiteItem], Any, Any, str, str]]:
    """What a suite file declares: cases, TOSA's own tests or properties of targets."""
    from vgf_conformance.arithmetic.declare import declared_properties, declares_properties
    from vgf_conformance.tosatests.collect import declared_tests, declares_tosa_tests

    # Neither of the first two is lowered: what is declared says for which profile it is.
    if declares_tosa_tests(module):
        for declared in declared_tests(module, file):
            for test in declared.chosen:
                yield TosaItem, declared.tests, test, test.profile, "none"
    elif declares_properties(module):
        for asked in declared_properties(module, file):
            for typed in asked.types:
                yield ArithmeticItem, asked, typed, typed.profile, "none"
    else:
        yield from _cases(module, file)


def _cases(module: Any, file: str) -> Iterator[tuple[type[SuiteItem], Any, Any, str, str]]:
    with quiet():
        from vgf_conformance.evaluation.collect import declared_cases

    for case in declared_cases(module, file):
        for sample, (profile, scheme) in case.plan():
            yield ProgramItem, case, sample, profile, scheme
