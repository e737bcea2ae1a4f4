"""Response types of the API; the OpenAPI document is generated from them."""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from steno.check.drift_model import Code
from steno.report.diagnoses import DiagnosisCategory

Timestamp: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, description="ISO 8601, UTC.")]
Cursor: TypeAlias = Annotated[str, Meta(description="Pass as `cursor` to get the next page.")]
Count: TypeAlias = Annotated[int, Meta(ge=0)]


class Model(Struct, frozen=True, kw_only=True):
    """Base class of all responses."""


class ErrorBody(Model, frozen=True, kw_only=True):
    """An error and the next step."""

    code: Annotated[
        str,
        Meta(
            description="One of bad_request, unauthorized, forbidden, not_found, "
            "method_not_allowed, misdirected_request, internal_error, not_ready."
        ),
    ]
    message: str
    hint: Annotated[str, Meta(description="The next step; may be empty.")]


class ErrorResponse(Model, frozen=True, kw_only=True):
    """The body of every error."""

    error: ErrorBody


class Usage(Model, frozen=True, kw_only=True):
    """Tokens and their cost. Each API response counts once."""

    responses: Count
    input_tokens: Count
    output_tokens: Count
    cache_creation_input_tokens: Count
    cache_creation_5m_input_tokens: Count
    cache_creation_1h_input_tokens: Count
    cache_read_input_tokens: Count
    web_search_requests: Count
    cost_usd: Annotated[float | None, Meta(description="Null if no model has a known price.")]
    cost_micro_usd: int | None
    estimated_responses: Annotated[int, Meta(description="Responses whose output tokens Claude Code under-reported.")]
    fast_at_normal_price: Annotated[
        int, Meta(description="Fast responses without a known fast price, at the normal price.")
    ]
    unpriced_tokens: Annotated[dict[str, int], Meta(description="Tokens without a known price, by model.")]


class UsageRow(Usage, frozen=True, kw_only=True):
    """A row of a usage report. The fields that identify it depend on `by`."""

    day: str | UnsetType = UNSET
    week: str | UnsetType = UNSET
    month: str | UnsetType = UNSET
    hour: str | UnsetType = UNSET
    block5h: str | UnsetType = UNSET
    project: Annotated[str | UnsetType, Meta(description="Present if `by` is project, branch, session or agent.")] = (
        UNSET
    )
    model: str | UnsetType = UNSET
    branch: str | UnsetType = UNSET
    session: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    title: Annotated[
        str | UnsetType, Meta(description="Title of the session; present if `by` is session or agent.")
    ] = UNSET
    tool: str | UnsetType = UNSET
    calls: Annotated[int | UnsetType, Meta(description="Present if `by` is tool.")] = UNSET
    failed: Annotated[int | UnsetType, Meta(description="Failed calls; present if `by` is tool.")] = UNSET


class AbandonedUsage(Usage, frozen=True, kw_only=True):
    """The usage of abandoned branches."""

    sessions_not_seen: Annotated[int, Meta(description="Sessions that were not read and may have abandoned branches.")]


class UsageReport(Model, frozen=True, kw_only=True):
    """Usage by time, model, project or session, as `steno usage --json` reports it."""

    by: str
    since: Timestamp | None
    until: Timestamp | None
    complete: Annotated[bool, Meta(description="False while the index is being updated.")]
    rows: list[UsageRow]
    totals: Usage
    abandoned: AbandonedUsage | None


SessionStatus: TypeAlias = Literal["running", "waiting", "finished", "interrupted", "failed", "empty"]


