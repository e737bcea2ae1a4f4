"""Small files of steno's own."""

import os
from pathlib import Path

import pytest

from steno.store.atomic import read_cache, read_private, write_cache, write_private
from steno.store.environment import steno_home


def test_what_was_kept_is_had_back() -> None:
    assert read_cache("one") is None
    assert write_cache("one", b"1")
    assert write_cache("one", b"2")
    assert read_cache("one") == b"2"
    assert [path.name for path in Path(steno_home()).iterdir()] == ["one"]


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
def test_nobody_else_may_look_into_any_folder_that_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_HOME", str(tmp_path / "share" / "of" / "steno"))
    before = os.umask(0)
    try:
        assert write_cache("one", b"1")
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / "share").rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in (*made, tmp_path / "share")} == {0o700}
    assert (tmp_path / "share" / "of" / "steno" / "one").stat().st_mode & 0o777 == 0o600


def test_where_nothing_can_be_kept_nothing_is(tmp_path: Path) -> None:
    Path(steno_home()).write_text("in the way")
    assert not write_cache("one", b"1")
    assert read_cache("one") is None
    assert tmp_path.exists()


@pytest.mark.parametrize("data", [b"", b"[console]\n", b"\x89PNG\r\n", b'{"folders": {}}\n'])
def test_what_is_no_cache_is_written_as_it_is_and_never_set_aside(data: bytes) -> None:
    assert read_private("one") is None
    assert write_private("one", data)
    assert (Path(steno_home()) / "one").read_bytes() == data
    assert read_private("one") == data
    assert [path.name for path in Path(steno_home()).iterdir()] == ["one"]
