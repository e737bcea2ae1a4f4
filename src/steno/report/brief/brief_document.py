"""Data model of a brief.

Times are seconds since 1970; all text is unchanged from the session, except that long parameters of calls are cut.

`brief --json` writes these structs unchanged, with times as ISO 8601 text. The docstrings of the fields are the
descriptions in the published schema, `docs/reference/brief.schema.json`.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from steno.session.session_status import StatusName
from steno.session.turns.steps import StepState

Timestamp: TypeAlias = Annotated[float, Meta(extra_json_schema={"format": "date-time"})]
"""Seconds since 1970; ISO 8601 text in JSON."""
BackupChange: TypeAlias = Literal["in_turn", "before_turn", "earlier"]
"""in_turn      the file was backed up before its first change in this turn
before_turn  the file differs from its last backup: it was changed before this turn started
earlier      the change is older than the records of this session file
"""
AgentSource: TypeAlias = Literal["transcript", "progress", "result"]
"""transcript  records of the sub-agent
progress    `agent_progress` records in the session; the records of the sub-agent are missing
result      only the result of the call
"""


class AssistantText(msgspec.Struct, frozen=True, kw_only=True):
    """A text block of the model."""

    order: int = 0
    """Position among the texts and calls of the turn, from 0."""
    text: str = ""
    """Text; shortened only to fit a budget."""
    size: int = 0
    """Characters of the full text."""
    final: bool = False
    """Whether the text is part of the `answer` of the turn."""
    synthetic: bool = False
    """Whether Claude Code wrote the text instead of the model, for example an API error."""
    time: Timestamp | None = None
    """Time of the record."""
    uuid: str = ""
    """ID of the record."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call with its parameters and outcome."""

    order: int = 0
    """Position among the texts and calls of the turn, from 0."""
    id: str = ""
    """ID of the call, to which its result refers."""
    tool: str = ""
    """Tool name."""
    input: dict[str, Any] = {}
    """Parameters by name. A long value is cut; a long list or object becomes cut JSON text."""
    cut: dict[str, int] = {}
    """Parameters that were cut, with the number of characters of their full values."""
    state: StepState = "open"
    """State: `ok`, `failed`, `denied`, `interrupted`, `open` (no result), or `unknown` (the result is deleted)."""
    outcome: str = ""
    """Short description of the result."""
    seconds: float | None = None
    """Seconds from the call to its result."""
    time: Timestamp | None = None
    """Time of the call."""
    uuid: str = ""
    """ID of the record."""


class FileBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A new backup of a file by Claude Code, which shows that the file was changed."""

    path: str
    """Path, relative to the project for files inside it."""
    change: BackupChange = "in_turn"
    """Time of the change: `in_turn`, `before_turn` (since the last backup), or `earlier` than this session."""
    version: int | None = None
    """Number of the backup, if recorded."""
    backup_file: str = ""
    """File name of the backup in `file-history/<session>/`; empty if there is none."""
    existed: bool = True
    """Whether the file existed before the change."""
    size: int | None = None
    """Characters of the content, if the record contains it."""
    by_call: bool = False
    """Whether a file tool of the session changed the file."""
    time: Timestamp | None = None
    """Time of the backup."""


class ContextCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """A reduction of the context."""

    order: int = 0
    """The `order` of the text or call that follows the reduction; -1 before the prompt."""
    kind: Literal["full", "micro"] = "full"
    """`full`: the conversation was replaced by a summary; `micro`: old tool results were removed."""
    trigger: str = ""
    """`auto` or `manual`, as recorded; `api` if the API removed tool results."""
    pre_tokens: int | None = None
    """Context size before the reduction, in tokens."""
    post_tokens: int | None = None
    """Expected context size after the reduction, in tokens."""
    tokens_saved: int | None = None
    """Number of tokens removed, if recorded or if both sizes are known."""
    compacted_tool_ids: tuple[str, ...] = ()
    """IDs of the calls whose results were removed, if recorded."""
    results_removed: int | None = None
    """Number of removed tool results."""
    attachments_removed: int | None = None
    """Number of removed attachments."""
    summary: str = ""
    """Summary of a full compaction; shortened only to fit a budget."""
    time: Timestamp | None = None
    """Time of the compaction."""
    uuid: str = ""
    """ID of the record."""


class QueueOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation on the queue of prompts and notifications."""

    operation: str = ""
    """`enqueue`, `dequeue`, `remove`, `popAll` or `complete`, as recorded."""
    content: str = ""
    """Content of the record, usually present for `enqueue` only. Cut only to fit a budget."""
    size: int = 0
    """Characters of the full content."""
    reason: str = ""
    """Reason, if recorded."""
    time: Timestamp | None = None
    """Time of the operation."""


