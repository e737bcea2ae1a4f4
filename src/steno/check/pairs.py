"""Tool calls and their results along a conversation: what does not pair up, and where."""

from collections.abc import Sequence
from typing import Final

import msgspec

from steno.session.nodes import Node

__all__ = ["Block", "Pairs", "pair_up", "same_response"]


class Block(msgspec.Struct, frozen=True):
    """A call, or a result, by its id and the record it stands in."""

    node: Node
    id: str


class Pairs(msgspec.Struct, frozen=True):
    """The calls and results of a conversation that do not pair up, each list in its order."""

    open: tuple[Block, ...] = ()
    """Calls without a result that the conversation went on behind."""
    interrupted: tuple[Block, ...] = ()
    """Calls without a result in the last response, with nothing said since."""
    orphans: tuple[Block, ...] = ()
    """Results of no call in the conversation."""
    repeated: tuple[Block, ...] = ()
    """Results of a call that had one already."""
    early: tuple[Block, ...] = ()
    """Results that stand before their call."""
    late: tuple[Block, ...] = ()
    """Results that stand behind another response than that of their call."""
    reused: tuple[Block, ...] = ()
    """Calls under an id that an earlier call has."""

    @property
    def sound(self) -> bool:
        """Whether every call has its result and every result its call."""
        return self == _SOUND


_SOUND: Final = Pairs()


def pair_up(conversation: Sequence[Node]) -> Pairs:
    """Look at every call and result of a conversation, in its order."""
    if _all_answered(conversation):
        return _SOUND
    tally = _Tally()
    for node in conversation:
        if node.type == "assistant":
            # What the client wrote in place of an answer is not sent, nor are calls in it.
            if not node.synthetic_error:
                tally.take_calls(node)
        elif node.type == "user":
            tally.take_results(node)
    return tally.sum_up()


def _all_answered(conversation: Sequence[Node]) -> bool:
    """Whether each call has one result, right behind; far cheaper than to say what is wrong."""
    called: set[str] = set()
    waiting: set[str] = set()
    response: str | None = None
    for node in conversation:
        if node.type == "assistant" and not node.synthetic_error:
            if waiting and node.message_id != response:
                return False
            response = node.message_id
            if not node.uses:
                continue
            if not called.isdisjoint(node.uses) or len(set(node.uses)) < len(node.uses):
                return False
            called.update(node.uses)
            waiting.update(node.uses)
        elif node.results and node.type == "user":
            if not waiting.issuperset(node.results) or len(set(node.results)) < len(node.results):
                return False
            waiting.difference_update(node.results)
    return not waiting


class _Tally:
    """What was called and answered so far."""

    def __init__(self) -> None:
        self.calls: dict[str, Node] = {}
        self.answered: set[str] = set()
        self.passed: list[Block] = []
        self.uncalled: list[Block] = []
        self.repeated: list[Block] = []
        self.reused: list[Block] = []
        self.late: list[Block] = []
        self.waiting: set[str] = set()
        """The calls of the last response that have no result so far."""
        self.last: Node | None = None
        self.said_since = False

    def take_calls(self, node: Node) -> None:
        """Note the calls of a line of a response."""
        if self.last is not None and self.last.message_id != node.message_id:
            self.waiting.clear()
        self.waiting.update(node.uses)
        self.last = node
        self.said_since = False
        for call in node.uses:
            before = self.calls.get(call)
            if before is not None and (before is node or before.uuid != node.uuid):
                self.reused.append(Block(node, call))
                if before is not node and not same_response(before, node):
                    self._ask_again(before, call)
            self.calls[call] = node

    def _ask_again(self, before: Node, call: str) -> None:
        if call not in self.answered:
            self.passed.append(Block(before, call))
        self.answered.discard(call)

    def take_results(self, node: Node) -> None:
        """Note the results of a message, or that somebody spoke."""
        if not node.results:
            self.said_since = True
        for call in node.results:
            if call in self.answered:
                self.repeated.append(Block(node, call))
                continue
            self.answered.add(call)
            if call not in self.calls:
                self.uncalled.append(Block(node, call))
            elif call not in self.waiting:
                self.late.append(Block(node, call))

    def sum_up(self) -> Pairs:
        """Return what is left over."""
        asked = (Block(node, call) for call, node in self.calls.items())
        waiting = [*self.passed, *(block for block in asked if block.id not in self.answered)]
        orphans = [block for block in self.uncalled if block.id not in self.calls]
        return Pairs(
            open=tuple(block for block in waiting if not self._at_end(block.node)),
            interrupted=tuple(block for block in waiting if self._at_end(block.node)),
            orphans=tuple(orphans),
            repeated=tuple(self.repeated),
            early=tuple(block for block in self.uncalled if block.id in self.calls),
            late=tuple(self.late),
            reused=tuple(self.reused),
        )

    def _at_end(self, node: Node) -> bool:
        if self.last is None or self.said_since:
            return False
        return node is self.last or same_response(node, self.last)


def same_response(one: Node, other: Node) -> bool:
    """Whether two lines are of one response, by its name."""
    return one.message_id is not None and one.message_id == other.message_id