class Session(Model, frozen=True, kw_only=True):
    """A session in the list."""

    key: Annotated[
        str,
        Meta(
            description="Identifies the session in paths: its ID, plus `~` and a number if several files have that ID."
        ),
    ]
    id: Annotated[str, Meta(description="The session ID of Claude Code.")]
    path: Annotated[str, Meta(description="Path of the session file.")]
    dialect: Annotated[str, Meta(description="`claude`, or the dialect of a converted file.")]
    title: str
    project: Annotated[str, Meta(description="The working directory in which the session started.")]
    project_id: Annotated[str, Meta(description="A short ID of the project; may be empty.")]
    branch: Annotated[str, Meta(description="The last git branch.")]
    model: Annotated[str, Meta(description="The last model used.")]
    version: Annotated[str, Meta(description="The last version of Claude Code.")]
    status: SessionStatus
    live: Annotated[bool, Meta(description="Whether the session is running, or waiting for input and recently active.")]
    archived_only: Annotated[
        bool, Meta(description="Whether the session file was deleted; the archive may contain a copy.")
    ]
    started: Timestamp | None
    ended: Annotated[Timestamp | None, Meta(description="Time of the last record.")]
    duration_seconds: Annotated[float, Meta(ge=0, description="Sum of the durations of all turns.")]
    turns: Count
    steps: Annotated[int, Meta(ge=0, description="Tool calls and API errors, without sub-agents.")]
    failed_steps: Count
    agents: Annotated[int, Meta(ge=0, description="Number of sub-agents.")]
    compactions: Count
    abandoned_branches: Count
    size_bytes: Count
    usage: Usage


class SessionList(Model, frozen=True, kw_only=True):
    """A page of sessions."""

    sessions: list[Session]
    total: Annotated[int, Meta(ge=0, description="Number of matching sessions on all pages.")]
    next_cursor: Cursor | None


class Agent(Model, frozen=True, kw_only=True):
    """A sub-agent of a session."""

    id: Annotated[str, Meta(description="Pass as `agent` to read its turns.")]
    parent: Annotated[str | None, Meta(description="The sub-agent that started this one.")]
    kind: str
    description: str
    status: str
    turns: Count
    steps: Count
    tokens: Annotated[int, Meta(ge=0, description="Input and output tokens.")]
    cost_micro_usd: Annotated[int | None, Meta(description="Including nested sub-agents.")]


class Compaction(Model, frozen=True, kw_only=True):
    """A compaction of the conversation."""

    turn: Annotated[int, Meta(description="The turn after the compaction.")]
    kind: str
    trigger: str
    pre_tokens: int | None
    post_tokens: int | None
    messages_before: int | None
    messages_kept: int | None
    ratio: float | None


class Branch(Model, frozen=True, kw_only=True):
    """A branch that is not part of the conversation."""

    number: int
    reason: str
    after_turn: Annotated[int, Meta(description="The turn after which the branch starts; 0 for the beginning.")]
    records: Count
    turns: Count


class ChangedFile(Model, frozen=True, kw_only=True):
    """A file read or changed by a session or its sub-agents."""

    id: Annotated[str, Meta(description="Identifies the file in `/api/v1/files/{tag}`.")]
    path: str
    reads: Count
    edits: Count
    added: Annotated[int, Meta(ge=0, description="Added lines.")]
    removed: Annotated[int, Meta(ge=0, description="Removed lines.")]
    turns: list[int]
    agents: list[str]
    last: Timestamp | None


class FindingCount(Model, frozen=True, kw_only=True):
    """A finding of `steno check` and its number of occurrences."""

    id: str
    severity: Literal["error", "warning", "info"]
    count: Count
    message: Annotated[str, Meta(description="Message of the first occurrence.")]
    hint: str


class Findings(Model, frozen=True, kw_only=True):
    """Findings of `steno check` in the files of a session."""

    checked: Annotated[bool, Meta(description="False if the file is only in the archive or cannot be read.")]
    errors: Count
    warnings: Count
    infos: Count
    findings: list[FindingCount]


class SessionDetail(Session, frozen=True, kw_only=True):
    """A session with details."""

    status_reason: str
    entrypoint: str
    models: list[str]
    versions: list[str]
    branches: Annotated[list[str], Meta(description="All git branches of the session.")]
    directories: Annotated[list[str], Meta(description="All working directories of the session.")]
    copied_responses: Annotated[int, Meta(description="Responses counted in the session from which it was forked.")]
    earlier: Annotated[str | None, Meta(description="The key of the previous session in the project.")]
    later: Annotated[str | None, Meta(description="The key of the next session in the project.")]
    records: Count
    gaps: Annotated[int, Meta(ge=0, description="Parts of the file that are not records.")]
    files: list[ChangedFile]
    sub_agents: list[Agent]
    compacted: list[Compaction]
    abandoned: list[Branch]
    findings: Findings


