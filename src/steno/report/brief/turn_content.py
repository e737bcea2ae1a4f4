"""The content of one turn of a brief: texts, calls, sub-agents, backups.

All text is as the session has it, except that long parameters of calls are cut.
"""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from steno.session.story.steps import State

__all__ = [
    "AgentSource",
    "AssistantText",
    "BackupChange",
    "ContextCompaction",
    "FileBackup",
    "Moment",
    "QueueOperation",
    "SubAgent",
    "ToolCall",
]

Moment: TypeAlias = Annotated[float, Meta(extra_json_schema={"format": "date-time"})]
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
    time: Moment | None = None
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
    state: State = "open"
    """How it ended: `ok`, `failed`, `denied` (not allowed), `interrupted`, `open` (no result), or `unknown`
    (the result is deleted)."""
    outcome: str = ""
    """The result in a few words."""
    seconds: float | None = None
    """Seconds from the call to its result."""
    time: Moment | None = None
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
    time: Moment | None = None
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
    time: Moment | None = None
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
    time: Moment | None = None
    """When it happened."""


class SubAgent(msgspec.Struct, frozen=True, kw_only=True):
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
