"""Files cut at every byte, broken at every record, and written by a process that is killed."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from tests.builders import VERSIONS, Session, session, text, thinking, tool
from tests.builders.everything import everything
from tests.campaign.size import sized, spread

from steno.format.lines import read_bytes, read_pieces
from steno.format.records import Piece, Record
from steno.format.source import BytesSource, Source
from steno.session.session import Session as Opened
from steno.session.transcript import load
from steno.store.file_source import FileSource

pytestmark = pytest.mark.faults

KILLS: Final = sized(10_000, least=50)
_NAMES_A_SESSION: Final = b'"sessionId":"'


class Dice:
    """Numbers that look like chance and are the same on every run."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def up_to(self, most: int) -> int:
        """Return a number from 1 to `most`."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return 1 + (self._state >> 33) % most


def tiled(pieces: list[Piece], size: int) -> list[bytes]:
    """Check that the pieces lie end to end, and return the records among them."""
    ends = [0, *(piece.offset + piece.length for piece in pieces)]
    assert [piece.offset for piece in pieces] == ends[:-1]
    assert ends[-1] == size
    return [piece.line for piece in pieces if isinstance(piece, Record)]


def used(source: Source) -> list[bytes]:
    """Do with a source what people do; return the records it was found to hold."""
    opened = Opened(load(source), name="00000000-0000-4000-8000-000000000000")
    opened.as_resumed()
    opened.turns()
    lines = tiled(list(opened.pieces()), source.size)
    again = [opened.transcript.record(node).line for node in opened.transcript.nodes]
    assert again == lines
    return lines


def small(version: str) -> Session:
    made = (
        session(version, full=True, seed=version)
        .user("Look ✓")
        .assistant(thinking("hm"), text("I look."), tool("Read", file_path="/a.py"))
    )
    return made.result("1\tx = 1").assistant(text("Done: `x`.")).done()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_cut_at_any_byte_is_read_up_to_the_cut(version: str) -> None:
    data = small(version).bytes()
    for cut in spread(range(len(data) + 1), least=150):
        kept = data[:cut]
        *whole, rest = kept.split(b"\n")
        # The last record is whole when only its newline is missing.
        expected = [*whole, rest] if data[cut : cut + 1] == b"\n" and rest else whole
        assert used(BytesSource(kept)) == expected, cut


def broken_sessions() -> Iterator[tuple[str, list[bytes]]]:
    for version in VERSIONS:
        yield version, small(version).bytes().splitlines()
    for version in (VERSIONS[0], VERSIONS[-1]):
        full = everything(version)[6]
        yield f"{version}-everything", full.bytes().splitlines()


@pytest.fixture(params=[pytest.param(lines, id=name) for name, lines in broken_sessions()])
def lines(request: pytest.FixtureRequest) -> list[bytes]:
    """The lines of a sound session."""
    return request.param


def read(data: bytes) -> list[bytes]:
    return tiled(list(read_bytes(data)), len(data))


def test_zero_bytes_before_any_record_cost_no_record(lines: list[bytes]) -> None:
    dice = Dice(7)
    for at in range(len(lines) + 1):
        zeros = bytes(199 + dice.up_to(501))
        before, behind = (b"".join(line + b"\n" for line in part) for part in split(lines, at))
        assert read(before + zeros + behind) == lines
        assert read(before + zeros + b"\n" + behind) == lines
        assert read(before.removesuffix(b"\n") + zeros + behind) == lines


def test_a_missing_newline_behind_any_record_costs_no_record(lines: list[bytes]) -> None:
    for at in range(len(lines) + 1):
        before, behind = (b"".join(line + b"\n" for line in part) for part in split(lines, at))
        assert read(before.removesuffix(b"\n") + behind) == lines
    assert read(b"".join(lines)) == lines


def test_a_splice_at_any_record_costs_that_record_alone(lines: list[bytes]) -> None:
    dice = Dice(11)
    for at, (cut_off, spliced) in enumerate(pairwise(lines)):
        before = b"".join(line + b"\n" for line in lines[:at])
        behind = b"".join(line + b"\n" for line in lines[at + 1 :])
        for cut in cuts(cut_off, spliced, dice):
            data = before + cut_off[:cut] + behind
            assert read(data) == lines[:at] + lines[at + 1 :], (at, cut)


def cuts(line: bytes, spliced: bytes, dice: Dice) -> list[int]:
    """Return places to cut a line at.

    Behind `:`, `[` or `,` a value may stand, and a record that names no session cannot be told
    from a value there; such cuts are left out.
    """
    some = {1, 2, len(line) // 2, len(line) - 1, *(dice.up_to(len(line) - 1) for _ in range(8))}
    named = _NAMES_A_SESSION in spliced
    return [cut for cut in sorted(some) if named or line[cut - 1] not in b":[,"]


def split(lines: list[bytes], at: int) -> tuple[list[bytes], list[bytes]]:
    return lines[:at], lines[at:]


WRITER: Final = """
import json, os, sys
path, first = sys.argv[1], int(sys.argv[2])
file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
for number in range(first, first + 1000):
    message = {"role": "user", "content": "x\\n" * (1, 40, 3000)[number % 3]}
    record = {"parentUuid": str(number - 1), "sessionId": "s", "type": "user",
              "uuid": str(number), "message": message, "end": number}
    line = json.dumps(record).encode() + b"\\n"
    cut = 1 + number * 7919 % (len(line) - 1)
    for part in (line[:cut], line[cut:]):
        os.read(0, 1) or sys.exit()
        os.write(file, part)
    os.write(1, b"%d\\n" % number)
"""


@pytest.mark.timeout(0)
def test_a_writer_killed_at_any_moment_leaves_a_file_that_is_read(tmp_path: Path) -> None:
    """What the writer said it wrote is read, while it writes and after it is killed.

    The writer writes each record in two parts and is told how many parts to write: every other
    time it is killed while it waits between them, else while it is still at work.
    """
    path = tmp_path / "session.jsonl"
    path.touch()
    dice = Dice(13)
    written: set[int] = set()
    for kill in range(KILLS):
        first = max(written, default=0) + 20
        command = [sys.executable, "-I", "-S", "-c", WRITER, str(path), str(first)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            parts = 2 * dice.up_to(12) + 1
            writer.stdin.write(b"." * parts)
            written.add(int(writer.stdout.readline()))
            if kill % 2:
                written.update(int(writer.stdout.readline()) for _ in range(parts // 2 - 1))
            check_appended(path, written)
            writer.send_signal(signal.SIGKILL)
            told = writer.stdout.read().split(b"\n")
        written.update(int(number) for number in told[:-1])
        check_appended(path, written)
    with FileSource(str(path)) as source:
        assert len(used(source)) >= len(written)
        assert load(source).gaps, "no record was ever cut off"


def check_appended(path: Path, written: set[int]) -> None:
    """Every record that was said to be written is read whole and once, in order."""
    with FileSource(str(path)) as source:
        pieces = list(read_pieces(source))
        tiled(pieces, source.size)
    records = [piece for piece in pieces if isinstance(piece, Record)]
    numbers = [int(record.uuid or 0) for record in records]
    assert [record.fields["end"] for record in records] == numbers
    assert numbers == sorted(set(numbers))
    assert written <= set(numbers)
