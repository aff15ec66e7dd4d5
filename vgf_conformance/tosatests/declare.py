"""What a file of ``suites/tosa/`` declares: operators, data types, how many tests of each."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vgf_conformance.tosatests.generate import Generator, Listed, Options

#: Data types, by TOSA's names in lower case.
FLOATS = ("fp32", "fp16", "bf16")
INTEGERS = ("int8", "int16", "int32")
#: Of a convolution: data, then weights where these differ.
CONVOLVED = ("int8", "int8xint4", "int16xint8", *FLOATS)

#: The extensions of TOSA whose tests are taken. Those not taken: see ``suites/tosa/test_not_covered.py``.
EXTENSIONS = frozenset(
    f"tosa-ext-{name}" for name in ("bf16", "doubleround", "fft", "inexactround", "int16", "int4")
)


@dataclass(frozen=True)
class TosaTest:
    """One test of the generator. ``name`` begins with its data types, so that ``-k fp16`` finds it."""

    listed: Listed
    tier: str

    @property
    def dtypes(self) -> str:
        """The operands' data types in one word: ``fp16``, ``int8xint4``."""
        return label(self.listed)

    @property
    def name(self) -> str:
        """The name in ids; the generator's own is ``listed.name``."""
        return f"{self.dtypes}-{self.listed.name}"

    @property
    def profile(self) -> str:
        """The TOSA profile that the test needs, in this harness's words: ``FP+bf16``.

        An operator that both profiles have (an integer addition) counts as its data's.
        """
        names = [profile.removeprefix("tosa-pro-").upper() for profile in self.listed.profiles]
        if len(names) > 1:
            names = ["FP" if self.dtypes.startswith(("fp", "bf")) else "INT"]
        return "+".join([*names, *(name.removeprefix("tosa-ext-") for name in self.listed.extensions)])


@dataclass(frozen=True)
class TosaTests:
    """A declaration; ``name`` and ``file`` are given by the suite that holds it."""

    options: Options
    dtypes: tuple[str, ...]
    each: int
    special: int
    smoke: tuple[str, ...]
    name: str = ""
    file: str = ""

    @property
    def operator(self) -> str:
        """The TOSA operator."""
        return self.options.operator

    def tier_of(self, test: TosaTest) -> str:
        """The tier that a test runs in."""
        return test.tier

    def choose(self, listed: Iterable[Listed]) -> list[TosaTest]:
        """The tests taken of those on offer: a function of their names alone.

        Raises ValueError where there is none of a data type that is declared.
        """
        groups: dict[tuple[Any, ...], list[Listed]] = defaultdict(list)
        for item in listed:
            if EXTENSIONS.issuperset(item.extensions) and label(item) in self.dtypes:
                groups[label(item), item.dtypes, item.extensions, item.special].append(item)
        missing = [dtype for dtype in self.dtypes if not any(key[0] == dtype for key in groups)]
        if missing:
            raise ValueError(f"the generator has no test of {self.operator} with {', '.join(missing)}")
        chosen = [
            item
            for (*_, special), items in groups.items()
            for item in itertools.islice(_spread(items), self.special if special else self.each)
        ]
        waiting = set(self.smoke)
        tests = []
        for item in chosen:
            first = label(item) in waiting
            waiting.discard(label(item))
            tests.append(TosaTest(item, "smoke" if first else "nightly"))
        return tests


@dataclass(frozen=True)
class NotCovered:
    """Operators and extensions without tests here, with the reason, so that a reader sees what is missing."""

    reason: str
    operators: tuple[str, ...]
    extensions: tuple[str, ...] = ()


def tosa_tests(
    operator: str,
    dtypes: Sequence[str],
    *,
    each: int = 3,
    special: int = 1,
    smoke: Sequence[str] = (),
    **options: Any,
) -> TosaTests:
    """Take ``each`` tests, and ``special`` with special values, of each combination of operand types.

    ``dtypes`` names what the data (and weights) may be; the first test of a data type in ``smoke``
    belongs to the smoke tier. ``options`` are the generator's, see ``generate.Options``.
    """
    fixed = {name: _tuples(value) for name, value in options.items()}
    return TosaTests(Options(operator, **fixed), tuple(dtypes), each, special, tuple(smoke))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def not_covered(reason: str, *operators: str, extensions: Sequence[str] = ()) -> NotCovered:
    """Say why ``operators``, or tests that need ``extensions`` (``tosa-ext-fp8e4m3``), are left out."""
    return NotCovered(reason, operators, tuple(extensions))


def label(item: Listed) -> str:
    """The data types of a test in one word: of its data, and of its weights where these differ."""
    return "x".join(dict.fromkeys(dtype for dtype in item.dtypes[:2] if dtype != "shape"))


def listed(tests: TosaTests) -> list[Listed]:
    """What the generator offers for a declaration; raises ValueError for an unknown operator."""
    return Generator(tests.options).listed()


def named(tests: TosaTests, name: str, file: str) -> TosaTests:
    """The declaration with its name and suite file."""
    return dataclasses.replace(tests, name=name, file=file)


def _spread(items: Sequence[Listed]) -> Iterator[Listed]:
    """The items in an order that looks random but follows from their names, ranks taking turns."""
    ranks: dict[int, list[Listed]] = defaultdict(list)
    for item in sorted(items, key=lambda item: hashlib.sha256(item.name.encode()).digest()):
        ranks[item.rank].append(item)
    for turn in itertools.zip_longest(*(ranks[rank] for rank in sorted(ranks, reverse=True))):
        yield from (item for item in turn if item is not None)
