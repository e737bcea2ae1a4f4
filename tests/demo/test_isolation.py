"""The guard around the tests: the real sessions are out of reach, and trying fails the run."""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_TRESPASSER = """
import os

def test_that_swallows_the_error():
    try:
        open(os.path.join({home!r}, ".claude", "settings.json"), "rb")
    except Exception:
        pass

def test_that_lists():
    os.listdir(os.path.join({home!r}, ".claude", "projects"))

def test_that_keeps_away():
    assert os.environ["HOME"] != {home!r}
"""


def test_tests_have_a_home_a_folder_and_a_time_of_their_own(tmp_path: Path) -> None:
    assert Path.cwd() == tmp_path
    assert Path.home() == Path(os.environ["HOME"])
    assert Path(os.environ["CLAUDE_CONFIG_DIR"]).parent == Path.home()
    assert not Path(os.environ["CLAUDE_CONFIG_DIR"]).exists()
    assert os.environ["STENO_NOW"] == "2026-11-15T12:00:00Z"


def test_going_for_the_real_sessions_fails_the_test_and_the_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".claude" / "projects").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text("{}")
    (tmp_path / "test_trespass.py").write_text(_TRESPASSER.format(home=str(home)))
    search = os.pathsep.join((str(_ROOT), str(_ROOT / "src")))
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": search}
    environment.pop("CLAUDE_CONFIG_DIR")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest"),
            *("-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull),
            str(tmp_path / "test_trespass.py"),
        ],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed, 2 passed, 2 errors" in run.stdout
    assert run.stdout.count("TRESPASS") == 2
