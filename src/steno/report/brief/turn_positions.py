"""Which turn a record belongs to, for records that are not part of the conversation itself."""

from bisect import bisect_left
from collections.abc import Sequence

from steno.session.nodes import Node
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript

__all__ = ["TurnPositions"]


class TurnPositions:
    """Places records in turns: by the message they name, or else by their position in the file."""

    def __init__(self, transcript: Transcript, turns: Sequence[Turn]) -> None:
        self.first = turns[0].number if turns else None
        """The number of the first turn."""
        self._by_uuid = transcript.by_uuid
        self._numbers = {node.index: turn.number for turn in turns for node in turn.nodes}
        self._indexes = sorted(self._numbers)
        self._prompts = {turn.prompt.node.index: turn for turn in turns if turn.prompt is not None}

    def of_message(self, uuid: str, node: Node) -> int | None:
        """Return the turn of a record that names a message.

        None if the message is not part of the conversation, as on an abandoned branch.
        """
        named = self._by_uuid.get(uuid) if uuid else None
        if named is None or named.sidechain:
            return self.at(node.index)
        return self._numbers.get(named.index)

    def at(self, index: int) -> int | None:
        """Return the turn at a position: that of the last record before it, or the first turn."""
        if not self._indexes:
            return None
        place = bisect_left(self._indexes, index + 1) - 1
        return self._numbers[self._indexes[max(0, place)]]

    def prompt_behind(self, index: int) -> Turn | None:
        """Return the turn whose prompt is the next record of the conversation behind a position."""
        place = bisect_left(self._indexes, index + 1)
        if place == len(self._indexes):
            return None
        return self._prompts.get(self._indexes[place])
