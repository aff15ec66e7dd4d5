"""The options of the suites, and what a command line says with them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from vgf_conformance import options
from vgf_conformance.options import Option, option, some_text
from vgf_conformance.results.shards import Shard
from vgf_conformance.targets.runtime_choice import RuntimeChoice
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.untrusted import is_folder, kind_of
from vgf_conformance.vocabulary import DEFAULT_TARGETS, Profile, UserError, known_scheme, known_target

SUITES = "suites"
EXPECTATIONS = Path("golden") / "expectations"
BASELINES = Path("golden") / "baselines"
UNCOVERED = Path("golden") / "uncovered.toml"

_OPTIONS: tuple[Option, ...] = (
    options.profiles("all that a case declares"),
    options.schemes("all that a case declares"),
    options.TARGET,
    options.TIER,
    options.DRIVER,
    options.LAYERS,
    options.EXPECT_DRIVER,
    options.VALIDATION,
    options.RUNTIME_LIBRARY,
    options.EXECUTOR_RUNNER,
    options.SEED,
    options.TIME_LIMIT_OPTION,
    options.SHARD,
    option(
        "--results",
        type=some_text,
        default="reports/latest",
        metavar="DIR",
        help="where records and reports go (default: reports/latest)",
    ),
    options.RESUME,
    options.NO_CACHE,
    option(
        "--update-baselines",
        action="store_true",
        help="record in golden/baselines how much of each bound this run used",
    ),
    option(
        "--sensitivity",
        action="store_true",
        help="also plant faults into right results and graphs, and count those that the tolerances catch",
    ),
    option(
        "--update-expectations",
        action="store_true",
        help="write unexpected failures, and bounds of known ones that are missing or exceeded, into "
        "golden/expectations for review, and drop entries that pass now",
    ),
)


def add_options(group: pytest.OptionGroup) -> None:
    """Give pytest the options."""
    options.declare(group.addoption, *_OPTIONS)


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


def selection(settings: Settings, config: pytest.Config) -> dict[str, str]:
    """What options and arguments limit a run to, by kind: ``{"tiers": "smoke", "names": "add and INT"}``."""
    chosen = {
        "tiers": () if settings.tier == "all" else (settings.tier,),
        "profiles": sorted(settings.profiles),
        "schemes": sorted(settings.schemes),
        "targets": () if set(settings.targets) == set(DEFAULT_TARGETS) else settings.targets,
        "names": filter(None, [config.getoption("keyword")]),
        "paths": () if config.args == [SUITES] else config.args,
    }
    return {what: ", ".join(only) for what, values in chosen.items() if (only := [*values])}


def not_asked_for(settings: Settings, config: pytest.Config) -> list[str]:
    """What this run leaves out because of its options, in words for the reports."""
    limits = selection(settings, config)
    if settings.shard:
        limits["shards"] = str(settings.shard)
    return [f"not run: {what} other than {only}" for what, only in limits.items()]


#: The command line of the run.
SETTINGS = pytest.StashKey[Settings]()
