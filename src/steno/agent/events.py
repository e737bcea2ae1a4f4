"""Events of an agent for front ends, headless output and tests."""

from typing import Any, Literal, TypeAlias

import msgspec

from steno.llm.messages_api import ApiError, Block, Response
from steno.permissions.permission_rules import Decision
from steno.tools.protocol import ToolResult

EndReason: TypeAlias = Literal[
    "done", "interrupted", "refused", "max_turns", "max_budget", "max_time", "error", "empty", "not_saved"
]
"""The reason why a turn ended."""


class PromptSubmitted(msgspec.Struct, frozen=True):
    """A prompt was recorded; it comes from the user or was sent on the user's behalf."""

    text: str
    uuid: str


class PromptBlocked(msgspec.Struct, frozen=True):
    """A hook blocked a prompt; the block is recorded."""

    fields: dict[str, Any]
    """The fields of the recorded note: its text and the outcome of the prompt."""
    uuid: str


class RequestSent(msgspec.Struct, frozen=True):
    """A request is sent."""

    model: str
    messages: int


class ContentDelta(msgspec.Struct, frozen=True):
    """More text, thinking or tool input was received."""

    kind: Literal["text", "thinking", "input"]
    text: str
    index: int


class RawStreamEvent(msgspec.Struct, frozen=True):
    """A raw event of the API stream, if the model client forwards them."""

    event: dict[str, Any]


class Retrying(msgspec.Struct, frozen=True):
    """A request failed and will be repeated."""

    attempt: int
    max_attempts: int
    delay: float
    error: ApiError


class ResponseReceived(msgspec.Struct, frozen=True):
    """A response is complete and recorded."""

    response: Response
    uuids: tuple[str, ...]


class RequestFailed(msgspec.Struct, frozen=True):
    """A request failed; the error message is recorded."""

    text: str
    error: ApiError
    uuid: str


class CallDenied(msgspec.Struct, frozen=True):
    """A tool call was denied."""

    call: Block
    decision: Decision


class ToolStarted(msgspec.Struct, frozen=True):
    """A tool call has started."""

    call: Block


class ToolOutput(msgspec.Struct, frozen=True):
    """A running tool call has produced output."""

    call_id: str
    text: str


class ToolEnded(msgspec.Struct, frozen=True):
    """A tool call has ended; its result is recorded."""

    call: Block
    result: ToolResult
    seconds: float
    uuid: str


class HookStarted(msgspec.Struct, frozen=True):
    """A hook has started."""

    name: str
    """The event and its subject, for example `PreToolUse:Bash`."""
    command: str


class HookEnded(msgspec.Struct, frozen=True):
    """A hook has ended or was terminated."""

    name: str
    command: str


class Compacted(msgspec.Struct, frozen=True):
    """The conversation was replaced by a summary."""

    trigger: Literal["auto", "manual"]
    tokens_before: int
    tokens_after: int
    summary: str


class Trimmed(msgspec.Struct, frozen=True):
    """Old tool results were removed from requests; the file keeps them."""

    tokens_before: int
    tokens_after: int
    call_ids: tuple[str, ...]


class Notice(msgspec.Struct, frozen=True):
    """A message for the user, such as hook output or an unavailable MCP server."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


class Interrupted(msgspec.Struct, frozen=True):
    """The user interrupted the turn."""

    during: Literal["answer", "tools"]


class TurnEnded(msgspec.Struct, frozen=True):
    """A turn has ended."""

    reason: EndReason
    text: str
    """The text of the last response, or the error message."""
    requests: int
    seconds: float
    usage: dict[str, int]
    cost: int
    """Cost in micro-dollars."""
    leaf: str | None = None
    api_seconds: float = 0
    """Seconds spent waiting for the API."""
    models: dict[str, dict[str, int]] = {}
    """Tokens by model, and under `cost` micro-dollars; includes sub-agents."""
    problem: str = ""
    """The error message and hint if a part of the turn was not saved."""


class SubagentStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent has started."""

    call_id: str
    """ID of the Agent call."""
    agent_id: str
    agent_type: str
    description: str
    prompt: str
    background: bool
    depth: int


class SubagentEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent has ended, with its answer and usage."""

    call_id: str
    agent_id: str
    status: str
    text: str
    tokens: int
    tool_uses: int
    seconds: float
    path: str
    """Path of its session file."""


class SubagentEvent(msgspec.Struct, frozen=True):
    """An event of a sub-agent."""

    call_id: str
    """ID of the Agent call."""
    event: "Event"


Event: TypeAlias = (
    PromptSubmitted
    | PromptBlocked
    | RequestSent
    | ContentDelta
    | RawStreamEvent
    | Retrying
    | ResponseReceived
    | RequestFailed
    | CallDenied
    | ToolStarted
    | ToolOutput
    | ToolEnded
    | HookStarted
    | HookEnded
    | Compacted
    | Trimmed
    | Notice
    | Interrupted
    | TurnEnded
    | SubagentStarted
    | SubagentEnded
    | SubagentEvent
)
