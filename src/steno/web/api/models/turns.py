"""Responses with turns, and with steps as a published description has them."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from steno.web.api.models.base import Count, Cursor, Model, Timestamp
from steno.web.api.models.sessions import Compaction


class Prompt(Model, frozen=True, kw_only=True):
    """What began a turn."""

    text: str
    origin: Annotated[
        str, Meta(description="human, command, shell, notification, agent, summary and so on.")
    ]
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
    """One step of a turn."""

    kind: Annotated[
        str,
        Meta(
            description="tool, agent, thought, words, queued, hook, error, note, unknown.",
        ),
    ]
    verb: Annotated[str, Meta(description="The tool, the kind of sub-agent, or what happened.")]
    tool: Annotated[str | None, Meta(description="The tool that was called.")]
    subject: str
    outcome: str
    state: Literal["ok", "failed", "denied", "open", "interrupted", "unknown"]
    started: Timestamp | None
    duration_seconds: float | None
    tokens: int | None
    agent: Annotated[str | None, Meta(description="The sub-agent that it started.")]
    path: Annotated[str | None, Meta(description="The file that it read or changed.")]
    added: Count
    removed: Count
    call: Annotated[str | None, Meta(description="The uuid of the record it begins with.")]
    result: Annotated[str | None, Meta(description="The uuid of the record with the result.")]


class Turn(Model, frozen=True, kw_only=True):
    """A prompt, its steps and its answer."""

    number: int
    prompt: Prompt | None
    texts: Annotated[list[str], Meta(description="All texts of the model, in order.")]
    answer: Annotated[str, Meta(description="The texts behind the last tool call.")]
    steps: list[TurnStep]
    started: Timestamp | None
    ended: Timestamp | None
    duration_seconds: float | None
    usage: Tokens
    cost_micro_usd: Annotated[
        int | None, Meta(description="Without sub-agents; null where no price is known.")
    ]
    commands: list[str]
    failed_steps: Count
    interrupted: bool
    compaction: Annotated[Compaction | None, Meta(description="The compaction before it.")]


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
    timestamp: Annotated[
        str | None, Meta(description="As the record has it; a number as ISO 8601.")
    ]
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
