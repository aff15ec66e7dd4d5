"""pytest glue: collects suites, runs each case as an item, writes records and reports.

The controller is the only writer: under pytest-xdist each worker sends its records with the test
reports, and all targets of one artifact go to one worker.
"""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

from vgf_conformance.lowering.cache import empty_cache
from vgf_conformance.options import seconds, seed, some_text
from vgf_conformance.quiet import quiet
from vgf_conformance.report import summary_table, write_reports
from vgf_conformance.results.baselines import load_baselines, regressions, tools, update_baselines
from vgf_conformance.results.claims import Claim, Computation, load_reasons, with_reasons
from vgf_conformance.results.expectations import CaseId, Expectation, Expectations, load_expectations, update
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import NotRun, Record
from vgf_conformance.results.shards import Shard, artifact_of
from vgf_conformance.results.store import ResultsWriter, read_results, results_file, set_aside
from vgf_conformance.targets.isolation import Isolation, of_the_driver
from vgf_conformance.targets.runtime_choice import RuntimeChoice
from vgf_conformance.targets.vulkan import LAYER_CHOICES, DriverChoice, choose_driver
from vgf_conformance.terminal import Enduring, visible
from vgf_conformance.untrusted import is_folder, kind_of
from vgf_conformance.vocabulary import (
    DEFAULT_TARGETS,
    PROGRAM_TARGET,
    SCHEMES,
    TARGETS,
    TIERS,
    VULKAN_TARGETS,
    Profile,
    UserError,
    known_scheme,
    known_target,
)

SUITES = "suites"
EXPECTATIONS = Path("golden") / "expectations"
BASELINES = Path("golden") / "baselines"
UNCOVERED = Path("golden") / "uncovered.toml"
_RECORD = "vgf_record"
_NOT_RUN = "vgf_not_run"
_PLAN = "vgf_plan"
_MACHINE = "vgf_machine"
_CONFORMANCE = pytest.StashKey["Conformance"]()


@dataclasses.dataclass(frozen=True)
class Settings:
    """The command line, checked. Empty filters mean everything."""

    profiles: frozenset[str]
    schemes: frozenset[str]
    targets: tuple[str, ...]
    tier: str
    choice: DriverChoice
    runtime: RuntimeChoice
    seed: int
    time_limit: float
    shard: Shard | None
    results: Path
    resume: bool
    update_expectations: bool
    update_baselines: bool
    sensitivity: bool

    def targets_of(self, kind: type[CaseItem]) -> tuple[str, ...]:
        """The targets on which items of ``kind`` run: what is no PyTorch program has no .pte to execute."""
        return tuple(name for name in self.targets if kind is CaseItem or name != PROGRAM_TARGET)

    @classmethod
    def of(cls, config: pytest.Config) -> Settings:
        """Read the options; raises UserError for a bad one."""
        targets = tuple(known_target(text) for text in config.getoption("--target")) or DEFAULT_TARGETS
        return cls(
            profiles=frozenset(Profile.parse(text).name for text in config.getoption("--profile")),
            schemes=frozenset(known_scheme(text) for text in config.getoption("--scheme")),
            targets=targets,
            tier=config.getoption("--tier"),
            choice=DriverChoice(
                config.getoption("--driver"),
                config.getoption("--layers"),
                config.getoption("--expect-driver") or "",
                config.getoption("--validation"),
            ),
            runtime=RuntimeChoice.of(
                config.getoption("--runtime-library"), config.getoption("--executor-runner"), targets
            ),
            seed=config.getoption("--seed"),
            time_limit=config.getoption("--time-limit"),
            shard=Shard.parse(config.getoption("--shard")) if config.getoption("--shard") else None,
            results=_results_folder(config.getoption("--results")),
            resume=config.getoption("--resume"),
            update_expectations=config.getoption("--update-expectations"),
            update_baselines=config.getoption("--update-baselines"),
            sensitivity=config.getoption("--sensitivity"),
        )


def _results_folder(text: str) -> Path:
    folder = Path(text)
    if kind_of(folder) and not is_folder(folder):
        raise UserError(f"--results {text} is a file; name a folder")
    return folder


