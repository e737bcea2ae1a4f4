"""What whoever starts the server gives it: options for a folder, a model, what things cost."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import msgspec

from steno.agent.loop import Model
from steno.agent.meter import Price
from steno.agent.options import Options

__all__ = ["Setting"]


class Setting(msgspec.Struct, kw_only=True):
    """What the caller decides."""

    options: Callable[[str], Options]
    """Returns what holds for a session in a folder."""
    model: Callable[[], AbstractAsyncContextManager[Model]]
    """Returns what is asked; raises `NoKey` where nothing says who one is."""
    price: Price
