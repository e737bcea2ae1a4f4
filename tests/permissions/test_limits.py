"""All bounds of the guard in one place: nothing that it reads, follows or waits for is endless."""

from types import ModuleType
from typing import Final

import pytest

from steno.permissions import file_permissions, git_repository, permission_rules, program_environment
from steno.permissions.sandbox import helper, landlock_rules, launcher, mechanisms, path_plan
from steno.permissions.shell import command_paths, option_effects, parser

_MEBI: Final = 1 << 20
_BOUNDS: Final[tuple[tuple[ModuleType, dict[str, float]], ...]] = (
    (command_paths, {"_MAX_FILES": 2000, "_MAX_PARTS": 64, "_MAX_LINKS": 40}),
    (file_permissions, {"_MAX_ENTRIES": 200_000}),
    (file_permissions, {"_MAX_FILES": 1_000_000}),
    (command_paths, {"_MAX_MOVES": 3}),
    (option_effects, {"_LONGEST_NAME": 100}),
    (permission_rules, {"_ALL_WORDS": 4000}),
    (program_environment, {"_MAX_SETTINGS": 2000, "_GIT_TIMEOUT": 5.0}),
    (git_repository, {"_MAX_LINE": 4096}),
    (parser, {"MAX_COMMANDS": 50, "_MAX_WORDS": 1000, "_MAX_BYTES": 65536, "_MAX_DEPTH": 40, "_MAX_NESTED_SCRIPTS": 4}),
    (helper, {"MAX_REQUEST_BYTES": 16 * _MEBI, "_MAX_DESCRIPTORS": 128, "_MAX_COMMANDS": 64}),
    (mechanisms, {"MAX_REQUEST_BYTES": 16 * _MEBI, "MAX_REPLY": 65536}),
    (landlock_rules, {"_MAX_NAMES": 2000}),
    (launcher, {"_EXIT_TIMEOUT": 10}),
    (mechanisms, {"_REPLY_TIMEOUT": 20, "_NEWEST_LANDLOCK": 99}),
    (mechanisms, {"_TEST_TIMEOUT": 10}),
    (helper, {"_MAX_MESSAGE": 4000, "_MAX_PROCESSES": 4096, "_MAX_FILE_BYTES": 4096 * _MEBI}),
    (path_plan, {"_MAX_LINKS": 40, "_MAX_ENTRIES": 500_000}),
)


@pytest.mark.parametrize(("module", "bounds"), _BOUNDS, ids=[module.__name__ for module, _ in _BOUNDS])
def test_bounds(module: ModuleType, bounds: dict[str, float]) -> None:
    assert {name: getattr(module, name) for name in bounds} == bounds


@pytest.mark.parametrize("part", ["a", "a=1", "<a", ">a"])
def test_a_script_has_a_bounded_number_of_words_variables_and_redirections(part: str) -> None:
    parts = [part] * (parser._MAX_WORDS - 1)
    before, after = ([], parts) if part == "a" else (parts, [])
    assert parser.parse_script(" ".join([*before, "echo", *after])).trouble == ""
    too_long = parser.parse_script(" ".join([part, *before, "echo", *after]))
    assert (too_long.trouble, too_long.commands) == ("more than 1000 words", ())
