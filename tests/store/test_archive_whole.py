"""What is put back from the archive is all that was kept of a file, or nothing."""

import os
from pathlib import Path
from typing import Final

import pytest
from tests.store.relocate.moving import unflushed
from tests.store.test_archive import NAME, kept_at

from steno.errors import Unreadable
from steno.store.archive import copies
from steno.store.archive.archive import Archive, RestoreResult
from steno.store.archive.file_access import archive_exists, open_transcript
from steno.store.archive.journal import JOURNAL_FILE, FrameLine, Journal, chain_digest, encode_line, read_journal

FIRST: Final = b"".join(b"line %d\n" % number for number in range(300))
LOST: Final = (
    "The data exists nowhere else: restore the archive directory from a backup, or run `steno archive --forget` to "
    "remove the session."
)


class Kept:
    """A session of several frames that is only in the archive any more."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / NAME
        self.path.write_bytes(FIRST)
        kept_at(self.path)
        self.path.unlink()
        self.entry = Archive().entry(str(self.path))
        self.journal = Path(Archive().folder_of(self.entry)) / JOURNAL_FILE
        self.lines = self.journal.read_bytes().splitlines(keepends=True)

    def without(self, *numbers: int) -> None:
        """Damage some lines of the journal, counted from 1."""
        damaged = [
            line.replace(b'"', b"'", 1) if number in numbers else line for number, line in enumerate(self.lines, 1)
        ]
        self.journal.write_bytes(b"".join(damaged))

    def restored(self) -> list[RestoreResult]:
        return Archive().restore(self.entry)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setattr(copies, "FRAME_SIZE", 1000)
    monkeypatch.setattr(os, "fsync", unflushed)
    made = Kept(tmp_path)
    # Whose folder it is, the file, three frames, and what was seen.
    assert len(made.lines) == 6
    return made


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((3,), "line 3 of index.jsonl is damaged; 0001-{name}.zst: a frame before byte 1,000 is missing"),
        ((4,), "line 4 of index.jsonl is damaged; 0001-{name}.zst: a frame before byte 2,000 is missing"),
        ((5,), "line 5 of index.jsonl is damaged"),
        ((5, 6), "line 5 of index.jsonl is damaged; line 6 of index.jsonl is damaged"),
        ((3, 4, 5, 6), "; ".join(f"line {number} of index.jsonl is damaged" for number in (3, 4, 5))),
    ],
)  # fmt: skip
def test_a_file_that_damaged_lines_leave_a_part_of_is_not_written(
    kept: Kept, numbers: tuple[int, ...], said: str
) -> None:
    kept.without(*numbers)
    reason = f"{said.format(name=NAME)}. {LOST}"
    assert kept.restored() == [RestoreResult(str(kept.path), "damaged", 0, reason)]
    assert list(kept.path.parent.iterdir()) == []


@pytest.mark.parametrize("numbers", [(), (6,)])
def test_a_file_whose_frames_are_all_named_is_written_whole(kept: Kept, numbers: tuple[int, ...]) -> None:
    kept.without(*numbers)
    assert kept.restored() == [RestoreResult(str(kept.path), "written", len(FIRST))]
    assert kept.path.read_bytes() == FIRST


def test_files_that_are_not_named_are_told_by_the_journal(kept: Kept) -> None:
    kept.without(2)
    reason = "line 2 of index.jsonl is damaged; index.jsonl refers to file 1, which it does not describe"
    assert kept.restored() == [RestoreResult(str(kept.journal), "damaged", 0, f"{reason}. {LOST}")]


def test_lines_that_are_gone_without_a_trace_are_noticed(kept: Kept) -> None:
    kept.journal.write_bytes(b"".join(kept.lines[:4] + kept.lines[5:]))
    reason = f"part of the data is missing. {LOST}"
    assert kept.restored() == [RestoreResult(str(kept.path), "damaged", 0, reason)]


def test_bytes_that_are_not_what_the_journal_says_are_not_written(kept: Kept) -> None:
    index = read_journal(str(kept.journal.parent))
    frame = index.files[1].frames[0]
    other = "0" * 64
    lie = FrameLine(frame.n, frame.offset, frame.length, frame.at, frame.packed, frame.check, other,
                chain_digest("", other))  # fmt: skip
    kept.journal.write_bytes(b"".join(kept.lines[:2]) + encode_line(lie))
    assert kept.restored()[0].state == "damaged"
    assert list(kept.path.parent.iterdir()) == []
    (failure,) = Archive().verify()
    assert failure.message == "checksum mismatch from byte 0 on"


def test_an_empty_file_is_put_back_and_its_lost_copy_is_told(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"")
    kept_at(path)
    path.unlink()
    entry = Archive().entry(str(path))
    index: Journal = Archive().journal(entry)
    assert list(Archive().verify()) == []
    Path(index.copy_path(index.files[1])).unlink()
    assert [failure.message for failure in Archive().verify()] == ["the copy is missing"]
    assert Archive().restore(entry) == [RestoreResult(str(path), "written", 0)]
    assert path.read_bytes() == b""


def test_a_path_that_is_nowhere_is_an_error_with_and_without_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAME
    said = f"cannot read {path}: no such file or directory"
    assert not archive_exists()
    with pytest.raises(Unreadable) as none:
        open_transcript(str(path))
    (tmp_path / f"x{NAME}").write_bytes(FIRST)
    kept_at(tmp_path / f"x{NAME}")
    assert archive_exists() is True
    with pytest.raises(Unreadable) as other:
        open_transcript(str(path))
    assert (str(none.value), str(other.value)) == (said, said)
    for name in ("STENO_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    # Without a home there is no archive either, and no error.
    assert archive_exists() is False
