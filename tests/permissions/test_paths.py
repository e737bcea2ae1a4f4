"""Paths: resolved first, then compared by parts."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steno.permissions.paths import ResolvedPath, fold_name, holds_protected, is_inside, relative_parts, why_protected

_NAME = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8)
_PART = st.one_of(_NAME, st.sampled_from(["..", ".", "a", "b", "proj", "link", "out", "loop"]))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "proj" / "a" / "b").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "proj-evil").mkdir()
    (tmp_path / "proj" / "link").symlink_to(tmp_path / "out")
    (tmp_path / "proj" / "loop").symlink_to("loop")
    (tmp_path / "proj" / "a" / "up").symlink_to("../..")
    return tmp_path


@given(parts=st.lists(_PART, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_inside_is_where_the_system_says_it_is(tree: Path, parts: list[str]) -> None:
    project = str(tree / "proj")
    place = ResolvedPath.of("/".join(parts) or ".", project)
    if is_inside(place, (project,)):
        real = os.path.realpath(Path(project, *parts) if parts else project)
        assert os.path.commonpath([real, project]) == project
        # And what the kernel opens is there as well.
        if Path(place.real).exists():
            assert os.path.realpath(place.real) == place.real


@given(name=_NAME)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_folder_whose_name_only_begins_alike_is_outside(tree: Path, name: str) -> None:
    project = str(tree / "proj")
    assert not is_inside(ResolvedPath.of(f"{project}{name.strip('.') or 'x'}/x"), (project,))


@given(path=st.text(max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_makes_it_fail(tree: Path, path: str) -> None:
    place = ResolvedPath.of(path, str(tree))
    why_protected(place)
    is_inside(place, (str(tree),))
    holds_protected(place, (str(tree),))


@given(name=st.text(max_size=12))
def test_folding_twice_is_folding_once(name: str) -> None:
    assert fold_name(fold_name(name)) == fold_name(name)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000, "loop", "loop/x"])
def test_what_is_no_path_is_not_inside_or_harmless(tree: Path, path: str) -> None:
    place = ResolvedPath.of(path, str(tree / "proj"))
    assert place.broken or is_inside(place, (str(tree / "proj"),))


def test_links_and_dots_are_followed_as_the_system_does(tree: Path) -> None:
    project = tree / "proj"
    assert not is_inside(ResolvedPath.of("link/x", str(project)), (str(project),))
    assert not is_inside(ResolvedPath.of("link/../proj-evil", str(project)), (str(project),))
    assert not is_inside(ResolvedPath.of("a/up/out", str(project)), (str(project),))
    assert is_inside(ResolvedPath.of("a/up/proj/a", str(project)), (str(project),))
    assert is_inside(ResolvedPath.of("a/new/file", str(project)), (str(project),))


def test_names_that_some_file_systems_take_for_one_another_fold_together() -> None:
    assert fold_name("E\u0301x") == fold_name("\u00e9X") == fold_name("\u00c9x")
    assert fold_name(".g\u200cit") == fold_name(".GIT") == ".git"


def test_parts_are_compared_whole() -> None:
    assert relative_parts(("a", "bc"), ("a", "b")) is None
    assert relative_parts(("a", "b", "c"), ("a", "b")) == ("c",)
    assert relative_parts(("a",), ("a",)) == ()


def test_a_folder_that_holds_a_repository_is_not_lightly_removed(tree: Path) -> None:
    (tree / "proj" / "a" / ".git").mkdir()
    folders = (str(tree / "proj"),)
    assert holds_protected(ResolvedPath.of(str(tree / "proj" / "a")), folders)
    assert holds_protected(ResolvedPath.of(str(tree)), folders)
    assert not holds_protected(ResolvedPath.of(str(tree / "proj" / "a" / "b")), folders)


def test_without_a_home_or_a_working_folder_places_are_still_judged(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR", "STENO_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    gone = tree / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert why_protected(ResolvedPath.of(str(tree / ".git" / "config")))
    assert not why_protected(ResolvedPath.of(str(tree / "proj" / "x")))
    monkeypatch.chdir(tree)