class Prompt(Model, frozen=True, kw_only=True):
    """The prompt of a turn."""

    text: str
    origin: Annotated[str, Meta(description="human, command, shell, notification, agent, summary or another origin.")]
    images: Count
    uuid: str | None


class Tokens(Model, frozen=True, kw_only=True):
    """The tokens of a turn, without its sub-agents."""

    input: Count
    output: Count
    cache_read: Count
    cache_write_5m: Count
    cache_write_1h: Count
    messages: Count
    estimated: bool


class TurnStep(Model, frozen=True, kw_only=True):
    """A step of a turn."""

    kind: Annotated[str, Meta(description="tool, agent, thought, words, queued, hook, error, note, unknown.")]
    verb: Annotated[str, Meta(description="The tool, the type of sub-agent, or the event.")]
    tool: Annotated[str | None, Meta(description="The called tool.")]
    subject: str
    outcome: str
    state: Literal["ok", "failed", "denied", "open", "interrupted", "unknown"]
    started: Timestamp | None
    duration_seconds: float | None
    tokens: int | None
    agent: Annotated[str | None, Meta(description="The started sub-agent.")]
    path: Annotated[str | None, Meta(description="The read or changed file.")]
    added: Count
    removed: Count
    call: Annotated[str | None, Meta(description="The UUID of the first record.")]
    result: Annotated[str | None, Meta(description="The UUID of the result record.")]


class Turn(Model, frozen=True, kw_only=True):
    """A prompt, its steps and its answer."""

    number: int
    prompt: Prompt | None
    texts: Annotated[list[str], Meta(description="All texts of the model, in order.")]
    answer: Annotated[str, Meta(description="The texts after the last tool call.")]
    steps: list[TurnStep]
    started: Timestamp | None
    ended: Timestamp | None
    duration_seconds: float | None
    usage: Tokens
    cost_micro_usd: Annotated[int | None, Meta(description="Without sub-agents; null if no price is known.")]
    commands: list[str]
    failed_steps: Count
    interrupted: bool
    compaction: Annotated[Compaction | None, Meta(description="The compaction before the turn.")]


class TurnList(Model, frozen=True, kw_only=True):
    """A page of turns."""

    session: str
    agent: str | None
    turns: list[Turn]
    total: Count
    next_cursor: Cursor | None


class ToolCall(Model, frozen=True, kw_only=True):
    """A tool call of a step."""

    tool_call_id: str
    tool_name: str
    input_summary: str


class ToolResult(Model, frozen=True, kw_only=True):
    """A tool result of a step."""

    tool_call_id: str
    status: Literal["success", "error"]
    result_summary: str


class Step(Model, frozen=True, kw_only=True):
    """A line of `steps.jsonl`."""

    step_id: Annotated[int, Meta(ge=1)]
    session_id: str
    type: Literal["USER_MESSAGE", "ASSISTANT_MESSAGE", "TOOL_CALL", "TOOL_RESULT"]
    timestamp: Annotated[str | None, Meta(description="Time of the record; numbers are converted to ISO 8601.")]
    content_summary: Annotated[str, Meta(max_length=200)]
    raw_uuid: str | None
    parent_uuid: str | None
    tool_calls: list[ToolCall] | UnsetType = UNSET
    tool_results: list[ToolResult] | UnsetType = UNSET


class StepList(Model, frozen=True, kw_only=True):
    """A page of steps."""

    session: str
    steps: list[Step]
    total: Count
    next_cursor: Cursor | None


StepType: TypeAlias = Literal["user_message", "assistant_message", "tool_call", "tool_result"]


class TaskItem(Model, frozen=True, kw_only=True):
    """A session as a task. `id`, `title` and `completed_at` repeat fields under other names."""

    id: Annotated[str, Meta(description="The key of the session.")]
    session_id: str
    title: str
    name: Annotated[str, Meta(description="Same as `title`.")]
    status: Literal["running", "completed"]
    agent_type: Literal["claude"]
    project_path: str
    started_at: Timestamp | None
    ended_at: Annotated[Timestamp | None, Meta(description="Null while running.")]
    completed_at: Annotated[Timestamp | None, Meta(description="Same as `ended_at`.")]
    last_activity: Timestamp | None
    duration_ms: Annotated[int, Meta(ge=0, description="Time from the first to the last step.")]
    step_count: Count
    tool_call_count: Count