class Subagent(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent with its texts and calls."""

    agent_id: str = ""
    """ID of the sub-agent, if known."""
    call_id: str = ""
    """ID of the call that started it; empty if no call was found."""
    parent_id: str = ""
    """`agent_id` of the sub-agent that started it; empty for the session itself."""
    kind: str = ""
    """Sub-agent type."""
    task: str = ""
    """Short description in the call."""
    prompt: str = ""
    """Full prompt."""
    status: str = ""
    """`completed`, `failed`, `killed`, `running` or `unknown`."""
    background: bool = False
    """Whether it ran in the background."""
    source: AgentSource = "result"
    """Source of its texts and calls."""
    updates: int = 0
    """Number of its `agent_progress` records."""
    texts: tuple[AssistantText, ...] = ()
    """Texts in order."""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls in order."""
    report: str = ""
    """Report."""


SCHEMA_VERSION: Final = 1
"""Version of the JSON form. It is increased when a field is removed or its meaning changes."""
DecisionKind: TypeAlias = Literal["plan", "answer", "refused", "said"]
"""plan     an approved plan
answer   an answer of the user to a question of the agent
refused  a call that the user denied, and the instruction given instead
said     a sentence of the agent that states a decision
"""
OpenItemKind: TypeAlias = Literal["interrupted", "question", "todo", "tests", "error", "uncommitted", "running"]
"""interrupted  the last turn was interrupted or has no answer
question     an unanswered question of the agent
todo         an unfinished item of its to-do list
tests        the last test run failed
error        a failure without a later success
uncommitted  changed files that no commit of the session includes
running      a background sub-agent or command that has not reported
"""


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A changed file."""

    path: str
    """Path, relative to the project for files inside it."""
    edits: int = 0
    """Number of calls that changed it."""
    added: int = 0
    """Added lines."""
    removed: int = 0
    """Removed lines."""


class CommandRun(msgspec.Struct, frozen=True, kw_only=True):
    """A command with the number of its runs and its last outcome."""

    command: str
    """Command, without a leading `cd` and a trailing pipe into `tail`."""
    outcome: str = ""
    """Short description of the last result."""
    state: StepState = "ok"
    """State of the last run."""
    times: int = 1
    """Number of runs."""
    failed: int = 0
    """Number of failed runs."""
    turn: int = 0
    """Turn of the last run."""


class TestRun(msgspec.Struct, frozen=True, kw_only=True):
    """A test command with the number of its runs and the result of the last one."""

    command: str
    """Command."""
    ok: bool
    """Whether the last run passed."""
    passed: int | None = None
    """Tests that passed in the last run; null if the runner did not print it."""
    failed: int | None = None
    """Tests that failed in the last run; null if the runner did not print it."""
    times: int = 1
    """Number of runs."""
    bad: int = 0
    """Number of failed runs."""
    turn: int = 0
    """Turn of the last run."""


class SubagentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Task and report of a sub-agent."""

    kind: str
    """Sub-agent type."""
    task: str
    """Short description in the call."""
    status: str
    """`completed`, `failed`, `killed`, `running` or `unknown`."""
    steps: int = 0
    """Number of calls, including those of nested sub-agents."""
    failed: int = 0
    """Number of failed steps."""
    changed: int = 0
    """Number of changed files."""
    report: str = ""
    """Beginning of the report; `turns[].agents[].report` is complete."""
    turn: int = 0
    """Turn that started it."""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit made in the session."""

    subject: str
    """First line of the message."""
    hash: str = ""
    """Hash, as printed by git."""
    branch: str = ""
    """Branch, as printed by git."""
    files: int = 0
    """Number of files."""
    added: int = 0
    """Added lines."""
    removed: int = 0
    """Removed lines."""
    pushed: bool = False
    """Whether a later push succeeded."""
    turn: int = 0
    """Turn that made it."""


class PullRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request created in or linked to the session."""

    url: str
    """URL of the pull request."""
    title: str = ""
    """Title."""
    turn: int = 0
    """Turn that created it."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision made in the session."""

    kind: DecisionKind
    """`plan`: approved plan; `answer`: answer of the user; `refused`: denied call; `said`: stated by the agent."""
    text: str
    """Text of the decision."""
    about: str = ""
    """Question that was answered, or call that was denied."""
    turn: int = 0
    """Turn of the decision."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failure, and whether it was resolved."""

    what: str
    """Command or call that failed."""
    said: str = ""
    """Most informative line of the output."""
    times: int = 1
    """Number of failures."""
    solved: bool = False
    """Whether a later call succeeded."""
    after: tuple[str, ...] = ()
    """Files changed between the first failure and the success."""
    turn: int = 0
    """Turn of the first failure."""
    until: int = 0
    """Turn of the success."""


class OpenItem(msgspec.Struct, frozen=True, kw_only=True):
    """An open item."""

    kind: OpenItemKind
    """Kind of the item."""
    text: str
    """Text of the item."""
    about: str = ""
    """Details: the state of a to-do, the result of the tests."""
    of: int = 1
    """Number of uncommitted files, including those not listed."""
    turn: int = 0
    """Turn of the item; 0 if unknown."""


class WorkSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Work in a turn or in a session."""

    tools: dict[str, int] = {}
    """Number of calls by tool, most frequent first; sub-agents count as `Agent`."""
    files: tuple[ChangedFile, ...] = ()
    """Files changed by file tools, most changed lines first."""
    changed: int = 0
    """Total number of changed files."""
    added: int = 0
    """Added lines."""
    removed: int = 0
    """Removed lines."""
    snapshot_files: tuple[str, ...] = ()
    """Files that only Claude Code's backups show as changed, not file tools."""
    commands: tuple[CommandRun, ...] = ()
    """Commands that change something, without tests and commits."""
    looks: int = 0
    """Number of read-only commands."""
    tests: tuple[TestRun, ...] = ()
    """Commands that run tests."""
    helpers: tuple[SubagentSummary, ...] = ()
    """Summaries of sub-agents; `turns[].agents` is complete."""
    commits: tuple[Commit, ...] = ()
    """Commits made in the session."""
    pulls: tuple[PullRequest, ...] = ()
    """Pull requests created in or linked to the session."""
    decisions: tuple[Decision, ...] = ()
    """Decisions."""
    troubles: tuple[Failure, ...] = ()
    """Failures, and whether they were resolved."""
    slips: int = 0
    """Number of minor failures, such as an edit of a file that was not read before."""


class BriefTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn: the prompt, the work and the answer."""

    number: int
    """Number in the session, from 1."""
    uuid: str = ""
    """ID of the prompt record."""
    origin: str = ""
    """Origin of the prompt: `human`, `command`, `shell`, `notification`, `teammate`, `agent`, `fork`, `other`."""
    text: str = ""
    """Text of the prompt."""
    images: int = 0
    """Number of images and documents in the prompt."""
    meanwhile: tuple[str, ...] = ()
    """Prompts queued while the agent was working."""
    answer: str = ""
    """Texts after the last call; `texts` contains all texts."""
    started: Timestamp | None = None
    """Start time."""
    seconds: float | None = None
    """Duration in seconds."""
    interrupted: bool = False
    """Whether the turn was interrupted."""
    compacted: bool = False
    """Whether the conversation was compacted immediately before the turn."""
    idle: bool = False
    """Whether the turn had no effect: a command of Claude Code itself."""
    texts: tuple[AssistantText, ...] = ()
    """Texts of the model in order, including the answer."""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls in order, without calls of sub-agents."""
    agents: tuple[Subagent, ...] = ()
    """Sub-agents started in the turn, each before its nested sub-agents."""
    backups: tuple[FileBackup, ...] = ()
    """Files with a new backup in the turn."""
    compactions: tuple[ContextCompaction, ...] = ()
    """Reductions of the context: a full compaction immediately before the turn, all others during the turn."""
    queue: tuple[QueueOperation, ...] = ()
    """Queue operations during the turn."""
    work: WorkSummary = WorkSummary()
    """Summary of the work in the turn."""


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """Brief of a session."""

    id: str
    """Session ID."""
    title: str = ""
    """Title, or the first prompt."""
    project: str = ""
    """Project directory."""
    branch: str = ""
    """Last git branch."""
    models: tuple[str, ...] = ()
    """Models of the responses."""
    started: Timestamp | None = None
    """Time of the first record."""
    ended: Timestamp | None = None
    """Time of the last record."""
    seconds: float = 0.0
    """Working time of the turns in seconds."""
    standing: StatusName = "finished"
    """Status."""
    reason: str = ""
    """Reason for the status."""
    turns: tuple[BriefTurn, ...] = ()
    """Turns, oldest first."""
    elsewhere: int = 0
    """Number of turns omitted because they are copies or outside the requested time range."""
    work: WorkSummary = WorkSummary()
    """Summary of the work in the turns."""
    open: tuple[OpenItem, ...] = ()
    """Open items at the end of the session."""
    gaps: int = 0
    """Number of unreadable sections in the file."""
    omitted: dict[str, int] = {}
    """Number of items omitted to fit a budget, by kind."""


class BriefDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `steno brief --json`."""

    schema_version: int = SCHEMA_VERSION
    """Version of this schema. Fields may be added without a new version."""
    notice: str = ""
    """Notice that the texts are quoted from sessions."""
    briefs: tuple[Brief, ...] = ()
    """Briefs, newest first."""
    sessions_left_out: int = 0
    """Number of further matching sessions."""
