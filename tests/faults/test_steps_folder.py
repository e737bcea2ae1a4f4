"""002, sync: killed at any step, the next run does what is left and ends as if nothing had happened."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.writing_steps import CutOff, cut_off, prepare, sync, tree

import steno

ROOT = Path(__file__).parent.parent.parent
PLACES = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])


def move(before: Path, place: Path) -> Path:
    """Return a copy of a prepared folder at the place where it was prepared.

    What is written names its sources, so every try is at the same place.
    """
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(before, place, symlinks=True)
    return place


def check_while_cut_off(out: Path) -> None:
    """Whatever a folder says is there is there: metadata never stands alone or half."""
    for path in out.iterdir():
        if path.is_dir() and not path.name.startswith("."):
            names = {each.name for each in path.iterdir() if not each.name.startswith(".")}
            assert "metadata.json" in names or names == {"notes.txt"}, names


def test_002_sync_cut_off_at_any_step_the_next_run_makes_it_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A lock that an earlier test left unreleased would otherwise be released, by a step, while steps are cut off.
    gc.collect()
    # That the disk is asked to keep things is a step; waiting for it is not what is tested.
    monkeypatch.setattr(os, "fsync", int)
    place, before = tmp_path / "work", tmp_path / "before"
    prepare(place)
    shutil.copytree(place, before)
    report = sync(place)
    assert (len(report.written), len(report.unchanged), len(report.removed)) == (4, 1, 2)
    whole = tree(place / "out")
    at = 0
    for at in range(1, 400):
        move(before, place)
        with cut_off(at) as taken:
            try:
                sync(place)
            except CutOff:
                cut = True
            else:
                cut = False
        if not cut and len(taken) < at:
            break
        check_while_cut_off(place / "out")
        done = {name for name, data in tree(place / "out").items() if whole.get(name) == data}
        report = sync(place)
        assert tree(place / "out") == whole, (at, taken)
        # What was done before is not done again.
        complete = {name for name in report.written if f"{name}/metadata.json" in done}
        assert not complete, (at, taken)
        again = sync(place)
        assert not again.changed
    assert at > 40


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("kind", ["kill", "half", "ENOSPC", "EIO"])
def test_002_sync_killed_or_refused_at_any_step_the_next_run_makes_it_good(tmp_path: Path, kind: str) -> None:
    work = tmp_path / "work"
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "faults" / "writing_steps.py", kind, work],
        env={**os.environ, "PYTHONPATH": PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    tries = [line.split() for line in ran.stdout.splitlines()]
    assert len(tries) > 100
    for number, ended, step in tries:
        place = work / number
        assert ended == ("done" if step == "-" else ended)
        assert ended != "broken", (number, step)
        check_while_cut_off(place / "out")
        sync(place)
        fresh = {name: data for name, data in tree(place / "out").items() if not name.endswith("notes.txt")}
        shutil.rmtree(place / "out")
        sync(place)
        expected = tree(place / "out")
        # The folder with somebody else's notes in it stays.
        extra = set(fresh) - set(expected)
        assert all(fresh[name] is None for name in extra)
        assert {name: fresh[name] for name in expected} == expected, (number, step)
