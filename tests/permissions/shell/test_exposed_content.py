"""Folders that are searched while others change them."""

from pathlib import Path

from steno.permissions.paths import ResolvedPath, why_protected, why_secret
from steno.permissions.shell.command_paths import files_below


def test_a_folder_that_vanishes_does_not_end_the_search(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text("x", encoding="utf-8")
    below = files_below(str(tmp_path))
    first = [next(below), next(below)]
    gone = Path(str(first[-1] and first[-1].path))
    gone.rename(tmp_path / "moved")
    left = [place and place.path for place in below]
    other = tmp_path / ({"a", "b"} - {gone.name}).pop()
    assert left == [str(other / f"{other.name}.txt")]


def test_what_is_neither_protected_nor_secret_has_no_reason(tmp_path: Path) -> None:
    for path in ("/dev/null", str(tmp_path / "plain.txt")):
        place = ResolvedPath.of(path)
        assert (why_protected(place), why_secret(place)) == ("", "")
