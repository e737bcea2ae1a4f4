"""The reference documents exactly what exists."""

import re

import pytest
from tests.docs.pages import DOCS, ROOT, read
from tools.make_cli_docs import Found, commands

import steno
from steno.format.source import DAMAGE_HINTS

REFERENCE = DOCS / "reference"
ROW = re.compile(r"^\| `([\w.-]+)`", re.MULTILINE)
COMMANDS = pytest.mark.parametrize("found", list(commands()), ids=lambda found: found.name)


def section(text: str, heading: str) -> str:
    """Return the text below a second-level heading."""
    _, _, behind = text.partition(f"\n## {heading}\n")
    return behind.partition("\n## ")[0]


@COMMANDS
def test_every_command_has_help(found: Found) -> None:
    assert (found.command.help or "").strip()
    assert found.command.get_short_help_str(200).endswith(".")


@COMMANDS
def test_every_option_is_documented_and_has_help(found: Found) -> None:
    text = section(read(REFERENCE / "cli.md"), found.name)
    assert text
    for option in found.options:
        assert option.help, f"{option.opts[0]} has no help"
        for spelling in (*option.opts, *option.secondary_opts):
            assert re.search(rf"(?<![\w-]){re.escape(spelling)}(?![\w-])", text), spelling


@COMMANDS
def test_help_keeps_its_line_breaks(found: Found) -> None:
    assert "\\b" not in (found.command.help or ""), "a raw docstring keeps click from seeing the mark"


def test_every_exit_code_is_in_the_reference() -> None:
    assert set(re.findall(r"^\| (\d) \|", read(REFERENCE / "cli.md"), re.MULTILINE)) == set("0123")


def test_the_reference_lists_exactly_the_public_names() -> None:
    assert sorted(ROW.findall(read(REFERENCE / "library.md"))) == sorted(steno.__all__)


def test_every_public_name_exists() -> None:
    assert [name for name in steno.__all__ if not hasattr(steno, name)] == []


def test_the_reference_lists_exactly_the_kinds_of_damage() -> None:
    assert sorted(ROW.findall(read(REFERENCE / "damage.md"))) == sorted(DAMAGE_HINTS)


def test_every_environment_variable_is_documented() -> None:
    asked = re.compile(r"""(?:environ(?:\.get)?|getenv|env\.get|env)\s*[\[(]\s*["']([A-Z_]+)["']""")
    used: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        used |= set(asked.findall(read(file)))
    assert used
    assert used - set(ROW.findall(read(REFERENCE / "environment.md"))) == set()


def test_documented_environment_variables_are_used() -> None:
    source = "\n".join(read(file) for file in (ROOT / "src").rglob("*.py"))
    theirs = {"PAGER", "TZ"}  # read by click and by Python
    documented = set(ROW.findall(read(REFERENCE / "environment.md")))
    assert {name for name in documented - theirs if name not in source} == set()
