"""`steno mcp`: serves session history to agents over MCP on standard input and output."""

from collections.abc import Iterator
from typing import Any, Final

import click

from steno.cli.command_arguments import search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.screen import Screen, write_json
from steno.sanitize.terminal import ColourMode, StyledLine, wrap

_HELP: Final = """\
Serve your session history to agents over MCP, on standard input and output.

Offers five read-only tools: search, brief, show, files and usage. Text from sessions is returned
page by page, with secrets masked, and quoted in fenced blocks that it cannot end.

\b
Examples:
  claude mcp add steno -- steno mcp                Add to Claude Code, in this project
  claude mcp add -s user steno -- steno mcp        Add to Claude Code, in all projects
  claude mcp add steno -- steno mcp --project .    Serve only sessions of this project
  steno mcp --tools                                Describe the tools

The agent starts and stops the server. Needs the extra `mcp`; if the extra is not
installed, the command prints how to install it.
"""
_PARAMETER_INDENT: Final = 4


@click.command("mcp", help=_HELP, short_help="Serve your session history to agents over MCP.")
@click.option("--tools", is_flag=True, help="Describe the tools and their parameters")
@click.option("--project", metavar="P", default="", help="Filter by project path; `.` is the current directory")
@add_options(ROOT_OPTIONS, JSON)
@WIDTH
@add_options(COLOR)
def command(
    root: tuple[str, ...], color: ColourMode, width: int | None, project: str, *, demo: bool, tools: bool, as_json: bool
) -> None:
    """Serve until the client disconnects, or describe the tools."""
    from steno.mcp_server.server import serve, tool_descriptions
    from steno.mcp_server.tool_io import SessionAccess

    if not tools:
        if as_json:
            raise click.UsageError("--json requires --tools")
        serve(SessionAccess(search_roots(root, demo=demo), project))
    elif as_json:
        write_json(tool_descriptions())
    else:
        screen = Screen(color, width)
        screen.print_lines(_tool_lines(tool_descriptions(), screen.width))


def _tool_lines(tools: list[dict[str, Any]], columns: int) -> Iterator[StyledLine]:
    for tool in tools:
        summary, _, _ = tool["description"].partition("\n")
        yield [(tool["name"], "bold")]
        for line in wrap(summary, columns - 2):
            yield ["  ", line]
        for name, field in tool["input_schema"]["properties"].items():
            description_lines = [*wrap(field.get("description", ""), columns - 16), ""]
            yield [" " * _PARAMETER_INDENT, (f"{name:<10}  ", "cyan"), description_lines[0]]
            for line in description_lines[1:-1]:
                yield [" " * 16, line]
