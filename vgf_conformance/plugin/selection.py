"""Which of the collected items run, and what is known of the run before the first of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

import pytest

from vgf_conformance.plugin.items import SuiteItem
from vgf_conformance.plugin.settings import Settings
from vgf_conformance.plugin.workers import done_by_controller
from vgf_conformance.results.expectations import Expectation, Expectations
from vgf_conformance.results.shards import artifact_of
from vgf_conformance.results.store import read_results, results_file
from vgf_conformance.untrusted import kind_of
from vgf_conformance.vocabulary import DEFAULT_TARGETS


@dataclasses.dataclass
class Collected:
    """What collecting finds out for the end of the run; under xdist a worker tells the controller."""

    #: Known failures that match no case, in words.
    stale: list[str] = dataclasses.field(default_factory=list)
    #: Known failures whose cases all run: what is seen of them is all that there is.
    whole: list[str] = dataclasses.field(default_factory=list)
    #: Why fewer cases run than were asked for, in words.
    kept: list[str] = dataclasses.field(default_factory=list)
    #: Where no case of the chosen tier matches: how many of each other tier do.
    other_tiers: dict[str, int] = dataclasses.field(default_factory=dict)


def finished_before(config: pytest.Config, settings: Settings, expectations: Expectations) -> dict[str, bool]:
    """Ids that need not run again, with whether what they gave was unexpected.

    Where a known failure has changed since, the case runs again and is judged by today's.
    """
    told = done_by_controller(config)
    if told is not None:
        return dict.fromkeys(told, False)
    path = results_file(settings.results)
    if not settings.resume or kind_of(path) is None:
        return {}
    records = read_results([path]).records
    return {record.id: record.unexpected for record in records if expectations.apply(record) == record}


class Selection:
    """Leaves out items that the options do not ask for."""

    def __init__(
        self, config: pytest.Config, settings: Settings, expectations: Expectations, done: dict[str, bool]
    ) -> None:
        """``done`` is as finished_before gives it."""
        self._config = config
        self._settings = settings
        self._expectations = expectations
        self.done = done
        self.collected = Collected()
        #: The ids of the whole run, over all its shards.
        self.plan: list[str] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        """Select by profile and scheme; then, after pytest's own selection, by tier, shard and resume."""
        cases = [item for item in items if isinstance(item, SuiteItem)]
        self._note_stale(cases)
        self._leave_out(items, self._unwanted)
        yield
        self._leave_out_tiers(items)
        self.plan = [item.nodeid for item in items if isinstance(item, SuiteItem)]
        shard = self._settings.shard
        if shard:
            self._leave_out(items, lambda item: not shard.holds(artifact_of(item.nodeid)))
            if self.plan and not items:
                self.collected.kept.append(f"no case of this run is in shard {shard}")
        self._note_whole(cases, items)
        finished = self._leave_out(items, lambda item: item.nodeid in self.done)
        if finished:
            self.collected.kept.append(f"{finished} cases kept from the run before (--resume)")

    def _leave_out(self, items: list[pytest.Item], unwanted: Callable[[SuiteItem], bool]) -> int:
        """Deselect the cases that are unwanted; returns how many."""
        gone = {item for item in items if isinstance(item, SuiteItem) and unwanted(item)}
        if gone:
            self._config.hook.pytest_deselected(items=[item for item in items if item in gone])
            items[:] = [item for item in items if item not in gone]
        return len(gone)

    def _unwanted(self, item: SuiteItem) -> bool:
        settings = self._settings
        return bool(settings.profiles and item.profile.name not in settings.profiles) or bool(
            settings.schemes and item.scheme not in settings.schemes
        )

    def _leave_out_tiers(self, items: list[pytest.Item]) -> None:
        """Deselect the cases of tiers that are not asked for, and note them where no other case is left."""
        tiers = Counter(item.tier for item in items if isinstance(item, SuiteItem))
        chosen = self._settings.tier
        self._leave_out(items, lambda item: chosen not in ("all", item.tier))
        if tiers and not any(isinstance(item, SuiteItem) for item in items):
            self.collected.other_tiers = dict(tiers)

    @property
    def _names_cases(self) -> bool:
        """Whether the command line names single cases: then whole files are not collected."""
        return any("::" in argument for argument in self._config.args)

    def _note_stale(self, cases: Sequence[SuiteItem]) -> None:
        if self._names_cases:
            return
        complete = {item.case.file for item in cases}
        # An entry for a target that this run leaves out is not stale.
        entries = self._expectations.stale([tuple(item.case_id) for item in cases], complete)
        self.collected.stale = [
            f"{entry.source}: matches no case: remove the entry"
            for entry in entries
            if self._about_this_run(entry)
        ]

    def _note_whole(self, cases: Sequence[SuiteItem], chosen: Sequence[pytest.Item]) -> None:
        if self._names_cases or not set(DEFAULT_TARGETS) <= set(self._settings.targets):
            return
        kept = set(chosen)
        left_out = [tuple(item.case_id) for item in cases if item not in kept]
        self.collected.whole = self._expectations.whole([tuple(item.case_id) for item in cases], left_out)

    def _about_this_run(self, entry: Expectation) -> bool:
        return any(fnmatchcase(target, entry.target) for target in self._settings.targets)