class TaskList(Model, frozen=True, kw_only=True):
    """A page of tasks."""

    tasks: list[TaskItem]
    total: Annotated[int, Meta(ge=0, description="Number of tasks on all pages.")]
    next_cursor: Cursor | None


class TaskStep(Model, frozen=True, kw_only=True):
    """A step of a task."""

    step_id: Annotated[int, Meta(ge=1)]
    type: StepType
    timestamp: str | None
    content: str
    tool_name: str | None
    tool_status: Literal["pending", "success", "error"] | None
    tool_result: str | None


class ToolUse(Model, frozen=True, kw_only=True):
    """A tool and its number of calls."""

    name: str
    count: Count


class TaskSummary(Model, frozen=True, kw_only=True):
    """Statistics of a task."""

    total_duration_ms: Count
    user_message_count: Count
    assistant_message_count: Count
    tool_call_count: Count
    tool_success_count: Count
    tool_error_count: Count
    most_used_tools: Annotated[list[ToolUse], Meta(description="The five tools with the most calls.")]


class TaskDetail(TaskItem, frozen=True, kw_only=True):
    """A task with a page of its steps."""

    user_message_count: Count
    assistant_message_count: Count
    steps: list[TaskStep]
    steps_total: Count
    steps_offset: Annotated[int, Meta(ge=0, description="Number of steps before this page.")]
    has_more_steps: bool
    summary: Annotated[TaskSummary | None, Meta(description="Null while running.")]
    next_cursor: Cursor | None


class TextRange(Model, frozen=True, kw_only=True):
    """A range of a text, in Unicode code points; `end` is exclusive."""

    start: Count
    end: Count


class Excerpt(Model, frozen=True, kw_only=True):
    """A part of a text around a match. Plain text, never HTML."""

    text: str
    matches: list[TextRange]
    starts_text: Annotated[bool, Meta(description="Whether the excerpt starts at the beginning of the text.")]
    ends_text: Annotated[bool, Meta(description="Whether the excerpt ends at the end of the text.")]


class Hit(Model, frozen=True, kw_only=True):
    """A message that contains all words of the query."""

    session: Annotated[str, Meta(description="The key of the session.")]
    session_id: str
    title: str
    project: str
    agent: Annotated[str | None, Meta(description="The sub-agent of the message.")]
    turn: Annotated[int, Meta(ge=0, description="0 before the first prompt.")]
    uuid: str | None
    offset: Annotated[int, Meta(ge=0, description="Offset of the record in its file, in bytes.")]
    time: Timestamp | None
    kind: Annotated[str | None, Meta(description="prompt, answer, thinking, input, output, note, title or summary.")]
    tool: str | None
    failed: bool
    excerpt: Annotated[Excerpt | None, Meta(description="Null if the text can no longer be read.")]
    lost: Annotated[Literal["gone", "changed"] | None, Meta(description="Why the text cannot be read.")]
    archived: Annotated[bool, Meta(description="Whether the text was read from the archive.")]


class SearchResult(Model, frozen=True, kw_only=True):
    """A page of search results."""

    query: str
    hits: list[Hit]
    total: Annotated[int, Meta(ge=0, description="Number of matching messages.")]
    sessions: Annotated[int, Meta(ge=0, description="Number of sessions with matches.")]
    inside_words: Annotated[bool, Meta(description="Whether words also match inside longer words.")]
    ignored: Annotated[list[str], Meta(description="Words of the query that cannot be searched.")]
    next_cursor: Cursor | None


class File(Model, frozen=True, kw_only=True):
    """A file that sessions read or changed."""

    id: Annotated[str, Meta(description="Identifies the file in `/api/v1/files/{tag}`.")]
    path: str
    reads: Count
    edits: Count
    added: Annotated[int, Meta(ge=0, description="Added lines.")]
    removed: Annotated[int, Meta(ge=0, description="Removed lines.")]
    sessions: Count
    last: Timestamp | None


class FileList(Model, frozen=True, kw_only=True):
    """A page of files."""

    files: list[File]
    total: Count
    next_cursor: Cursor | None


