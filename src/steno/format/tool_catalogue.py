"""The tools of Claude Code: every fact about a tool that is needed in more than one place.

    tool_facts("KillBash").current        # 'TaskStop'
    tool_facts("Grep").icon               # 'grep'; an unknown tool has default facts

The module contains data without behaviour and is in `format`, so that every package above can read it: `session` and
`index` (subject, result, files), `report` (icons, verbs), `permissions` (which rules apply), `web`, `console` and `acp`
(display of calls), and `tools.registry`, which builds the specifications of steno's own tools. The packages implement
the behaviour: here a result is marked to be summarized as `"command"`, and `session` has the function for it.

Older names have separate rows, because their inputs differ; a row created with `_older_tool` differs from that of the
current name only in the listed fields.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

AGENT: Final = "Agent"
SHELL: Final = "Bash"
SKILL: Final = "Skill"
Kind: TypeAlias = Literal["think", "execute", "edit", "switch_mode", "search", "read", "fetch", "other"]
"""Kinds of tools in the Agent Client Protocol."""
Permission: TypeAlias = Literal["ask", "free", "read", "edit", "shell", "fetch"]
"""How calls are checked if no rule names the tool.

ask                       needs approval
free                      has no effect itself, or its own calls are checked one by one
read, edit, shell, fetch  by the path, the command or the domain
"""
FileAction: TypeAlias = Literal["", "read", "write", "replace", "replace_many", "cell", "command"]
"""Effect of a call on the file it names; `command` for a shell command, which may name any file."""
Summary: TypeAlias = Literal[
    "text", "agent", "answers", "command", "file", "files", "matches", "nothing", "page", "todos", "tools", "web_search"
]
"""How a result is summarized on one line; `text` uses its text."""
View: TypeAlias = Literal[
    "plain",
    "changes",
    "command",
    "file",
    "files",
    "listing",
    "matches",
    "message",
    "output",
    "page",
    "plan",
    "questions",
    "skill",
    "tasks",
    "todos",
    "tools",
    "web_search",
]
"""How a call and its result are displayed in full; `plain` for input and text."""


class ToolFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a tool."""

    name: str
    current: str = ""
    """Name of the tool in current versions; empty if it was never renamed."""
    kind: Kind = "other"
    icon: str = "tool"
    """Name of its icon in the web interface."""
    reads_only: bool = False
    """Whether a call changes nothing; such calls of one response run in parallel."""
    permission: Permission = "ask"
    rule_name: str = ""
    """Name under which rules are stored if both names are accepted in them."""
    subject: tuple[str, ...] = ()
    """Input fields; the first one with text is the subject of a call."""
    subject_details: tuple[str, ...] = ()
    """Input fields shown after the subject."""
    file_action: FileAction = ""
    path_field: str = "file_path"
    """Input field with the file path, for a tool with a `file_action`."""
    returns_file: bool = False
    """Whether a result is mostly the text of a file."""
    summary: Summary = "text"
    view: View = "plain"
    doing: str = ""
    """Verb in the third person: a session `edits` a file."""
    starts_agent: bool = False
    asks_user: bool = False
    """Whether it only asks the user."""
    is_awaited: bool = False
    """Whether a session with this call open is waiting for input."""
    repeatable: bool = True
    """Whether repeating the call gives the same result at little cost."""
    minor_failures: bool = False
    """Whether a failure usually means an incorrect call that is then retried."""

    @property
    def edits_files(self) -> bool:
        """Whether a call changes the file that it names."""
        return self.file_action in ("write", "replace", "replace_many", "cell")


def _older_tool(name: str, current: ToolFacts, **changes: Any) -> ToolFacts:
    return msgspec.structs.replace(current, name=name, current=current.name, **changes)


