"""How a model is to think: asked for by the caller, by the environment or by the settings.

A budget is part of what an answer may be long, so there is always room left for the answer itself.
"""

from collections.abc import Container, Mapping
from typing import Any, Final

from steno.agent.models import bare_model
from steno.errors import BadRequest
from steno.model.wire import Block, Message

__all__ = ["EFFORTS", "THINKING", "betas_for", "may_think", "thinking_for"]

THINKING: Final = ("enabled", "adaptive", "disabled")
EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
VARIABLE: Final = "MAX_THINKING_TOKENS"
_BETWEEN_CALLS: Final = "interleaved-thinking-2025-05-14"
_EFFORT: Final = "effort-2025-11-24"
_LARGE: Final = "context-1m-2025-08-07"
_LEAST: Final = 1024
_USUAL: Final = 16_000
_THOUGHTS: Final = ("thinking", "redacted_thinking")


def thinking_for(
    asked: str, env: Mapping[str, str], *, always: bool, max_tokens: int
) -> dict[str, Any] | None:
    """Return what a request says of thinking; None for nothing.

    Args:
        asked: What the caller wants, one of `THINKING`; empty when they say nothing.
        env: Where `MAX_THINKING_TOKENS` may say how much, and 0 that there is none.
        always: Whether the settings want it whenever nobody says otherwise.
        max_tokens: How long an answer may be, thinking included.

    Raises:
        BadRequest: there is no such way to think, or the variable is no number.
    """
    if asked and asked not in THINKING:
        raise BadRequest(f"there is no thinking {asked!r}", hint=f"one of {', '.join(THINKING)}")
    said = env.get(VARIABLE, "").strip()
    if said and not said.isdecimal():
        raise BadRequest(f"{VARIABLE} is no number of tokens", hint="0 for no thinking")
    if asked == "adaptive":
        return {"type": "adaptive"}
    budget = int(said) if said else _USUAL
    wanted = asked == "enabled" or (not asked and (always if not said else budget > 0))
    if not wanted:
        return None
    # Room for the answer, which counts as well.
    budget = min(max(budget, _LEAST), max_tokens - _LEAST)
    return {"type": "enabled", "budget_tokens": budget} if budget >= _LEAST else None


def betas_for(asked: str, effort: str, env: Mapping[str, str], model: str = "") -> tuple[str, ...]:
    """Return the names under which an endpoint may know what is asked for; no others are sent."""
    said = env.get(VARIABLE, "").strip() or "0"
    thinks = asked in ("enabled", "adaptive") or (not asked and said != "0")
    large = bare_model(model) != model
    return (_BETWEEN_CALLS,) * thinks + (_EFFORT,) * bool(effort) + (_LARGE,) * large


def may_think(messages: list[Message], made: Container[str]) -> bool:
    """Whether thinking on a budget may be asked for at this point of a conversation.

    A turn that is under way, with calls in it, must have begun with thinking: one that began
    before thinking was switched on goes on without. `made` has the calls that were asked for with
    thinking on, be it that the model had no thought.
    """
    start = max((place + 1 for place, each in enumerate(messages) if _is_prompt(each)), default=0)
    answers: list[list[Block]] = [
        each["content"] for each in messages[start:] if each["role"] == "assistant"
    ]
    calls = [block for blocks in answers for block in blocks if block.get("type") == "tool_use"]
    if not calls or answers[0][0].get("type") in _THOUGHTS:
        return True
    return any(str(block.get("id")) in made for block in answers[0])


def _is_prompt(message: Message) -> bool:
    blocks: list[Block] = message["content"]
    return message["role"] == "user" and all(each.get("type") != "tool_result" for each in blocks)
