"""The one protocol of all tools: what a tool says of itself, what it gets, what it gives back."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from steno.errors import StenoError
from steno.guard.decision import Isolation

__all__ = [
    "Answer",
    "Ask",
    "CommandRunner",
    "Execution",
    "Process",
    "Spec",
    "Streams",
    "Tool",
    "ToolContext",
    "ToolFailure",
    "ToolResult",
]

Answer: TypeAlias = dict[str, Any]
Ask: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Answer | None]]
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

    async def environment(
        self, command: str, cwd: str, execution: Execution, env: dict[str, str]
    ) -> dict[str, str]:
        """Return the environment that a command gets of all there is."""
        ...

    async def start(
        self,
        argv: Sequence[str],
        *,
        command: str,
        cwd: str,
        edits: bool,
        env: dict[str, str],
        streams: Streams,
    ) -> Process:
        """Start a confined program for a command; with `edits` it may write in the working folders.

        Raises:
            StenoError: it cannot be confined; it was not run.
        """
        ...


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool says of itself."""

    name: str
    description: str
    schema: dict[str, Any]
    """The JSON schema of its input."""
    reads_only: bool = False
    """Whether a call changes nothing: such calls of one response run side by side."""
    aliases: tuple[str, ...] = ()
    """Names that other versions of the client have for it."""

    def wire(self) -> dict[str, Any]:
        """Return it as the API wants it."""
        return {"name": self.name, "description": self.description, "input_schema": self.schema}


class Tool(Protocol):
    """A tool: a spec, and a call."""

    @property
    def spec(self) -> Spec:
        """What it says of itself."""
        ...

    async def run(
        self, tool_input: dict[str, Any], context: "ToolContext", call: str
    ) -> ToolResult:
        """Do it; `call` is the id of the call.

        `ToolFailure` becomes an error that the model reads; a cancel ends it at once.
        """
        ...


class ToolContext(msgspec.Struct, kw_only=True, eq=False):
    """What a call finds around it: where it works, what was read before, whom it may ask.

    One per conversation; a sub-agent has its own. Tools keep what must outlive a call in `kept`,
    under their own name.
    """

    cwd: str
    """The working directory; `Bash` moves it."""
    project: str
    """The directory that the session was started in."""
    session_id: str
    folder: str
    """The session's own folder, for what is too big to record (`tool-results/`)."""
    env: dict[str, str]
    ask: Ask | None = None
    before_change: Callable[[str], None] = lambda _path: None
    """Called with the absolute path of a file right before it is changed."""
    progress: Callable[[str, str], None] = lambda _call, _text: None
    """Called with a call's id and a piece of output while a long call runs."""
    notify: Callable[[str], None] = lambda _words: None
    """Called with words that the model should read at its next turn: a task has ended."""
    seen: dict[str, tuple[int, int]] = {}
    """The files that were read or written here: path → (mtime in ns, size) at that moment."""
    kept: dict[str, Any] = {}
    judged: dict[str, tuple[str, ...]] = {}
    """Where the files of a call really lay when it was allowed, by the call's id."""
    executions: dict[str, Execution] = {}
    """How the commands of calls are run, by the call's id."""
    runner: CommandRunner | None = None
    """Runs commands with less than everything; None only where nobody decides about calls."""
    folders: tuple[str, ...] = ()
    """The working folders, which a command does not lead the conversation out of; none for any."""
    shown_in: Callable[[str], Callable[[str], bool]] = lambda _folder: lambda _name: True
    """Says for a folder that is searched which of the names below it may be shown."""
