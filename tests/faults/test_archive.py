"""An archiving run, killed or refused at every step, loses nothing that was kept before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.campaign.size import spread
from tests.faults.archiving import AFTER, BEFORE

import steno
from steno.store.archive.archive import Archive, archive_all
from steno.store.archive.journal import Journal

ROOT = Path(__file__).parent.parent.parent
PLACES = os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)])

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
thorough = pytest.mark.faults


def strike(kind: str, folder: Path) -> list[tuple[Path, str, str]]:
    """Run the command with a fault at every step; return home, end and step of each try."""
    ran = subprocess.run(
        [sys.executable, ROOT / "tests" / "faults" / "archiving.py", kind, folder],
        env={**os.environ, "PYTHONPATH": PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    tries = [line.split() for line in ran.stdout.splitlines()]
    return [(folder / number, ended, step) for number, ended, step in tries]


def kept(index: Journal, archive: Archive, path: Path) -> list[bytes]:
    """Return every generation of a file."""
    entry = archive.entry(index.path)
    files = index.generations(str(path))
    return [b"".join(archive.source(entry, file).chunks()) for file in files]


def check(home: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost; what is there is sound; the next run keeps the rest."""
    archive = Archive(str(home / "steno"))
    (entry,) = archive.entries()
    index = archive.journal(entry)
    for name, data in BEFORE.items():
        there = kept(index, archive, home / "config" / name)
        assert there[0].startswith(data), step
    assert list(archive.verify()) == [], step
    monkeypatch.setenv("STENO_HOME", str(home / "steno"))
    archive_all((str(home / "config"),))
    archive = Archive()
    index = archive.journal(archive.entry(entry.path))
    for name, data in AFTER.items():
        assert kept(index, archive, home / "config" / name)[-1] == data, step
    for name, data in BEFORE.items():
        there = kept(index, archive, home / "config" / name)
        assert any(each.startswith(data) for each in there), step
    assert len(kept(index, archive, Path(entry.path))) == 1, step
    assert list(archive.verify()) == [], step
    assert {path.stat().st_mode & 0o77 for path in (home / "steno").rglob("*")} == {0}, step


def test_killed_at_any_step_nothing_that_was_kept_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = strike("kill", tmp_path)
    assert tries[-1][1:] == ("done", "-")
    assert len(tries) > 25
    assert {"open", "write", "fsync"} <= {step for _, _, step in tries}
    for home, ended, step in tries[:-1]:
        assert ended == "killed", step
        check(home, step, monkeypatch)


@thorough
def test_killed_in_the_middle_of_any_write_nothing_that_was_kept_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home, _, step in spread(strike("half", tmp_path), least=6):
        check(home, step, monkeypatch)


@thorough
@pytest.mark.parametrize("kind", ["ENOSPC", "EIO", "EROFS", "EFBIG", "short"])
def test_any_step_may_fail(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for home, ended, step in spread(strike(kind, tmp_path), least=6):
        assert ended in ("done", "refused"), step
        check(home, step, monkeypatch)


@thorough
def test_a_full_disk_leaves_no_litter(tmp_path: Path) -> None:
    for home, ended, step in strike("ENOSPC", tmp_path):
        if ended == "refused" and step in ("write", "fsync"):
            archive = Archive(str(home / "steno"))
            index = archive.journal(archive.entries()[0])
            there = {path.name for path in Path(index.folder).glob("*.zst")}
            assert there == {file.copy_name for file in index.files.values()}, step
