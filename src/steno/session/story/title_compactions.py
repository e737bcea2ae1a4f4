"""Compactions as a published description has them: a `summary` record, a boundary, a new root.

No client writes them so. The `summary` record stands beside the boundary, and what follows hangs on
nothing: the place in the file alone says what it goes on from.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from steno.session.nodes import Node
from steno.session.transcript import Transcript

__all__ = ["TitleCompactions"]

_NEAR: Final = 4
"""How far from a boundary its summary may stand."""


class TitleCompactions:
    """What the boundaries of a file have beside and behind them, looked up once for all of them."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    @cached_property
    def boundaries(self) -> dict[int, Node]:
        """The boundary that a record without a parent follows, by the index of the record.

        Nothing hangs on such a boundary, and up to the record no message goes on from what stood
        before it. Several records may follow one boundary: the first prompt may have been edited.
        """
        found: dict[int, Node] = {}
        nodes, by_uuid = self._transcript.nodes, self._transcript.by_uuid
        parents = {node.parent for node in nodes}
        boundary: Node | None = None
        for node in nodes:
            if not node.converses:
                continue
            if node.is_boundary:
                # One without an id cannot be named.
                is_last = node.uuid is None or by_uuid.get(node.uuid) is node
                is_alone = is_last and (node.uuid is None or node.uuid not in parents)
                boundary = node if is_alone else None
            elif boundary is None:
                continue
            elif node.parent is None:
                found[node.index] = boundary
            elif node.is_message and self._is_before(node.parent, boundary):
                boundary = None
        return found

    def _is_before(self, uuid: str, boundary: Node) -> bool:
        node = self._transcript.by_uuid.get(uuid)
        return node is not None and node.index < boundary.index

    def summary_of(self, boundary: Node) -> Node | None:
        """Return the `summary` record that was written with a boundary.

        It stands right before it or right behind it, without messages or other boundaries between
        them, or it names the record that the boundary names. One of another session is none.
        """
        nodes, at = self._transcript.nodes, boundary.index
        before = reversed(nodes[max(0, at - _NEAR) : at])
        for side in (before, nodes[at + 1 : at + 1 + _NEAR]):
            for node in _near_titles(side):
                leaf = self._leaf(node)
                if not leaf or leaf in self._transcript.by_uuid:
                    return node
        return (
            None if boundary.logical_parent is None else self._by_leaf.get(boundary.logical_parent)
        )

    @cached_property
    def _by_leaf(self) -> dict[str, Node]:
        """The first `summary` record of each leaf that one names."""
        titles: dict[str, Node] = {}
        for node in self._transcript.of_type("summary"):
            if leaf := self._leaf(node):
                titles.setdefault(leaf, node)
        return titles

    def _leaf(self, title: Node) -> str:
        return self._transcript.record(title).envelope.leaf_uuid or ""


def _near_titles(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        if node.is_message or node.is_boundary:
            return
        if node.type == "summary":
            yield node
