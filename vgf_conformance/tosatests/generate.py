"""Lists and writes the conformance tests of tosa-tools' generator, in process.

A test's name is a function of the options alone, and its content of its name and the
seed, in whichever order and process tests are made (the generator seeds its random
numbers with a hash of both). So listing, which takes milliseconds, is all that
collection needs, and each test is written when it runs.
"""

from __future__ import annotations

import functools
import importlib
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.quiet import quiet
from vgf_conformance.targets import toolkit
from vgf_conformance.targets.precise import Exact, run_description

#: The version of TOSA that the tests are made for: the generator's nearest to what the backend lowers to.
TOSA_VERSION = "1.0.1"

#: Behind shapes and attributes, and so behind names. The run's own seed only changes the data.
LISTING_SEED = 42


@dataclass(frozen=True)
class Options:
    """What the generator is asked for: one operator, and how large its tensors are.

    ``sizes`` bounds the dimensions of random shapes (the end left out), ``ranks`` their
    number; ``shapes`` replaces both. ``kernels`` are those of convolutions. ``values`` is
    the range of random floats, ``version`` that of TOSA.
    """

    operator: str
    sizes: tuple[int, int] = (1, 9)
    ranks: tuple[int, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    kernels: tuple[tuple[int, ...], ...] = ()
    values: tuple[float, float] = (-2.0, 2.0)
    version: str = TOSA_VERSION

    def arguments(self) -> list[str]:
        """The generator's command line."""
        words = ["--tosa-version", self.version, "--seed", str(LISTING_SEED)]
        words += ["--generate-lib-path", str(toolkit.generator_library())]
        words += ["--tensor-dim-range", _list(self.sizes)]
        # As one word with "=": a range may begin with a minus sign.
        words += [f"--fp-values-range={_list(self.values)}"]
        for option, items in (("--target-shape", self.shapes), ("--conv-kernel", self.kernels)):
            words += [word for item in items for word in (option, _list(item))]
        return words + (["--target-rank", *map(str, self.ranks)] if self.ranks else [])


@dataclass(frozen=True)
class Listed:
    """A test that the generator offers.

    ``dtypes`` are TOSA's names of the operands' types in lower case (``fp16``); ``profiles``
    and ``extensions`` TOSA's names (``tosa-pro-fp``): any of the first, all of the second.
    ``special`` marks data sets of special values: infinities and NaN, extremes, one input twice.
    """

    name: str
    dtypes: tuple[str, ...]
    rank: int
    special: bool
    profiles: tuple[str, ...]
    extensions: tuple[str, ...]


@dataclass(frozen=True)
class Generated:
    """A test: its description (``desc.json``), and the files that this names with their content."""

    name: str
    description: dict[str, Any]
    files: dict[str, bytes]

    @property
    def tosa(self) -> bytes:
        """The graph."""
        return self.files[self.description["tosa_file"]]

    @property
    def inputs(self) -> dict[str, NDArray[Any]]:
        """The inputs by tensor name, as stored: narrow floats as raw bits."""
        pairs = zip(self.description["ifm_name"], self.description["ifm_file"], strict=True)
        return {name: np.load(io.BytesIO(self.files[file])) for name, file in pairs}

    def exact(self) -> dict[str, Exact]:
        """The outputs in fp64, with bounds where its rules ask for them; raises PreciseFailure."""
        with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
            return run_description(self.description, self.files, Path(folder))


class Generator:
    """The generator under one set of options."""

    def __init__(self, options: Options) -> None:
        self._maker = _maker(options)
        lookup = {self._maker.getOperatorNameStr(name) for name in self._maker.TOSA_OP_LIST}
        if options.operator.lower() not in lookup:
            raise ValueError(f"the generator knows no TOSA operator {options.operator}")
        self._tests = {str(test[1]): test for test in self._offered(options)}

    def _offered(self, options: Options) -> Iterator[tuple[Any, ...]]:
        for name in self._maker.TOSA_OP_LIST:
            if self._maker.getOperatorNameStr(name) == options.operator.lower():
                with quiet(), redirect_stdout(io.StringIO()):
                    yield from self._maker.genOpTestList(
                        name,
                        shapeFilter=[list(shape) for shape in options.shapes],
                        rankFilter=options.ranks or None,
                        testType="positive",
                    )

    def listed(self) -> list[Listed]:
        """Every test on offer, in the generator's order."""
        return [_listed(*test) for test in self._tests.values()]

    def write(self, name: str, seed: int = 0) -> Generated:
        """Make one test; ``seed`` changes its data and nothing else."""
        test = self._tests[name]
        with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
            self._maker.basePath = folder
            self._maker.random_seed = (LISTING_SEED + seed) % 2**64
            with quiet(), redirect_stdout(io.StringIO()):
                made = self._maker.serializeTest(*test)
            if not made:
                raise toolkit.missing(f"test {name}, which its generator lists,")
            return read_test(Path(folder) / test[0] / name)


def read_test(folder: Path) -> Generated:
    """Read the test that lies in ``folder``."""
    description = json.loads((folder / "desc.json").read_text("utf-8"))
    names = [description["tosa_file"], *description["ifm_file"]]
    return Generated(folder.name, description, {name: (folder / name).read_bytes() for name in names})


@functools.lru_cache(maxsize=4)
def generator(options: Options) -> Generator:
    """The generator of ``options``, kept: the tests of one declaration follow each other."""
    return Generator(options)


def operators() -> set[str]:
    """The TOSA operators that the generator has tests for."""
    maker = _maker(Options("add"))
    return {maker.getOperatorNameStr(name).upper() for name in maker.TOSA_OP_LIST}


def _maker(options: Options) -> Any:
    """tosa-tools' TosaTestGen; raises UserError where it is missing or of another layout."""
    library = toolkit.generator_library()
    try:
        with quiet():
            script = importlib.import_module("generator.tosa_verif_build_tests")
            base = script.TosaTestGen
            # The class rewrites its own table while it starts: every maker gets a copy.
            table = {name: dict(entry) for name, entry in base.TOSA_OP_LIST.items()}
            kind: Any = type("Maker", (base,), {"TOSA_OP_LIST": table})
            maker = kind(script.parseArgs(options.arguments()), script._get_tosa_version(options.version))
    except (ImportError, AttributeError, TypeError) as error:
        raise toolkit.missing(f"generator that can be called ({library.name} is there; {error})") from error
    # It checks each of its own descriptions against the JSON schemas, and each time the schemas too:
    # nine tenths of the time that a test takes.
    maker.descSchemaValidator = maker.dgl.schema_validator = _Trusting()
    return maker


class _Trusting:
    def validate_config(self, *arguments: object, **keywords: object) -> None:
        """Accept."""


def _listed(
    operator: str, name: str, dtypes: Any, error: object, shapes: Sequence[Any], arguments: dict[str, Any]
) -> Listed:
    types = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
    utilities = importlib.import_module("generator.tosa_utils")
    return Listed(
        name=name,
        dtypes=tuple(item.name.lower() for item in types),
        rank=len(shapes[0]),
        special=bool(utilities.isSpecialTest(arguments["td_type"])),
        profiles=tuple(sorted(arguments["profiles_supported"])),
        extensions=tuple(sorted(arguments.get("extensions_required", ()))),
    )


def _list(numbers: Sequence[float]) -> str:
    return ",".join(str(number) for number in numbers)
