"""The folders that the commands of a script may run in, and the places that its words name there."""

from pathlib import Path

import pytest

from steno.permissions.shell.command import UNKNOWN_PART, Word
from steno.permissions.shell.command_paths import RunFolders, find_run_folders
from steno.permissions.shell.parser import parse_script


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path.resolve() / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top / "c").mkdir()
    (top / "home" / "a").mkdir(parents=True)
    (top / "link").symlink_to("a/b")
    return top


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("ls", ["."]),
        ("cd a", [".", "a"]),
        ("cd -P a", [".", "a"]),
        ("cd -L -- a", [".", "a"]),
        ("cd TOP/c", [".", "c"]),
        ("cd ~", [".", "home"]),
        ("cd ~/a", [".", "home/a"]),
        ("cd '~/a'", [".", "~/a"]),
        ("cd a; cd b", [".", "a", "b", "a/b", "b/a"]),
        ("cd a; cd a", [".", "a", "a/a"]),
        ("cd link", [".", "a/b"]),
        ("cd link/..", [".", "a"]),
        ("ls && (cd c)", [".", "c"]),
        ("bash -c 'cd c'", [".", "c"]),
        ("cd TOP/a; cd TOP/c; cd TOP/a/b", [".", "a", "c", "a/b"]),
    ],
)
def test_every_order_of_moves_counts(top: Path, script: str, found: list[str]) -> None:
    reading = parse_script(script.replace("TOP", str(top)))
    folders = find_run_folders(reading, str(top), str(top / "home"))
    assert not folders.lost
    assert folders.home == str(top / "home")
    assert folders.all[0] == str(top)
    assert set(folders.all) == {str(top / name) for name in found}


@pytest.mark.parametrize(
    "script",
    [
        *("cd", "cd -", "cd -x", "cd ''", "cd a b", 'cd "$x"', "cd *", "cd -P", "pushd a", "popd"),
        *("find . -execdir ls ';'", "find . -okdir ls ';'", "for x in 1 2; do cd a; done"),
        *("cd a; cd a; cd a; cd a", "ls; pushd a", "cd a; cd -"),
    ],
)
def test_moves_that_nobody_can_follow(top: Path, script: str) -> None:
    folders = find_run_folders(parse_script(script), str(top), str(top / "home"))
    assert folders == RunFolders((str(top),), str(top / "home"), lost=True)


def test_without_a_home_a_tilde_leads_nowhere_known(top: Path) -> None:
    assert find_run_folders(parse_script("cd ~/a"), str(top), "") == RunFolders((str(top),), "", lost=True)
    assert find_run_folders(parse_script("cd a"), str(top), "").all == (str(top), str(top / "a"))


@pytest.mark.parametrize(
    ("word", "found"),
    [
        (Word("x"), ["/v/x", "/w/x"]),
        (Word("/x"), ["/x"]),
        (Word("~", tilde=True), ["/home"]),
        (Word("~/x", tilde=True), ["/home/x"]),
        (Word("~/x"), ["/v/~/x", "/w/~/x"]),
        (Word(f"x{UNKNOWN_PART}"), None),
        (Word("x", splits=True), None),
        (Word("/" + "x" * 8191), ["/" + "x" * 8191]),
        (Word("/" + "x" * 8192), None),
    ],
)
def test_a_word_names_a_place_in_each_folder(word: Word, found: list[str] | None) -> None:
    def named(folders: RunFolders) -> list[str] | None:
        places = folders.resolve(word)
        return None if places is None else [place.path for place in places]

    assert named(RunFolders(("/v", "/w"), "/home")) == found
    absolute = found is not None and len(found) == 1
    assert named(RunFolders(("/v", "/w"), "/home", lost=True)) == (found if absolute else None)
    homeless = None if word.tilde else found
    assert named(RunFolders(("/v", "/w"), "")) == homeless
