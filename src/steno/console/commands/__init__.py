"""The slash commands of the console, one module per group.

Other slash commands are commands and skills of the user and the project, which the agent runs.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.agent.config.skills import parse_invocation
from steno.sanitize.terminal import StyledLine, display_width, one_line, pad, wrap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from steno.agent.agent_session import AgentSession
    from steno.console.chat import Chat

RunCommand: TypeAlias = "Callable[[Chat, str], Awaitable[None]]"
_MAX_NAME_WIDTH: Final = 30
_COMMAND_MODULES: Final = ("configuration", "conversation", "rewind", "session_commands", "info")


class ConsoleCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A slash command of the console."""

    name: str
    help: str
    run: RunCommand
    arguments: str = ""
    """Arguments as shown in the help."""
    aliases: tuple[str, ...] = ()
    runs_anytime: bool = False
    """Whether it can run during a turn."""


def with_session(run: "Callable[[Chat, AgentSession, str], Awaitable[None]]") -> RunCommand:
    """Wrap a command so that it gets the session; it does nothing while no session is open."""

    async def run_in_session(chat: "Chat", arguments: str) -> None:
        if chat.session is not None:
            await run(chat, chat.session, arguments)

    return run_in_session


class CommandTable:
    """All slash commands of the console."""

    def __init__(self) -> None:
        self.commands: tuple[ConsoleCommand, ...] = tuple(
            command
            for module in _COMMAND_MODULES
            for command in import_module(f"steno.console.commands.{module}").COMMANDS
        )
        self._by_name = {name: command for command in self.commands for name in (command.name, *command.aliases)}

    def by_name(self, name: str) -> ConsoleCommand:
        """Return a command by name or alias."""
        return self._by_name[name]

    def parse(self, text: str) -> tuple[ConsoleCommand, str] | None:
        """Return the command and arguments of a slash command prompt; None for any other prompt."""
        invocation = parse_invocation(text)
        if invocation is None or invocation[0] not in self._by_name:
            return None
        return self._by_name[invocation[0]], invocation[1]

    def descriptions(self) -> list[tuple[str, str]]:
        """Return name and help of each command."""
        return [(command.name, command.help) for command in self.commands]


def unknown_command_message(text: str, descriptions: list[tuple[str, str]]) -> str:
    """Return an error message for an unknown slash command; empty if the text may be a path."""
    from difflib import get_close_matches

    invocation = parse_invocation(text)
    if invocation is None or os.path.lexists(f"/{invocation[0]}"):
        return ""
    names = [name for name, _ in descriptions]
    # The last part of a qualified name is enough.
    if any(name == invocation[0] or name.endswith(f":{invocation[0]}") for name in names):
        return ""
    close_matches = get_close_matches(invocation[0], names, 1)
    suggestion = f"Did you mean /{close_matches[0]}?" if close_matches else "Use /help to list commands."
    return f"Unknown command: /{invocation[0]}. {suggestion}"


def description_rows(rows: Sequence[tuple[str, str]], columns: int, style: str = "bold") -> list[StyledLine]:
    """Return names and descriptions in two columns, with descriptions wrapped."""
    name_rows = [(one_line(name), description) for name, description in rows]
    name_width = min(max((display_width(name) for name, _ in name_rows), default=0), _MAX_NAME_WIDTH, columns // 2)
    lines: list[StyledLine] = []
    for name, about in name_rows:
        parts = wrap(about, max(columns - name_width - 5, 10))
        for index, part in enumerate(parts):
            lines.append(["  ", (pad("" if index else name, name_width), style), "  ", part])
    return lines
