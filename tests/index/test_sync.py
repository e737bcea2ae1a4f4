"""A sync reads what is new, all of it and nothing else."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import WriteConfig
from tests.index.dump import dump
from tests.index.searching import prompts, write
from tests.store.test_archive import talk, with_agent

from steno.errors import Busy
from steno.index.database import IndexLocation
from steno.index.sync.batch_writer import BatchWriter
from steno.index.sync.updater import remove_gone, reset_index, sync
from steno.store import file_source
from steno.store.archive.archive import archive_all
from steno.store.file_lock import FileLock

MakeIndex = Callable[..., IndexLocation]


@pytest.fixture
def root(demo_root: Path, tmp_path: Path) -> Path:
    """Sessions that may be changed."""
    return Path(shutil.copytree(demo_root, tmp_path / "root"))


def sessions_in(root: Path) -> list[Path]:
    return sorted(root.glob("projects/*/*.jsonl"), key=lambda path: path.stat().st_size)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Every read of a session file: path, offset, length."""
    reads: list[tuple[str, int, int]] = []
    whole = file_source.FileSource.read

    def watched(self: file_source.FileSource, offset: int, length: int) -> bytes:
        data = whole(self, offset, length)
        reads.append((self.path, offset, len(data)))
        return data

    monkeypatch.setattr(file_source.FileSource, "read", watched)
    return reads


