"""What is said to an agent: a prompt as it was typed, and what stands for it in the conversation."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from steno.agent.gates import Kept
from steno.model.wire import Block

__all__ = ["Companion", "Prompt", "Said", "permissions"]


class Companion(msgspec.Struct, frozen=True, kw_only=True):
    """A text that follows something in the user's name: what a command or a skill holds."""

    text: str
    fields: dict[str, Any] = {}
    """Further fields of its record."""
    mentions: tuple[str, ...] = ()
    """The files it names."""
    kept: tuple[Kept, ...] = ()
    """What the session keeps behind it."""

    @property
    def content(self) -> list[Block]:
        """The text as a message."""
        return [{"type": "text", "text": self.text}]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Something said, with everything that goes with it."""

    content: str | list[Block]
    typed: str = ""
    """What the user typed, where the conversation holds something else in its place."""
    companion: Companion | None = None
    kept: tuple[Kept, ...] = ()
    refusal: str = ""
    """Why it is not said at all, where something stands against it."""


Prompt: TypeAlias = str | list[Block] | Said | Callable[[], Awaitable[Said]]
"""What an agent can be told: words, blocks, or something that is yet to be put together."""


def permissions(allowed: tuple[str, ...]) -> Kept:
    """Return what a session keeps of the tools that a command or a skill may use unasked."""
    return Kept(body={"type": "command_permissions", "allowedTools": list(allowed)})
