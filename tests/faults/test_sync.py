"""A sync that is killed at any step is made good by the next one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.campaign.size import spread
from tests.index.dump import dump

import steno
from steno.demo.recording import write_demo
from steno.index.database import IndexLocation
from steno.index.sync.updater import sync

ROOT = Path(__file__).parent.parent.parent
PLACES = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])
EVERY = 23
"""Of so many steps one is looked at in a quick run."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def change(root: Path) -> None:
    """Do to some sessions all that can be done to a session."""
    paths = sorted(root.glob("projects/*/*.jsonl"))
    grown, cut, gone, replaced, moved = paths[:5]
    lines = grown.read_bytes().splitlines(keepends=True)
    with grown.open("ab") as file:
        file.writelines(lines[-3:])
    os.truncate(cut, cut.stat().st_size // 2)
    gone.unlink()
    replaced.write_bytes(paths[5].read_bytes())
    moved.rename(moved.with_name("00000000-0000-4000-8000-000000000001.jsonl"))
    (moved.parent / "00000000-0000-4000-8000-000000000002.jsonl").write_bytes(b"".join(lines[:4]))


@pytest.fixture
def struck(tmp_path: Path) -> list[tuple[IndexLocation, str]]:
    """An index for every step that a sync was killed at, and the step."""
    root = tmp_path / "sessions"
    write_demo(str(root))
    work = tmp_path / "work"
    sync(IndexLocation(str(work / "before"), (str(root),)))
    change(root)
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "faults" / "syncing.py", root, work],
        env={**os.environ, "PYTHONPATH": PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    tries = [line.split() for line in ran.stdout.splitlines()]
    return [(IndexLocation(str(work / number), (str(root),)), step) for number, step in tries]


def check(tries: list[tuple[IndexLocation, str]]) -> None:
    whole, step = tries[-1]
    assert step == "-"
    wanted = dump(whole, gone=True)
    for home, step in tries[:-1]:
        sync(home)
        assert dump(home, gone=True) == wanted, (home.folder, step)
        # A thread of the search engine may still be writing its list of files.
        while Path(home.folder).exists():
            shutil.rmtree(home.folder, ignore_errors=True)


@pytest.mark.timeout(300)
def test_killed_at_some_steps_the_next_sync_makes_it_good(struck: list[tuple[IndexLocation, str]]) -> None:
    assert len(struck) > 100
    chosen = [
        each
        for number, each in enumerate(struck[:-1])
        if not number % EVERY or each[1] in ("commit", "begin", "start_writing", "close")
    ]
    check([*chosen, struck[-1]])


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_killed_at_any_step_the_next_sync_makes_it_good(struck: list[tuple[IndexLocation, str]]) -> None:
    check([*spread(struck[:-1], least=12), struck[-1]])