_AGENT: Final = ToolFacts(
    name=AGENT,
    kind="think",
    icon="agent",
    reads_only=True,  # so that several calls of one response run in parallel
    permission="free",
    rule_name=AGENT,
    subject=("description", "prompt"),
    summary="agent",
    starts_agent=True,
    repeatable=False,
)
_TASK_OUTPUT: Final = ToolFacts(
    name="TaskOutput",
    kind="execute",
    icon="bash",
    reads_only=True,
    permission="free",
    subject=("task_id",),
    view="output",
    minor_failures=True,
)
_TASK_STOP: Final = ToolFacts(
    name="TaskStop", kind="execute", icon="bash", permission="free", subject=("task_id", "shell_id")
)
_TOOL_ROWS: Final = (
    # Files
    ToolFacts(
        name="Glob",
        kind="search",
        icon="grep",
        reads_only=True,
        permission="read",
        subject=("pattern",),
        subject_details=("path",),
        summary="files",
        view="files",
        doing="looks for",
        minor_failures=True,
    ),
    ToolFacts(
        name="Grep",
        kind="search",
        icon="grep",
        reads_only=True,
        permission="read",
        subject=("pattern",),
        subject_details=("path", "glob", "type"),
        summary="matches",
        view="matches",
        doing="looks for",
        minor_failures=True,
    ),
    ToolFacts(
        name="Read",
        kind="read",
        icon="read",
        reads_only=True,
        permission="read",
        subject=("file_path",),
        file_action="read",
        returns_file=True,
        summary="file",
        view="file",
        doing="reads",
        minor_failures=True,
    ),
    ToolFacts(name="NotebookRead", icon="read", permission="read", returns_file=True),
    ToolFacts(name="View", returns_file=True),
    ToolFacts(
        name="Edit",
        kind="edit",
        icon="edit",
        permission="edit",
        subject=("file_path",),
        file_action="replace",
        view="changes",
        doing="edits",
        minor_failures=True,
    ),
    ToolFacts(
        name="MultiEdit",
        kind="edit",
        icon="edit",
        permission="edit",
        subject=("file_path",),
        file_action="replace_many",
        view="changes",
        doing="edits",
        minor_failures=True,
    ),
    ToolFacts(
        name="Write",
        kind="edit",
        icon="write",
        permission="edit",
        subject=("file_path",),
        file_action="write",
        view="changes",
        doing="writes",
        minor_failures=True,
    ),
    ToolFacts(
        name="NotebookEdit",
        kind="edit",
        icon="edit",
        permission="edit",
        subject=("notebook_path",),
        file_action="cell",
        path_field="notebook_path",
        view="changes",
        doing="edits",
        minor_failures=True,
    ),
    ToolFacts(
        name="LS", kind="read", icon="folder", permission="read", subject=("path",), view="listing", minor_failures=True
    ),
    ToolFacts(name="LSP", subject_details=("operation", "filePath")),
    # Commands and background tasks
    ToolFacts(
        name=SHELL,
        kind="execute",
        icon="bash",
        permission="shell",
        subject=("command",),
        file_action="command",
        summary="command",
        view="command",
        doing="runs",
    ),
    _TASK_OUTPUT,
    _older_tool("BashOutput", _TASK_OUTPUT, subject=("bash_id", "shell_id")),
    _TASK_STOP,
    _older_tool("KillShell", _TASK_STOP, subject=("shell_id",), minor_failures=True),
    _older_tool("KillBash", _TASK_STOP, subject=("shell_id",), minor_failures=True),
    ToolFacts(name="Monitor", subject=("description",)),
    # To-do lists and tasks
    ToolFacts(
        name="TodoWrite",
        kind="think",
        icon="todo",
        permission="free",
        summary="todos",
        view="todos",
        minor_failures=True,
    ),
    ToolFacts(name="TodoRead", icon="todo"),
    ToolFacts(name="TaskCreate", icon="todo", permission="free", subject=("subject",), view="tasks"),
    ToolFacts(name="TaskGet", icon="todo", reads_only=True, permission="free", subject=("taskId",), view="tasks"),
    ToolFacts(name="TaskList", icon="todo", reads_only=True, permission="free", view="tasks"),
    ToolFacts(
        name="TaskUpdate",
        icon="todo",
        permission="free",
        subject_details=("taskId", "status"),
        view="tasks",
        minor_failures=True,
    ),
    # User interaction
    ToolFacts(
        name="AskUserQuestion",
        kind="think",
        icon="help",
        reads_only=True,
        permission="free",
        summary="answers",
        view="questions",
        asks_user=True,
        is_awaited=True,
        repeatable=False,
    ),
    ToolFacts(
        name="EnterPlanMode", kind="switch_mode", reads_only=True, permission="free", view="plan", asks_user=True
    ),
    ToolFacts(
        name="ExitPlanMode",
        kind="switch_mode",
        reads_only=True,
        permission="free",
        subject=("plan",),
        view="plan",
        asks_user=True,
        is_awaited=True,
        repeatable=False,
    ),
    # The web
    ToolFacts(
        name="WebFetch",
        kind="fetch",
        icon="web",
        reads_only=True,
        permission="fetch",
        subject=("url",),
        summary="page",
        view="page",
        doing="fetches",
        minor_failures=True,
    ),
    ToolFacts(
        name="WebSearch",
        kind="fetch",
        icon="web",
        reads_only=True,
        subject=("query",),
        summary="web_search",
        view="web_search",
        doing="searches for",
        minor_failures=True,
    ),
    # Agents, skills and other tools
    _AGENT,
    _older_tool("Task", _AGENT),
    ToolFacts(name="AgentOutput", permission="free"),
    ToolFacts(name="ListAgents", permission="free"),
    ToolFacts(name="SendMessage", subject_details=("to", "summary"), view="message"),
    ToolFacts(
        name=SKILL,
        permission="free",
        rule_name=SKILL,
        subject_details=("skill", "args"),
        summary="nothing",
        view="skill",
        repeatable=False,
        minor_failures=True,
    ),
    ToolFacts(name="SlashCommand", rule_name=SKILL, subject=("command",), view="skill"),
    ToolFacts(
        name="ToolSearch",
        icon="search",
        permission="free",
        subject=("query",),
        summary="tools",
        view="tools",
        minor_failures=True,
    ),
    ToolFacts(name="StructuredOutput", permission="free"),
    # The session
    ToolFacts(name="CronCreate", subject=("cron", "prompt")),
    ToolFacts(name="ScheduleWakeup", icon="clock", subject=("reason", "prompt")),
    ToolFacts(name="EnterWorktree", subject=("name", "path")),
    ToolFacts(name="ExitWorktree", subject=("action",)),
)
TOOLS: Final[dict[str, ToolFacts]] = {row.name: row for row in _TOOL_ROWS}
"""Facts by name, in the order in which a session lists its tools."""
_NO_TOOL: Final = ToolFacts(name="")


