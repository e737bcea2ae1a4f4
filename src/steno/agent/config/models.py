"""Model aliases, and the thinking and effort parameters of requests."""

from collections.abc import Container, Mapping
from typing import Any, Final

from steno.errors import BadRequest
from steno.llm.messages_api import Message
from steno.session.resume.api_rules import answer_without_thinking

DEFAULT_MODEL: Final = "claude-opus-4-5-20251101"
LARGE_WINDOW_SUFFIX: Final = "[1m]"
"""Suffix that requests the 1M context window; not part of the model name in the API."""
_ALIASES: Final = {
    "default": DEFAULT_MODEL,
    "opus": DEFAULT_MODEL,
    "sonnet": "claude-sonnet-4-5-20250929",
    "haiku": "claude-haiku-4-5-20251001",
    "inherit": "",
}
"""Model names by alias; `inherit` keeps the current model."""


def resolve_model(name: str) -> str:
    """Return the full model name for a name or alias.

    >>> resolve_model("sonnet[1m]")
    'claude-sonnet-4-5-20250929[1m]'
    """
    base_name = api_model_name(name)
    resolved = _ALIASES.get(base_name.lower(), base_name)
    return f"{resolved}{LARGE_WINDOW_SUFFIX}" if resolved and base_name != name else resolved


def check_alias(name: str) -> None:
    """Check that a name is not a misspelt alias; any other name is a model ID and is accepted.

    Raises:
        BadRequest: The name consists of letters only and resembles an alias.

    >>> check_alias("claude-opus-9"), check_alias("mistral")
    (None, None)
    """
    from difflib import get_close_matches

    base_name = api_model_name(name).lower()
    if base_name.isalpha() and base_name not in _ALIASES:
        similar = get_close_matches(base_name, _ALIASES, n=1, cutoff=0.7)
        if similar:
            raise BadRequest(f"unknown model {name!r}", hint=f"Did you mean {similar[0]}?")


def api_model_name(name: str) -> str:
    """Return a model name without the context window suffix.

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
    """Return the `thinking` parameter of a request; None to omit it.

    Args:
        requested: The mode that the caller requests, one of `THINKING_MODES`; empty for the default.
        env: Environment; `MAX_THINKING_TOKENS` sets the budget, 0 disables thinking.
        by_default: Whether the settings enable thinking by default.
        max_tokens: Maximum number of tokens of a response, including thinking.

    Raises:
        BadRequest: The mode or the variable is invalid.
    """
    if requested and requested not in THINKING_MODES:
        raise BadRequest(f"unknown thinking mode: {requested!r}", hint=f"Use one of {', '.join(THINKING_MODES)}.")
    budget_text = env.get(THINKING_VARIABLE, "").strip()
    if budget_text and not budget_text.isdecimal():
        raise BadRequest(f"{THINKING_VARIABLE} is not a number of tokens", hint="Use 0 to disable thinking.")
    if requested == "adaptive":
        return {"type": "adaptive"}
    budget = int(budget_text) if budget_text else _DEFAULT_BUDGET
    is_enabled = requested == "enabled" or (not requested and (by_default if not budget_text else budget > 0))
    if not is_enabled:
        return None
    # Leave tokens for the answer, which counts towards the same limit.
    budget = min(max(budget, _MIN_BUDGET), max_tokens - _MIN_BUDGET)
    return {"type": "enabled", "budget_tokens": budget} if budget >= _MIN_BUDGET else None


def beta_headers(requested: str, effort: str, env: Mapping[str, str], model: str = "") -> tuple[str, ...]:
    """Return the beta headers that the requested features need."""
    budget_text = env.get(THINKING_VARIABLE, "").strip() or "0"
    has_thinking = requested in ("enabled", "adaptive") or (not requested and budget_text != "0")
    has_large_window = api_model_name(model) != model
    return (
        (_INTERLEAVED_BETA,) * has_thinking + (_EFFORT_BETA,) * bool(effort) + (_LARGE_CONTEXT_BETA,) * has_large_window
    )


def can_enable_thinking(messages: list[Message], thinking_call_ids: Container[str]) -> bool:
    """Return whether thinking with a budget can be enabled at this point of a conversation.

    The API requires that a turn with tool calls started with thinking: a turn that started without it continues
    without it. `thinking_call_ids` has the IDs of calls from requests with thinking enabled, even if the response
    contained no thinking.
    """
    index = answer_without_thinking(messages)
    return index is None or any(str(block.get("id")) in thinking_call_ids for block in messages[index]["content"])
