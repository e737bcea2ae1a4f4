"""Large things are read with bounded memory and nothing missing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.campaign.size import report, sized

import steno

ROOT = Path(__file__).parent.parent.parent
PLACES = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])
MIB = 1 << 20

pytestmark = [pytest.mark.faults, pytest.mark.timeout(0)]


def loaded(kind: str, folder: Path, number: int) -> dict[str, Any]:
    """Let a process load something, and return what it printed."""
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "campaign" / "loading.py", kind, folder, str(number)],
        env={**os.environ, "PYTHONPATH": PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


def test_many_sessions_are_indexed_and_searched(tmp_path: Path) -> None:
    number = sized(11_000, least=100)
    found = loaded("corpus", tmp_path, number)
    assert found["sessions"] == number
    rate = found["bytes"] / MIB / found["seconds"]
    report("A1", f"{number:,} sessions, {found['bytes'] / MIB:,.0f} MiB, all in the index")
    report("A5", f"index of tables and text at {rate:.0f} MiB/s, {found['seconds']:.1f} s in all")
    report("A6", f"index of tables and text at {rate:.0f} MiB/s ({number:,} sessions)")
    report("A8", f"95 % of searches within {found['p95'] * 1000:.1f} ms over {number:,} sessions")


def test_a_large_session_is_opened_and_followed_in_bounded_memory(tmp_path: Path) -> None:
    megabytes = sized(4096, least=100)
    found = loaded("file", tmp_path, megabytes)
    assert found["status"] == 200
    memory = found["memory"] / MIB
    size = f"{megabytes:,} MiB, {found['records']:,} records"
    report("A2", f"{size}: first page after {found['page']:.2f} s, at most {memory:.0f} MiB held")
    report("A7", f"one line more in {size}: in the index after {found['more'] * 1000:.0f} ms")
    assert memory < 300 + megabytes / 4


def test_a_long_line_is_read_around_in_bounded_memory(tmp_path: Path) -> None:
    megabytes = sized(1024, least=70)
    found = loaded("line", tmp_path, megabytes)
    memory = found["memory"] / MIB
    report("A3", f"a line of {megabytes:,} MiB: one gap, at most {memory:.0f} MiB held")
    assert found["gaps"] == 1
    assert found["records"] > 2
    assert memory < 300
