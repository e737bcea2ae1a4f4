"""The rules of the Messages API: why it would refuse a request, in its own words.

Shapes are looked at first, then what only the request as a whole can break; the first breach is
what the API tells.
"""

from collections.abc import Iterator
from typing import Any, Final

from steno.format.values import as_list, as_object
from steno.model.server.block_rules import (
    CACHE,
    SYSTEM,
    blocks_in,
    content,
    image_problems,
)
from steno.model.server.refusals import Refusal
from steno.model.server.shapes import (
    Check,
    anything,
    each,
    either,
    flag,
    integer,
    maybe,
    number,
    objects,
    one_of,
    shaped,
    string,
)
from steno.model.server.tool_rules import CHOICE, THINKING, tool_problems, tools
from steno.model.server.turn_rules import Known, turn_problems

__all__ = ["MAX_MARKS", "MAX_MESSAGES", "Known", "Refusal", "refusal"]

MAX_MARKS: Final = 4
"""The most blocks that are marked for the cache."""
MAX_MESSAGES: Final = 100_000
_MID_CONVERSATION: Final = ("mid-conversation-", "per-turn-control-")
_NO_SYSTEM: Final = (
    'messages.{}: Unexpected role "system". The Messages API accepts a top-level `system` '
    'parameter, not "system" as an input message role.'
)
_TALK: Final = shaped({"role": one_of("user", "assistant"), "content": content})
_NOTICE: Final = shaped(
    {"role": anything},
    {"content": content, "output_config": maybe(objects), "clear_at": maybe(string())},
)
_EFFORT: Final = shaped(
    {},
    {
        "effort": maybe(one_of("low", "medium", "high", "xhigh", "max")),
        "format": maybe(objects),
        "task_budget": maybe(objects),
    },
)
_NEEDED: Final[dict[str, Check]] = {"model": string(shortest=1), "messages": anything}
_COUNTED: Final[dict[str, Check]] = {
    "system": SYSTEM,
    "tools": tools,
    "tool_choice": CHOICE,
    "thinking": THINKING,
    "cache_control": CACHE,
    "output_config": _EFFORT,
    "speed": maybe(one_of("standard", "fast")),
}
_ANSWERED: Final[dict[str, Check]] = {
    **_COUNTED,
    "temperature": number(0, 1),
    "top_p": number(0, 1),
    "top_k": integer(0),
    "stop_sequences": each(string()),
    "metadata": shaped({}, {"user_id": maybe(string())}),
    "stream": flag,
    "service_tier": one_of("auto", "standard_only"),
    "container": maybe(either(str, objects)),
    "inference_geo": maybe(string()),
    "diagnostics": maybe(objects),
}
_WITH_BETA: Final[dict[str, tuple[str, Check]]] = {
    "context_management": ("context-management-", maybe(objects)),
    "mcp_servers": ("mcp-client-", each(objects)),
    "compaction": ("compact-", maybe(objects)),
    "fallbacks": ("server-side-fallback-", anything),
    "fallback_credit_token": ("fallback-credit-", anything),
    "thread": ("message-threads-", maybe(objects)),
    "output_format": ("structured-outputs-", maybe(objects)),
}
"""Fields that are known only to who names the beginning of a beta."""


def refusal(
    body: dict[str, Any],
    *,
    betas: frozenset[str] = frozenset(),
    counts: bool = False,
    known: Known | None = None,
    alternating: bool = False,
) -> Refusal | None:
    """Return why the API would refuse a request, None for one that it takes.

    Args:
        body: What was sent.
        betas: The betas that its headers name.
        counts: Whether only its tokens are to be counted.
        known: What the server knows of thinking; without it no signature is looked into.
        alternating: Refuse two messages of one role in a row, which the API itself joins.
    """
    for problem in _problems(body, betas, counts=counts):
        return Refusal(problem)
    for problem in turn_problems(body, known or Known(), alternating=alternating):
        return Refusal(problem)
    for problem in _whole_problems(body):
        return Refusal(problem)
    return None


def _problems(body: dict[str, Any], betas: frozenset[str], *, counts: bool) -> Iterator[str]:
    beta = {
        key: check
        for key, (beginning, check) in _WITH_BETA.items()
        if any(name.startswith(beginning) for name in betas)
    }
    needed = _NEEDED if counts else {**_NEEDED, "max_tokens": integer(1)}
    yield from shaped(needed, {**(_COUNTED if counts else _ANSWERED), **beta})(body, "")
    messages = as_list(body["messages"])
    if messages is None:
        yield "messages: Input should be a valid list"
        return
    if len(messages) > MAX_MESSAGES:
        yield f"messages: List should have at most {MAX_MESSAGES} items"
    notices = any(name.startswith(_MID_CONVERSATION) for name in betas)
    for place, message in enumerate(messages):
        if (as_object(message) or {}).get("role") != "system":
            yield from _TALK(message, f"messages.{place}")
        elif not notices:
            yield _NO_SYSTEM.format(place)
        else:
            yield from _NOTICE(message, f"messages.{place}")


def _whole_problems(body: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a request as a whole."""
    yield from _system_problems(body.get("system"))
    yield from tool_problems(body)
    yield from _thinking_problems(body)
    if any(not sequence.strip() for sequence in body.get("stop_sequences", ())):
        yield "stop_sequences: each stop sequence must contain non-whitespace"
    yield from _mark_problems(body)
    yield from image_problems(list(_images(body)))


def _system_problems(system: Any) -> Iterator[str]:
    for block in as_list(system) or ():
        if not str(block["text"]).strip():
            yield "system: text content blocks must be non-empty"


def _thinking_problems(body: dict[str, Any]) -> Iterator[str]:
    thinking = as_object(body.get("thinking")) or {}
    if thinking.get("type") not in ("enabled", "adaptive"):
        return
    budget, most = thinking.get("budget_tokens", 0), body.get("max_tokens")
    if most is not None and budget >= most:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."
    if body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled."
    if "top_k" in body:
        yield "`top_k` must be unset when thinking is enabled."


def _mark_problems(body: dict[str, Any]) -> Iterator[str]:
    marks = list(_marks(body))
    if len(marks) > MAX_MARKS:
        found = f"Found {len(marks)}."
        yield f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. {found}"
    short = False
    for mark in marks:
        hourly = mark.get("ttl") == "1h"
        if hourly and short:
            yield (
                "cache_control.ttl: a ttl='1h' cache_control block must not come after a "
                "ttl='5m' cache_control block"
            )
        short = short or not hourly


def _marks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the marks for the cache in the order that the API reads them."""
    for holder in (*(body.get("tools") or ()), *(as_list(body.get("system")) or ())):
        if mark := holder.get("cache_control"):
            yield mark
    for _, block in _all_blocks(body):
        if mark := block.get("cache_control"):
            yield mark
    if mark := body.get("cache_control"):
        yield mark


def _images(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((path, block) for path, block in _all_blocks(body) if block.get("type") == "image")


def _all_blocks(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every block with its path, also those inside tool results."""
    for place, message in enumerate(body["messages"]):
        for index, block in enumerate(blocks_in(message)):
            path = f"messages.{place}.content.{index}"
            if block.get("type") == "tool_result":
                for inner, item in enumerate(as_list(block.get("content")) or ()):
                    yield f"{path}.tool_result.content.{inner}", item
            yield path, block
