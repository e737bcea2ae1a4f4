"""The context of tool calls: directories, typed services, and state that outlives a call.

One `ToolContext` belongs to one conversation; a sub-agent has its own. A service that is None is
not available in the session, and tools that need it return an error.

The modules imported here use `ToolContext` only in annotations.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Protocol

import msgspec

from steno.tools.file_content import FileStamp, TextFormat
from steno.tools.processes import BackgroundTasks
from steno.tools.protocol import AskUser, CommandRunner, Execution

PAGE_LIFETIME_SECONDS: Final = 15 * 60.0
"""Seconds for which a fetched page is reused."""
_MAX_PAGES: Final = 32


class WebPage(msgspec.Struct, frozen=True):
    """The text and status of a fetched URL."""

    url: str
    text: str
    size: int
    code: int
    reason: str
    moved_to: str = ""


class PageCache:
    """Fetched pages by URL."""

    def __init__(self) -> None:
        self.allow_loopback = False
        """Whether pages on the local machine may be fetched; set only by tests."""
        self._pages: dict[str, tuple[float, WebPage]] = {}

    def get(self, url: str, now: float) -> WebPage | None:
        """Return the cached page if it is still fresh at `now` (monotonic clock)."""
        for expired in [
            key for key, (fetched_at, _) in self._pages.items() if now - fetched_at >= PAGE_LIFETIME_SECONDS
        ]:
            del self._pages[expired]
        return self._pages[url][1] if url in self._pages else None

    def put(self, url: str, page: WebPage, now: float) -> None:
        """Add a page that was fetched at `now` (monotonic clock)."""
        if len(self._pages) >= _MAX_PAGES:
            del self._pages[next(iter(self._pages))]
        self._pages[url] = (now, page)


class AskModel(Protocol):
    """Sends a model one question outside the conversation."""

    def __call__(self, system: str, question: str, /) -> Awaitable[str]:
        """Return the text of the response."""
        ...


class SearchWeb(Protocol):
    """Searches the web."""

    def __call__(self, query: str, allowed: list[str], blocked: list[str], /) -> Awaitable[list[Any]]:
        """Return text blocks and `{"tool_use_id": …, "content": [{"title", "url"}]}`.

        `allowed` and `blocked` are domains; at most one of the two lists is not empty.
        """
        ...


class RunShellLine(Protocol):
    """Runs a shell line of a command or skill file as a Bash call, including the permission check."""

    def __call__(self, line: str, /) -> Awaitable[str]:
        """Return the output, or the error message."""
        ...


class Sandbox(Protocol):
    """Wraps commands in the sandbox that the settings define."""

    def __call__(self, argv: list[str], *, command: str, cwd: str, outside: bool) -> list[str]:
        """Return the arguments that run `argv` in the sandbox; `outside` requests a run outside the sandbox."""
        ...


class TodoEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One item of the to-do list, as in the input of `TodoWrite`."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    active_form: str = ""


class TaskStore(msgspec.Struct):
    """The location of the session's tasks."""

    folder: str = ""
    """The directory with one file per task; empty if the session has none."""
    last_number: int = 0
    """The highest task number used so far: numbers of deleted tasks are not reused."""


class PlanMode(msgspec.Struct):
    """The state of plan mode and the requested permission mode."""

    file: str | None = None
    """The plan file, the only file that may be written in plan mode."""
    permission_mode: str = ""
    """The permission mode that a tool or the user requested; empty to keep the session's."""


class OpenedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill opened by a call: its text is sent to the model after the tool result."""

    call: str
    name: str
    text: str
    allowed_tools: tuple[str, ...] = ()
    model: str = ""
    mentions: tuple[str, ...] = ()


class ToolContext(msgspec.Struct, kw_only=True, eq=False):
    """State and services shared by the tool calls of one conversation."""

    cwd: str
    """The working directory, which `cd` in shell commands changes."""
    project: str
    """The directory that the session was started in."""
    session_id: str
    folder: str
    """The session's directory; large output is saved in its `tool-results/`."""
    env: dict[str, str]
    folders: tuple[str, ...] = ()
    """The directories that a command may change to; empty for any."""

    # Services
    ask: AskUser | None = None
    """Asks the user for an approval or an answer."""
    ask_model: AskModel | None = None
    search_web: SearchWeb | None = None
    run_shell_line: RunShellLine | None = None
    runner: CommandRunner | None = None
    """Runs sandboxed commands; None only where permissions are not checked."""
    sandbox: Sandbox | None = None
    before_change: Callable[[str], None] = lambda _path: None
    """Called with the absolute path of a file right before it is changed."""
    on_progress: Callable[[str, str], None] = lambda _call, _text: None
    """Called with the call ID and a piece of output while a long call runs."""
    notify: Callable[[str], None] = lambda _words: None
    """Called with a notification for the model's next turn, such as the end of a background task."""
    visibility_filter: Callable[[str], Callable[[str], bool]] = lambda _folder: lambda _name: True
    """Returns a predicate for the names below a searched directory, which is true for names that may be shown."""

    # State by call
    approved_paths: dict[str, tuple[str, ...]] = {}
    """Real paths of the call's files at the time of approval, by call ID."""
    executions: dict[str, Execution] = {}
    """Execution settings of the commands of a call, by call ID."""
    mcp_metadata: dict[str, dict[str, Any]] = {}
    """Metadata that MCP calls returned (`mcpMeta` of the record), by call ID."""

    # State of the conversation
    file_stamps: dict[str, FileStamp] = {}
    """Stamps of the files read or written in this conversation, by real path."""
    text_forms: dict[str, tuple[FileStamp, TextFormat]] = {}
    """Formats of the files read or written: after an edit, the bytes alone may not identify the encoding."""
    background: BackgroundTasks = msgspec.field(default_factory=BackgroundTasks)
    """Background tasks, and processes that outlive their foreground command."""
    todos: tuple[TodoEntry, ...] = ()
    tasks: TaskStore = msgspec.field(default_factory=TaskStore)
    plan: PlanMode = msgspec.field(default_factory=PlanMode)
    page_cache: PageCache = msgspec.field(default_factory=PageCache)
    opened_skills: list[OpenedSkill] = []
    """Opened skills whose text was not sent to the model yet."""
