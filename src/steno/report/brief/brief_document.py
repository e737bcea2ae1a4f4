"""Data model of a brief.

Times are seconds since 1970; all text is as the session has it, except that long parameters of
calls are cut.

`brief --json` writes these structs unchanged, with times as ISO 8601 text. The texts below the
fields are the descriptions in the published schema, `docs/reference/brief.schema.json`.
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
before_turn  the file differs from its last backup: it was changed before this turn began
earlier      the change is older than the records of this session's file
"""
AgentSource: TypeAlias = Literal["transcript", "progress", "result"]
"""transcript  the sub-agent's own records
progress    `agent_progress` records in the session; the sub-agent's own records are missing
result      only the result of the call
"""


class AssistantText(msgspec.Struct, frozen=True, kw_only=True):
    """One text block of the model."""

    order: int = 0
    """Its position among the texts and calls of the turn, from 0."""
    text: str = ""
    """The text; shortened only to fit a budget."""
    size: int = 0
    """Characters of the whole text."""
    final: bool = False
    """Whether it is part of the turn's `answer`."""
    synthetic: bool = False
    """Whether the client wrote it in the model's name, for example an API error."""
    time: Timestamp | None = None
    """When it was written."""
    uuid: str = ""
    """The id of its record."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call, its parameters and how it ended."""

    order: int = 0
    """Its position among the texts and calls of the turn, from 0."""
    id: str = ""
    """The id that its result refers to."""
    tool: str = ""
    """The name of the tool."""
    input: dict[str, Any] = {}
    """The parameters by name. A long value is cut; a long list or object becomes cut JSON text."""
    cut: dict[str, int] = {}
    """The parameters that were cut, with the characters of their whole values."""
    state: StepState = "open"
    """How it ended: `ok`, `failed`, `denied` (not allowed), `interrupted`, `open` (no result), or `unknown`
    (the result is deleted)."""
    outcome: str = ""
    """The result in a few words."""
    seconds: float | None = None
    """Seconds from the call to its result."""
    time: Timestamp | None = None
    """When it was called."""
    uuid: str = ""
    """The id of its record."""


class FileBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A new version of a file that the client backed up: the file was changed around then."""

    path: str
    """Relative to the project where the file is inside it."""
    change: BackupChange = "in_turn"
    """When the file changed: `in_turn`, `before_turn` (since its last backup), or `earlier` than this session's records."""
    version: int | None = None
    """The number of the backup, where the record has one."""
    backup_file: str = ""
    """The file in `file-history/<session>/` that holds it; empty where there is none."""
    existed: bool = True
    """Whether the file existed before it was changed."""
    size: int | None = None
    """Characters of the content, where the record itself holds it."""
    by_call: bool = False
    """Whether a file tool of the session changed the file too."""
    time: Timestamp | None = None
    """When it was backed up."""


class ContextCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """The client made the context smaller."""

    order: int = 0
    """Before which of the texts and calls it happened, by their `order`; -1 before the prompt."""
    kind: Literal["full", "micro"] = "full"
    """`full`: the conversation was replaced by a summary; `micro`: old tool results were removed."""
    trigger: str = ""
    """`auto` or `manual`, as recorded; `api` where the API removed tool results itself."""
    pre_tokens: int | None = None
    """Tokens in the context before it."""
    post_tokens: int | None = None
    """Tokens that the client expected after it."""
    tokens_saved: int | None = None
    """Tokens that it saved, where both sizes or the saving itself are recorded."""
    compacted_tool_ids: tuple[str, ...] = ()
    """The calls whose results were removed, where the record names them."""
    results_removed: int | None = None
    """How many tool results were removed."""
    attachments_removed: int | None = None
    """How many attachments were removed."""
    summary: str = ""
    """The summary of a full compaction; shortened only to fit a budget."""
    time: Timestamp | None = None
    """When it happened."""
    uuid: str = ""
    """The id of its record."""


