"""Write the command-line reference from the commands: `docs/reference/cli.md`.

python -m tools.make_cli_docs            write the page
python -m tools.make_cli_docs --check    exit 1 if it is out of date
"""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click
from tools.generated_page import write_or_check

from steno.cli import main as entry

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

INTRO: Final = """\
# The command line

<!-- Generated from the commands by tools/make_cli_docs.py; do not edit. -->

All commands and options, with the text of `steno COMMAND --help`.
[Environment](environment.md) lists the environment variables.
"""

EXIT_CODES: Final = """\
## Exit codes

| code | meaning |
|---|---|
| 0 | success |
| 1 | no match, or findings |
| 2 | incorrect usage, or a name that matches several sessions |
| 3 | a file or directory cannot be read or written, or a bug in steno |

An error is one line on standard error, with an optional hint. Damage in a session file is not an error: it is shown
at its position, and reading continues after it.
"""


def group() -> click.Group:
    """Return the root command group."""
    (root,) = (value for value in vars(entry).values() if isinstance(value, click.Group))
    return root


class Found(NamedTuple):
    """A command, its full name, and its context."""

    name: str
    command: click.Command
    context: click.Context

    @property
    def options(self) -> list[click.Option]:
        """Visible options, with `--help` last."""
        params = self.command.get_params(self.context)
        options = [each for each in params if isinstance(each, click.Option)]
        return [option for option in options if not option.hidden]


def commands() -> Iterator[Found]:
    """Yield every visible command, the root first."""
    root = group()
    yield from _walk(root, click.Context(root, info_name="steno", **root.context_settings))


def _walk(command: click.Command, context: click.Context) -> Iterator[Found]:
    yield Found(context.command_path, command, context)
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if child is not None and not child.hidden:
            inner = click.Context(child, context, name, **child.context_settings)
            yield from _walk(child, inner)


def build() -> str:
    """Return the page."""
    listing = "".join(
        f"- [`{each.name}`](#{each.name.replace(' ', '-')}): {_first_line(each.command)}\n" for each in commands()
    )
    return "\n".join([INTRO, listing, *map(_section, commands()), EXIT_CODES])


def _section(found: Found) -> str:
    usage = " ".join([found.name, *found.command.collect_usage_pieces(found.context)])
    parts = [f"## {found.name}\n", f"```text\n{usage}\n```\n", _help(found.command)]
    rows = [option.get_help_record(found.context) for option in found.options]
    parts.append("| option | |\n|---|---|")
    parts += [f"| {_code(row[0])} | {_cell(row[1])} |" for row in rows if row is not None]
    return "\n".join(parts) + "\n"


def _help(command: click.Command) -> str:
    """Return the help as Markdown; a block that click must not rewrap becomes a code block."""
    text = inspect.cleandoc(command.help or "").partition("\f")[0].rstrip()
    blocks: list[str] = []
    for block in text.split("\n\n"):
        head, _, rest = block.partition("\n")
        blocks.append(f"```text\n{rest}\n```" if head.strip() == "\b" else block)
    return "\n\n".join(blocks) + "\n"


def _first_line(command: click.Command) -> str:
    return command.get_short_help_str(limit=200)


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main(arguments: list[str]) -> int:
    """Write the page, or check whether it is up to date."""
    return write_or_check(PAGE, build(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
