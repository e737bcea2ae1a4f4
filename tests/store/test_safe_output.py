"""A file is put where somebody said, and nowhere else."""

import os
from pathlib import Path

import pytest

from steno.errors import BadRequest, Unwritable
from steno.store.dirfd import Directory
from steno.store.safe_output import is_inside_folder, write_output_file


def test_a_new_file_is_written_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.py"
    assert write_output_file(str(target), b"x\n") == str(target)
    assert target.read_bytes() == b"x\n"
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


def test_what_is_there_is_replaced_only_by_force_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "run.sh"
    target.write_text("old")
    target.chmod(0o750)
    with pytest.raises(Unwritable, match="already exists"):
        write_output_file(str(target), b"new")
    assert target.read_text() == "old"
    write_output_file(str(target), b"new", force=True)
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("force", [True, False])
def test_no_link_is_written_through(tmp_path: Path, *, force: bool) -> None:
    real = tmp_path / "real"
    real.write_text("mine")
    for name, target in (("link", real), ("dangling", tmp_path / "nothing")):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(Unwritable, match="symbolic link"):
            write_output_file(str(tmp_path / name), b"new", force=force)
    assert real.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("force", [True, False])
def test_no_device_pipe_or_folder_is_written_to(tmp_path: Path, *, force: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "pipe", tmp_path / "folder", Path(os.devnull)):
        with pytest.raises(Unwritable, match="not a regular file"):
            write_output_file(str(path), b"new", force=force)


def test_nothing_is_written_where_sessions_are_kept_whatever_leads_there(tmp_path: Path) -> None:
    kept = tmp_path / "config" / "projects"
    kept.mkdir(parents=True)
    (tmp_path / "way").symlink_to(kept)
    never = [str(tmp_path / "config")]
    for path in (
        kept / "x.py",
        tmp_path / "config" / "x.py",
        tmp_path / "way" / "x.py",
        tmp_path / "other" / ".." / "config" / "x.py",
    ):
        with pytest.raises(Unwritable, match="inside a session directory"):
            write_output_file(str(path), b"new", protected=never)
    assert list(kept.iterdir()) == []
    # A name that only begins like it is another folder.
    (tmp_path / "configs").mkdir()
    write_output_file(str(tmp_path / "configs" / "x.py"), b"new", protected=never)


@pytest.mark.parametrize("name", ["", "a\0b", "sub/"])
def test_what_names_no_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(BadRequest):
        write_output_file(f"{tmp_path}/{name}" if name else f"{tmp_path}/", b"new")


def test_folders_are_not_made(tmp_path: Path) -> None:
    with pytest.raises(Unwritable):
        write_output_file(str(tmp_path / "no" / "x.py"), b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_at_the_last_moment_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    with Directory(str(tmp_path)) as folder, pytest.raises(FileExistsError):
        folder.add_file("a", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert not (tmp_path / "elsewhere").exists()


def test_where_there_are_no_links_a_new_file_is_still_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    with Directory(str(tmp_path)) as folder:
        folder.add_file("a", b"one")
        with pytest.raises(FileExistsError):
            folder.add_file("a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_folder_is_known_by_what_it_is_and_not_by_its_name(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (kept / "below").mkdir(parents=True)
    (tmp_path / "KEPT").symlink_to(kept)
    assert is_inside_folder(str(tmp_path / "KEPT"), str(kept))
    assert is_inside_folder(str(tmp_path / "KEPT" / "below"), str(kept))
    assert not is_inside_folder(str(tmp_path), str(kept))
    assert not is_inside_folder(str(tmp_path), str(tmp_path / "nothing"))
