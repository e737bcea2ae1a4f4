"""What begins with a slash and is the console's own; one module per family.

Everything else that begins so is the engine's: commands and skills of the user's and the project's.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.agent.commands import called
from steno.safe.terminal import Line, one_line, pad, width, wrap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from steno.console.talk import Talk

__all__ = ["Command", "Run", "Table", "miscalled", "rows_of"]

Run: TypeAlias = "Callable[[Talk, str], Awaitable[None]]"
_NAMES: Final = 30
_FAMILIES: Final = ("around", "conversation", "files", "sessions", "telling")


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One command."""

    name: str
    help: str
    run: Run
    takes: str = ""
    """What stands behind its name."""
    aliases: tuple[str, ...] = ()
    anytime: bool = False
    """Whether it can be done while the engine works."""


class Table:
    """Every command of the console."""

    def __init__(self) -> None:
        self.commands: tuple[Command, ...] = tuple(
            command
            for family in _FAMILIES
            for command in import_module(f"steno.console.commands.{family}").COMMANDS
        )
        self._named = {
            name: command for command in self.commands for name in (command.name, *command.aliases)
        }

    def named(self, name: str) -> Command:
        """Return a command by its name."""
        return self._named[name]

    def found(self, text: str) -> tuple[Command, str] | None:
        """Return the command that a prompt calls, and its arguments; None for any other prompt."""
        call = called(text)
        if call is None or call[0] not in self._named:
            return None
        return self._named[call[0]], call[1]

    def offers(self) -> list[tuple[str, str]]:
        """Return names with a word on each."""
        return [(command.name, command.help) for command in self.commands]


def miscalled(text: str, offers: list[tuple[str, str]]) -> str:
    """Return what to say of a call of nothing that is offered; nothing where it may be a path."""
    from difflib import get_close_matches

    call = called(text)
    if call is None or os.path.lexists(f"/{call[0]}"):
        return ""
    names = [name for name, _ in offers]
    # The last part of a name is enough.
    if any(name == call[0] or name.endswith(f":{call[0]}") for name in names):
        return ""
    near = get_close_matches(call[0], names, 1)
    meant = f"do you mean /{near[0]}?" if near else "/help lists them"
    return f"there is no command /{call[0]}; {meant}"


def rows_of(rows: Sequence[tuple[str, str]], columns: int, style: str = "bold") -> list[Line]:
    """Return names, and beside them what is said of each, on as many lines as that takes."""
    named = [(one_line(name), about) for name, about in rows]
    room = min(max((width(name) for name, _ in named), default=0), _NAMES, columns // 2)
    lines: list[Line] = []
    for name, about in named:
        parts = wrap(about, max(columns - room - 5, 10))
        for at, part in enumerate(parts):
            lines.append(["  ", (pad("" if at else name, room), style), "  ", part])
    return lines
