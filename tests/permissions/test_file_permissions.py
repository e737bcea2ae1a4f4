"""What rules keep from being read, as paths on disk."""

import os
from pathlib import Path

import pytest

from steno.permissions.file_permissions import TooManyFiles, denied_paths
from steno.permissions.permission_rules import RuleSource, parse_rules


def _denied(folder: Path, *deny: str, ask: tuple[str, ...] = (), tool: str = "Read", most: int = 1000) -> set[str]:
    cwd = str(folder)
    rules = parse_rules([RuleSource((), ask, deny)], root=cwd, cwd=cwd, home=str(folder.parent))
    found = denied_paths(rules, (cwd,), tool=tool, max_entries=most)
    return {os.path.relpath(path, os.path.realpath(cwd)) for path in found}


def _file(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("Read(.env)", {".env", "a/b/.env", "a/.ENV"}),
        ("Read(**/.env)", {".env", "a/b/.env", "a/.ENV"}),
        ("Read(./.env)", {".env"}),
        ("Read(*.pem)", {"k.pem", "a/k.pem"}),
        ("Read(**/*.pem)", {"k.pem", "a/k.pem"}),
        ("Read(./a/**)", {"a"}),
        ("Read(a/*.pem)", {"a/k.pem"}),
        ("Read(a/**/.env)", {"a/b/.env", "a/.ENV"}),
        ("Read(k.p[eo]m)", {"k.pem", "a/k.pem"}),
        ("Read(b)", {"a/b"}),
        ("Read(nothing)", set[str]()),
        ("Edit(.env)", set[str]()),
    ],
)
def test_patterns_mean_the_files_that_are_there(tmp_path: Path, rule: str, expected: set[str]) -> None:
    root = tmp_path / "proj"
    for name in (".env", "a/b/.env", "a/.ENV", "k.pem", "a/k.pem", "a/plain.txt"):
        _file(root / name)
    assert _denied(root, rule) == expected


def test_rules_that_ask_count_as_well(tmp_path: Path) -> None:
    _file(tmp_path / "proj" / "secret.txt")
    assert _denied(tmp_path / "proj", ask=("Read(secret.txt)",)) == {"secret.txt"}


def test_what_a_denied_link_leads_to_is_denied(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    _file(root / "real.txt")
    (root / ".env").symlink_to("real.txt")
    assert _denied(root, "Read(.env)") == {"real.txt"}


def test_names_that_file_systems_take_for_the_same_are_denied(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    _file(root / "cafe\u0301.txt")
    assert _denied(root, "Read(caf\u00e9.txt)") == {"cafe\u0301.txt"}


def test_too_many_files_are_not_searched_in_part(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    for number in range(12):
        _file(root / f"{number}.txt")
    assert _denied(root, "Read(.env)", most=12) == set()
    with pytest.raises(TooManyFiles):
        _denied(root, "Read(.env)", most=11)
    # An anchored path needs no search.
    assert _denied(root, "Read(./3.txt)", most=0) == {"3.txt"}


def test_the_objects_of_a_repository_are_not_searched(tmp_path: Path) -> None:
    for name in (".git/objects/k.pem", ".git/k.pem", "objects/k.pem", "x.git/objects/k.pem"):
        _file(tmp_path / "proj" / name)
    expected = {".git/k.pem", "objects/k.pem", "x.git/objects/k.pem"}
    assert _denied(tmp_path / "proj", "Read(*.pem)") == expected
