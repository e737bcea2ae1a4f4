"""A repair in place, killed or refused at every step, leaves the whole old session or the new."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.campaign.size import spread
from tests.faults.repairing import MENDED, NAME, OLD

import steno

ROOT = Path(__file__).parent.parent.parent
PLACES = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
thorough = pytest.mark.faults


def strike(kind: str, folder: Path) -> list[tuple[Path, str, str]]:
    """Run the command with a fault at every step; return file, end and step of each try."""
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "faults" / "repairing.py", kind, folder],
        env={**os.environ, "PYTHONPATH": PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    tries = [line.split() for line in ran.stdout.splitlines()]
    return [(folder / number / "projects" / "-home-ada" / NAME, ended, step) for number, ended, step in tries]


def command(*arguments: object) -> int:
    """Run the real command."""
    called = [sys.executable, "-m", "steno", "repair", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": PLACES}
    return subprocess.run(called, env=env, capture_output=True, check=False).returncode


def check_whole(path: Path, step: str) -> None:
    assert path.read_bytes() in (OLD, MENDED), step
    kept = [each.read_bytes() for each in path.parent.iterdir()]
    assert OLD in kept, step


def test_killed_at_any_step_the_session_is_whole(tmp_path: Path) -> None:
    tries = strike("kill", tmp_path)
    assert tries[-1][1:] == ("done", "-")
    assert len(tries) > 10
    for path, ended, step in tries[:-1]:
        assert ended == "killed", step
        check_whole(path, step)
    # The command itself once more, where it was struck before, at and behind the exchange.
    at = max(number for number, (_, _, step) in enumerate(tries) if step == "replace")
    for path, _, step in (tries[1], tries[at], tries[at + 1]):
        assert command(path, "--in-place") == 0, step
        assert path.read_bytes() == MENDED, step
        assert not list(path.parent.glob("*.steno-tmp")), step


@thorough
@pytest.mark.parametrize("kind", ["kill", "half"])
def test_a_rerun_succeeds_wherever_it_was_killed(tmp_path: Path, kind: str) -> None:
    for path, _, step in spread(strike(kind, tmp_path), least=4):
        check_whole(path, step)
        assert command(path, "--in-place") == 0, step
        assert path.read_bytes() == MENDED, step
        assert command(path, "--undo") == 0, step
        assert path.read_bytes() == OLD, step


@thorough
@pytest.mark.parametrize("kind", ["ENOSPC", "EIO", "EROFS", "EFBIG"])
def test_any_step_may_fail(tmp_path: Path, kind: str) -> None:
    for path, ended, step in strike(kind, tmp_path):
        assert ended in ("done", "refused"), step
        check_whole(path, step)
