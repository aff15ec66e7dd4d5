"""pytest glue: collects the suites, runs each case as an item, writes records and reports.

The controller is the only writer: under pytest-xdist each worker sends its records with the test
reports, and all targets of one artifact go to one worker. Each concern of a run is a plugin of its own.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from vgf_conformance.lowering.cache import empty_cache
from vgf_conformance.plugin.distribution import Distribution
from vgf_conformance.plugin.evaluation import Evaluation
from vgf_conformance.plugin.items import EVALUATES, SuiteModule
from vgf_conformance.plugin.machine import Machine
from vgf_conformance.plugin.operators import OPERATORS, Operators
from vgf_conformance.plugin.records import Records, Sender
from vgf_conformance.plugin.selection import Selection, finished_before
from vgf_conformance.plugin.settings import EXPECTATIONS, SETTINGS, SUITES, UNCOVERED, Settings, add_options
from vgf_conformance.plugin.summary import FailuresByCause, Summary
from vgf_conformance.plugin.workers import is_worker
from vgf_conformance.results.claims import load_reasons
from vgf_conformance.results.expectations import load_expectations
from vgf_conformance.targets.vulkan import choose_driver
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import UserError


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the suites."""
    add_options(parser.getgroup("vgf-conformance", "VGF conformance suites"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is collected, and make the parts of the run."""
    if config.getoption("--no-cache") and not is_worker(config):
        # Workers inherit the environment in which it lies.
        cache = contextlib.ExitStack()
        cache.enter_context(empty_cache())
        config.add_cleanup(cache.close)
    try:
        settings = Settings.of(config)
        expectations = load_expectations(config.rootpath / EXPECTATIONS)
        uncovered = load_reasons(config.rootpath / UNCOVERED)
        done = finished_before(config, settings, expectations)
    except UserError as error:
        raise pytest.UsageError(visible(str(error))) from error
    operators = Operators(settings, uncovered)
    evaluation = Evaluation(settings, expectations)
    machine = Machine(config, settings)
    selection = Selection(config, settings, expectations, done)
    parts: list[object] = [evaluation, machine, selection, Sender(config, selection, machine)]
    if not is_worker(config):
        records = Records(config, settings, selection, machine, operators)
        parts += [records, FailuresByCause(), Summary(config, settings, selection, records, expectations)]
    # Only with pytest-xdist are there hooks for it.
    parts.append(Distribution(config, selection))
    config.stash[SETTINGS] = settings
    config.stash[OPERATORS] = operators
    config.stash[EVALUATES] = evaluation.evaluate
    for part in parts:
        config.pluginmanager.register(part, f"vgf-conformance-{type(part).__name__.lower()}")


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
