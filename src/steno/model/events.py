"""What happens while a response streams in, as values."""

from typing import Any, TypeAlias

import msgspec

from steno.model.wire import ApiError, Block, Response

__all__ = [
    "BlockEnded",
    "BlockStarted",
    "Ended",
    "Event",
    "InputGrew",
    "Retrying",
    "Started",
    "TextGrew",
    "ThinkingGrew",
    "Verbatim",
]


class Started(msgspec.Struct, frozen=True):
    """The response has begun."""

    id: str
    model: str


class BlockStarted(msgspec.Struct, frozen=True):
    """A block of the response has begun: its kind, and for a call its name and id."""

    index: int
    block: Block


class TextGrew(msgspec.Struct, frozen=True):
    """More of an answer's text."""

    index: int
    text: str


class ThinkingGrew(msgspec.Struct, frozen=True):
    """More of what the model thinks."""

    index: int
    text: str


class InputGrew(msgspec.Struct, frozen=True):
    """More of the JSON of a call's input."""

    index: int
    text: str


class BlockEnded(msgspec.Struct, frozen=True):
    """A block is whole, as it is recorded and sent back.

    `bad_input` holds the text of a call's input that is no JSON object; the block's `input` is
    then `{}`.
    """

    index: int
    block: Block
    bad_input: str | None = None


class Ended(msgspec.Struct, frozen=True):
    """The response is whole."""

    response: Response


class Retrying(msgspec.Struct, frozen=True):
    """A request failed and will be made again after a pause."""

    attempt: int
    of: int
    delay: float
    error: ApiError


class Verbatim(msgspec.Struct, frozen=True):
    """An event of the API as it came, ahead of what it means; only for those who ask for it."""

    event: dict[str, Any]


Event: TypeAlias = (
    Started
    | BlockStarted
    | TextGrew
    | ThinkingGrew
    | InputGrew
    | BlockEnded
    | Ended
    | Retrying
    | Verbatim
)
