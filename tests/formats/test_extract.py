"""``extract``: delegates out of programs that may be anything."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import flatbuffers
import pytest

from tests.packs.helpers import Answer
from vgf_conformance.cli import main
from vgf_conformance.formats.pte import BACKEND, read_delegates
from vgf_conformance.untrusted import Malformed

PROGRAM = Path(__file__).parents[1] / "fuzz" / "seeds" / "sorted.pte"


def extract(capfd: pytest.CaptureFixture[str], program: Path, output: Path) -> Answer:
    code = main(["extract", str(program), "-o", str(output)])
    return Answer(code, *capfd.readouterr())


def test_delegates_are_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert extract(capfd, PROGRAM, tmp_path / "out").code == 0
    assert [path.read_bytes() for path in sorted((tmp_path / "out").iterdir())] == read_delegates(
        PROGRAM.read_bytes()
    )


def _cut(path: Path) -> None:
    path.write_bytes(PROGRAM.read_bytes()[:3000])


def _text(path: Path) -> None:
    path.write_text("not a program")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(9 << 30)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_cut, "corrupt .pte: a delegate ends at byte"),
        (_text, "not an ExecuTorch program"),
        (_pipe, "is a pipe, not a regular file"),
        (_endless, "is a link"),
        (_sparse, "is too large"),
        (Path.mkdir, "is a folder, not a regular file"),
    ],
)
def test_what_is_no_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], make: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "model.pte"
    make(path)
    answer = extract(capfd, path, tmp_path / "out")
    assert answer.code == 2
    assert answer.err.startswith(f"vgf-conformance: {path}: ")
    assert message in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("")
    for output in (tmp_path / "out", tmp_path / "out" / "below", tmp_path / ("x" * 300)):
        answer = extract(capfd, PROGRAM, output)
        assert answer.code == 2
        assert answer.err.startswith("vgf-conformance: ")
        assert str(output)[: len(str(tmp_path)) + 4] in answer.err
        assert answer.err.count("\n") == 1


def program_of(plans: int, delegates: int, spaces: list[tuple[int, int]], segment: bytes) -> bytes:
    """A program whose lists name the same plan, and the same delegates, again and again."""
    builder = flatbuffers.Builder(1024)

    def table(fields: dict[int, tuple[str, int]]) -> int:
        builder.StartObject(8)
        for slot, (kind, value) in fields.items():
            getattr(builder, f"Prepend{kind}Slot")(slot, value, 0)
        return int(builder.EndObject())

    def vector(items: list[int]) -> int:
        builder.StartVector(4, len(items), 4)
        for item in reversed(items):
            builder.PrependUOffsetTRelative(item)
        return int(builder.EndVector())

    name = builder.CreateString(BACKEND)
    kinds = []
    for number in range(len(spaces)):
        processed = table({0: ("Int8", 1), 1: ("Uint32", number)})
        kinds.append(table({0: ("UOffsetTRelative", name), 1: ("UOffsetTRelative", processed)}))
    plan = table({7: ("UOffsetTRelative", vector([*kinds] * delegates))})
    segments = vector([table({0: ("Uint64", at), 1: ("Uint64", size)}) for at, size in spaces])
    root = table({1: ("UOffsetTRelative", vector([plan] * plans)), 4: ("UOffsetTRelative", segments)})
    builder.Finish(root, b"ET12")
    body = bytes(builder.Output())
    # The extended header lies behind the identifier.
    length = 24
    moved = struct.unpack("<I", body[:4])[0] + length
    header = struct.pack("<4sIQQ", b"eh00", length, len(body) + length, len(body) + length)
    return struct.pack("<I", moved) + b"ET12" + header + body[8:] + segment


def test_delegates_that_share_their_data() -> None:
    assert read_delegates(program_of(1, 3, [(0, 4)], b"data")) == [b"data"] * 3


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (program_of(20_000, 20_000, [(0, 4)], b"data"), "the same bytes again and again"),
        (program_of(1, 20_000, [(0, 4)], b"data"), "20000 delegates"),
        (program_of(1, 1, [(0, 4), (1, 3)], b"data"), "lie over each other"),
        (program_of(1, 1, [(0, 5)], b"data"), "ends at byte"),
        (program_of(1, 1, [((1 << 64) - 1, 1)], b"data"), "ends at byte"),
    ],
)
def test_lists_that_multiply_a_file(program: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        read_delegates(program)
