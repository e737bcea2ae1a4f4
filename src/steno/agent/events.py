"""Events of an agent: for front ends, headless output and tests."""

from typing import Any, Literal, TypeAlias

import msgspec

from steno.llm.messages_api import ApiError, Block, Response
from steno.permissions.permission_rules import Decision
from steno.tools.protocol import ToolResult

EndReason: TypeAlias = Literal[
    "done", "interrupted", "refused", "max_turns", "max_budget", "max_time", "error", "empty", "not_saved"
]
"""Why a turn ended."""


class PromptSubmitted(msgspec.Struct, frozen=True):
    """The user, or something in their name, has said something."""

    text: str
    uuid: str


class PromptBlocked(msgspec.Struct, frozen=True):
    """A hook kept a prompt from being answered, which is recorded."""

    fields: dict[str, Any]
    """The note of it: what is said, and how it ended."""
    uuid: str


class RequestSent(msgspec.Struct, frozen=True):
    """A request goes out."""

    model: str
    messages: int


class ContentDelta(msgspec.Struct, frozen=True):
    """More of an answer, of a thought, or of the input of a call has come."""

    kind: Literal["text", "thinking", "input"]
    text: str
    index: int


class RawStreamEvent(msgspec.Struct, frozen=True):
    """An event of the API as it came, where the model passes them on."""

    event: dict[str, Any]


class Retrying(msgspec.Struct, frozen=True):
    """A request failed and will be made again."""

    attempt: int
    max_attempts: int
    delay: float
    error: ApiError


class ResponseReceived(msgspec.Struct, frozen=True):
    """A response is whole and recorded."""

    response: Response
    uuids: tuple[str, ...]


class RequestFailed(msgspec.Struct, frozen=True):
    """No answer came, and what stands in its place is recorded."""

    text: str
    error: ApiError
    uuid: str


class CallDenied(msgspec.Struct, frozen=True):
    """A call was not allowed."""

    call: Block
    decision: Decision


class ToolStarted(msgspec.Struct, frozen=True):
    """A tool begins to work."""

    call: Block


class ToolOutput(msgspec.Struct, frozen=True):
    """A tool has printed something."""

    call_id: str
    text: str


class ToolEnded(msgspec.Struct, frozen=True):
    """A call has its result, and it is recorded."""

    call: Block
    result: ToolResult
    seconds: float
    uuid: str


class HookStarted(msgspec.Struct, frozen=True):
    """A hook runs."""

    name: str
    """The event, with what it is about: `PreToolUse:Bash`."""
    command: str


class HookEnded(msgspec.Struct, frozen=True):
    """A hook has ended, or was ended."""

    name: str
    command: str


class Compacted(msgspec.Struct, frozen=True):
    """The conversation was replaced by a summary of it."""

    trigger: Literal["auto", "manual"]
    tokens_before: int
    tokens_after: int
    summary: str


class Trimmed(msgspec.Struct, frozen=True):
    """What old calls had printed was left out of the conversation; the file keeps it."""

    tokens_before: int
    tokens_after: int
    call_ids: tuple[str, ...]


class Notice(msgspec.Struct, frozen=True):
    """Something the user should know: a hook's words, a deleted file, a broken server."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


class Interrupted(msgspec.Struct, frozen=True):
    """The user broke in."""

    during: Literal["answer", "tools"]


class TurnEnded(msgspec.Struct, frozen=True):
    """A turn is over: why, and what it took."""

    reason: EndReason
    text: str
    """The last answer, or what went wrong."""
    requests: int
    seconds: float
    usage: dict[str, int]
    cost: int
    """In micro-dollars."""
    leaf: str | None = None
    api_seconds: float = 0
    """How many of the seconds were spent waiting for answers."""
    models: dict[str, dict[str, int]] = {}
    """Of each model: its tokens, and under `cost` its micro-dollars, sub-agents' among them."""
    problem: str = ""
    """Why something of the turn was not saved, and what to do about it."""


class SubagentStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent begins to work."""

    call_id: str
    """The call that it works for."""
    agent_id: str
    agent_type: str
    description: str
    prompt: str
    background: bool
    depth: int


class SubagentEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent is done: what it says, and what it took."""

    call_id: str
    agent_id: str
    status: str
    text: str
    tokens: int
    tool_uses: int
    seconds: float
    path: str
    """Its file."""


class SubagentEvent(msgspec.Struct, frozen=True):
    """Something a sub-agent did."""

    call_id: str
    """The call that it works for."""
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
