"""The rules between messages: roles, calls and their results, thinking that is sent back."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

from steno.format.values import as_object
from steno.model.server.block_rules import blocks_in, text_problems

__all__ = ["Known", "turn_problems"]

_Block = dict[str, Any]
_Message = dict[str, Any]

_THINKING: Final = ("thinking", "redacted_thinking")
_ONLY: Final = {
    **dict.fromkeys(("tool_result", "image", "document", "search_result"), "user"),
    **dict.fromkeys(
        ("tool_use", "server_tool_use", "web_search_tool_result", *_THINKING), "assistant"
    ),
    **dict.fromkeys(("tool_addition", "tool_removal"), "system"),
}
"""The role that a kind of block belongs to."""
_EMPTY: Final = (
    "messages.{}: all messages must have non-empty content except for the optional final "
    "assistant message"
)
_UNANSWERED: Final = (
    "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
_UNCALLED: Final = (
    "messages.{}.content.{}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each "
    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
)
_TWICE: Final = (
    "messages.{}.content.{}: each tool_use must have a single result. Found multiple "
    "`tool_result` blocks with id: {}"
)
_LATE: Final = (
    "messages.{}.content.{}: `tool_result` blocks must come before any other content of the "
    "message that answers `tool_use` blocks"
)
_MODIFIED: Final = (
    "messages.{}.content.{}: `thinking` or `redacted_thinking` blocks in the latest assistant "
    "message cannot be modified. These blocks must remain as they were in the original response."
)
_UNTHINKING: Final = (
    "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When "
    "`thinking` is enabled, a final `assistant` message must start with a thinking block "
    "(preceding the lastmost set of `tool_use` and `tool_result` blocks)."
)
_REMEMBERED: Final = 4_096


class Known:
    """What a server knows of the answers it gave: which thinking is its own, which had none."""

    def __init__(self, verdict: Callable[[str, str], str] | None = None) -> None:
        self.verdict = verdict
        """Says of thinking and its signature `genuine`, `modified` or `foreign`."""
        self._plain: dict[str, None] = {}

    def unthinking(self, blocks: list[_Block]) -> None:
        """Remember that these calls were made without thinking first."""
        for block in blocks:
            if block.get("type") == "tool_use":
                self._plain[str(block.get("id"))] = None
        while len(self._plain) > _REMEMBERED:
            self._plain.pop(next(iter(self._plain)))

    def thought_nothing(self, blocks: list[_Block]) -> bool:
        """Whether a message is an answer that was given without thinking."""
        return any(str(block.get("id")) in self._plain for block in blocks)


def turn_problems(body: dict[str, Any], known: Known, *, alternating: bool) -> Iterator[str]:
    """Yield what is wrong between the messages of a request whose shapes are right."""
    messages: list[_Message] = body["messages"]
    yield from _role_problems(messages, alternating=alternating)
    blocks = [blocks_in(message) for message in messages]
    for place, held in enumerate(blocks):
        yield from _place_problems(messages, place, held)
    yield from _pair_problems(messages, blocks)
    yield from _thinking_problems(messages, blocks, known)
    thinks = (as_object(body.get("thinking")) or {}).get("type") == "enabled"
    if thinks:
        yield from _turn_begins(messages, blocks, known)
    yield from _ending(messages, blocks)


def _role_problems(messages: list[_Message], *, alternating: bool) -> Iterator[str]:
    if not messages:
        yield "messages: at least one message is required"
        return
    roles = [str(message["role"]) for message in messages]
    if roles[0] != "user":
        yield 'messages: first message must use the "user" role'
    for one, other in pairwise(roles):
        if alternating and one == other:
            about = f'but found multiple "{one}" roles in a row'
            yield f'messages: roles must alternate between "user" and "assistant", {about}'


def _place_problems(messages: list[_Message], place: int, held: list[_Block]) -> Iterator[str]:
    role = messages[place]["role"]
    final = place == len(messages) - 1 and role == "assistant"
    configured = role == "system" and messages[place].get("output_config")
    if not held and not final and not configured:
        yield _EMPTY.format(place)
    for index, block in enumerate(held):
        only = _ONLY.get(str(block.get("type")), role)
        if only != role:
            yield (
                f"messages.{place}.content.{index}: `{block.get('type')}` blocks can only be in "
                f"`{only}` messages"
            )
        yield from text_problems(block, f"messages.{place}.content.{index}")


def _pair_problems(messages: list[_Message], blocks: list[list[_Block]]) -> Iterator[str]:
    seen: set[str] = set()
    calls: list[str] = []
    for place, held in enumerate(blocks):
        results = [
            (index, str(block.get("tool_use_id")))
            for index, block in enumerate(held)
            if block.get("type") == "tool_result"
        ]
        yield from _result_problems(place, calls, results)
        calls = [str(block.get("id")) for block in held if block.get("type") == "tool_use"]
        if seen.intersection(calls) or len(set(calls)) < len(calls):
            yield f"messages.{place}: `tool_use` ids must be unique"
        seen.update(calls)
        if messages[place]["role"] == "assistant" and place < len(messages) - 1:
            yield from _served(place, held)
    if calls:
        yield _UNANSWERED.format(len(messages) - 1, ", ".join(calls))


def _result_problems(place: int, calls: list[str], results: list[tuple[int, str]]) -> Iterator[str]:
    """Yield what is wrong between the calls of one message and the results in the next."""
    answered = [call for _, call in results]
    missing = [call for call in calls if call not in answered]
    if missing:
        yield _UNANSWERED.format(place - 1, ", ".join(missing))
    for number, (index, call) in enumerate(results):
        if call not in calls:
            yield _UNCALLED.format(place, index, call)
        elif call in answered[:number]:
            yield _TWICE.format(place, index, call)
        elif index != number:
            yield _LATE.format(place, index)


def _served(place: int, held: list[_Block]) -> Iterator[str]:
    """Yield the calls of the server's own tools without a result beside them, and the reverse."""
    calls = {block.get("id") for block in held if block.get("type") == "server_tool_use"}
    for index, block in enumerate(held):
        call = block.get("tool_use_id")
        if block.get("type") == "web_search_tool_result" and call not in calls:
            yield (
                f"messages.{place}.content.{index}: unexpected `tool_use_id` found in "
                f"`web_search_tool_result` blocks: {call}. Each `web_search_tool_result` block "
                "must have a corresponding `server_tool_use` block before it."
            )
    results = {block.get("tool_use_id") for block in held}
    for block in held:
        if block.get("type") == "server_tool_use" and block.get("id") not in results:
            name = block.get("name")
            yield (
                f"messages.{place}: `{name}` tool use with id `{block.get('id')}` was found "
                f"without a corresponding `{name}_tool_result` block"
            )