class QueueOperation(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt or notification entered or left the queue."""

    operation: str = ""
    """`enqueue`, `dequeue`, `remove`, `popAll`, `complete`, as recorded."""
    content: str = ""
    """What the record holds; clients write it for `enqueue`. Cut only to fit a budget."""
    size: int = 0
    """Characters of the whole content."""
    reason: str = ""
    """The reason, if recorded."""
    time: Timestamp | None = None
    """When it happened."""


class Subagent(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent and everything it did."""

    agent_id: str = ""
    """Its own id, where it is known."""
    call_id: str = ""
    """The call that started it; empty where no call was found."""
    parent_id: str = ""
    """The `agent_id` of the sub-agent that started it; empty for the session itself."""
    kind: str = ""
    """The type of the sub-agent."""
    task: str = ""
    """The short description in the call."""
    prompt: str = ""
    """Its whole prompt."""
    status: str = ""
    """`completed`, `failed`, `killed`, `running` or `unknown`."""
    background: bool = False
    """Whether it worked in the background and reported later."""
    source: AgentSource = "result"
    """Where its texts and calls come from."""
    updates: int = 0
    """How many `agent_progress` records the client wrote about it."""
    texts: tuple[AssistantText, ...] = ()
    """Its texts, in order."""
    calls: tuple[ToolCall, ...] = ()
    """Its tool calls, in order."""
    report: str = ""
    """Its report."""


SCHEMA_VERSION: Final = 1
"""The version of the JSON form. It rises when a field is removed or changes its meaning."""
DecisionKind: TypeAlias = Literal["plan", "answer", "refused", "said"]
"""plan     a plan that was approved
answer   what a person answered to a question of the agent
refused  what a person did not allow, and what they said instead
said     a sentence of the agent's that states a decision
"""
OpenItemKind: TypeAlias = Literal["interrupted", "question", "todo", "tests", "error", "uncommitted", "running"]
"""interrupted  the last turn was cut off, or never answered
question     the agent asked, and nobody answered
todo         an item of its list that is not done
tests        the last run of tests failed
error        something failed, and was not seen to work later
uncommitted  files that were changed and are in no commit of the session
running      a sub-agent or command in the background that never reported
"""


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was changed."""

    path: str
    """Relative to the project folder for files inside it."""
    edits: int = 0
    """How many calls changed it."""
    added: int = 0
    """Lines added."""
    removed: int = 0
    """Lines removed."""


class CommandRun(msgspec.Struct, frozen=True, kw_only=True):
    """A command: how often it was run, and how it ended the last time."""

    command: str
    """The command, without the `cd` before it and the pipe into `tail` behind it."""
    outcome: str = ""
    """The result of the last run in a few words."""
    state: StepState = "ok"
    """How the last run ended."""
    times: int = 1
    """How often it was run."""
    failed: int = 0
    """How many of the runs failed."""
    turn: int = 0
    """The turn of the last run."""


class TestRun(msgspec.Struct, frozen=True, kw_only=True):
    """A command that runs tests: the number of runs and the result of the last one."""

    command: str
    """The command."""
    ok: bool
    """Whether the last run passed."""
    passed: int | None = None
    """Tests that passed in the last run; null where the runner did not print it."""
    failed: int | None = None
    """Tests that failed in the last run; null where the runner did not print it."""
    times: int = 1
    """How often it was run."""
    bad: int = 0
    """How many of the runs failed."""
    turn: int = 0
    """The turn of the last run."""


class SubagentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The task and the report of a sub-agent."""

    kind: str
    """The type of the sub-agent."""
    task: str
    """The short description in the call."""
    status: str
    """`completed`, `failed`, `killed`, `running` or `unknown`."""
    steps: int = 0
    """How many calls it made, those of its own sub-agents included."""
    failed: int = 0
    """How many of its steps failed."""
    changed: int = 0
    """How many files it changed."""
    report: str = ""
    """The beginning of its report; `turns[].agents[].report` has all of it."""
    turn: int = 0
    """The turn that started it."""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that was made."""

    subject: str
    """The first line of its message."""
    hash: str = ""
    """Its hash, as git printed it."""
    branch: str = ""
    """Its branch, as git printed it."""
    files: int = 0
    """Files in it."""
    added: int = 0
    """Lines added."""
    removed: int = 0
    """Lines removed."""
    pushed: bool = False
    """Whether a push was seen to succeed behind it."""
    turn: int = 0
    """The turn that made it."""


class PullRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request that was made."""

    url: str
    """Its address."""
    title: str = ""
    """Its title."""
    turn: int = 0
    """The turn that made it."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was settled."""

    kind: DecisionKind
    """`plan`: an approved plan; `answer`: an answer of a person; `refused`; `said` by the agent."""
    text: str
    """The decision."""
    about: str = ""
    """The question answered, or the call refused."""
    turn: int = 0
    """The turn of it."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Something that failed, and what became of it."""

    what: str
    """What failed: a command, or a call."""
    said: str = ""
    """The line of the output that says most."""
    times: int = 1
    """How often it failed."""
    solved: bool = False
    """Whether it was later seen to work."""
    after: tuple[str, ...] = ()
    """The files that were changed between the first failure and when it worked."""
    turn: int = 0
    """The turn in which it failed first."""
    until: int = 0
    """The turn in which it worked."""


class OpenItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is still open."""

    kind: OpenItemKind
    """What sort of thing it is."""
    text: str
    """The open item."""
    about: str = ""
    """More about it: the state of a todo, the result of the tests."""
    of: int = 1
    """How many of the same kind there are, of files that are in no commit."""
    turn: int = 0
    """The turn it comes from; 0 where none is known."""


class WorkSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The work in a turn or in a session."""

    tools: dict[str, int] = {}
    """How often each tool was called, the most frequent first; every sub-agent is `Agent`."""
    files: tuple[ChangedFile, ...] = ()
    """The files that file tools changed, those with the most lines first."""
    changed: int = 0
    """How many files were changed in all."""
    added: int = 0
    """Lines added to them."""
    removed: int = 0
    """Lines removed from them."""
    snapshot_files: tuple[str, ...] = ()
    """Files that only the client's backups show as changed: no file tool changed them."""
    commands: tuple[CommandRun, ...] = ()
    """Those that did something; tests, commits and mere looks are not among them."""
    looks: int = 0
    """How many commands only looked at something."""
    tests: tuple[TestRun, ...] = ()
    """Commands that run tests."""
    helpers: tuple[SubagentSummary, ...] = ()
    """The sub-agents in short; `turns[].agents` has everything about them."""
    commits: tuple[Commit, ...] = ()
    """The commits that were made."""
    pulls: tuple[PullRequest, ...] = ()
    """The pull requests that were made."""
    decisions: tuple[Decision, ...] = ()
    """The decision."""
    troubles: tuple[Failure, ...] = ()
    """What failed, and how that ended."""
    slips: int = 0
    """Number of calls that failed for a trivial reason: a file not read before, no match."""


class BriefTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: the prompt, the work and the answer."""

    number: int
    """Its number in the session, from 1."""
    uuid: str = ""
    """The id of the record that asks."""
    origin: str = ""
    """Who asked: `human`, `command`, `shell`, `notification`, `teammate`, `agent`, `fork`, `other`."""
    text: str = ""
    """The prompt."""
    images: int = 0
    """Pictures and documents in the prompt."""
    meanwhile: tuple[str, ...] = ()
    """Messages sent while the agent was working."""
    answer: str = ""
    """The texts after the last call; `texts` has all of them."""
    started: Timestamp | None = None
    """When it began."""
    seconds: float | None = None
    """How long it took."""
    interrupted: bool = False
    """Whether it was interrupted."""
    compacted: bool = False
    """Whether the conversation was summed up right before it."""
    idle: bool = False
    """Whether nothing came of it: a command of the client itself."""
    texts: tuple[AssistantText, ...] = ()
    """Every text of the model in order, the answer included."""
    calls: tuple[ToolCall, ...] = ()
    """Every tool call in order; those of sub-agents are with the sub-agent."""
    agents: tuple[Subagent, ...] = ()
    """The sub-agents that were started in it, each before those it started itself."""
    backups: tuple[FileBackup, ...] = ()
    """The files that got a new backup version in it."""
    compactions: tuple[ContextCompaction, ...] = ()
    """How the context was made smaller: a full compaction right before it, others during it."""
    queue: tuple[QueueOperation, ...] = ()
    """What entered and left the queue during it."""
    work: WorkSummary = WorkSummary()
    """A summary of its work."""


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """One session in brief."""

    id: str
    """The session's id."""
    title: str = ""
    """Its title, or its first prompt."""
    project: str = ""
    """The folder it began in."""
    branch: str = ""
    """The git branch it was last on."""
    models: tuple[str, ...] = ()
    """The models that answered."""
    started: Timestamp | None = None
    """When its first record was written."""
    ended: Timestamp | None = None
    """When its last record was written."""
    seconds: float = 0.0
    """How long its turns took."""
    standing: StatusName = "finished"
    """Its status."""
    reason: str = ""
    """Why that is its status."""
    turns: tuple[BriefTurn, ...] = ()
    """The turns, oldest first."""
    elsewhere: int = 0
    """Number of turns left out: outside the requested time, or copies."""
    work: WorkSummary = WorkSummary()
    """A summary of the work in the turns."""
    open: tuple[OpenItem, ...] = ()
    """Open items at the end of the session."""
    gaps: int = 0
    """How many stretches of the file could not be read."""
    omitted: dict[str, int] = {}
    """The number of items of each kind left out to fit a budget."""


class BriefDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `steno brief --json` writes."""

    schema_version: int = SCHEMA_VERSION
    """The version of this schema. Fields may be added without a new version."""
    notice: str = ""
    """Says that the texts below are quoted from sessions."""
    briefs: tuple[Brief, ...] = ()
    """The sessions, newest first."""
    sessions_left_out: int = 0
    """How many more sessions matched."""
