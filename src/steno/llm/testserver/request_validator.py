"""Validates a request as the Messages API does, and returns its error message.

Shapes are checked first, then roles, tool results and thinking across messages, then rules for the whole request; the
first problem is returned.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from steno.format.lenient_json import as_list, as_object
from steno.format.message import THINKING_TYPES
from steno.llm.testserver.request_schema import (
    CACHE_CONTROL,
    MESSAGE_CONTENT,
    SYSTEM_PROMPT,
    THINKING_CONFIG,
    TOOL_CHOICE,
    Check,
    any_object,
    any_value,
    boolean_value,
    check_images,
    check_text,
    check_tool_shapes,
    check_tools,
    enum_value,
    integer_value,
    list_of,
    message_blocks,
    nullable,
    number_value,
    object_with,
    text_or,
    text_value,
)
from steno.llm.testserver.responders import Refusal
from steno.session.resume.api_rules import BLOCK_ROLES, answer_without_thinking, pair_calls, unpaired_server_blocks

_Block = dict[str, Any]
_Message = dict[str, Any]

_ROLE_OF_BLOCK: Final = {
    **{
        kind: BLOCK_ROLES[kind]
        for kind in (
            *("tool_result", "image", "document", "search_result"),
            *("tool_use", "server_tool_use", "web_search_tool_result", *THINKING_TYPES),
        )
    },
    **dict.fromkeys(("tool_addition", "tool_removal"), "system"),
}
"""The role that messages with a type of block must have."""
_EMPTY_CONTENT: Final = (
    "messages.{}: all messages must have non-empty content except for the optional final assistant message"
)
_MISSING_RESULT: Final = (
    "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
_UNEXPECTED_RESULT: Final = (
    "messages.{}.content.{}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each "
    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
)
_DUPLICATE_RESULT: Final = (
    "messages.{}.content.{}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {}"
)
_RESULT_AFTER_CONTENT: Final = (
    "messages.{}.content.{}: `tool_result` blocks must come before any other content of the "
    "message that answers `tool_use` blocks"
)
_MODIFIED_THINKING: Final = (
    "messages.{}.content.{}: `thinking` or `redacted_thinking` blocks in the latest assistant "
    "message cannot be modified. These blocks must remain as they were in the original response."
)
_MISSING_THINKING: Final = (
    "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When "
    "`thinking` is enabled, a final `assistant` message must start with a thinking block "
    "(preceding the lastmost set of `tool_use` and `tool_result` blocks)."
)
_MAX_CALLS: Final = 4_096


class ThinkingHistory:
    """Remembers which thinking the server produced, and which responses had none."""

    def __init__(self, verdict: Callable[[str, str], str] | None = None) -> None:
        self.verdict = verdict
        """Returns `genuine`, `modified` or `foreign` for thinking and its signature."""
        self._calls_without_thinking: dict[str, None] = {}

    def record_without_thinking(self, blocks: list[_Block]) -> None:
        """Record tool calls of a response without thinking."""
        for block in blocks:
            if block.get("type") == "tool_use":
                self._calls_without_thinking[str(block.get("id"))] = None
        while len(self._calls_without_thinking) > _MAX_CALLS:
            self._calls_without_thinking.pop(next(iter(self._calls_without_thinking)))

    def had_no_thinking(self, blocks: list[_Block]) -> bool:
        """Return whether a message is a response without thinking."""
        return any(str(block.get("id")) in self._calls_without_thinking for block in blocks)


def check_turns(body: dict[str, Any], history: ThinkingHistory, *, alternating: bool) -> Iterator[str]:
    """Yield the problems across the messages of a request with valid shapes."""
    messages: list[_Message] = body["messages"]
    yield from _check_roles(messages, alternating=alternating)
    blocks = [message_blocks(message) for message in messages]
    for index, message_content in enumerate(blocks):
        yield from _check_message(messages, index, message_content)
    yield from _check_tool_pairs(messages, blocks)
    yield from _check_signatures(messages, blocks, history)
    if (as_object(body.get("thinking")) or {}).get("type") == "enabled":
        index = answer_without_thinking(messages)
        if index is not None and not history.had_no_thinking(blocks[index]):
            yield _MISSING_THINKING.format(index, blocks[index][0].get("type"))
    yield from _check_last_message(messages, blocks)


def _check_roles(messages: list[_Message], *, alternating: bool) -> Iterator[str]:
    if not messages:
        yield "messages: at least one message is required"
        return
    roles = [str(message["role"]) for message in messages]
    if roles[0] != "user":
        yield 'messages: first message must use the "user" role'
    for role, next_role in pairwise(roles):
        if alternating and role == next_role:
            detail = f'but found multiple "{role}" roles in a row'
            yield f'messages: roles must alternate between "user" and "assistant", {detail}'


def _check_message(messages: list[_Message], position: int, message_content: list[_Block]) -> Iterator[str]:
    role = messages[position]["role"]
    final = position == len(messages) - 1 and role == "assistant"
    configured = role == "system" and messages[position].get("output_config")
    if not message_content and not final and not configured:
        yield _EMPTY_CONTENT.format(position)
    for index, block in enumerate(message_content):
        required_role = _ROLE_OF_BLOCK.get(str(block.get("type")), role)
        if required_role != role:
            yield (
                f"messages.{position}.content.{index}: `{block.get('type')}` blocks can only be in "
                f"`{required_role}` messages"
            )
        yield from check_text(block, f"messages.{position}.content.{index}")


def _check_tool_pairs(messages: list[_Message], blocks: list[list[_Block]]) -> Iterator[str]:
    for position, pairing in enumerate(pair_calls(blocks)):
        if pairing.unanswered:
            yield _MISSING_RESULT.format(position - 1, ", ".join(pairing.unanswered))
        for result in pairing.results:
            if not result.is_called:
                yield _UNEXPECTED_RESULT.format(position, result.index, result.call_id)
            elif result.is_repeated:
                yield _DUPLICATE_RESULT.format(position, result.index, result.call_id)
            elif result.index != result.number:
                yield _RESULT_AFTER_CONTENT.format(position, result.index)
        if pairing.repeated_calls:
            yield f"messages.{position}: `tool_use` ids must be unique"
        # At the end of the request, a paused server tool call may still be open.
        if position < len(messages) - 1 and messages[position]["role"] == "assistant":
            yield from _check_server_tools(position, blocks[position])


def _check_server_tools(position: int, message_content: list[_Block]) -> Iterator[str]:
    """Yield the unpaired server tool calls and results of a message."""
    unpaired = [(index, message_content[index]) for index in unpaired_server_blocks(message_content)]
    for index, block in unpaired:
        if block.get("type") == "web_search_tool_result":
            yield (
                f"messages.{position}.content.{index}: unexpected `tool_use_id` found in "
                f"`web_search_tool_result` blocks: {block.get('tool_use_id')}. Each `web_search_tool_result` block "
                "must have a corresponding `server_tool_use` block before it."
            )
    for _, block in unpaired:
        if block.get("type") == "server_tool_use":
            name = block.get("name")
            yield (
                f"messages.{position}: `{name}` tool use with id `{block.get('id')}` was found "
                f"without a corresponding `{name}_tool_result` block"
            )


def _check_signatures(messages: list[_Message], blocks: list[list[_Block]], history: ThinkingHistory) -> Iterator[str]:
    if history.verdict is None:
        return
    for position, message_content in enumerate(blocks):
        if messages[position]["role"] != "assistant":
            continue
        for index, block in enumerate(message_content):
            if block.get("type") != "thinking":
                continue
            match history.verdict(str(block["thinking"]), str(block["signature"])):
                case "modified":
                    yield _MODIFIED_THINKING.format(position, index)
                case "foreign":
                    yield (f"messages.{position}.content.{index}: Invalid `signature` in `thinking` block")
                case _:
                    continue


def _check_last_message(messages: list[_Message], blocks: list[list[_Block]]) -> Iterator[str]:
    last = blocks[-1][-1] if blocks and blocks[-1] else {}
    text = str(last.get("text", ""))
    if messages[-1]["role"] == "assistant" and last.get("type") == "text" and text != text.rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


MAX_CACHE_CONTROLS: Final = 4
"""Maximum number of blocks with cache control."""
MAX_MESSAGES: Final = 100_000
_SYSTEM_MESSAGE_BETAS: Final = ("mid-conversation-", "per-turn-control-")
_UNEXPECTED_SYSTEM: Final = (
    'messages.{}: Unexpected role "system". The Messages API accepts a top-level `system` '
    'parameter, not "system" as an input message role.'
)
_MESSAGE: Final = object_with({"role": enum_value("user", "assistant"), "content": MESSAGE_CONTENT})
_SYSTEM_MESSAGE: Final = object_with(
    {"role": any_value},
    {"content": MESSAGE_CONTENT, "output_config": nullable(any_object), "clear_at": nullable(text_value())},
)
_OUTPUT_CONFIG: Final = object_with(
    {},
    {
        "effort": nullable(enum_value("low", "medium", "high", "xhigh", "max")),
        "format": nullable(any_object),
        "task_budget": nullable(any_object),
    },
)
_REQUIRED_FIELDS: Final[dict[str, Check]] = {"model": text_value(min_length=1), "messages": any_value}
_COUNT_FIELDS: Final[dict[str, Check]] = {
    "system": SYSTEM_PROMPT,
    "tools": check_tool_shapes,
    "tool_choice": TOOL_CHOICE,
    "thinking": THINKING_CONFIG,
    "cache_control": CACHE_CONTROL,
    "output_config": _OUTPUT_CONFIG,
    "speed": nullable(enum_value("standard", "fast")),
}
_MESSAGE_FIELDS: Final[dict[str, Check]] = {
    **_COUNT_FIELDS,
    "temperature": number_value(0, 1),
    "top_p": number_value(0, 1),
    "top_k": integer_value(0),
    "stop_sequences": list_of(text_value()),
    "metadata": object_with({}, {"user_id": nullable(text_value())}),
    "stream": boolean_value,
    "service_tier": enum_value("auto", "standard_only"),
    "container": nullable(text_or(str, any_object)),
    "inference_geo": nullable(text_value()),
    "diagnostics": nullable(any_object),
}
_BETA_FIELDS: Final[dict[str, tuple[str, Check]]] = {
    "context_management": ("context-management-", nullable(any_object)),
    "mcp_servers": ("mcp-client-", list_of(any_object)),
    "compaction": ("compact-", nullable(any_object)),
    "fallbacks": ("server-side-fallback-", any_value),
    "fallback_credit_token": ("fallback-credit-", any_value),
    "thread": ("message-threads-", nullable(any_object)),
    "output_format": ("structured-outputs-", nullable(any_object)),
}
"""Fields that require a beta whose name has the given prefix."""


def validate_request(
    body: dict[str, Any],
    *,
    betas: frozenset[str] = frozenset(),
    count_only: bool = False,
    history: ThinkingHistory | None = None,
    alternating: bool = False,
) -> Refusal | None:
    """Return the error message with which the API would refuse a request; None if it accepts the request.

    Args:
        body: The request body.
        betas: The betas in its headers.
        count_only: Whether it is a token counting request.
        history: The thinking of earlier responses; without it, signatures are not checked.
        alternating: Refuse consecutive messages of one role, which the API joins.
    """
    for problem in _shape_problems(body, betas, count_only=count_only):
        return Refusal(problem)
    for problem in check_turns(body, history or ThinkingHistory(), alternating=alternating):
        return Refusal(problem)
    for problem in _request_problems(body):
        return Refusal(problem)
    return None


def _shape_problems(body: dict[str, Any], betas: frozenset[str], *, count_only: bool) -> Iterator[str]:
    beta = {
        key: check for key, (prefix, check) in _BETA_FIELDS.items() if any(name.startswith(prefix) for name in betas)
    }
    required = _REQUIRED_FIELDS if count_only else {**_REQUIRED_FIELDS, "max_tokens": integer_value(1)}
    yield from object_with(required, {**(_COUNT_FIELDS if count_only else _MESSAGE_FIELDS), **beta})(body, "")
    messages = as_list(body["messages"])
    if messages is None:
        yield "messages: Input should be a valid list"
        return
    if len(messages) > MAX_MESSAGES:
        yield f"messages: List should have at most {MAX_MESSAGES} items"
    allows_system = any(name.startswith(_SYSTEM_MESSAGE_BETAS) for name in betas)
    for index, message in enumerate(messages):
        if (as_object(message) or {}).get("role") != "system":
            yield from _MESSAGE(message, f"messages.{index}")
        elif not allows_system:
            yield _UNEXPECTED_SYSTEM.format(index)
        else:
            yield from _SYSTEM_MESSAGE(message, f"messages.{index}")


def _request_problems(body: dict[str, Any]) -> Iterator[str]:
    yield from _system_problems(body.get("system"))
    yield from check_tools(body)
    yield from _thinking_problems(body)
    if any(not sequence.strip() for sequence in body.get("stop_sequences", ())):
        yield "stop_sequences: each stop sequence must contain non-whitespace"
    yield from _cache_control_problems(body)
    yield from check_images(list(_images(body)))


def _system_problems(system: Any) -> Iterator[str]:
    for block in as_list(system) or ():
        if not str(block["text"]).strip():
            yield "system: text content blocks must be non-empty"


def _thinking_problems(body: dict[str, Any]) -> Iterator[str]:
    thinking = as_object(body.get("thinking")) or {}
    if thinking.get("type") not in ("enabled", "adaptive"):
        return
    budget, max_tokens = thinking.get("budget_tokens", 0), body.get("max_tokens")
    if max_tokens is not None and budget >= max_tokens:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."
    if body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled."
    if "top_k" in body:
        yield "`top_k` must be unset when thinking is enabled."


def _cache_control_problems(body: dict[str, Any]) -> Iterator[str]:
    cache_controls = list(_cache_controls(body))
    if len(cache_controls) > MAX_CACHE_CONTROLS:
        count_note = f"Found {len(cache_controls)}."
        yield f"A maximum of {MAX_CACHE_CONTROLS} blocks with cache_control may be provided. {count_note}"
    saw_short = False
    for cache_control in cache_controls:
        is_hourly = cache_control.get("ttl") == "1h"
        if is_hourly and saw_short:
            yield (
                "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
            )
        saw_short = saw_short or not is_hourly


def _cache_controls(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in (*(body.get("tools") or ()), *(as_list(body.get("system")) or ())):
        if cache_control := item.get("cache_control"):
            yield cache_control
    for _, block in _all_blocks(body):
        if cache_control := block.get("cache_control"):
            yield cache_control
    if cache_control := body.get("cache_control"):
        yield cache_control


def _images(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((path, block) for path, block in _all_blocks(body) if block.get("type") == "image")


def _all_blocks(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every block with its path, including those inside tool results."""
    for message_index, message in enumerate(body["messages"]):
        for index, block in enumerate(message_blocks(message)):
            path = f"messages.{message_index}.content.{index}"
            if block.get("type") == "tool_result":
                for inner, item in enumerate(as_list(block.get("content")) or ()):
                    yield f"{path}.tool_result.content.{inner}", item
            yield path, block
