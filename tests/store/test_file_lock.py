"""A lock file with something else in its place."""

from pathlib import Path

import pytest

from steno.errors import Busy, Unwritable
from steno.store.file_lock import FileLock


@pytest.mark.parametrize("inside", [(), ("one", "two")])
def test_a_folder_in_place_of_a_lock_file_is_set_aside(tmp_path: Path, inside: tuple[str, ...]) -> None:
    path = tmp_path / "sync.lock"
    path.mkdir()
    for name in inside:
        (path / name).write_text(name)
    with FileLock(str(path)):
        assert path.is_file()
        with pytest.raises(Busy), FileLock(str(path), wait=False):
            pass
    (aside,) = tmp_path.glob("sync.lock.damaged-*")
    assert sorted(each.name for each in aside.iterdir()) == sorted(inside)


def test_a_link_to_a_folder_is_neither_followed_nor_moved(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "sync.lock"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unwritable), FileLock(str(path)):
        pass
    assert path.is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["elsewhere", "sync.lock"]
