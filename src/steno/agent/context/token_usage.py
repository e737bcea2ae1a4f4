"""Token usage: estimates before the API has counted, the limits and the usage meter of a turn, text of messages."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, cast

import msgspec

from steno.agent.config.models import LARGE_WINDOW_SUFFIX
from steno.agent.events import EndReason
from steno.llm.messages_api import Block, Message

CHARACTERS_PER_TOKEN: Final = 4
_IMAGE_TOKENS: Final = 1_600
"""What the API counts for an image of the largest size that it does not shrink."""
_TOKENS_PER_DOCUMENT_BYTE: Final = 1 / 20
_BLOCK_OVERHEAD: Final = 8
"""What a block takes beside what it says."""


def estimate_messages(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages take."""
    return sum(estimate_blocks(message["content"]) for message in messages)


def estimate_blocks(blocks: list[Block]) -> int:
    """Return about how many tokens blocks take: rather a few too many than too few."""
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
    """Yield a conversation as plain text; of what tools printed only the beginning."""
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
    """Return the words of a message."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content if block.get("type") == "text")


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return message_text(cast("list[Block]", content)) if isinstance(content, list) else ""


PriceResponse: TypeAlias = Callable[[str, dict[str, Any]], int]
"""What a response cost, in micro-dollars, by its model and usage."""
_TOKEN_FIELDS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_DEFAULT_WINDOW: Final = 200_000
_LARGE_WINDOW: Final = 1_000_000


def context_window(model: str) -> int:
    """Return how many tokens a model takes in; `[1m]` behind its name asks for the large window."""
    return _LARGE_WINDOW if model.endswith(LARGE_WINDOW_SUFFIX) else _DEFAULT_WINDOW


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn may take at most; None for no limit."""

    requests: int | None = None
    cost: int | None = None
    """In micro-dollars."""
    seconds: float | None = None


class UsageMeter:
    """Counts requests, tokens, money and time."""

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
        """Of a sub-agent: the meter of whoever pays for it."""
        self.requests = 0
        self.usage: dict[str, int] = dict.fromkeys(_TOKEN_FIELDS, 0)
        self.cost = 0
        self.usage_by_model: dict[str, dict[str, int]] = {}
        """The same by model, with what it cost, of everything that is paid from here."""
        self.api_seconds = 0.0
        """How many seconds of the turn went by while answers were waited for."""
        self.context_size = 0
        """How many tokens the last request and its answer took of the window."""
        self._price = price
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        """How long it has been."""
        return self._clock() - self._start

    @property
    def seconds_left(self) -> float | None:
        """How many seconds are left; None for as many as it takes. Sub-agents share one clock."""
        if self._parent is not None:
            return self._parent.seconds_left
        max_seconds = self.limits.seconds
        return None if max_seconds is None else max(max_seconds - self.seconds, 0)

    def begin_turn(self) -> None:
        """A new turn begins: requests and time are counted anew, tokens and money go on."""
        self.requests = 0
        self.api_seconds = 0.0
        self._start = self._clock()

    @contextmanager
    def measure_api_time(self) -> Generator[None]:
        """Count the time that an answer takes."""
        started_at = self._clock()
        try:
            yield
        finally:
            self.api_seconds += self._clock() - started_at

    def add_response(self, model: str, usage: dict[str, Any]) -> None:
        """Count a response of the conversation."""
        self.add_usage(model, usage)
        self.context_size = context_tokens(usage)

    def add_usage(self, model: str, usage: dict[str, Any]) -> None:
        """Count what a response took."""
        for name in _TOKEN_FIELDS:
            self.usage[name] += _as_int(usage.get(name))
        self.add_cost(model, usage, self._price(model, usage))

    def add_cost(self, model: str, usage: dict[str, Any], cost: int) -> None:
        """Count money, also for whoever pays."""
        self.cost += cost
        model_usage = self.usage_by_model.setdefault(model, dict.fromkeys((*_TOKEN_FIELDS, "cost"), 0))
        for name in _TOKEN_FIELDS:
            model_usage[name] += _as_int(usage.get(name))
        model_usage["cost"] += cost
        if self._parent is not None:
            self._parent.add_cost(model, usage, cost)

    @property
    def total_cost(self) -> int:
        """What all of it cost that is paid from one purse."""
        return self.cost if self._parent is None else self._parent.total_cost

    def reached_limit(self) -> EndReason | None:
        """Return the limit that is reached, if one is."""
        limits = self.limits
        if limits.requests is not None and self.requests >= limits.requests:
            return "max_turns"
        if limits.cost is not None and self.total_cost >= limits.cost:
            return "max_budget"
        if self.seconds_left == 0:
            return "max_time"
        return None


def context_tokens(usage: Mapping[str, Any]) -> int:
    """Return how many tokens of the window a request and its answer took."""
    return sum(_as_int(usage.get(name)) for name in _TOKEN_FIELDS)


def _as_int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
