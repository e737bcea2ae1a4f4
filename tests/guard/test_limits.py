"""All bounds of the guard in one place: nothing that it reads, follows or waits for is endless."""

from types import ModuleType
from typing import Final

import pytest

from steno.guard import (
    content_readers,
    denied_paths,
    files,
    moves,
    option_table,
    patterns,
    program_environment,
    repository,
    shell,
)
from steno.guard.confinement import (
    helper,
    helper_process,
    landlock_rules,
    launcher,
    probe,
    seatbelt,
    supervisor,
    trees,
)

_MEBI: Final = 1 << 20
_BOUNDS: Final[tuple[tuple[ModuleType, dict[str, float]], ...]] = (
    (content_readers, {"_MOST_FILES": 2000, "_MOST_PIECES": 64, "_MOST_LINKS": 40}),
    (denied_paths, {"_MOST": 200_000}),
    (files, {"_MOST_FILES": 1_000_000}),
    (moves, {"_MOST": 3}),
    (option_table, {"_LONGEST_NAME": 100}),
    (patterns, {"_MOST": 4000}),
    (program_environment, {"_MOST_NAMES": 2000, "_SECONDS": 5.0}),
    (repository, {"_LONGEST": 4096}),
    (
        shell,
        {
            "MOST_COMMANDS": 50,
            "_MOST_WORDS": 1000,
            "_MOST_BYTES": 65536,
            "_MOST_DEPTH": 40,
            "_MOST_SCRIPTS": 4,
        },
    ),
    (
        helper,
        {"_MOST_BYTES": 16 * _MEBI, "_MOST_DESCRIPTORS": 128, "_MOST_COMMANDS": 64},
    ),
    (helper_process, {"_MOST_BYTES": 16 * _MEBI, "MOST_REPLY": 65536}),
    (landlock_rules, {"_MOST_NAMES": 2000}),
    (launcher, {"_PATIENCE": 10}),
    (probe, {"_PATIENCE": 20, "_NEWEST": 99}),
    (seatbelt, {"_TRIAL_SECONDS": 10}),
    (
        supervisor,
        {"_MOST_TEXT": 4000, "_MOST_PROCESSES": 4096, "_MOST_FILE_BYTES": 4096 * _MEBI},
    ),
    (trees, {"_MOST_LINKS": 40, "_MOST_ENTRIES": 500_000}),
)


@pytest.mark.parametrize(
    ("module", "bounds"), _BOUNDS, ids=[module.__name__ for module, _ in _BOUNDS]
)
def test_bounds(module: ModuleType, bounds: dict[str, float]) -> None:
    assert {name: getattr(module, name) for name in bounds} == bounds


@pytest.mark.parametrize("part", ["a", "a=1", "<a", ">a"])
def test_a_script_has_a_bounded_number_of_words_variables_and_redirections(part: str) -> None:
    parts = [part] * (shell._MOST_WORDS - 1)
    before, after = ([], parts) if part == "a" else (parts, [])
    assert shell.read_script(" ".join([*before, "echo", *after])).trouble == ""
    too_long = shell.read_script(" ".join([part, *before, "echo", *after]))
    assert (too_long.trouble, too_long.commands) == ("it has more than 1000 words", ())
