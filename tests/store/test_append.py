"""Appending: whole lines, healed tails, strangers noticed."""

from pathlib import Path

import pytest

from steno.errors import Unwritable
from steno.store.append import Appender


def test_records_are_appended_to_a_file_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "projects" / "p" / "s.jsonl"
    with Appender(str(path)) as file:
        file.append(b"one\n")
        file.append(b"two\n")
        file.sync()
    assert path.read_bytes() == b"one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_torn_tail_stays_alone_on_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"one\ntor")
    with Appender(str(path)) as file:
        file.append(b"two\n")
    assert path.read_bytes() == b"one\ntor\ntwo\n"


def test_what_others_append_is_noticed_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with Appender(str(path)) as file:
        file.append(b"one\n")
        with path.open("ab") as other:
            other.write(b"stranger, torn")
        assert file.strangers == 0
        file.append(b"two\n")
        assert file.strangers == len(b"stranger, torn")
    assert path.read_bytes() == b"one\nstranger, torn\ntwo\n"


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unwritable, match="cannot write"):
        Appender(str(tmp_path / "file" / "s.jsonl"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_one_clear_error() -> None:
    with Appender("/dev/full") as file, pytest.raises(Unwritable, match="/dev/full"):
        file.append(b"one\n")


def test_a_file_that_was_removed_is_there_again_with_all_that_was_in_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "s.jsonl"
    with Appender(str(path)) as file:
        file.append(b"one\n" * 1_000_000)
        path.unlink()
        path.parent.rmdir()
        file.append(b"two\n")
        assert file.strangers == 0
        path.unlink()
        file.append(b"three\n")
    assert path.read_bytes() == b"one\n" * 1_000_000 + b"two\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_another_file_has_its_name_that_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with Appender(str(path)) as file:
        file.append(b"one\n")
        other = tmp_path / "other"
        other.write_bytes(b"mended one\n")
        other.replace(path)
        file.append(b"two\n")
        assert file.strangers
    assert path.read_bytes() == b"mended one\ntwo\n"