def _not_asked_for(settings: Settings, config: pytest.Config) -> list[str]:
    """What this run leaves out because of its options, in words for the reports."""
    chosen = {
        "tiers": () if settings.tier == "all" else (settings.tier,),
        "profiles": sorted(settings.profiles),
        "schemes": sorted(settings.schemes),
        "targets": () if set(settings.targets) == set(DEFAULT_TARGETS) else settings.targets,
        "shards": (str(settings.shard),) if settings.shard else (),
        "names": filter(None, [config.getoption("keyword")]),
        "paths": () if config.args == [SUITES] else config.args,
    }
    return [
        f"not run: {what} other than {', '.join(only)}"
        for what, values in chosen.items()
        if (only := [*values])
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the suites."""
    group = parser.getgroup("vgf-conformance", "VGF conformance suites")
    group.addoption(
        "--profile", action="append", default=[], help="only this TOSA profile: FP, INT, FP+INT (repeatable)"
    )
    group.addoption(
        "--scheme", action="append", default=[], help=f"only this scheme: {', '.join(SCHEMES)} (repeatable)"
    )
    group.addoption(
        "--target",
        action="append",
        default=[],
        help=f"run on this target: {', '.join(TARGETS)} (repeatable; default: "
        f"{' and '.join(DEFAULT_TARGETS)})",
    )
    group.addoption("--tier", choices=TIERS, default="smoke", help="how much to run (default: smoke)")
    group.addoption(
        "--driver", type=some_text, help="Vulkan driver: a name or an ICD manifest (default: lavapipe)"
    )
    group.addoption(
        "--layers",
        choices=LAYER_CHOICES,
        default="auto",
        help="emulation layers of the targets vulkan and runtime: those whose extension the driver lacks "
        "(auto), all or none (default: auto)",
    )
    group.addoption(
        "--expect-driver",
        metavar="TEXT",
        type=some_text,
        help="run nothing unless the device's or driver's name contains this",
    )
    group.addoption(
        "--validation",
        action="store_true",
        help="run with the Vulkan validation layer next to the driver; its errors are notes of the cases",
    )
    group.addoption(
        "--runtime-library",
        metavar="FILE",
        type=some_text,
        help="of the target runtime: a library that registers the VGF backend, loaded before the installed "
        "executorch's runtime (default: VGF_CONFORMANCE_RUNTIME_LIBRARY)",
    )
    group.addoption(
        "--executor-runner",
        metavar="FILE",
        type=some_text,
        help="of the target runtime: execute programs with this stand-alone executor_runner instead",
    )
    group.addoption("--seed", type=seed, default=0, help="seed behind inputs and weights (default: 0)")
    group.addoption(
        "--time-limit",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="for one delegate call (default: 120)",
    )
    group.addoption(
        "--shard",
        metavar="I/N",
        type=some_text,
        help="only this part of the run, as 1/4: see vgf-conformance merge",
    )
    group.addoption(
        "--results",
        type=some_text,
        default="reports/latest",
        metavar="DIR",
        help="where records and reports go (default: reports/latest)",
    )
    group.addoption(
        "--resume", action="store_true", help="keep the records that DIR holds and run only what is missing"
    )
    group.addoption(
        "--no-cache",
        action="store_true",
        help="lower everything anew: no artifact is taken from the cache or kept there",
    )
    group.addoption(
        "--update-baselines",
        action="store_true",
        help="record in golden/baselines how much of each bound this run used",
    )
    group.addoption(
        "--sensitivity",
        action="store_true",
        help="also plant faults into right results and graphs, and count those that the tolerances catch",
    )
    group.addoption(
        "--update-expectations",
        action="store_true",
        help="write unexpected failures, and bounds of known ones that are missing or exceeded, into "
        "golden/expectations for review, and drop entries that pass now",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected."""
    if config.getoption("--no-cache") and not hasattr(config, "workerinput"):
        # Workers inherit the environment in which it lies.
        cache = contextlib.ExitStack()
        cache.enter_context(empty_cache())
        config.add_cleanup(cache.close)
    try:
        settings = Settings.of(config)
        expectations = load_expectations(config.rootpath / EXPECTATIONS)
        uncovered = load_reasons(config.rootpath / UNCOVERED)
        done = _done(config, settings, expectations)
    except UserError as error:
        raise pytest.UsageError(visible(str(error))) from error
    conformance = Conformance(config, settings, expectations, uncovered, done)
    config.stash[_CONFORMANCE] = conformance
    config.pluginmanager.register(conformance, "vgf-conformance-run")


def _done(config: pytest.Config, settings: Settings, expectations: Expectations) -> dict[str, bool]:
    """Ids that need not run again, with whether what they gave was unexpected.

    Where a known failure has changed since, the case runs again and is judged by today's. An xdist
    worker is told the ids by its controller.
    """
    if hasattr(config, "workerinput"):
        return dict.fromkeys(config.workerinput["vgf_done"], False)
    path = results_file(settings.results)
    if not settings.resume or kind_of(path) is None:
        return {}
    records = read_results([path]).records
    return {record.id: record.unexpected for record in records if expectations.apply(record) == record}


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """An unknown driver is a usage error, found before any test is collected."""
    if config.getoption("--driver"):
        try:
            choose_driver(config.getoption("--driver"))
        except UserError as error:
            raise pytest.UsageError(visible(str(error))) from error


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Files below suites/ hold declarations, not test functions."""
    if module_path.is_relative_to(parent.config.rootpath / SUITES):
        module: pytest.Module = SuiteModule.from_parent(parent, path=module_path)
        return module
    return None


class SuiteModule(pytest.Module):
    """A suite file: its items are the cases that it declares."""

    def collect(self) -> Iterator[CaseItem]:
        """One item for each sample, configuration and target."""
        with quiet():
            module = self.obj

        file = self.path.relative_to(self.config.rootpath / SUITES).as_posix()
        try:
            planned = [*_plan(module, file)]
            self.config.stash[_CONFORMANCE].check_operators(
                [(case, sample) for kind, case, sample, *_ in planned if kind is CaseItem]
            )
        except UserError as error:
            raise self.CollectError(visible(str(error))) from error
        for kind, case, sample, profile, scheme in planned:
            for target in self.config.stash[_CONFORMANCE].settings.targets_of(kind):
                name = f"{case.name}[{sample.name}-{profile}-{scheme}-{target}]"
                item: CaseItem = kind.from_parent(self, name=name)
                item.declare(case, sample, Profile.parse(profile), scheme, target)
                yield item


def _plan(module: Any, file: str) -> Iterator[tuple[type[CaseItem], Any, Any, str, str]]:
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


def _cases(module: Any, file: str) -> Iterator[tuple[type[CaseItem], Any, Any, str, str]]:
    with quiet():
        from vgf_conformance.evaluation.collect import declared_cases

    for case in declared_cases(module, file):
        for sample, (profile, scheme) in case.plan():
            yield CaseItem, case, sample, profile, scheme


class ConformanceFailure(Exception):
    """A record whose verdict nobody expected."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.message)
        self.record = record


class CaseItem(pytest.Item):
    """One (case, sample, profile, scheme, target)."""

    case: Any
    sample: Any
    profile: Profile
    scheme: str
    target: str
    record: Record | None = None
    not_run: str = ""

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
        self.record = self.config.stash[_CONFORMANCE].evaluate(self)
        if self.record.unexpected:
            raise ConformanceFailure(self.record)
        if self.record.expected is not None:
            pytest.xfail(
                visible(f"{self.record.stage.value if self.record.stage else ''}: {self.record.expected}")
            )

    def lacks(self) -> str:
        """Which packages the case needs and has not got, with the remedy; empty where it can run."""
        from vgf_conformance.cases.needs import missing

        # Only cases need packages: neither TOSA's own tests nor properties of targets do.
        return missing(getattr(self.case, "needs", ()))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What a person needs: the verdict, the stages, the last words, and how to see it again."""
        if isinstance(excinfo.value, ConformanceFailure):
            from vgf_conformance.report.failure import failure_text

            return visible(failure_text(excinfo.value.record))
        if isinstance(excinfo.value, UserError):
            return visible(f"error: {excinfo.value}")
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the case is declared."""
        return self.path, None, self.name


class TosaItem(CaseItem):
    """One (declaration, test of TOSA's own, target)."""

    @staticmethod
    def open_evaluator(*settings: Any, seed: int) -> Any:
        """What evaluates such items."""
        from vgf_conformance.tosatests.session import open_tosa_evaluator

        return open_tosa_evaluator(*settings, seed=seed)


class ArithmeticItem(CaseItem):
    """One (property, type, target)."""

    @staticmethod
    def open_evaluator(*settings: Any, seed: int) -> Any:
        """What evaluates such items."""
        from vgf_conformance.arithmetic.evaluate import open_arithmetic_evaluator

        return open_arithmetic_evaluator(*settings)


class Conformance:
    """The run: evaluates items, and in the controller writes what they left behind."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        expectations: Any,
        uncovered: Mapping[Computation, str],
        done: dict[str, bool],
    ) -> None:
        self.settings = settings
        self._config = config
        self._expectations = expectations
        self._uncovered = uncovered
        self._done = done
        self._evaluator: Any = None
        self._others: dict[type[CaseItem], Any] = {}
        self._isolations: dict[tuple[type[CaseItem], str], Isolation[CaseItem]] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._subject: tuple[tuple[Any, ...], Any] | None = None
        self._writer: ResultsWriter | None = None
        self._stale: list[str] = []
        self._whole: list[str] = []
        self._kept: list[str] = []
        self._plan: list[str] = []
        self._plan_written = False
        self._claims_checked = False
        self._claims_written = False
        self._claimless = ""
        self._set_aside = ""
        self._environment: dict[str, Any] = {}
        self._session: pytest.Session | None = None

    @property
    def _is_worker(self) -> bool:
        return hasattr(self._config, "workerinput")

    def pytest_report_header(self) -> list[str]:
        """The environment that matters."""
        from vgf_conformance.report.environment import header

        return [visible(line) for line in header(self._environment)] if self._environment else []

    def pytest_sessionstart(self) -> None:
        """Look at the machine once, before the header is printed."""
        if self._is_worker and not self._config.workerinput["vgf_remote"]:  # type: ignore[attr-defined]
            return
        if not self._is_worker:
            _endure(self._config)
        if not self._is_worker and not self._config.getoption("collectonly"):
            self._require_results_folder()
        from vgf_conformance.targets.environment import environment

        try:
            self._environment = environment(
                self.settings.targets, self.settings.choice, self.settings.runtime
            )
        except UserError as error:
            raise pytest.UsageError(visible(str(error))) from error
        self._environment["hostname"] = platform.node()
        self._environment["options"] = shlex.join(self._config.invocation_params.args)
        self._environment["seed"] = self.settings.seed
        if self.settings.shard:
            self._environment["shard"] = str(self.settings.shard)

    def _require_results_folder(self) -> None:
        """Find out before the first case that records cannot be kept."""
        folder = self.settings.results
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            text = f"cannot write results to {folder}: {error.strerror or error}"
            pytest.exit(visible(text), returncode=2)

    def check_operators(self, planned: Sequence[tuple[Any, Any]]) -> None:
        """Refuse what makes every verdict on an operator meaningless; raises UserError.

        That is a sample that eager PyTorch refuses, in the tiers that are run, and, told once, a claim
        for an operator that torch lacks.
        """
        operators = {(case.name, sample.name): (case, sample) for case, sample in planned}
        chosen = [pair for pair in operators.values() if pair[0].kind == "operator"]
        if not chosen:
            return
        from vgf_conformance.evaluation.claimed import require_known
        from vgf_conformance.evaluation.collect import require_eager

        if not self._claims_checked:
            self._claims_checked = True
            require_known(self._installed_claims())
        for case, sample in chosen:
            if self.settings.tier in ("all", case.tier_of(sample)):
                require_eager(case, sample, self.settings.seed)

    def _installed_claims(self) -> Sequence[Claim]:
        """What the installed backend claims; empty, with the reason kept, where it does not say."""
        from vgf_conformance.evaluation.claimed import installed_claims

        try:
            return installed_claims()
        except UserError as error:
            self._claimless = str(error)
            return ()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Select by profile, scheme and tier; then, after pytest's own selection, shard and resume."""
        collected = [item for item in items if isinstance(item, CaseItem)]
        self._note_stale(collected)
        self._leave_out(items, self._unwanted)
        yield
        self._plan = [item.nodeid for item in items if isinstance(item, CaseItem)]
        shard = self.settings.shard
        if shard:
            self._leave_out(items, lambda item: not shard.holds(artifact_of(item.nodeid)))
            if self._plan and not items:
                self._kept.append(f"no case of this run is in shard {shard}")
        self._note_whole(collected, items)
        finished = self._leave_out(items, lambda item: item.nodeid in self._done)
        if finished:
            self._kept.append(f"{finished} cases kept from the run before (--resume)")

    def _leave_out(self, items: list[pytest.Item], unwanted: Callable[[CaseItem], bool]) -> int:
        """Deselect the cases that are unwanted; returns how many."""
        gone = {item for item in items if isinstance(item, CaseItem) and unwanted(item)}
        if gone:
            self._config.hook.pytest_deselected(items=[item for item in items if item in gone])
            items[:] = [item for item in items if item not in gone]
        return len(gone)

    def _unwanted(self, item: CaseItem) -> bool:
        settings = self.settings
        return (
            bool(settings.profiles and item.profile.name not in settings.profiles)
            or bool(settings.schemes and item.scheme not in settings.schemes)
            or (settings.tier != "all" and item.tier != settings.tier)
        )

    def _note_stale(self, cases: Sequence[CaseItem]) -> None:
        if any("::" in argument for argument in self._config.args):
            return
        complete = {item.case.file for item in cases}
        # An entry for a target that this run leaves out is not stale.
        entries = self._expectations.stale([tuple(item.case_id) for item in cases], complete)
        self._stale = [
            f"{entry.source}: matches no case: remove the entry"
            for entry in entries
            if self._about_this_run(entry)
        ]

    def _note_whole(self, collected: Sequence[CaseItem], chosen: Sequence[pytest.Item]) -> None:
        """Note the known failures whose cases all run: what is seen of them is all that there is."""
        if any("::" in argument for argument in self._config.args) or self._lacks_default_targets():
            return
        kept = set(chosen)
        left_out = [tuple(item.case_id) for item in collected if item not in kept]
        self._whole = self._expectations.whole([tuple(item.case_id) for item in collected], left_out)

    def _lacks_default_targets(self) -> bool:
        return not set(DEFAULT_TARGETS) <= set(self.settings.targets)

    def _about_this_run(self, entry: Expectation) -> bool:
        from fnmatch import fnmatchcase

        return any(fnmatchcase(target, entry.target) for target in self.settings.targets)

    def evaluate(self, item: CaseItem) -> Record:
        """Evaluate one item and say whether its failure is known."""
        record = self._isolation(item).judge(item)
        # What is measured is the comparison of the artifact, the same on every target.
        measured = self.settings.sensitivity and item.target == self.settings.targets[0]
        if measured and type(item) is CaseItem:
            self._open_evaluator().measure_sensitivity(
                record, self._subject_of(item), item.profile, item.scheme
            )
        applied: Record = self._expectations.apply(record)
        if applied.unexpected and type(item) is CaseItem:
            folder = self.settings.results / "first-wrong" / item.name
            self._open_evaluator().attribute(
                applied, self._subject_of(item), item.profile, item.scheme, folder
            )
        return applied

    def _isolation(self, item: CaseItem) -> Isolation[CaseItem]:
        """The cases that one worker has run: those of one evaluator on one target."""
        key = type(item), item.target
        if key not in self._isolations:
            self._isolations[key] = Isolation(
                run=self._run,
                restart=lambda: self._opened(key[0]).restart(key[1]),
                name=lambda item: item.nodeid,
                suspicious=self._unforeseen,
            )
        return self._isolations[key]

    def _unforeseen(self, record: Record) -> bool:
        """Whether running it again may say more: failures of drivers that nobody expects."""
        applied: Record = self._expectations.apply(record)
        return record.target in VULKAN_TARGETS and of_the_driver(record) and applied.unexpected

    def _run(self, item: CaseItem) -> Record:
        evaluator = self._opened(type(item))
        record: Record = (
            evaluator.evaluate(self._subject_of(item), item.profile, item.scheme, item.target)
            if type(item) is CaseItem
            else evaluator.evaluate(item.case, item.sample, item.target)
        )
        return dataclasses.replace(record, id=item.nodeid, repro=self._repro(item))

    def _open_evaluator(self) -> Any:
        if self._evaluator is None:
            with quiet():
                from vgf_conformance.evaluation.session import open_evaluator

            self._evaluator = open_evaluator(*self._target_settings(CaseItem), self.settings.runtime)
        return self._evaluator

    def _opened(self, kind: type[CaseItem]) -> Any:
        """The evaluator of items of ``kind``."""
        if not issubclass(kind, (TosaItem, ArithmeticItem)):
            return self._open_evaluator()
        if kind not in self._others:
            self._others[kind] = kind.open_evaluator(*self._target_settings(kind), seed=self.settings.seed)
        return self._others[kind]

    def _target_settings(self, kind: type[CaseItem]) -> tuple[Sequence[str], DriverChoice, Path, float]:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="vgf-conformance-")
        settings = self.settings
        return settings.targets_of(kind), settings.choice, Path(self._folder.name), settings.time_limit

    def _subject_of(self, item: CaseItem) -> Any:
        """Items of one sample follow each other and share its module and inputs."""
        from vgf_conformance.evaluation.subject import subject_of

        key = item.case_id[:3]
        if self._subject is None or self._subject[0] != key:
            self._subject = (key, subject_of(item.case, item.sample, self.settings.seed))
        return self._subject[1]

    def _repro(self, item: CaseItem) -> str:
        command = ["pytest", item.nodeid, "--tier", item.tier]
        if item.target not in DEFAULT_TARGETS:
            command += ["--target", item.target]
        command += self.settings.choice.options(item.target)
        if item.target == PROGRAM_TARGET:
            command += self.settings.runtime.options
        if self.settings.seed:
            command += ["--seed", str(self.settings.seed)]
        return shlex.join(command)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Send the record along with the report."""
        outcome = yield
        if call.when != "call" or not isinstance(item, CaseItem):
            return
        report = outcome.get_result()  # type: ignore[attr-defined]
        if item.not_run:
            setattr(report, _NOT_RUN, item.not_run)
        elif item.record is not None:
            setattr(report, _RECORD, item.record.to_json())
        # With the first report: the controller of xdist's workers collects nothing itself.
        setattr(report, _PLAN, self._plan)
        self._plan = []
        if self._is_worker:
            setattr(report, _MACHINE, self._environment)
            self._environment = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write each record, and each case that could not be run, as it comes."""
        if self._is_worker:
            return
        try:
            if (plan := getattr(report, _PLAN, None)) and not self._plan_written:
                self._plan_written = True
                self._open_writer().append_plan(plan)
            if machine := getattr(report, _MACHINE, None):
                self._open_writer().append_run({"worker": report.node.gateway.id, **machine})
            if document := getattr(report, _RECORD, None):
                self._write(Record.from_json(document))
            elif reason := getattr(report, _NOT_RUN, ""):
                self._open_writer().append_not_run(NotRun(report.nodeid, reason))
        except UserError as error:
            pytest.exit(visible(str(error)), returncode=2)

    def _write(self, record: Record) -> None:
        """Append a record; what is claimed of operators comes before the first of them."""
        writer = self._open_writer()
        if record.kind == "operator" and not self._claims_written:
            self._claims_written = True
            claims = self._installed_claims()
            if claims:
                writer.append_claims(with_reasons(claims, self._uncovered))
        writer.append(record)

    def _open_writer(self) -> ResultsWriter:
        if self._writer is None:
            path = results_file(self.settings.results)
            if not self.settings.resume:
                # Kept once, for whoever meant to resume.
                self._set_aside = set_aside(path)
            notes = _not_asked_for(self.settings, self._config) + self._kept
            self._writer = ResultsWriter(path, {**self._environment, "notes": notes})
        return self._writer

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker what is done already, and whether to describe its machine: another one."""
        node.workerinput["vgf_done"] = sorted(self._done)
        node.workerinput["vgf_remote"] = not node.gateway.spec.popen

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """All targets of one artifact go to one worker, so that it is lowered once."""
        from vgf_conformance.scheduling import ArtifactScheduling

        return ArtifactScheduling(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker found while it collected."""
        output = getattr(node, "workeroutput", {})
        self._stale = output.get("vgf_stale", self._stale)
        self._whole = output.get("vgf_whole", self._whole)
        self._kept = output.get("vgf_kept", self._kept)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Close the targets; the controller writes the reports."""
        self._session = session
        for evaluator in filter(None, (self._evaluator, *self._others.values())):
            evaluator.close()
        if self._folder is not None:
            self._folder.cleanup()
        if self._is_worker:
            self._config.workeroutput["vgf_stale"] = self._stale  # type: ignore[attr-defined]
            self._config.workeroutput["vgf_whole"] = self._whole  # type: ignore[attr-defined]
            self._config.workeroutput["vgf_kept"] = self._kept  # type: ignore[attr-defined]
            return
        if self._kept and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        if self._kept and self.settings.shard and self._writer is None:
            # An empty shard leaves its run line too: it is not lost.
            self._open_writer()
        # What a resumed run keeps counts as if it had run now.
        if session.exitstatus == pytest.ExitCode.OK and (self._stale or any(self._done.values())):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """A table at the end, and where the reports are."""
        for entry in self._stale:
            _tell(terminalreporter, f"stale known failure: {entry}", red=True)
        if self._claimless:
            _tell(terminalreporter, f"no claims to compare with: {self._claimless}")
        if self._set_aside:
            _tell(terminalreporter, self._set_aside)
        if self._writer is None and not self._kept:
            return
        if self._writer is not None:
            self._writer.close()
        try:
            self._summarise(read_results([self.settings.results]), terminalreporter)
        except UserError as error:
            _tell(terminalreporter, str(error), red=True)
            assert self._session is not None
            self._session.exitstatus = pytest.ExitCode.INTERRUPTED

    def _judge_headrooms(self, results: Results, terminal: TerminalReporter) -> None:
        """A jump inside the bound fails the run, where driver and versions are the baseline's."""
        made_with = {target: tools(self._environment, target) for target in self.settings.targets}
        if self.settings.update_baselines:
            for path in update_baselines(self._config.rootpath / BASELINES, results.records, made_with):
                _tell(terminal, f"{path}")
            return
        for jump in regressions(results.baselines, results.records, made_with):
            _tell(terminal, f"headroom regression: {jump}", red=jump.same)
            assert self._session is not None
            if jump.same and self._session.exitstatus == pytest.ExitCode.OK:
                self._session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _summarise(self, results: Results, terminal: TerminalReporter) -> None:
        results.baselines = load_baselines(self._config.rootpath / BASELINES)
        # Whatever comes of printing: first what is kept.
        reports = write_reports(results, self.settings.results)
        terminal.section("VGF conformance")
        _tell(terminal, summary_table(results))
        _tell(terminal, "\n".join(map(str, reports)))
        self._judge_headrooms(results, terminal)
        if self.settings.update_expectations:
            versions = {key: str(value) for key, value in self._environment.get("versions", {}).items()}
            for path in update(self._config.rootpath / EXPECTATIONS, results.records, versions):
                _tell(terminal, f"for review: {path}")
        else:
            self._tell_of_bounds(results.records, terminal)

    def _tell_of_bounds(self, records: Sequence[Record], terminal: TerminalReporter) -> None:
        """Known failures that are better than they say, and those that do not say how wrong they are."""
        for text in self._expectations.better(records, self._whole):
            _tell(
                terminal, f"known failure clearly better than its bound: {text}; lower `worst` if it stays so"
            )
        if unbounded := self._expectations.unbounded(records):
            which = "; ".join(unbounded)
            _tell(terminal, f"known failures without a bound: {which}: --update-expectations records `worst`")


def _tell(terminal: TerminalReporter, text: str, *, red: bool = False) -> None:
    # Line by line: where the encoding lacks a character, pytest escapes all that it is given at once.
    for line in visible(text).split("\n"):
        terminal.write_line(line, red=red)


def _endure(config: pytest.Config) -> None:
    """Let a run go on, with records and reports, whose reader has seen enough (``pytest suites | head``)."""
    writer = config.get_terminal_writer()
    writer._file = Enduring(writer._file)