class FileSession(Model, frozen=True, kw_only=True):
    """A session that read or changed a file."""

    key: str
    id: str
    title: str
    versions: Annotated[int, Meta(ge=0, description="Number of versions created by the session.")]
    last: Timestamp | None


class FileVersion(Model, frozen=True, kw_only=True):
    """A version of a file."""

    name: Annotated[str, Meta(description="Name of the version; stable when versions are added.")]
    verb: Literal["write", "edit", "read", "outside", "command"]
    tool: str
    known: Annotated[
        Literal["exact", "derived", "partial", "unknown"],
        Meta(description="How the text of the version was determined."),
    ]
    added: Count
    removed: Count
    note: str
    same_as: Annotated[str | None, Meta(description="Another version with the same text.")]
    command: str | None
    changed_nothing: bool
    session: Annotated[str, Meta(description="The key of the session.")]
    agent: str | None
    turn: Count
    offset: Count
    time: Timestamp | None
    abandoned: bool
    copies: Count
    prompt: str


class FileHistory(Model, frozen=True, kw_only=True):
    """A file, its sessions and its versions."""

    id: str
    path: str
    project: str
    unreadable: Annotated[int, Meta(ge=0, description="Versions whose sessions were deleted and not archived.")]
    sessions: list[FileSession]
    versions: Annotated[list[FileVersion], Meta(description="Oldest first.")]
    total: Annotated[int, Meta(ge=0, description="Total number of versions.")]
    next_cursor: Cursor | None


class Check(Model, frozen=True, kw_only=True):
    """The progress of the background check of all sessions."""

    running: bool
    complete: Annotated[bool, Meta(description="Whether all sessions have been checked.")]
    bytes_done: Count
    bytes_planned: Count
    ended: Annotated[Timestamp | None, Meta(description="Time the last check ended.")]
    problem: str


class IndexState(Model, frozen=True, kw_only=True):
    """The state of the index."""

    syncing: bool
    updated: Timestamp | None
    problem: str


class CaseSession(Model, frozen=True, kw_only=True):
    """A session with a problem."""

    key: Annotated[str | None, Meta(description="Null if the session is not indexed.")]
    id: str
    title: str
    about: str


class Case(Model, frozen=True, kw_only=True):
    """A problem, and the commands that fix it."""

    harm: DiagnosisCategory
    id: str
    title: str
    description: str
    note: str
    commands: list[str]
    sessions: list[CaseSession]
    more_sessions: Count


class ClientVersion(Model, frozen=True, kw_only=True):
    """A version of Claude Code in the session files."""

    version: str
    sessions: Count
    differences: Annotated[int, Meta(ge=0, description="Differences from the catalogue.")]


class HealthReport(Model, frozen=True, kw_only=True):
    """The state of all sessions."""

    check: Check
    index: IndexState
    sessions: Count
    checked_sessions: Count
    broken_sessions: Count
    empty_files: Count
    records: Count
    gaps: Count
    due_sessions: Annotated[int, Meta(ge=0, description="Sessions that Claude Code will delete soon.")]
    due_not_archived: Count
    cleanup_days: Annotated[float, Meta(description="Days before Claude Code deletes sessions.")]
    unreadable_paths: Count
    differences: Annotated[int, Meta(ge=0, description="Differences from the catalogue.")]
    known_up_to: Annotated[str, Meta(description="The newest known version of Claude Code.")]
    cases: list[Case]
    versions: list[ClientVersion]


class Difference(Model, frozen=True, kw_only=True):
    """A difference between files and the catalogue of the format."""

    code: Code
    kind: str
    path: str
    name: str
    count: Count
    versions: Annotated[dict[str, int], Meta(description="Number of occurrences by Claude Code version.")]
    types: list[str]
    known: list[str]
    sample: Annotated[str, Meta(description="A masked sample: letters are x, digits are 0.")]
    docs: Annotated[str | None, Meta(description="The documentation page.")]


class DriftReport(Model, frozen=True, kw_only=True):
    """Content that is not in the catalogue, as `steno drift --json` reports it."""

    check: Check
    catalogue: str
    files: Count
    records: Count
    versions: list[str]
    left_out: Annotated[int, Meta(ge=0, description="Number of differences that are not listed.")]
    drift: list[Difference]
