"""A move, killed or refused at any step: no session is ever lost, and it can be finished or undone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.campaign.size import stride
from tests.faults.relocating import CONFIG, operate, prepare
from tests.store.relocate.moving import project, seen, unflushed

import steno
from steno.store.relocate.execution import find_interrupted, resume, undo_relocation

ROOT = Path(__file__).parent.parent.parent
PLACES = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
thorough = pytest.mark.faults
patient = pytest.mark.timeout(600)

Files = dict[str, str]


def strike(operation: str, kind: str, folder: Path, stride: int = 1) -> list[tuple[Path, str, str]]:
    """Do it with a fault at every step; return folder, end and step of each try."""
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "faults" / "relocating.py", operation, kind, folder, str(stride)],
        env={**os.environ, "PYTHONPATH": PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    tries = [line.split() for line in ran.stdout.splitlines()]
    return [(folder / number, ended, step) for number, ended, step in tries]


def files(place: Path) -> Files:
    """Return every file but what is on its way, by its hash."""
    found = seen(place / CONFIG)
    return {k: v[0] for k, v in found.items() if "steno-tmp" not in k and "before-move" not in k}


def both(operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Files, Files]:
    """Return how it is before and after, when nothing strikes."""
    place = tmp_path / "whole"
    prepare(operation, place)
    monkeypatch.setenv("STENO_HOME", str(place / "steno"))
    before = files(place)
    operate(operation, place)
    return before, files(place)


def check_whole(place: Path, step: str, before: Files, after: Files) -> None:
    """Every file is at one of its places, and is what it was or what it is to be."""
    now = files(place)
    for name, digest in now.items():
        assert digest in (before.get(name), after.get(name)), (step, name)
    name = f"{project().session_id}.jsonl"
    if any(key.endswith(name) for key in before):
        assert any(key.endswith(name) for key in now), step
    # Where a session is found, all that is its own is found with it.
    for key in now:
        if key.endswith(name):
            beside = key.removesuffix(".jsonl") + "/tool-results/"
            assert any(other.startswith(beside) for other in now), (step, key)


def check_killed(operation: str, tmp_path: Path, patch: pytest.MonkeyPatch, stride: int) -> None:
    """Kill it at steps of it; then finish it, or take it back, in turn."""
    before, after = both(operation, tmp_path, patch)
    tries = strike(operation, "kill", tmp_path / "tries", stride)
    assert tries[-1][1:] == ("done", "-")
    assert len(tries) > 30 // stride
    patch.setattr(os, "fsync", unflushed)
    for number, (place, ended, step) in enumerate(tries[:-1]):
        assert ended == "killed", step
        check_whole(place, step, before, after)
        patch.setenv("STENO_HOME", str(place / "steno"))
        back = bool(number % 2) and operation != "undo"
        settle(operation, place, back=back)
        assert files(place) == (before if back else after), (number, step)
        assert not list((place / CONFIG).rglob("*.steno-tmp")), (number, step)


def test_killed_at_some_steps_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_killed("move", tmp_path, monkeypatch, 9)


@thorough
@patient
@pytest.mark.parametrize("operation", ["move", "undo", "unpack"])
def test_killed_at_any_step_nothing_is_lost_and_it_can_be_finished_or_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    check_killed(operation, tmp_path, monkeypatch, stride())


def settle(operation: str, place: Path, *, back: bool) -> None:
    """Finish what was cut off, or take it back."""
    left = find_interrupted()
    if operation == "undo":
        if left is not None or not is_back(place):
            operate("undo", place)
    elif left is None:
        # It was cut off before anything was done, or when all was.
        if not is_done(place):
            operate(operation, place)
        if back:
            operate("undo", place)
    elif back:
        undo_relocation(left)
    else:
        resume(left)


def is_done(place: Path) -> bool:
    return any((place / CONFIG / "projects").glob("-srv-*/*.jsonl"))


def is_back(place: Path) -> bool:
    return any((place / CONFIG / "projects").glob("-home-*/*.jsonl")) and not is_done(place)


@thorough
@patient
@pytest.mark.parametrize("operation", ["move", "undo", "unpack"])
@pytest.mark.parametrize("kind", ["half", "ENOSPC", "EIO", "EROFS"])
def test_any_step_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, kind: str) -> None:
    before, after = both(operation, tmp_path, monkeypatch)
    for number, (place, ended, step) in enumerate(strike(operation, kind, tmp_path / "tries", stride())):
        assert ended in ("done", "refused", "killed"), (number, step)
        check_whole(place, step, before, after)
        monkeypatch.setenv("STENO_HOME", str(place / "steno"))
        settle(operation, place, back=False)
        assert files(place) == after, (number, step)
