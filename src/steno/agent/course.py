"""What a conversation is held with, and what is the same in all of it."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from steno.model import events as streamed
from steno.model.wire import Block, Request

if TYPE_CHECKING:
    from steno.agent.loop import Agent

__all__ = ["Course", "Fitting", "Model"]


class Model(Protocol):
    """Something that answers requests."""

    def stream(self, request: Request) -> AsyncGenerator[streamed.Event, None]:
        """Answer a request bit by bit."""
        ...


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for every request of a conversation."""

    model: str
    max_tokens: int = 32_000
    system: tuple[Block, ...] = ()
    thinking: dict[str, Any] | None = None
    effort: str = ""
    """How hard the model tries; empty for as it is used to."""


class Fitting(Protocol):
    """Makes room when the window fills up."""

    async def __call__(self, agent: "Agent") -> None:
        """Compact the conversation if it has to be."""
        ...

    async def make_room(self, agent: "Agent") -> bool:
        """Compact it whatever the figures say; whether that was done."""
        ...