def fingerprint(home: IndexLocation) -> dict[str, tuple[int, int]]:
    """Return size and time of every file of an index."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in Path(home.folder).rglob("*")
        if not path.name.endswith("-shm")
    }


def test_a_second_sync_writes_nothing_and_opens_no_session(
    root: Path, make_index: MakeIndex, opened: list[tuple[str, int, int]]
) -> None:
    home = make_index(root)
    before = fingerprint(home)
    opened.clear()
    report = sync(home)
    assert (report.read, report.size, opened) == (0, 0, [])
    assert fingerprint(home) == before


def test_an_append_reads_only_the_tail(root: Path, make_index: MakeIndex, opened: list[tuple[str, int, int]]) -> None:
    big = sessions_in(root)[-1]
    lines = big.read_bytes().splitlines(keepends=True)
    big.write_bytes(b"".join(lines * 20 + lines[:-2]))
    home = make_index(root)
    end = big.stat().st_size
    with big.open("ab") as file:
        file.writelines(lines[-2:])
    opened.clear()
    report = sync(home)
    assert (report.read, report.size) == (1, len(b"".join(lines[-2:])))
    assert {path for path, _, _ in opened} == {str(big)}
    # The new bytes, and what tells that the old ones are still the same.
    inside = sum(length for _, offset, length in opened if offset < end)
    assert inside <= 4 * 4096
    assert sum(length for _, _, length in opened) < end / 2


def test_the_index_is_for_its_owner_only(root: Path, make_index: MakeIndex) -> None:
    home = make_index(root)
    folder = Path(home.folder)
    # What lies in a folder that nobody else may enter, nobody else can read.
    for path in (folder, folder / "words", *folder.glob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_file_that_vanishes_keeps_its_rows(root: Path, make_index: MakeIndex) -> None:
    home = make_index(root)
    before = dump(home)
    lost = sessions_in(root)[0]
    lost.unlink()
    assert sync(home).gone == 1
    after = dump(home, gone=True)
    assert after == before
    assert str(lost) not in dump(home)["files"]
    assert sync(home).gone == 0


def test_a_file_that_comes_back_is_there_again(root: Path, make_index: MakeIndex) -> None:
    home = make_index(root)
    before = dump(home)
    path = sessions_in(root)[0]
    away = path.with_suffix(".away")
    path.rename(away)
    sync(home)
    away.rename(path)
    report = sync(home)
    assert (report.gone, report.size) == (0, 0)
    assert dump(home) == before


def test_a_renamed_file_is_not_read_again(root: Path, make_index: MakeIndex) -> None:
    home = make_index(root)
    path = sessions_in(root)[-1]
    folder = path.parent.with_name("-home-ada-moved")
    folder.mkdir()
    path.rename(folder / path.name)
    report = sync(home)
    assert (report.size, report.gone) == (0, 0)
    assert dump(home) == dump(make_index(root, "fresh"))


@pytest.mark.parametrize("cut", [0, 1, 1000])
def test_a_shortened_file_is_read_anew(root: Path, make_index: MakeIndex, cut: int) -> None:
    home = make_index(root)
    path = sessions_in(root)[-1]
    os.truncate(path, path.stat().st_size - cut if cut else 0)
    sync(home)
    assert dump(home) == dump(make_index(root, "fresh"))


def test_a_replaced_file_is_read_anew(root: Path, make_index: MakeIndex) -> None:
    home = make_index(root)
    one, other = sessions_in(root)[-2:]
    one.write_bytes(other.read_bytes() + one.read_bytes())
    sync(home)
    assert dump(home) == dump(make_index(root, "fresh"))


def test_half_a_line_waits_for_its_other_half(root: Path, make_index: MakeIndex) -> None:
    path = sessions_in(root)[-1]
    whole = path.read_bytes()
    for cut in range(len(whole) - 900, len(whole), 90):
        path.write_bytes(whole[:cut])
        home = make_index(root, f"index-{cut}")
        with path.open("ab") as file:
            file.write(whole[cut:])
        sync(home)
        assert dump(home) == dump(make_index(root, f"fresh-{cut}")), cut
        shutil.rmtree(home.folder)


def test_with_workers_or_without_the_index_is_the_same(demo_root: Path, tmp_path: Path, make_index: MakeIndex) -> None:
    home = IndexLocation(str(tmp_path / "workers"), (str(demo_root),))
    sync(home, workers=2)
    assert dump(home) == dump(make_index(demo_root))


def test_two_syncs_do_not_get_into_each_others_way(root: Path, make_index: MakeIndex) -> None:
    home = make_index(root)
    with FileLock(f"{home.folder}/sync.lock"), pytest.raises(Busy):
        sync(home, wait=False)


def test_what_was_forgotten_is_read_again_but_not_what_is_gone(root: Path, make_index: MakeIndex) -> None:
    home = make_index(root)
    before = dump(home)
    sessions_in(root)[0].unlink()
    sync(home)
    reset_index(home)
    assert sync(home).read > 1
    assert dump(home, gone=True) == before


def test_several_roots_are_one_index(root: Path, demo_root: Path, tmp_path: Path) -> None:
    both = IndexLocation(str(tmp_path / "both"), (str(demo_root), str(root)))
    sync(both)
    one = IndexLocation(str(tmp_path / "one"), (str(root),))
    sync(one)
    # A copy from another machine is searched, but counts nothing.
    assert len(dump(both)["files"]) == 2 * len(dump(one)["files"])
    assert dump(both)["days"] == dump(one)["days"]


def test_words_that_are_damaged_are_made_anew(root: Path, make_index: MakeIndex) -> None:
    home = make_index(root)
    before = dump(home)
    (Path(home.folder) / "words" / "meta.json").write_text("{")
    reset_index(home)
    sync(home)
    assert dump(home) == before


def test_what_is_only_in_the_archive_is_read_from_there(config: WriteConfig, tmp_path: Path) -> None:
    folder = config(with_agent("one"), talk("two"))
    archive_all()
    whole = IndexLocation(str(tmp_path / "whole"), (str(folder),))
    sync(whole)
    # One that is there already when the others are found in the archive.
    lives = next(folder.glob("projects/*/*.jsonl"))
    others = [path for path in folder.rglob("*.jsonl") if lives.stem not in str(path)]
    begun = IndexLocation(str(tmp_path / "begun"), (str(lives),))
    sync(begun)
    begun = IndexLocation(begun.folder, (str(folder),))
    for path in others:
        path.unlink()
    sync(begun)
    assert sorted(dump(begun, gone=True)["files"]) == sorted(dump(whole)["files"])
    for path in folder.rglob("*.jsonl"):
        path.unlink()
    late = IndexLocation(str(tmp_path / "late"), (str(folder),))
    assert sync(late).read == 3
    assert sync(late).read == 0
    sync(whole)
    assert dump(late, gone=True) == dump(whole, gone=True)
    assert dump(late)["files"] == []


def test_what_is_gone_can_be_taken_out(root: Path, demo_root: Path, tmp_path: Path) -> None:
    both = IndexLocation(str(tmp_path / "both"), (str(demo_root), str(root)))
    sync(both)
    sessions_in(root)[0].unlink()
    sync(both)
    less = IndexLocation(both.folder, (str(root),))
    before = len(dump(both, gone=True)["files"])
    assert remove_gone(less) == before - len(dump(less)["files"]) > 1
    fresh = IndexLocation(str(tmp_path / "fresh"), (str(root),))
    sync(fresh)
    assert dump(less) == dump(fresh)
    assert remove_gone(less) == 0


def test_words_of_a_batch_that_was_never_finished_are_dropped_by_the_next_one(
    tmp_path: Path, make_index: Callable[..., IndexLocation], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "config"
    made = prompts("the first question", seed="first")
    write(root, made)
    home = make_index(root)
    # More of a file that is known: what is read of it again must not be there twice.
    write(root, made.user("the second question").assistant("Aye.").done())

    def cut_off(_batch: BatchWriter) -> None:
        raise OSError("cut off between the words and the tables")

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "_finish_batch", cut_off)
        with pytest.raises(OSError, match="cut off"):
            sync(home)
    write(root, prompts("the third question", seed="third"))
    sync(home)
    assert dump(home) == dump(make_index(root, "fresh"))
