"""What the archive says where its own files cannot be read or written."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.index.transcripts import TRANSCRIPTS

from steno.errors import StenoError, Unreadable, Unwritable
from steno.store.archive import copies
from steno.store.archive.archive import Archive, archive_all
from steno.store.archive.catalogue import Catalogue, CatalogueEntry, read_entries
from steno.store.archive.journal import encode_line, read_journal
from steno.store.discovery import discover_file
from steno.store.environment import steno_home

NAME: Final = "11111111-0000-4000-8000-000000000001.jsonl"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "projects" / "-p" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(TRANSCRIPTS["two turns"]().bytes())
    os.utime(path, (1_790_000_000, 1_790_000_000))
    return path


def _home() -> Path:
    return Path(steno_home()) / "archive"


def _refused(act: Callable[[], Any], error: type[StenoError], said: str) -> None:
    with pytest.raises(error) as refused:
        act()
    assert str(refused.value) == said


def test_a_catalogue_that_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    catalogue = Catalogue(str(tmp_path))
    _refused(catalogue.compact, Unwritable, f"cannot write {path}: no such file or directory")
    path.mkdir()
    is_folder = f"{path}: is a directory"
    _refused(lambda: Catalogue(str(tmp_path)), Unreadable, f"cannot read {is_folder}")
    _refused(lambda: catalogue.add(CatalogueEntry("/a", folder="a")), Unwritable, f"cannot write {is_folder}")
    _refused(catalogue.write, Unwritable, f"cannot write {is_folder}")
    assert [each.name for each in tmp_path.iterdir()] == ["sessions.jsonl"]


def test_a_catalogue_is_written_line_by_line_and_anew_when_most_is_old(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    catalogue = Catalogue(str(tmp_path))
    one, two = CatalogueEntry("/a", folder="a", size=1), CatalogueEntry("/b", folder="b")
    catalogue.add(one)
    catalogue.add(one)
    assert path.read_bytes() == encode_line(one)
    path.write_bytes(path.read_bytes() + b"torn")
    catalogue.add(two)
    assert path.read_bytes() == encode_line(one) + b"torn\n" + encode_line(two)
    assert path.stat().st_mode & 0o777 == 0o600
    catalogue.remove("/none")
    assert b"torn" in path.read_bytes()
    catalogue.remove("/b")
    assert path.read_bytes() == encode_line(one)
    for lines, tidied in ((201, False), (202, False), (203, True)):
        path.write_bytes(encode_line(one) * lines)
        Catalogue(str(tmp_path)).compact()
        assert (len(path.read_bytes()) == len(encode_line(one))) is tidied, lines
    assert read_entries(str(path))[0] == {"/a": one}


def test_an_archive_that_cannot_be_written_is_said_and_stays_as_it_was(session: Path) -> None:
    found = discover_file(str(session))
    _home().parent.mkdir(parents=True, exist_ok=True)
    _home().write_text("")
    _refused(lambda: Archive().keep(found), Unwritable, f"cannot write {_home()}: not a directory")
    _home().unlink()
    Archive().keep(found)
    (entry,) = Archive().entries()
    folder = Path(Archive().folder_of(entry))
    journal = folder / "index.jsonl"
    data = journal.read_bytes()
    journal.unlink()
    journal.mkdir()
    _refused(lambda: Archive().keep(found), Unwritable, f"cannot write {folder}: is a directory")
    _refused(lambda: read_journal(str(folder)), Unreadable, f"cannot read {journal}: is a directory")
    (failure,) = Archive().verify([entry])
    assert (failure.path, failure.copy) == ("", str(folder))
    assert failure.message == f"cannot read {journal}: is a directory"
    journal.rmdir()
    journal.write_bytes(data)
    assert list(Archive().verify()) == []
    (folder / "below").mkdir()
    _refused(lambda: Archive().forget(entry), Unwritable, f"cannot write {folder}: is a directory")
    # The journal goes last: it says whose the rest was.
    assert journal.exists()
    (folder / "below").rmdir()
    Archive().forget(entry)
    assert not folder.exists()
    Archive().keep(found)
    (entry,) = Archive().entries()
    for path in sorted(folder.iterdir()):
        path.unlink()
    folder.rmdir()
    Archive().forget(entry)
    assert Archive().entries() == []


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_write_that_fails_leaves_the_archive_as_it_was(
    session: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """A disk that is full at any frame, or at the journal: what was kept before still is."""
    monkeypatch.setattr(copies, "FRAME_SIZE", 300)
    archive_all((str(session.parents[2]),))
    (entry,) = Archive().entries()
    folder = Path(Archive().folder_of(entry))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    session.write_bytes(session.read_bytes() + TRANSCRIPTS["call"]().bytes()[:500])
    calls: list[int] = []
    whole = copies.write_all

    def fail(descriptor: int, data: bytes) -> None:
        calls.append(len(data))
        if len(calls) == at:
            whole(descriptor, data[:5])
            raise OSError(28, "No space left on device")
        whole(descriptor, data)

    monkeypatch.setattr(copies, "write_all", fail)
    with pytest.raises(Unwritable, match="no space left on device"):
        Archive().keep(discover_file(str(session)))
    monkeypatch.setattr(copies, "write_all", whole)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert list(Archive().verify()) == []
    made = Archive().keep(discover_file(str(session)))
    assert [(change.added, change.begun) for change in made.changes] == [(500, False)]
    assert list(Archive().verify()) == []


def test_a_long_file_is_committed_now_and_then(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed stays when a later frame fails, and the next run goes on from there."""
    monkeypatch.setattr(copies, "FRAME_SIZE", 10)
    monkeypatch.setattr(copies, "_FRAMES_PER_COMMIT", 4)
    session.write_bytes(bytes(range(65, 65 + 60)))
    whole, calls = copies.sha256, [0]

    def fail(data: bytes) -> Any:
        calls[0] += 1
        if calls[0] == 6:
            raise OSError(5, "Broken")
        return whole(data)

    monkeypatch.setattr(copies, "sha256", fail)
    with pytest.raises(Unwritable, match="broken"):
        Archive().keep(discover_file(str(session)))
    (folder,) = (_home() / "sessions").iterdir()
    index = read_journal(str(folder))
    assert [len(file.frames) for file in index.files.values()] == [4]
    assert [path.stat().st_size for path in folder.glob("*.zst")] == [index.files[1].packed]
    monkeypatch.setattr(copies, "sha256", whole)
    made = Archive().keep(discover_file(str(session)))
    assert [(change.added, change.begun) for change in made.changes] == [(20, False)]


def test_a_file_that_cannot_be_read_is_said_and_looked_at_again(session: Path) -> None:
    found = discover_file(str(session))
    session.unlink()
    made = Archive().keep(found)
    assert (made.changes, made.problems) == ((), ())
    session.mkdir()
    made = Archive().keep(found)
    assert [problem.kind for problem in made.problems] == ["unreadable"]
    assert Archive().entries() == []
    session.rmdir()
    session.write_bytes(b"now\n")
    assert Archive().keep(discover_file(str(session))).added == 4


def test_what_is_put_back_where_it_cannot_be_is_said(session: Path, tmp_path: Path) -> None:
    Archive().keep(discover_file(str(session)))
    (entry,) = Archive().entries()
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "projects" / "-p" / NAME
    _refused(
        lambda: Archive().restore(entry, str(tmp_path / "file")), Unwritable, f"cannot write {target}: not a directory"
    )
    sessions = _home() / "sessions"
    sessions.rename(_home() / "aside")
    (failure,) = Archive().verify()
    assert failure.message == "the archive directory of the session is missing"
    assert failure.hint == "Run `steno archive` to archive it again."
    sessions.write_text("")
    _refused(lambda: list(Archive().verify()), Unreadable, f"cannot read {sessions}: not a directory")
