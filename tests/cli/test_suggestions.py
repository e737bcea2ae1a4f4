"""Commands and values that are nearly right."""

import re

import pytest
from tests.builders.builder import session, text
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

from steno.agent.config.models import check_alias
from steno.cli.main import COMMANDS
from steno.errors import BadRequest, NotFound
from steno.store.session_lookup import find


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


@pytest.mark.usefixtures("demo")
def test_an_ambiguous_name_lists_id_title_project_and_date(steno: Steno) -> None:
    result = steno("show", "--demo", "the")
    assert result.code == 2
    head, *rows = result.err.splitlines()
    assert head == "steno: 'the' matches 13 sessions:"
    assert re.fullmatch(r" +785946e7  Tag the release, but do not push\. +tidegauge +\S.*07:54", rows[0])
    assert len(rows) == 8
    assert rows[-2].strip() == "and 7 more"


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize(
    "name", ["785946e8", "785946e7-0a29-43fe-8576-ac92b7a98b52", "tag the relaese, but do not push"]
)
def test_a_similar_id_or_title_is_suggested(steno: Steno, name: str) -> None:
    result = steno("show", "--demo", name)
    assert result.code == 1
    assert "Did you mean 785946e7 (Tag the release, but do not push.)?" in result.err


def test_sessions_with_equal_short_ids_are_listed_with_full_ids(steno: Steno, config: WriteConfig) -> None:
    ids = ("abcd1111-0000-4000-8000-000000000000", "abcd1111-0000-4000-8000-000000000001")
    config(*(session(seed=name, session_id=name).turn("Hi", "Ho") for name in ids))
    result = steno("show", "abcd")
    assert result.code == 2
    assert all(f" {name}  Hi " in result.err for name in ids)


def test_titles_in_suggestions_are_sanitized(config: WriteConfig) -> None:
    config(session("hostile").user("paint \x1b[31mit red\x07 now").assistant(text("ok")))
    with pytest.raises(NotFound) as missing:
        find("paint [31mit redd now")
    assert "Did you mean" in missing.value.hint
    assert not re.search(r"[\x00-\x1f]", missing.value.hint)


@pytest.mark.parametrize(("option", "view"), [("--prompt", "--as-resumed"), ("--client", "--as-resumed")])
@pytest.mark.usefixtures("demo")
def test_an_option_of_another_view_names_that_view(steno: Steno, option: str, view: str) -> None:
    result = steno("show", "--demo", "last", option, "2.1.325")
    assert result.code == 2
    assert result.err.startswith(f"steno: {option} requires {view}\n")


def test_a_search_without_sessions_names_the_next_step(steno: Steno) -> None:
    result = steno("search", "x")
    assert result.code == 1
    assert result.out.startswith("No sessions to search. Run `")
    assert result.out.endswith(" demo` to write demo sessions.\n")


@pytest.mark.parametrize(("name", "alias"), [("opsu", "opus"), ("Sonet", "sonnet"), ("hiaku[1m]", "haiku")])
def test_a_similar_model_alias_is_suggested(name: str, alias: str) -> None:
    with pytest.raises(BadRequest, match=f"unknown model '{re.escape(name)}'") as refused:
        check_alias(name)
    assert refused.value.hint == f"Did you mean {alias}?"


@pytest.mark.parametrize("name", ["claude-opus-9", "mistral", "llama3:8b", "opus", "Sonnet[1m]", "gpt", ""])
def test_other_models_are_accepted(name: str) -> None:
    check_alias(name)
