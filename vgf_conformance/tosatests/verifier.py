"""tosa-tools' own judgement of a result, through its verification library.

Usable by itself: a verdict needs the implementation's result, the reference's in fp64
(what the reference model's ``precise_mode`` gives), its bounds where the rule has some,
and the ``compliance`` part of the test's description.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vgf_conformance.targets import toolkit

Array = NDArray[Any]


class Verifier:
    """The library, loaded once; thread safety is the library's."""

    def __init__(self, library: Path | None = None) -> None:
        """``library`` is the installed tosa-tools' own unless given; raises UserError where it is missing."""
        path = toolkit.verifier_library() if library is None else library
        if not path.is_file():
            raise toolkit.missing(f"verifier library ({path.name})")
        try:
            module = importlib.import_module("checker.verifier")
            self._library = module.VerifierLibrary(path)
            self._judge, self._wrap = self._library.tvf_verify_data, self._library._get_tensor_data
        except (ImportError, AttributeError, OSError) as error:
            raise toolkit.missing(f"verifier that can be called ({error})") from error

    def accepts(
        self,
        output: str,
        actual: Array,
        exact: Array,
        bounds: Array | None,
        compliance: Mapping[str, Any],
    ) -> bool:
        """Whether ``actual`` conforms, for the tensor called ``output``.

        ``actual`` is stored as its TOSA type (int4 as int8, int48 as int64, narrow floats in
        ml_dtypes' types or as raw bits). ``exact`` and ``bounds`` are what the reference model
        wrote: float64 for floats, the type itself for integers. Raises KeyError where
        ``compliance`` does not describe ``output``.
        """
        dtype = compliance["tensors"][output]["data_type"]
        # Kept in a variable each: the library is given their addresses.
        stored = [None if item is None else _plain(item) for item in (actual, exact, bounds)]
        tensors = [None if item is None else self._wrap(output, item, dtype) for item in stored]
        document = ctypes.c_char_p(json.dumps(compliance).encode())
        return bool(self._judge(tensors[1], tensors[2], tensors[0], document))


@functools.cache
def verifier() -> Verifier:
    """The installed tosa-tools' verifier."""
    return Verifier()


def _plain(array: Array) -> Array:
    """In C order, narrow floats as bytes of no type: the library's binding knows numpy's own types only."""
    array = np.asarray(array, order="C")
    if array.dtype.kind != "V":
        return array.astype(array.dtype.type, copy=False)
    # fp8e5m2 goes as uint8, by the binding's convention.
    return array.view("u1" if array.dtype.name == "float8_e5m2" else f"V{array.dtype.itemsize}")
