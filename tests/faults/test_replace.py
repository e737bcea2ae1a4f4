"""Killed or refused at every single step, an exchange leaves the whole old file or the whole new."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.steps import NAME, NEW, OLD, operate

import steno
from steno.store.replace import undo

ROOT = Path(__file__).parent.parent.parent
OPERATIONS = ("swap", "undo", "keep_new")
KILLS = ("kill", "half")
FAILURES = ("ENOSPC", "EFBIG", "EIO", "EROFS")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
thorough = pytest.mark.faults


def strike(operation: str, kind: str, folder: Path) -> list[tuple[Path, str, str]]:
    """Run the thing with a fault at every step; return folder, end and step of each try."""
    places = [str(ROOT), str(Path(steno.__file__).parent.parent)]
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "faults" / "steps.py", operation, kind, folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    tries = [line.split() for line in ran.stdout.splitlines()]
    return [(folder / number, ended, step) for number, ended, step in tries]


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def check_whole(operation: str, folder: Path, step: str) -> None:
    """Whatever happened, the file is whole, and neither the old nor the new one is lost."""
    files = contents(folder)
    there = files.get(NAME)
    if operation.startswith("keep_new"):
        assert there in (None, NEW), step
        return
    assert there in (OLD, NEW), step
    kept = {data for name, data in files.items() if not name.endswith("steno-tmp")}
    assert OLD in kept, step
    if operation.startswith("undo"):
        assert NEW in kept, step


def check_second_try(operation: str, folder: Path, step: str) -> None:
    """Doing it again succeeds where it had not been done; where it had, it can be undone."""
    path = folder / NAME
    if operation.startswith("keep_new"):
        if not path.exists():
            operate("keep_new", str(path))
        assert path.read_bytes() == NEW, step
    elif path.read_bytes() == NEW:
        undo(str(path))
        assert path.read_bytes() == OLD, step
    elif operation.startswith("swap"):
        operate("swap", str(path))
        assert path.read_bytes() == NEW, step
        assert not [name for name in contents(folder) if name.endswith("steno-tmp")], step


def check_kills(operation: str, kind: str, folder: Path) -> None:
    tries = strike(operation, kind, folder)
    assert tries[-1][1:] == ("done", "-")
    for place, ended, step in tries[:-1]:
        assert ended == "killed"
        check_whole(operation, place, step)
        left = [name for name in contents(place) if name.endswith("steno-tmp")]
        assert len(left) <= 2, step
        check_second_try(operation, place, step)
    struck = Counter(step for _, _, step in tries)
    assert struck["fsync"] >= 1
    assert struck["replace"] >= (not operation.startswith("keep_new"))
    assert len(tries) > 5


@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_at_any_step_the_file_is_whole(tmp_path: Path, operation: str) -> None:
    check_kills(operation, "kill", tmp_path)


@thorough
@pytest.mark.parametrize("kind", KILLS)
@pytest.mark.parametrize("links", ["", "-without-links"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_at_any_step_or_in_any_write_with_or_without_links(
    tmp_path: Path, operation: str, links: str, kind: str
) -> None:
    check_kills(operation + links, kind, tmp_path)


def check_failures(operation: str, kind: str, folder: Path) -> None:
    tries = strike(operation, kind, folder)
    assert tries[-1][1:] == ("done", "-")
    for place, ended, step in tries[:-1]:
        # What only tidies up may fail unseen; everything else is told.
        assert ended in ("refused", "done"), step
        check_whole(operation, place, step)
        left = [name for name in contents(place) if name.endswith("steno-tmp")]
        assert not left or step == "unlink", step
        if ended == "done":
            assert step in ("unlink", "fsync", "link"), step
            assert (place / NAME).read_bytes() == (OLD if operation.startswith("undo") else NEW)


def test_a_disk_that_fills_up_at_any_step_leaves_the_file_whole(tmp_path: Path) -> None:
    check_failures("swap", "ENOSPC", tmp_path)


@thorough
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("links", ["", "-without-links"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_any_step_may_fail_in_any_way(tmp_path: Path, operation: str, links: str, kind: str) -> None:
    check_failures(operation + links, kind, tmp_path)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_short_write_at_any_step_changes_nothing(tmp_path: Path, operation: str) -> None:
    for place, ended, step in strike(operation, "short", tmp_path):
        assert ended == "done", step
        assert (place / NAME).read_bytes() == (OLD if operation == "undo" else NEW), step


@thorough
def test_a_limit_on_the_size_of_files_leaves_the_file_whole(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from tests.faults.steps import operate;"
        "from steno.errors import Unwritable\n"
        "for limit in range(0, 20300, 997):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))\n"
        "    try: operate('swap', sys.argv[1])\n"
        "    except Unwritable: continue\n"
        "    sys.exit(f'{limit} bytes were enough')\n"
    )
    path = tmp_path / NAME
    path.write_bytes(OLD)
    places = [str(ROOT), str(Path(steno.__file__).parent.parent)]
    subprocess.run(
        [sys.executable, "-c", code, path], env={**os.environ, "PYTHONPATH": os.pathsep.join(places)}, check=True
    )
    assert contents(tmp_path) == {NAME: OLD}