def _thinking_problems(
    messages: list[_Message], blocks: list[list[_Block]], known: Known
) -> Iterator[str]:
    if known.verdict is None:
        return
    for place, held in enumerate(blocks):
        if messages[place]["role"] != "assistant":
            continue
        for index, block in enumerate(held):
            if block.get("type") != "thinking":
                continue
            match known.verdict(str(block["thinking"]), str(block["signature"])):
                case "modified":
                    yield _MODIFIED.format(place, index)
                case "foreign":
                    yield (
                        f"messages.{place}.content.{index}: Invalid `signature` in `thinking` block"
                    )
                case _:
                    continue


def _turn_begins(
    messages: list[_Message], blocks: list[list[_Block]], known: Known
) -> Iterator[str]:
    """Yield that the turn which is under way, with tool calls, does not begin with thinking."""
    begin = 0
    for place, held in enumerate(blocks):
        prompts = messages[place]["role"] == "user" and not any(
            block.get("type") == "tool_result" for block in held
        )
        begin = place + 1 if prompts else begin
    turn = [at for at in range(begin, len(messages)) if messages[at]["role"] == "assistant"]
    calls = any(block.get("type") == "tool_use" for at in turn for block in blocks[at])
    first = blocks[turn[0]] if turn else []
    if calls and first[0].get("type") not in _THINKING and not known.thought_nothing(first):
        yield _UNTHINKING.format(turn[0], first[0].get("type"))


def _ending(messages: list[_Message], blocks: list[list[_Block]]) -> Iterator[str]:
    last = blocks[-1][-1] if blocks and blocks[-1] else {}
    words = str(last.get("text", ""))
    if (
        messages[-1]["role"] == "assistant"
        and last.get("type") == "text"
        and words != words.rstrip()
    ):
        yield "messages: final assistant content cannot end with trailing whitespace"
