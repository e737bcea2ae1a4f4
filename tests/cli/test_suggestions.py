"""Commands and values that are nearly right."""

import re

import pytest
from tests.cli.conftest import Steno

from steno.cli.main import COMMANDS


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *(("serch", "search"), ("Usage", "usage"), ("shwo", "show"), ("explroe", "explore"), ("repiar", "repair")),
        *(("diff", "compare"), ("cost", "usage"), ("find", "search"), ("fix", "repair"), ("resume", "chat")),
        *(("history", "ls"), ("backup", "archive"), ("watch", "tail"), ("statss", "usage"), ("summary", "brief")),
    ],
)
def test_a_similar_command_is_suggested(steno: Steno, name: str, command: str) -> None:
    result = steno(name, "x")
    assert result.code == 2
    assert result.err.startswith(f"steno: No such command '{name}'.")
    suggested = re.findall(r"`steno (\w+)`", result.err)
    assert suggested[0] == command
    assert set(suggested) <= set(COMMANDS)


def test_without_a_similar_command_the_help_is_named(steno: Steno) -> None:
    result = steno("xyzzy")
    assert result.code == 2
    assert "Did you mean" not in result.err
    assert "`steno --help`" in result.err


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        (["help"], ["--help"]),
        (["help", "usage"], ["usage", "--help"]),
        (["list", "--demo", "--json"], ["ls", "--demo", "--json"]),
        (["stats", "--demo", "--json"], ["usage", "--demo", "--json"]),
        (["completion", "zsh"], ["--completion", "zsh"]),
        (["version"], ["--version"]),
    ],
)
@pytest.mark.usefixtures("demo")
def test_names_from_other_programs_are_understood(steno: Steno, arguments: list[str], same: list[str]) -> None:
    result, expected = steno(*arguments), steno(*same)
    assert (result.code, result.out) == (expected.code, expected.out)
    assert result.code == 0
    assert result.out


def test_completion_without_a_shell_takes_the_one_in_use(steno: Steno, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert steno("completion").out == steno("--completion", "fish").out


def test_help_for_a_misspelt_command_suggests_one(steno: Steno) -> None:
    result = steno("help", "usgae")
    assert result.code == 2
    assert "`steno usage`" in result.err


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["usage", "--by", "mont"], "month"),
        (["export", "last", "--format", "jsn"], "json"),
        (["ls", "--colour"], "--color"),
    ],
)
def test_a_similar_value_or_option_is_suggested(steno: Steno, arguments: list[str], value: str) -> None:
    result = steno(*arguments)
    assert result.code == 2
    assert "Did you mean" in result.err
    assert value in result.err.split("Did you mean")[1]


def test_other_names_are_not_listed(steno: Steno) -> None:
    listed = steno("--help").out.split("Commands:")[1]
    assert not re.findall(r"^  (help|completion|version|list|stats) ", listed, re.MULTILINE)