def tool_facts(name: str) -> ToolFacts:
    """Return the facts about a tool, by any of its names."""
    return TOOLS.get(name, _NO_TOOL)


def tools_where(condition: Callable[[ToolFacts], bool]) -> tuple[str, ...]:
    """Return the names of all tools that satisfy a condition, including older names."""
    return tuple(row.name for row in _TOOL_ROWS if condition(row))


def older_names(name: str) -> tuple[str, ...]:
    """Return the older names of a tool."""
    return tools_where(lambda facts: facts.current == name)


def rule_name(name: str) -> str:
    """Return the name under which a tool's rules are stored."""
    return tool_facts(name).rule_name or name


FILE_TOOLS: Final = tools_where(lambda facts: facts.edits_files or facts.file_action == "read")
"""Tools that operate on one file."""
EDITING_TOOLS: Final = frozenset(tools_where(lambda facts: facts.edits_files))
TEXT_EDITING_TOOLS: Final = frozenset(tools_where(lambda facts: facts.edits_files and facts.file_action != "cell"))
"""Tools that change the text of a file, so that the change can be shown as a patch."""
PATH_FIELDS: Final = ("file_path", "notebook_path", "path")
"""Input fields of tools that name a file."""
AGENT_TOOLS: Final = frozenset(tools_where(lambda facts: facts.starts_agent))
ASKING_TOOLS: Final = frozenset(tools_where(lambda facts: facts.asks_user))
AWAITED_TOOLS: Final = frozenset(tools_where(lambda facts: facts.is_awaited))
