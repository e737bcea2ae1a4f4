"""The context of tool calls: directories, typed services, and state that outlives a call.

One `ToolContext` belongs to one conversation; a sub-agent has its own. A service that is None is
not available in the session, and the tool that needs it reports that.

The modules that this one imports name `ToolContext` in annotations only.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Protocol

import msgspec

from steno.tools.file_content import FileStamp, TextFormat
from steno.tools.processes import BackgroundTasks
from steno.tools.protocol import AskUser, CommandRunner, Execution

PAGE_LIFETIME_SECONDS: Final = 15 * 60.0
"""For how many seconds a page is not read again."""
_MAX_PAGES: Final = 32


class WebPage(msgspec.Struct, frozen=True):
    """The response of an address, with its text."""

    url: str
    text: str
    size: int
    code: int
    reason: str
    moved_to: str = ""


class PageCache:
    """Pages by address."""

    def __init__(self) -> None:
        self.allow_loopback = False
        """Whether pages of this machine may be read; only tests do."""
        self._pages: dict[str, tuple[float, WebPage]] = {}

    def get(self, url: str, now: float) -> WebPage | None:
        """Return a page that is still fresh at a moment of the monotonic clock."""
        for expired in [
            key for key, (fetched_at, _) in self._pages.items() if now - fetched_at >= PAGE_LIFETIME_SECONDS
        ]:
            del self._pages[expired]
        return self._pages[url][1] if url in self._pages else None

    def put(self, url: str, page: WebPage, now: float) -> None:
        """Add a page that was asked for at a moment of the monotonic clock."""
        if len(self._pages) >= _MAX_PAGES:
            del self._pages[next(iter(self._pages))]
        self._pages[url] = (now, page)


class AskModel(Protocol):
    """Asks a model one question outside of the conversation."""

    def __call__(self, system: str, question: str, /) -> Awaitable[str]:
        """Return the text of the answer."""
        ...


class SearchWeb(Protocol):
    """Searches the web."""

    def __call__(self, query: str, allowed: list[str], blocked: list[str], /) -> Awaitable[list[Any]]:
        """Return texts and `{"tool_use_id": …, "content": [{"title", "url"}]}`.

        `allowed` and `blocked` are domains; at most one of the lists has any.
        """
        ...


class RunShellLine(Protocol):
    """Runs a line of a command or skill file as a call of the shell tool, permissions included."""

    def __call__(self, line: str, /) -> Awaitable[str]:
        """Return its output, or why it failed."""
        ...


class Sandbox(Protocol):
    """Puts commands into the sandbox that the settings ask for."""

    def __call__(self, argv: list[str], *, command: str, cwd: str, outside: bool) -> list[str]:
        """Return the arguments to run instead; `outside` requests a start outside the sandbox."""
        ...


class TodoEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One item of the to-do list, as `TodoWrite` takes it."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    active_form: str = ""


class TaskStore(msgspec.Struct):
    """Where the tasks of the session are stored."""

    folder: str = ""
    """The directory with one file for each task; empty if the session has none."""
    last_number: int = 0
    """The highest number that was given to a task: deleted tasks do not free theirs."""


class PlanMode(msgspec.Struct):
    """The state of plan mode, and of the permission mode that it changes."""

    file: str | None = None
    """The file of the plan, which is the only one that may be written in plan mode."""
    permission_mode: str = ""
    """The permission mode that a tool or the user has switched to; empty for the session's."""


class OpenedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that a call has opened: a message for the model after the result of the call."""

    call: str
    name: str
    text: str
    allowed_tools: tuple[str, ...] = ()
    model: str = ""
    mentions: tuple[str, ...] = ()


class ToolContext(msgspec.Struct, kw_only=True, eq=False):
    """What tool calls of one conversation share."""

    cwd: str
    """The working directory, which shell commands change."""
    project: str
    """The directory that the session was started in."""
    session_id: str
    folder: str
    """The session's own directory, for output that is too large to record (`tool-results/`)."""
    env: dict[str, str]
    folders: tuple[str, ...] = ()
    """The working directories that a command may change to; empty for any."""

    # Services
    ask: AskUser | None = None
    """Asks the user."""
    ask_model: AskModel | None = None
    search_web: SearchWeb | None = None
    run_shell_line: RunShellLine | None = None
    runner: CommandRunner | None = None
    """Confines commands; None only where no permissions are checked."""
    sandbox: Sandbox | None = None
    before_change: Callable[[str], None] = lambda _path: None
    """Called with the absolute path of a file right before it is changed."""
    on_progress: Callable[[str, str], None] = lambda _call, _text: None
    """Called with a call's id and a piece of output while a long call runs."""
    notify: Callable[[str], None] = lambda _words: None
    """Called with text that the model should read in its next turn: a background task has ended."""
    visibility_filter: Callable[[str], Callable[[str], bool]] = lambda _folder: lambda _name: True
    """Returns for a searched directory which of the names below it may be shown."""

    # State by call
    approved_paths: dict[str, tuple[str, ...]] = {}
    """The real paths of a call's files when it was allowed, by the call's id."""
    executions: dict[str, Execution] = {}
    """How the commands of calls are run, by the call's id."""
    mcp_metadata: dict[str, dict[str, Any]] = {}
    """What MCP calls returned besides their content (`mcpMeta` of the record), by the call's id."""

    # State of the conversation
    file_stamps: dict[str, FileStamp] = {}
    """The files that were read or written here, with their state at that moment."""
    text_forms: dict[str, tuple[FileStamp, TextFormat]] = {}
    """How these files are encoded: after an edit their bytes alone may no longer tell."""
    background: BackgroundTasks = msgspec.field(default_factory=BackgroundTasks)
    """Background tasks, and commands that left something running."""
    todos: tuple[TodoEntry, ...] = ()
    tasks: TaskStore = msgspec.field(default_factory=TaskStore)
    plan: PlanMode = msgspec.field(default_factory=PlanMode)
    page_cache: PageCache = msgspec.field(default_factory=PageCache)
    opened_skills: list[OpenedSkill] = []
    """Skills whose text the model has not been given yet."""
