"""What a run says of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from vgf_conformance.targets import environment as module
from vgf_conformance.targets.vulkan import DriverChoice

CPUINFO = """processor\t: 0
cpu family\t: 6
model\t\t: 143
model name\t: Some Processor
flags\t\t: {flags}

processor\t: 1
model name\t: Another
"""


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Linux says of the processor; there is none yet."""
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(module, "_CPUINFO", path)
    return path


def processor() -> str:
    return str(module.environment(["reference"], DriverChoice())["cpu"])


def test_processors_of_one_name_are_told_apart_by_their_abilities(cpuinfo: Path) -> None:
    said = []
    for flags in ("fpu avx512f avx2", "avx2 avx512f fpu", "fpu avx2"):
        cpuinfo.write_text(CPUINFO.format(flags=flags))
        said.append(processor())
    assert said[0].startswith("Some Processor (6, 143, flags ")
    assert said[0] == said[1] != said[2]


def test_where_the_system_does_not_say_it_is_not_known(cpuinfo: Path) -> None:
    assert not cpuinfo.exists()
    assert processor() == ""
