"""Several processes append to one session: every record that was acknowledged is there, whole."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.campaign.size import report, sized

import steno
from steno.format.lines import read_pieces
from steno.format.records import Record
from steno.store.file_source import FileSource

ROOT = Path(__file__).parent.parent.parent
PLACES = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])
FOREIGN = """
import sys
with open(sys.argv[1], "a") as file:
    for at in range(int(sys.argv[2])):
        file.write('{"type":"user","uuid":"foreign-%d","filling":"%s","end":true}\\n' % (at, "y" * 700))
"""


@pytest.mark.faults
@pytest.mark.timeout(0)
@pytest.mark.parametrize("foreign", [False, True])
def test_writers_side_by_side_lose_nothing(tmp_path: Path, *, foreign: bool) -> None:
    path = tmp_path / "x.jsonl"
    writers, number = (16, sized(20_000, least=200)) if not foreign else (4, sized(5_000, least=200))
    program = ROOT / "tests" / "campaign" / "writing.py"
    commands = [[str(program), str(path), f"w{at}", str(number)] for at in range(writers)]
    if foreign:
        commands.append(["-c", FOREIGN, str(path), str(number)])
    env = {**os.environ, "PYTHONPATH": PLACES}
    running = [
        subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, env=env) for command in commands
    ]
    said = [process.communicate()[0].split() for process in running]
    assert {process.returncode for process in running} == {0}
    with FileSource(str(path)) as source:
        pieces = list(read_pieces(source))
    held = Counter(piece.uuid for piece in pieces if isinstance(piece, Record) and piece.fields.get("end"))
    # A line that is ended twice leaves a blank one; nothing is lost by that.
    torn = sum(not isinstance(piece, Record) and bool(piece.head.strip()) for piece in pieces)
    ours = {f"w{at}-{one}" for at in range(writers) for one in said[at]}
    assert len(ours) == writers * number
    lost = ours - set(held)
    report(
        "B6",
        f"{writers} writers of {number:,} records{', one foreign' if foreign else ''}: "
        f"{torn} torn lines, {len(lost)} acknowledged records lost",
    )
    assert max(held.values()) == 1
    if not foreign:
        assert torn == 0
        assert not lost
    # A foreign writer's buffer may end anywhere: what it tears is seen as damage, never silently.
    assert torn or not lost
