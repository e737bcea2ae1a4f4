"""Model aliases, and the thinking and effort parameters of requests."""

from collections.abc import Container, Mapping
from typing import Any, Final

from steno.errors import BadRequest
from steno.llm.messages_api import Message
from steno.session.resume.api_rules import answer_without_thinking

DEFAULT_MODEL: Final = "claude-opus-4-5-20251101"
LARGE_WINDOW_SUFFIX: Final = "[1m]"
"""Behind a name it asks for the large window; the API does not know it as a part of the name."""
_ALIASES: Final = {
    "default": DEFAULT_MODEL,
    "opus": DEFAULT_MODEL,
    "sonnet": "claude-sonnet-4-5-20250929",
    "haiku": "claude-haiku-4-5-20251001",
    "inherit": "",
}
"""`inherit` is the one that is asked anyway."""


def resolve_model(name: str) -> str:
    """Return the model that is meant by a name, be it a short one.

    >>> resolve_model("sonnet[1m]")
    'claude-sonnet-4-5-20250929[1m]'
    """
    base_name = api_model_name(name)
    resolved = _ALIASES.get(base_name.lower(), base_name)
    return f"{resolved}{LARGE_WINDOW_SUFFIX}" if resolved and base_name != name else resolved


def api_model_name(name: str) -> str:
    """Return a model's name as the API knows it.

    >>> api_model_name("claude-sonnet-4-5-20250929[1M]")
    'claude-sonnet-4-5-20250929'
    """
    return name[: -len(LARGE_WINDOW_SUFFIX)] if name.lower().endswith(LARGE_WINDOW_SUFFIX) else name


THINKING_MODES: Final = ("enabled", "adaptive", "disabled")
EFFORT_LEVELS: Final = ("low", "medium", "high", "xhigh", "max")
THINKING_VARIABLE: Final = "MAX_THINKING_TOKENS"
_INTERLEAVED_BETA: Final = "interleaved-thinking-2025-05-14"
_EFFORT_BETA: Final = "effort-2025-11-24"
_LARGE_CONTEXT_BETA: Final = "context-1m-2025-08-07"
_MIN_BUDGET: Final = 1024
_DEFAULT_BUDGET: Final = 16_000


def thinking_parameter(
    requested: str, env: Mapping[str, str], *, by_default: bool, max_tokens: int
) -> dict[str, Any] | None:
    """Return what a request says of thinking; None for nothing.

    Args:
        requested: What the caller wants, one of `THINKING_MODES`; empty when they say nothing.
        env: Where `MAX_THINKING_TOKENS` may say how much, and 0 that there is none.
        by_default: Whether the settings want it whenever nobody says otherwise.
        max_tokens: How long an answer may be, thinking included.

    Raises:
        BadRequest: there is no such way to think, or the variable is no number.
    """
    if requested and requested not in THINKING_MODES:
        raise BadRequest(f"there is no thinking {requested!r}", hint=f"one of {', '.join(THINKING_MODES)}")
    budget_text = env.get(THINKING_VARIABLE, "").strip()
    if budget_text and not budget_text.isdecimal():
        raise BadRequest(f"{THINKING_VARIABLE} is no number of tokens", hint="0 for no thinking")
    if requested == "adaptive":
        return {"type": "adaptive"}
    budget = int(budget_text) if budget_text else _DEFAULT_BUDGET
    is_enabled = requested == "enabled" or (not requested and (by_default if not budget_text else budget > 0))
    if not is_enabled:
        return None
    # Room for the answer, which counts as well.
    budget = min(max(budget, _MIN_BUDGET), max_tokens - _MIN_BUDGET)
    return {"type": "enabled", "budget_tokens": budget} if budget >= _MIN_BUDGET else None


def beta_headers(requested: str, effort: str, env: Mapping[str, str], model: str = "") -> tuple[str, ...]:
    """Return the names under which an endpoint may know what is asked for; no others are sent."""
    budget_text = env.get(THINKING_VARIABLE, "").strip() or "0"
    has_thinking = requested in ("enabled", "adaptive") or (not requested and budget_text != "0")
    has_large_window = api_model_name(model) != model
    return (
        (_INTERLEAVED_BETA,) * has_thinking + (_EFFORT_BETA,) * bool(effort) + (_LARGE_CONTEXT_BETA,) * has_large_window
    )


def can_enable_thinking(messages: list[Message], thinking_call_ids: Container[str]) -> bool:
    """Whether thinking on a budget may be asked for at this point of a conversation.

    A turn that is under way, with calls in it, must have begun with thinking: one that began
    before thinking was switched on goes on without. `thinking_call_ids` has the calls that were asked for with
    thinking on, be it that the model had no thought.
    """
    index = answer_without_thinking(messages)
    return index is None or any(str(block.get("id")) in thinking_call_ids for block in messages[index]["content"])
