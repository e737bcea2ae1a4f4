"""Which summaries in a file are titles of its own session: those whose leaf is a record of it."""

from collections.abc import Iterable
from typing import Final

from steno.index.state import State

__all__ = ["Summaries"]

_MOST: Final = 64
"""Of how many summaries the leaf is waited for."""


class Summaries:
    """The summaries of one stretch; a state has those whose leaf was not met so far."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._here: set[str] = set()

    def take(self, leaf: str, message: int, title: str) -> None:
        """Take in a summary; one for another session names a record that is not here."""
        state = self._state
        if not leaf:
            return
        if leaf in (state.last_uuid, *state.course.near):
            self._choose(message, title)
            return
        far = state.far_summaries
        far.pop(leaf, None)
        far[leaf] = message, title
        if len(far) > _MOST:
            del far[next(iter(far))]
        if state.last_uuid:
            self._here.add(leaf)

    def meet(self, uuid: str | None) -> None:
        """Take in a record, which may be the leaf of a summary before it."""
        if uuid in self._state.far_summaries:
            self.place((uuid,))

    @property
    def far_leaves(self) -> set[str]:
        """The leaves of summaries of this stretch that may be records somewhere before them."""
        return self._here.intersection(self._state.far_summaries)

    def place(self, leaves: Iterable[str]) -> None:
        """Take the summaries with these leaves, which are records of the file, for its own."""
        for leaf in leaves:
            self._choose(*self._state.far_summaries.pop(leaf))

    def _choose(self, message: int, title: str) -> None:
        """Take a summary for the title, unless one further down in the file is known."""
        state = self._state
        if message >= state.summary_at:
            state.summary, state.summary_at = title, message
