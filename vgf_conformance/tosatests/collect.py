"""Finds the TOSA tests that a suite module declares."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import ModuleType

from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.targets import toolkit
from vgf_conformance.tosatests.declare import NotCovered, TosaTest, TosaTests, listed, named
from vgf_conformance.tosatests.generate import LISTING_SEED, Listed
from vgf_conformance.vocabulary import UserError


@dataclass(frozen=True)
class Declared:
    """A declaration with its tests."""

    tests: TosaTests
    chosen: list[TosaTest]


def declares_tosa_tests(module: ModuleType) -> bool:
    """Whether a suite module is about TOSA tests and not about cases."""
    return any(isinstance(value, (TosaTests, NotCovered)) for value in vars(module).values())


def declared_tests(module: ModuleType, file: str) -> list[Declared]:
    """The module's declarations in their order, each with its tests.

    ``file`` is the suite file, relative to the suites folder. Raises UserError, naming the declaration,
    for one that asks for an operator or a data type that the generator does not have.
    """
    declared = []
    for name, value in vars(module).items():
        if isinstance(value, TosaTests):
            tests = named(value, name, file)
            try:
                declared.append(Declared(tests, tests.choose(_offer(tests))))
            except ValueError as error:
                raise UserError(f"{file}: {name}: {error}") from error
    return declared


def _offer(tests: TosaTests) -> list[Listed]:
    """What the generator offers, remembered on disk: pytest collects in every worker, and in every run."""
    cache = Cache(default_folder())
    parts = ("tosa list", toolkit.version(), LISTING_SEED, tests.options)
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
    known = cache.get(key)
    if known is None:
        known = listed(tests)
        cache.put(key, known)
    offer: list[Listed] = known
    return offer
