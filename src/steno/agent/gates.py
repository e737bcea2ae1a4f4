"""Where others may step in: before a prompt, before and after a call, before the end of a turn."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import msgspec

from steno.guard.decision import Verdict
from steno.model.wire import ApiError, Block
from steno.tools.base import ToolResult

__all__ = [
    "Bounds",
    "Gate",
    "Gates",
    "Kept",
    "failure_name",
    "is_too_long",
    "open_gates",
    "told_of",
]

_FAILURES: Final = {
    "rate_limit_error": "rate_limit",
    "authentication_error": "authentication_failed",
    "permission_error": "authentication_failed",
    "billing_error": "billing_error",
    "invalid_request_error": "invalid_request",
    "request_too_large": "invalid_request",
    "not_found_error": "invalid_request",
    "api_error": "server_error",
    "overloaded_error": "server_error",
    "timeout_error": "server_error",
}
_BAD: Final = (400, 413)
_TOO_LONG: Final = ("prompt is too long", "exceed context limit", "exceeds the maximum size")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A record beside the conversation: what was done around it, and what the model reads of it."""

    body: dict[str, Any]
    """The attachment, or the fields of a note."""
    words: str = ""
    """What the model reads in its place; nothing for nothing."""
    parts: tuple[str, ...] = ()
    """The same where it has several parts, which are the user's."""
    image: Block | None = None
    """A picture that the model sees behind them."""
    role: str = "system"
    """Whose words they are, to clients that tell."""
    subtype: str = ""
    """Where given, it is not an attachment but a note of that kind."""
    beside: str = ""
    """The call that it hangs on, with nothing hanging on it; else it is a link of the way."""


class Gate(msgspec.Struct, frozen=True):
    """What those who stepped in said."""

    blocked: bool = False
    reason: str = ""
    verdict: Verdict | None = None
    """A decision about a call, in place of the guard's; a deny rule still stands."""
    given: dict[str, Any] | None = None
    """Another input for a call."""
    output: Any = None
    """Another output of a call."""
    context: tuple[str, ...] = ()
    """What the model should read, as far as it does not stand in what is kept."""
    kept: tuple[Kept, ...] = ()
    """What the session keeps of it."""
    words: tuple[str, ...] = ()
    """What the user should read."""
    ends: bool = False
    """The whole turn is to end."""


Gates: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Gate]]
"""Asked at each event, by the names and facts of Claude Code's hooks: `PreToolUse`, …"""


async def open_gates(_event: str, _facts: dict[str, Any]) -> Gate:
    """Let everything pass."""
    return Gate()


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The events at which the turns of a conversation begin and end: a session's, a sub-agent's."""

    agent: dict[str, str] = {}
    """What is known of the sub-agent; nothing for the session itself."""

    def beginning(self, prompt: str) -> tuple[str, dict[str, Any]]:
        """Return the event before a prompt is heard, and its facts."""
        if not self.agent:
            return "UserPromptSubmit", {"prompt": prompt}
        return "SubagentStart", {key: self.agent[key] for key in ("agent_id", "agent_type")}

    def ending(self, answer: str, *, again: bool) -> tuple[str, dict[str, Any]]:
        """Return the event before a turn ends, and its facts."""
        facts = {"stop_hook_active": again, "last_assistant_message": answer}
        return ("SubagentStop" if self.agent else "Stop"), {**facts, **self.agent}


def is_too_long(error: ApiError) -> bool:
    """Whether the API has refused a request because it does not fit into the window."""
    words = str(error).lower()
    return error.status in _BAD and any(part in words for part in _TOO_LONG)


def failure_name(error: ApiError) -> str:
    """Return how hooks know a failure of the API."""
    return _FAILURES.get(error.kind, "unknown")


def told_of(call: Block, outcome: ToolResult) -> dict[str, Any]:
    """Return a call and what came of it as hooks are told of it."""
    return {
        "tool_name": call.get("name"),
        "tool_input": call.get("input"),
        "tool_use_id": call.get("id"),
        "tool_response": outcome.content,
    }
