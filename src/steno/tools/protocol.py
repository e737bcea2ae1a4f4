"""The tool protocol: what a tool declares (spec), receives (input, context) and returns (result).

`builtin_spec` adds the facts of `steno.format.tool_catalogue`, which other packages need too and which
may not import `tools`.
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
"""Asks the user something (`kind`, `what`); None when nobody is there to answer."""


class ToolFailure(StenoError):
    """A call that failed in a way the model should read about: its message is the result."""


class ToolResult(msgspec.Struct, frozen=True):
    """What a call came to."""

    content: str | list[dict[str, Any]]
    """What the model reads: words, or blocks of text and images."""
    detail: Any = None
    """What the session keeps beside it (`toolUseResult`), in the shape Claude Code gives it."""
    is_error: bool = False
    needs: str = ""
    """What a confined command failed for lack of: the user may let it run unconfined."""


class Execution(msgspec.Struct, frozen=True):
    """How a command is run, as decided when its call was allowed."""

    isolation: Isolation = ""
    approved: bool = True
    """Whether the user allowed this very command: git then uses its own settings."""


class Process(Protocol):
    """A process that was started: one of asyncio's, or a confined one."""

    @property
    def pid(self) -> int:
        """Its number, which is also that of its session and group."""
        ...

    @property
    def returncode(self) -> int | None:
        """How it ended: its exit code, negative for a signal; None while it runs."""
        ...

    async def wait(self) -> int:
        """Wait for its end."""
        ...


class Streams(msgspec.Struct, frozen=True):
    """The descriptors that a program is given; its input is empty."""

    stdout: int
    stderr: int
    more: tuple[int, ...] = ()
    """Further ones, which it has under the same numbers."""


class CommandRunner(Protocol):
    """Gives commands their environment, and starts those that must be confined."""

    async def environment(self, command: str, cwd: str, execution: Execution, env: dict[str, str]) -> dict[str, str]:
        """Return the environment that a command gets of all there is."""
        ...

    async def start(
        self, argv: Sequence[str], *, command: str, cwd: str, edits: bool, env: dict[str, str], streams: Streams
    ) -> Process:
        """Start a confined program for a command; with `edits` it may write in the working folders.

        Raises:
            StenoError: it cannot be confined; it was not run.
        """
        ...


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool says of itself."""

    name: str
    description: str
    schema: dict[str, Any]
    """The JSON schema of its input."""
    reads_only: bool = False
    """Whether a call changes nothing: such calls of one response run side by side."""
    aliases: tuple[str, ...] = ()
    """Names that other versions of the client have for it."""

    def to_api(self) -> dict[str, Any]:
        """Return it as the API wants it."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema}


class Tool(Protocol):
    """A tool: a spec, and a call."""

    @property
    def spec(self) -> ToolSpec:
        """What it says of itself."""
        ...

    async def run(self, tool_input: dict[str, Any], context: "ToolContext", call: str, /) -> ToolResult:
        """Do it; `call` is the id of the call.

        `ToolFailure` becomes an error that the model reads; a cancel ends it at once.
        """
        ...


_InputStruct = TypeVar("_InputStruct", bound=msgspec.Struct)


def parse_input(tool_input: dict[str, Any], input_type: type[_InputStruct]) -> _InputStruct:
    """Return a call's input as a value of that kind; numbers and switches may come as text.

    Raises:
        ToolFailure: something is missing, unknown or of another type; the words say where.
    """
    try:
        return msgspec.convert(tool_input, type=input_type, strict=False)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"The input does not fit this tool: {error}") from error


def builtin_spec(name: str, *, description: str, schema: dict[str, Any]) -> ToolSpec:
    """Return the spec of a tool.

    Raises:
        KeyError: the catalogue has no tool of that name.
    """
    facts = TOOLS[name]
    return ToolSpec(
        name=facts.name, description=description, schema=schema, reads_only=facts.reads_only, aliases=older_names(name)
    )
