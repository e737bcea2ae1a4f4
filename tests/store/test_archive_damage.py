"""An archive that was cut off, damaged or fought over: what is told, what is healed, what stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import WriteConfig
from tests.store.test_archive import NAME, bytes_of, index_of, kept_at, talk, unpacked, written

import steno
from steno.errors import NotFound, Unreadable, Unwritable
from steno.store.archive import copies
from steno.store.archive.archive import Archive, archive_all
from steno.store.archive.catalogue import Catalogue
from steno.store.archive.journal import JOURNAL_FILE
from steno.store.environment import CATALOGUE_PATH

FIRST = b"".join(b"first %d\n" % number for number in range(40))
MORE = b"".join(b"more %d\n" % number for number in range(40))


class Two:
    """A session that was kept, grew and was kept again; every state of its folder at hand."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / NAME
        self.path.write_bytes(FIRST)
        kept_at(self.path)
        index = index_of(self.path)
        self.journal = Path(index.folder) / JOURNAL_FILE
        self.copy = Path(index.copy_path(index.files[1]))
        self.before = (self.journal.read_bytes(), self.copy.read_bytes())
        with self.path.open("ab") as file:
            file.write(MORE)
        kept_at(self.path)
        self.after = (self.journal.read_bytes(), self.copy.read_bytes())

    def put(self, journal: bytes, copy: bytes) -> None:
        self.journal.write_bytes(journal)
        self.copy.write_bytes(copy)

    def check_healed(self) -> None:
        """The next run leaves one generation with everything in it."""
        assert list(Archive().verify()) == []
        kept_at(self.path)
        index = index_of(self.path)
        assert list(index.files) == [1]
        assert bytes_of(index, index.files[1]) == FIRST + MORE
        assert unpacked(self.copy) == FIRST + MORE
        assert self.journal.read_bytes().endswith(b"}\n")
        assert list(Archive().verify()) == []


def test_a_journal_cut_off_anywhere_is_healed(tmp_path: Path) -> None:
    two = Two(tmp_path)
    for end in range(len(two.before[0]), len(two.after[0]), 3):
        two.put(two.after[0][:end], two.after[1])
        two.check_healed()


def test_a_copy_cut_off_before_its_line_was_written_is_healed(tmp_path: Path) -> None:
    two = Two(tmp_path)
    for end in range(len(two.before[1]), len(two.after[1]), 3):
        two.put(two.before[0], two.after[1][:end])
        two.check_healed()


def test_zeros_behind_the_end_of_either_file_are_cut_off(tmp_path: Path) -> None:
    two = Two(tmp_path)
    two.put(two.before[0] + bytes(4096), two.before[1] + bytes(4096))
    two.check_healed()


def test_a_copy_shorter_than_its_lines_is_told_and_kept_anew(tmp_path: Path) -> None:
    two = Two(tmp_path)
    two.put(two.after[0], two.after[1][:-1])
    (failure,) = Archive().verify()
    assert failure.path == str(two.path)
    assert "truncated" in failure.message
    kept = kept_at(two.path)
    assert (kept.healed, kept.rewritten) == (1, 0)
    check_mended(two)


def check_mended(two: Two) -> None:
    """One generation is listed, it has everything, and the archive is content."""
    index = index_of(two.path)
    (file,) = index.generations(str(two.path))
    assert (file.number, file.generation) == (2, 1)
    assert bytes_of(index, file) == FIRST + MORE
    assert list(Archive().verify()) == []
    (entry,) = Archive().entries()
    assert (entry.number, entry.generations, entry.total) == (2, 1, len(FIRST + MORE))
    assert kept_at(two.path, full=True).changes == ()


def test_a_copy_that_is_gone_is_kept_anew(tmp_path: Path) -> None:
    two = Two(tmp_path)
    two.copy.unlink()
    (failure,) = Archive().verify()
    assert "--full" in failure.hint
    assert kept_at(two.path).healed == 1
    check_mended(two)


