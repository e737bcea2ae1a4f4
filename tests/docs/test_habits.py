"""Conventions of the repository."""

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import DOCS, ROOT, name_of, read, repository

from steno._version import __version__

TARGETS = {
    *("run", "install", "dist", "test", "check", "bench", "interop", "interop-quick", "faults", "campaign", "fuzz"),
    *("mutation", "answers", "help", "venv", "docs", "docs-site", "pins", "audit", "clean"),
}
LONGEST = 700
# Joined, so that this file does not contain the strings it searches for.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pypi", "python", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("crates", "io"),
        ("rubygems", "org"),
    )
]
INDEX = re.compile("|".join(["index" + "-url", "--find" + "-links", "--trusted" + "-host"]))
# Names of people in examples.
MADE_UP = "(?!(?:ada|bob|user|Sharedx?)\\b)"
MACHINE = re.compile(rf"(?<![\w.$}}~-])/(?:work|root|farm|Users)/{MADE_UP}[\w.]")


def project() -> dict[str, Any]:
    return tomllib.loads(read(ROOT / "pyproject.toml"))


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def offences(pattern: str | re.Pattern[str]) -> list[str]:
    """Return the lines of the repository that match a forbidden pattern."""
    return [
        f"{name_of(path)}:{number}: {line.strip()[:100]}"
        for path in repository()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if re.search(pattern, line)
    ]


@pytest.mark.parametrize("host", HOSTS)
def test_no_registry_host_is_used(host: str) -> None:
    assert offences(re.escape(host)) == []


def test_no_registry_option_is_used() -> None:
    assert offences(INDEX) == []


def test_no_path_of_one_machine_is_used() -> None:
    assert offences(MACHINE) == []


@pytest.mark.parametrize("path", ["see /work/" + "main", "'/root/" + ".cache'", "(/Users/" + "x)"])
def test_a_path_of_one_machine_is_reported(path: str) -> None:
    assert MACHINE.search(path)


def test_no_checker_is_silenced_in_place() -> None:
    silenced = re.compile("|".join(["# no" + "qa", "# type: ig" + "nore", "# pyright: ig" + "nore"]))
    assert [line for line in offences(silenced) if line.startswith(("src/", "tests/", "tools/"))] == []


def test_modules_are_short_enough_to_read() -> None:
    lengths = {name_of(p): read(p).count("\n") for p in (ROOT / "src").rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_every_module_has_a_docstring() -> None:
    mute = [
        name_of(path)
        for folder in ("src", "tests", "tools", "bench")
        for path in (ROOT / folder).rglob("*.py")
        if read(path).strip() and not re.match(r'(?:#!.*\n)?r?"""\S', read(path))
    ]
    assert mute == []


def test_the_makefile_has_the_documented_targets_with_help() -> None:
    helped = re.findall(r"^([a-z-]+):.*?## \S", read(ROOT / "Makefile"), re.MULTILINE)
    assert set(helped) == TARGETS


def test_the_check_for_every_change_can_be_run() -> None:
    script = ROOT / ".ci" / "run"
    assert read(script).startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in read(script)
    if os.name == "posix":
        assert script.stat().st_mode & stat.S_IXUSR


def test_the_readme_lists_the_supported_python_versions() -> None:
    claimed = [
        each.rpartition(" ")[2] for each in project()["project"]["classifiers"] if re.search(r":: 3\.\d+$", each)
    ]
    readme = read(ROOT / "README.md")
    assert claimed
    assert f"Python {claimed[0]} to {claimed[-1]}" in readme


def test_the_changelog_has_this_version() -> None:
    assert f"## [{__version__.partition('.dev')[0]}]" in read(ROOT / "CHANGELOG.md")


def test_the_licence_matches_the_package_metadata() -> None:
    text = read(ROOT / "LICENSE")
    assert project()["project"]["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_decisions_are_numbered_without_gaps_and_have_all_sections() -> None:
    decisions = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [path.name[:4] for path in decisions] == [f"{n + 1:04}" for n in range(len(decisions))]
    for path in decisions:
        for heading in ("## Context", "## Decision", "## Consequences"):
            assert heading in read(path), f"{path.name} lacks {heading}"
