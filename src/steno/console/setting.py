"""What the console is given by whoever opens it; the engine itself comes after the first prompt."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from steno.safe.terminal import Line

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from steno.agent.loop import Model
    from steno.agent.meter import Price
    from steno.agent.options import Options
    from steno.agent.sessions import Work

__all__ = ["Ready", "Setting"]


class Ready(msgspec.Struct, kw_only=True):
    """What it takes to start an engine."""

    options: "Options"
    work: "Callable[[], Work]"
    """Returns the session to work in; called once the user has been asked about trust."""
    model: "Callable[[], AbstractAsyncContextManager[Model]]"
    price: "Price"


class Setting(msgspec.Struct, kw_only=True):
    """What the caller decides."""

    prepare: Callable[[], Ready]
    """Gets everything ready that takes a while; called when the prompt is on the screen."""
    tell: Callable[[str, int, int], Iterator[Line]]
    """Tells the last turns of a session: its path, how many, in how many columns."""
    vi: bool = False
    """Whether the prompt has the keys of vi."""
    first: str = ""
    """What is said first."""
    steps: tuple[tuple[str, str], ...] = ()
    """A guided tour: what to say, and what it will show; nothing but for a demonstration."""
    farewell: str = "steno chat --resume {session}   goes on here"
    """What is said at the end; `{session}` is the session that was worked in."""