def test_a_copy_with_a_flipped_bit_is_kept_anew_by_a_full_comparison(tmp_path: Path) -> None:
    two = Two(tmp_path)
    flipped = bytearray(two.after[1])
    flipped[len(flipped) // 2] ^= 4
    two.put(two.after[0], bytes(flipped))
    (failure,) = Archive().verify()
    assert "--full" in failure.hint
    assert kept_at(two.path, full=True).healed == 1
    # What was kept is not thrown away.
    assert two.copy.read_bytes() == bytes(flipped)
    check_mended(two)


def test_a_damaged_copy_can_be_mended_as_often_as_it_takes(tmp_path: Path) -> None:
    two = Two(tmp_path)
    for number in (1, 2, 3):
        index = index_of(two.path)
        assert index.session_file is not None
        assert index.session_file.number == number
        Path(index.copy_path(index.session_file)).unlink()
        assert kept_at(two.path).healed == 1
        assert list(Archive().verify()) == []
    assert len(index_of(two.path).generations(str(two.path))) == 1


def test_a_mending_that_was_cut_off_hides_nothing(tmp_path: Path) -> None:
    two = Two(tmp_path)
    two.put(two.after[0], two.after[1][:-1])
    kept_at(two.path)
    lines = two.journal.read_bytes().splitlines(keepends=True)
    begun = next(at for at, line in enumerate(lines) if b'"instead":1' in line)
    two.journal.write_bytes(b"".join(lines[: begun + 1]))
    assert len(index_of(two.path).generations(str(two.path))) == 2
    kept_at(two.path)
    check_mended(two)


def test_damage_to_what_is_nowhere_else_is_told_for_ever(tmp_path: Path) -> None:
    two = Two(tmp_path)
    two.path.write_bytes(b"other\n")
    kept_at(two.path)
    two.copy.unlink()
    kept_at(two.path, full=True)
    (failure,) = Archive().verify()
    assert failure.copy == str(two.copy)
    assert "backup" in failure.hint
    two.path.unlink()
    copy = index_of(two.path).copy_path(index_of(two.path).files[2])
    Path(copy).write_bytes(b"")
    assert ["backup" in failure.hint for failure in Archive().verify()] == [True, True]


def test_a_bit_that_flips_in_the_journal_is_mended_where_nothing_is_lost(tmp_path: Path) -> None:
    two = Two(tmp_path)
    mended = 0
    for at in range(0, len(two.after[0]) - 1, 7):
        flipped = bytearray(two.after[0])
        flipped[at] ^= 1 << at % 8
        two.put(bytes(flipped), two.after[1])
        kept_at(two.path, full=True)
        index = index_of(two.path)
        assert index.session_file is not None
        assert bytes_of(index, index.session_file) == FIRST + MORE
        failures = list(Archive().verify())
        mended += not failures
        assert all("--forget" in failure.hint for failure in failures)
        for other in two.journal.parent.glob("000[2-9]*"):
            other.unlink()
    # Only a line that names a file cannot be done without.
    assert mended > len(range(0, len(two.after[0]), 7)) // 2


def test_a_bit_that_flips_in_a_copy_is_found(tmp_path: Path) -> None:
    two = Two(tmp_path)
    for at in range(len(two.after[1])):
        flipped = bytearray(two.after[1])
        flipped[at] ^= 1 << at % 8
        two.put(two.after[0], bytes(flipped))
        assert list(Archive().verify()) != [], at


def test_a_bit_that_flips_in_the_journal_is_found(tmp_path: Path) -> None:
    two = Two(tmp_path)
    # Without its last newline a journal is one that was cut off, and heals.
    for at in range(len(two.after[0]) - 1):
        flipped = bytearray(two.after[0])
        flipped[at] ^= 1 << at % 8
        two.put(bytes(flipped), two.after[1])
        assert list(Archive().verify()) != [], at


def test_behind_a_damaged_line_everything_is_kept_anew(tmp_path: Path) -> None:
    two = Two(tmp_path)
    lines = two.after[0].splitlines(keepends=True)
    frame = next(at for at, line in enumerate(lines) if b'"frame"' in line)
    lines[frame] = lines[frame].replace(b'"length"', b'"lemgth"')
    two.put(b"".join(lines), two.after[1])
    with two.path.open("ab") as file:
        file.write(b"last\n")
    assert kept_at(two.path, full=True).healed == 1
    index = index_of(two.path)
    assert bytes_of(index, index.files[2]) == FIRST + MORE + b"last\n"
    assert list(Archive().verify()) == []
    # What the damaged generation held can still be had by hand.
    assert unpacked(two.copy) == FIRST + MORE


def test_a_lost_journal_does_not_cost_the_copies(tmp_path: Path) -> None:
    two = Two(tmp_path)
    two.journal.unlink()
    kept_at(two.path)
    index = index_of(two.path)
    assert [bytes_of(index, file) for file in index.files.values()] == [FIRST + MORE]
    assert unpacked(two.copy) == FIRST + MORE
    assert index.copy_path(index.files[2]) != str(two.copy)


def test_a_damaged_frame_is_no_session_and_no_traceback(tmp_path: Path) -> None:
    two = Two(tmp_path)
    two.put(two.after[0], b"\0" * len(two.after[1]))
    two.path.unlink()
    source = Archive().source(Archive().entry(str(two.path)))
    with pytest.raises(Unreadable, match="damaged"):
        source.read(0, 10)
    assert [each.state for each in Archive().restore(Archive().entry(str(two.path)))] == ["damaged"]
    assert list(tmp_path.iterdir()) == []


def test_a_frame_that_claims_to_be_huge_is_not_believed(tmp_path: Path) -> None:
    two = Two(tmp_path)
    # A frame header with eight bytes of content size, all of them set.
    bomb = b"\x28\xb5\x2f\xfd\xe0" + b"\xfe" * 8
    two.put(two.after[0], bomb + two.after[1][len(bomb) :])
    with pytest.raises(Unreadable, match="size"):
        Archive().source(Archive().entry(str(two.path))).read(0, 10)
    assert list(Archive().verify()) != []


# The catalogue


def test_a_lost_catalogue_is_made_again(config: WriteConfig) -> None:
    path = written(config, talk())
    archive_all()
    path.unlink()
    catalogue = Path(Archive().folder) / CATALOGUE_PATH[-1]
    for damage in (b"", catalogue.read_bytes().replace(b"path", b"patj")):
        catalogue.write_bytes(damage)
        assert list(steno.sessions()) == []
        assert list(Archive().verify()) == []
        assert [each.path for each in steno.sessions()] == [str(path)]


def test_a_line_of_the_catalogue_that_was_cut_off_does_no_harm(config: WriteConfig) -> None:
    one = written(config, talk("one"))
    archive_all()
    catalogue = Path(Archive().folder) / CATALOGUE_PATH[-1]
    catalogue.write_bytes(catalogue.read_bytes()[:-9])
    two = written(config, talk("two"))
    archive_all()
    assert {entry.path for entry in Archive().entries()} == {str(one), str(two)}


def test_the_catalogue_does_not_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(FIRST)
    kept_at(path)
    archive = Archive()
    (entry,) = archive.entries()
    lines = Path(archive.folder) / CATALOGUE_PATH[-1]
    lines.write_bytes(lines.read_bytes() * 500)
    archive = Archive()
    archive.compact()
    assert lines.read_bytes().count(b"\n") == 1
    assert Archive().entries() == [entry]


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    two = Two(tmp_path)
    for each in two.journal.parent.iterdir():
        each.unlink()
    two.journal.parent.rmdir()
    (failure,) = Archive().verify()
    assert "missing" in failure.message
    archive_all((str(tmp_path),))
    assert list(Archive().verify()) == []


def test_a_catalogue_does_not_lead_out_of_the_archive(tmp_path: Path) -> None:
    two = Two(tmp_path)
    archive = Archive()
    (entry,) = archive.entries()
    lines = Catalogue(archive.folder)
    for folder in ("../../elsewhere", "..", "/x"):
        lines.add(type(entry)(str(two.path) + folder, folder=folder))
    assert Archive().entries() == [entry]


def test_a_session_that_could_never_be_read_is_no_damage(config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(config, talk())
    real = os.open

    def refuse(name: str, *arguments: int, **named: int) -> int:
        if name == str(path):
            raise PermissionError(13, "Permission denied")
        return real(name, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        summary = archive_all()
    assert [(each.kind, each.path) for each in summary.problems] == [("denied", str(path))]
    assert summary.files == 1
    assert list(Archive().verify()) == []
    assert archive_all().files == 1
    assert [entry.path for entry in Archive().entries()] == [str(path)]


# Putting back


def test_restoring_brings_back_bytes_times_and_modes(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(FIRST)
    path.chmod(0o640)
    os.utime(path, ns=(5, 1_234_567_890_123_456_789))
    kept_at(path)
    path.unlink()
    (done,) = Archive().restore(Archive().entry(str(path)))
    assert (done.path, done.state) == (str(path), "written")
    assert path.read_bytes() == FIRST
    assert path.stat().st_mtime_ns == 1_234_567_890_123_456_789
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == [NAME]


def test_restoring_never_overwrites_other_bytes(tmp_path: Path) -> None:
    two = Two(tmp_path)
    entry = Archive().entry(str(two.path))
    assert [each.state for each in Archive().restore(entry)] == ["same"]
    for other in (b"mine", FIRST + MORE.upper(), FIRST + MORE + b"x"):
        two.path.write_bytes(other)
        assert [each.state for each in Archive().restore(entry)] == ["other"]
        assert two.path.read_bytes() == other
    two.path.unlink()
    two.path.symlink_to(tmp_path / "nothing")
    assert [each.state for each in Archive().restore(entry)] == ["other"]
    assert two.path.is_symlink()


def test_an_older_generation_can_be_put_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / NAME
    for content in (FIRST, MORE):
        path.write_bytes(content)
        kept_at(path)
    entry = Archive().entry(str(path))
    (done,) = Archive().restore(entry, str(tmp_path / "there"), 1)
    assert Path(done.path).read_bytes() == FIRST
    assert Path(done.path).parent == tmp_path / "there"
    with pytest.raises(NotFound, match="generation 3"):
        Archive().restore(entry, None, 3)


# Writing


def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = Two(tmp_path)
    with two.path.open("ab") as file:
        file.write(b"x" * 5000)
    (two.path.with_suffix("") / "tool-results").mkdir(parents=True)
    (two.path.with_suffix("") / "tool-results" / "one.txt").write_bytes(b"one")
    there = sorted(each.name for each in two.journal.parent.iterdir())

    real = os.write
    for room in range(3):
        writes: list[int] = []

        def full(descriptor: int, data: bytes, room: int = room, seen: list[int] = writes) -> int:
            seen.append(descriptor)
            if len(seen) > room:
                raise OSError(28, os.strerror(28))
            return real(descriptor, data)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(Unwritable, match="no space"):
                kept_at(two.path)
        assert sorted(each.name for each in two.journal.parent.iterdir()) == there
        assert (two.journal.read_bytes(), two.copy.read_bytes()) == two.after
    assert len(kept_at(two.path).changes) == 2


@pytest.mark.skipif(os.name != "posix", reason="files are told apart by their inode")
def test_a_line_is_written_only_when_its_frame_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = Two(tmp_path)
    with two.path.open("ab") as file:
        file.write(b"x" * 5000)
    monkeypatch.setattr(copies, "FRAME_SIZE", 1000)
    monkeypatch.setattr(copies, "_FRAMES_PER_COMMIT", 2)
    write, fsync = os.write, os.fsync
    steps: list[str] = []

    def note(word: str, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        names = {two.journal.stat().st_ino: "journal", two.copy.stat().st_ino: "copy"}
        if inode in names:
            steps.append(f"{word} {names[inode]}")

    def watched_write(descriptor: int, data: bytes) -> int:
        note("write", descriptor)
        return write(descriptor, data)

    def watched_fsync(descriptor: int) -> None:
        note("flush", descriptor)
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", watched_write)
        patch.setattr(os, "fsync", watched_fsync)
        kept_at(two.path)
    assert steps.count("write copy") == 5
    assert steps.count("write journal") == 3
    waiting = False
    for at, step in enumerate(steps):
        waiting = step == "write copy" or (waiting and step != "flush copy")
        if step == "write journal":
            assert not waiting, steps
            assert steps[at + 1] == "flush journal", steps


def test_one_writes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / NAME
    path.write_bytes(FIRST)
    held: list[bool] = []
    commit = copies.ArchiveWriter.commit

    def watched(self: copies.ArchiveWriter) -> None:
        with (Path(Archive().folder) / "lock").open("rb") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held.append(False)
            except BlockingIOError:
                held.append(True)
        commit(self)

    monkeypatch.setattr(copies.ArchiveWriter, "commit", watched)
    kept_at(path)
    assert held == [True]


def test_a_file_cut_short_while_it_is_read_is_told_and_the_others_are_kept(
    config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(config, talk())
    other = path.with_suffix("") / "tool-results" / "one.txt"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"one")
    real = os.pread

    def cut(descriptor: int, length: int, offset: int) -> bytes:
        return real(descriptor, length, offset) if length < 100 else b""

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", cut)
        summary = archive_all()
    assert [problem.path for problem in summary.problems] == [str(path)]
    index = index_of(path)
    assert bytes_of(index, index.latest_generations()[-1]) == b"one"
    assert archive_all().files == 1
    assert list(Archive().verify()) == []


@pytest.mark.skipif(os.name != "posix", reason="starts processes by fork")
def test_two_archivers_at_once_keep_everything_once(config: WriteConfig) -> None:
    config(*(talk(f"both-{number}") for number in range(6)))
    call = [sys.executable, "-c", "from steno.store.archive.archive import archive_all as a; a()"]
    src = str(Path(steno.__file__).parent.parent)
    env = {**os.environ, "PYTHONPATH": src}
    running = [subprocess.Popen(call, env=env) for _ in range(3)]
    assert [each.wait() for each in running] == [0, 0, 0]
    assert list(Archive().verify()) == []
    entries = Archive().entries()
    assert len(entries) == 6
    for entry in entries:
        files = Archive().journal(entry).files.values()
        assert len({file.path for file in files}) == len(files)
        assert all(file.size == Path(file.path).stat().st_size for file in files)
