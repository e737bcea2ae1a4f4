"""Where others may step in: before a prompt, before and after a call, before the end of a turn."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from steno.guard.decision import Verdict

__all__ = ["Gate", "Gates", "open_gates"]


class Gate(msgspec.Struct, frozen=True):
    """What those who stepped in said."""

    blocked: bool = False
    reason: str = ""
    verdict: Verdict | None = None
    """A decision about a call, in place of the guard's; a deny rule still stands."""
    given: dict[str, Any] | None = None
    """Another input for a call."""
    context: tuple[str, ...] = ()
    """What the model should read."""
    words: tuple[str, ...] = ()
    """What the user should read."""
    ends: bool = False
    """The whole turn is to end."""


Gates: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Gate]]
"""Asked at each event, by the names and facts of Claude Code's hooks: `PreToolUse`, …"""


async def open_gates(_event: str, _facts: dict[str, Any]) -> Gate:
    """Let everything pass."""
    return Gate()
