"""Token usage: estimates, turn limits, the usage meter, and the text of messages."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, cast

import msgspec

from steno.agent.config.models import LARGE_WINDOW_SUFFIX
from steno.agent.events import EndReason
from steno.llm.messages_api import Block, Message

CHARACTERS_PER_TOKEN: Final = 4
_IMAGE_TOKENS: Final = 1_600
"""Tokens that the API counts for an image of the maximum size."""
_TOKENS_PER_DOCUMENT_BYTE: Final = 1 / 20
_BLOCK_OVERHEAD: Final = 8
"""Estimated tokens of a block in addition to its text."""


def estimate_messages(messages: Sequence[Message]) -> int:
    """Return the estimated tokens of messages."""
    return sum(estimate_blocks(message["content"]) for message in messages)


def estimate_blocks(blocks: list[Block]) -> int:
    """Return the estimated tokens of blocks, rather too many than too few."""
    return sum(_BLOCK_OVERHEAD + _estimate_block(block) for block in blocks)


def _estimate_block(block: Block) -> int:
    match block.get("type"):
        case "image":
            return _IMAGE_TOKENS
        case "document":
            return round(len(str(block.get("source"))) * _TOKENS_PER_DOCUMENT_BYTE)
        case "text":
            return _estimate_text(str(block.get("text", "")))
        case "tool_result":
            content: Any = block.get("content")
            if isinstance(content, list):
                return estimate_blocks(cast("list[Block]", content))
            return _estimate_text(str(content or ""))
        case _:
            return _estimate_text(str(block))


def _estimate_text(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return size // CHARACTERS_PER_TOKEN


MICRODOLLARS_PER_DOLLAR: Final = 1_000_000
_MAX_RESULT_CHARACTERS: Final = 2_000


def transcript_lines(messages: Sequence[Message]) -> Iterator[str]:
    """Yield a conversation as plain text with truncated tool results."""
    for message in messages:
        for block in message["content"]:
            match block.get("type"):
                case "text":
                    yield f"{message['role']}: {block['text']}"
                case "tool_use":
                    yield f"call of {block.get('name')}: {block.get('input')}"
                case "tool_result":
                    yield f"result: {_result_text(block.get('content'))[:_MAX_RESULT_CHARACTERS]}"
                case _:
                    pass


def message_text(content: str | list[Block]) -> str:
    """Return the text of a message."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content if block.get("type") == "text")


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return message_text(cast("list[Block]", content)) if isinstance(content, list) else ""


PriceResponse: TypeAlias = Callable[[str, dict[str, Any]], int]
"""Returns the cost of a response in micro-dollars, by model and usage."""
_TOKEN_FIELDS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_DEFAULT_WINDOW: Final = 200_000
_LARGE_WINDOW: Final = 1_000_000


def context_window(model: str) -> int:
    """Return the context window of a model in tokens; the suffix `[1m]` requests the large one."""
    return _LARGE_WINDOW if model.endswith(LARGE_WINDOW_SUFFIX) else _DEFAULT_WINDOW


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a turn; None for no limit."""

    requests: int | None = None
    cost: int | None = None
    """Cost in micro-dollars."""
    seconds: float | None = None


class UsageMeter:
    """Measures requests, tokens, cost and time of an agent."""

    def __init__(
        self,
        limits: TurnLimits,
        *,
        price: PriceResponse,
        clock: Callable[[], float],
        parent: "UsageMeter | None" = None,
    ) -> None:
        self.limits = limits
        self._parent = parent
        """For a sub-agent, the meter of its parent."""
        self.requests = 0
        self.usage: dict[str, int] = dict.fromkeys(_TOKEN_FIELDS, 0)
        self.cost = 0
        self.usage_by_model: dict[str, dict[str, int]] = {}
        """Tokens and cost by model, including sub-agents."""
        self.api_seconds = 0.0
        """Seconds of the turn spent waiting for the API."""
        self.context_size = 0
        """Tokens of the last request and response."""
        self._price = price
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        """Seconds since the start of the turn."""
        return self._clock() - self._start

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time limit, None if there is no limit; sub-agents share the limit of the session."""
        if self._parent is not None:
            return self._parent.seconds_left
        max_seconds = self.limits.seconds
        return None if max_seconds is None else max(max_seconds - self.seconds, 0)

    def begin_turn(self) -> None:
        """Start a turn: reset requests and time; tokens and cost accumulate."""
        self.requests = 0
        self.api_seconds = 0.0
        self._start = self._clock()

    @contextmanager
    def measure_api_time(self) -> Generator[None]:
        """Add the duration of the block to the API time."""
        started_at = self._clock()
        try:
            yield
        finally:
            self.api_seconds += self._clock() - started_at

    def add_response(self, model: str, usage: dict[str, Any]) -> None:
        """Add the usage of a response of the conversation."""
        self.add_usage(model, usage)
        self.context_size = context_tokens(usage)

    def add_usage(self, model: str, usage: dict[str, Any]) -> None:
        """Add the usage of a response."""
        for name in _TOKEN_FIELDS:
            self.usage[name] += _as_int(usage.get(name))
        self.add_cost(model, usage, self._price(model, usage))

    def add_cost(self, model: str, usage: dict[str, Any], cost: int) -> None:
        """Add cost and tokens, also to the parent."""
        self.cost += cost
        model_usage = self.usage_by_model.setdefault(model, dict.fromkeys((*_TOKEN_FIELDS, "cost"), 0))
        for name in _TOKEN_FIELDS:
            model_usage[name] += _as_int(usage.get(name))
        model_usage["cost"] += cost
        if self._parent is not None:
            self._parent.add_cost(model, usage, cost)

    @property
    def total_cost(self) -> int:
        """Cost of the session, including all sub-agents."""
        return self.cost if self._parent is None else self._parent.total_cost

    def reached_limit(self) -> EndReason | None:
        """Return the limit that was reached, or None."""
        limits = self.limits
        if limits.requests is not None and self.requests >= limits.requests:
            return "max_turns"
        if limits.cost is not None and self.total_cost >= limits.cost:
            return "max_budget"
        if self.seconds_left == 0:
            return "max_time"
        return None


def context_tokens(usage: Mapping[str, Any]) -> int:
    """Return the context size of a request and its response."""
    return sum(_as_int(usage.get(name)) for name in _TOKEN_FIELDS)


def _as_int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
