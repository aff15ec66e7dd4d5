"""What the harness's own tests share: one artifact cache and one set of targets a session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from vgf_conformance.evaluation.evaluate import Evaluator
from vgf_conformance.evaluation.isolated import ModelServer
from vgf_conformance.evaluation.session import open_evaluator
from vgf_conformance.launch import python_environment
from vgf_conformance.lowering.cache import Cache, default_folder
from vgf_conformance.targets.vulkan import DriverChoice


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty artifact cache for this session, shared by its workers: never the user's own."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "artifact-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VGF_CONFORMANCE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def cache(cache_folder: Path) -> Cache:
    return Cache(default_folder())


@pytest.fixture(scope="session")
def evaluator(cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    """The real reference model, and the real emulation layers over the default driver."""
    made = open_evaluator(("reference", "emulation"), DriverChoice(), tmp_path_factory.mktemp("layers"))
    yield made
    made.close()


@pytest.fixture(scope="session", autouse=True)
def model_server(cache_folder: Path) -> Iterator[None]:
    """One process with PyTorch for all commands of this session that have the same surroundings."""
    usual, kept = _surroundings(), ModelServer()

    @contextlib.contextmanager
    def server() -> Iterator[ModelServer]:
        if _surroundings() != usual:
            with ModelServer() as another:
                yield another
            return
        try:
            yield kept
        except BaseException:
            kept.close()
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vgf_conformance.evaluation.isolated.ModelServer", server)
        yield
    kept.close()


def _surroundings() -> tuple[Path, dict[str, str]]:
    environment = python_environment()
    environment.pop("PYTEST_CURRENT_TEST", None)
    return Path.cwd(), environment
