"""Responses about sessions."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from steno.web.api.models.base import Count, Cursor, Model, Timestamp
from steno.web.api.models.usage import Usage

SessionStatus: TypeAlias = Literal[
    "running", "waiting", "finished", "interrupted", "failed", "empty"
]


class Session(Model, frozen=True, kw_only=True):
    """A session in the list."""

    key: Annotated[
        str,
        Meta(description="Names the session in paths: its id, plus `~` and a number if shared."),
    ]
    id: Annotated[str, Meta(description="The client's session id.")]
    path: Annotated[str, Meta(description="Its file.")]
    dialect: Annotated[
        str, Meta(description="`claude`, or the published dialect that it was converted from.")
    ]
    title: str
    project: Annotated[str, Meta(description="The directory it began in.")]
    project_id: Annotated[str, Meta(description="A short id of the project; empty if none.")]
    branch: Annotated[str, Meta(description="The git branch it was last on.")]
    model: Annotated[str, Meta(description="The model that answered last.")]
    version: Annotated[str, Meta(description="The client version that wrote last.")]
    status: SessionStatus
    live: Annotated[
        bool, Meta(description="Whether it is running, or waiting and active recently.")
    ]
    archived_only: Annotated[
        bool, Meta(description="Whether its file is gone from disk; it may be in the archive.")
    ]
    started: Timestamp | None
    ended: Annotated[Timestamp | None, Meta(description="Time of the last record.")]
    duration_seconds: Annotated[float, Meta(ge=0, description="Sum of the durations of its turns.")]
    turns: Count
    steps: Annotated[
        int, Meta(ge=0, description="Tool calls and API errors in its turns, without sub-agents'.")
    ]
    failed_steps: Count
    agents: Annotated[int, Meta(ge=0, description="Sub-agents.")]
    compactions: Count
    abandoned_branches: Count
    size_bytes: Count
    usage: Usage


class SessionList(Model, frozen=True, kw_only=True):
    """A page of sessions."""

    sessions: list[Session]
    total: Annotated[int, Meta(ge=0, description="How many sessions match, on all pages.")]
    next_cursor: Cursor | None


class Agent(Model, frozen=True, kw_only=True):
    """A sub-agent of a session."""

    id: Annotated[str, Meta(description="Pass as `agent` to read its turns.")]
    parent: Annotated[str | None, Meta(description="The sub-agent that started it.")]
    kind: str
    description: str
    status: str
    turns: Count
    steps: Count
    tokens: Annotated[int, Meta(ge=0, description="Tokens it read and wrote.")]
    cost_micro_usd: Annotated[int | None, Meta(description="With the sub-agents it started.")]


class Compaction(Model, frozen=True, kw_only=True):
    """A place where the conversation was compacted."""

    turn: Annotated[int, Meta(description="The turn that follows it.")]
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
    after_turn: Annotated[int, Meta(description="The turn it left after; 0 for the beginning.")]
    records: Count
    turns: Count


class ChangedFile(Model, frozen=True, kw_only=True):
    """A file that a session read or changed, with its sub-agents."""

    id: Annotated[str, Meta(description="Names the file in `/api/v1/files/{tag}`.")]
    path: str
    reads: Count
    edits: Count
    added: Annotated[int, Meta(ge=0, description="Lines.")]
    removed: Annotated[int, Meta(ge=0, description="Lines.")]
    turns: list[int]
    agents: list[str]
    last: Timestamp | None


class FindingCount(Model, frozen=True, kw_only=True):
    """A finding of `steno check`, and how often it occurs."""

    id: str
    severity: Literal["error", "warning", "info"]
    count: Count
    message: Annotated[str, Meta(description="Of the first occurrence.")]
    hint: str


class Findings(Model, frozen=True, kw_only=True):
    """What `steno check` finds in the files of a session."""

    checked: Annotated[
        bool, Meta(description="False where the file is only in the archive or cannot be read.")
    ]
    errors: Count
    warnings: Count
    infos: Count
    findings: list[FindingCount]


class SessionDetail(Session, frozen=True, kw_only=True):
    """One session."""

    status_reason: str
    entrypoint: str
    models: list[str]
    versions: list[str]
    branches: Annotated[list[str], Meta(description="Every git branch it was on.")]
    directories: Annotated[list[str], Meta(description="Every directory it was in.")]
    copied_responses: Annotated[
        int, Meta(description="Responses counted for the session it was forked from.")
    ]
    earlier: Annotated[
        str | None, Meta(description="The key of the previous session in the project.")
    ]
    later: Annotated[str | None, Meta(description="The key of the next session in the project.")]
    records: Count
    gaps: Annotated[int, Meta(ge=0, description="Parts of the file that are not records.")]
    files: list[ChangedFile]
    sub_agents: list[Agent]
    compacted: list[Compaction]
    abandoned: list[Branch]
    findings: Findings
