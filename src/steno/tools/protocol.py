"""The tool protocol: what a tool declares (spec), receives (input, context) and returns (result).

`builtin_spec` adds the facts of `steno.format.tool_catalogue`, which lower packages need too and
which therefore cannot be defined here.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import msgspec

from steno.errors import StenoError
from steno.format.tool_catalogue import TOOLS, older_names
from steno.permissions.permission_rules import Isolation

if TYPE_CHECKING:
    from steno.tools.context import ToolContext


UserAnswer: TypeAlias = dict[str, Any]
AskUser: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[UserAnswer | None]]
"""Asks the user for a decision of a kind, with details, and returns the answer; None if no user is available."""


class ToolFailure(StenoError):
    """A failed call; the model reads the message as the tool result."""


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a tool call."""

    content: str | list[dict[str, Any]]
    """Content for the model: text, or blocks of text and images."""
    detail: Any = None
    """Structured result in the record (`toolUseResult`), in the format of Claude Code."""
    is_error: bool = False
    needs: str = ""
    """The access that a sandboxed command lacked: the user may approve a run without the sandbox."""


class Execution(msgspec.Struct, frozen=True):
    """Execution settings of a command, decided when its call was approved."""

    isolation: Isolation = ""
    approved: bool = True
    """Whether the user approved this exact command: git then uses its normal configuration."""


class Process(Protocol):
    """A started process: an asyncio process or a sandboxed one."""

    @property
    def pid(self) -> int:
        """The process ID, which is also the session and group ID."""
        ...

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        ...

    async def wait(self) -> int:
        """Wait for the process to end."""
        ...


class Streams(msgspec.Struct, frozen=True):
    """File descriptors for a program; its standard input is empty."""

    stdout: int
    stderr: int
    more: tuple[int, ...] = ()
    """Additional descriptors, inherited under the same numbers."""


class CommandRunner(Protocol):
    """Prepares the environment of commands, and starts sandboxed commands."""

    async def environment(self, command: str, cwd: str, execution: Execution, env: dict[str, str]) -> dict[str, str]:
        """Return the environment for a command, derived from `env`."""
        ...

    async def start(
        self, argv: Sequence[str], *, command: str, cwd: str, edits: bool, env: dict[str, str], streams: Streams
    ) -> Process:
        """Start a sandboxed program for a command; with `edits`, the working directories are writable.

        Raises:
            StenoError: The sandbox is not available; the command was not run.
        """
        ...


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The declaration of a tool."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON schema of the input."""
    reads_only: bool = False
    """Whether calls change nothing: such calls of one response run in parallel."""
    aliases: tuple[str, ...] = ()
    """Names of the tool in other versions of Claude Code."""

    def to_api(self) -> dict[str, Any]:
        """Return the tool definition for the Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema}


class Tool(Protocol):
    """A tool: its declaration and its implementation."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration of the tool."""
        ...

    async def run(self, tool_input: dict[str, Any], context: "ToolContext", call: str, /) -> ToolResult:
        """Run the tool; `call` is the ID of the call.

        A `ToolFailure` becomes an error result; cancelling the task stops the tool at once.
        """
        ...


_InputStruct = TypeVar("_InputStruct", bound=msgspec.Struct)


def parse_input(tool_input: dict[str, Any], input_type: type[_InputStruct]) -> _InputStruct:
    """Convert the input of a call to `input_type`; numbers and booleans may be given as text.

    Raises:
        ToolFailure: A field is missing, unknown or has the wrong type; the message names it.
    """
    try:
        return msgspec.convert(tool_input, type=input_type, strict=False)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"Invalid tool input: {error}") from error


def builtin_spec(name: str, *, description: str, schema: dict[str, Any]) -> ToolSpec:
    """Return the spec of a built-in tool.

    Raises:
        KeyError: The catalogue does not list the tool.
    """
    facts = TOOLS[name]
    return ToolSpec(
        name=facts.name, description=description, schema=schema, reads_only=facts.reads_only, aliases=older_names(name)
    )
