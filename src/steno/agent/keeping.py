"""Where files are kept as they were, seen from the loop: around prompts and around calls."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

__all__ = ["Keeping", "NoKeeping", "WithinKeeping"]


class Keeping(Protocol):
    """Keeps files, so that they can be put back."""

    async def begin(self, prompt: str) -> None:
        """Note how the files are that are known so far: a prompt was said."""
        ...

    def call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Watch what a call changes."""
        ...


class NoKeeping:
    """Keeps nothing."""

    async def begin(self, prompt: str) -> None:
        """Note nothing."""
        del prompt

    def call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Watch nothing."""
        del tool, background
        return nullcontext()


class WithinKeeping:
    """What a sub-agent has of the keeping of its session: calls count, its prompts do not."""

    def __init__(self, whole: Keeping) -> None:
        self._whole = whole

    async def begin(self, prompt: str) -> None:
        """Note nothing: nobody goes back to the prompt of a sub-agent."""
        del prompt

    def call(self, tool: str, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Watch what a call changes."""
        return self._whole.call(tool, background=background)
