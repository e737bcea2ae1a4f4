"""Records with one id: is the one a copy of the other? For rules and repair."""

from typing import Any, Final

from steno.session.nodes import Node

__all__ = ["collides", "says_the_same"]

_SNAPSHOT: Final = "file-history-snapshot"
_BODIES: Final = ("type", "subtype", "message", "content", "attachment", "data")


def says_the_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two records say the same, whatever else differs: their place, their time, ….

    >>> says_the_same({"type": "user", "message": 1, "uuid": "a"}, {"type": "user", "message": 1})
    True
    """
    return [one.get(name) for name in _BODIES] == [other.get(name) for name in _BODIES]


def collides(earlier: Node, last: Node) -> list[Node]:
    """Return the snapshot of two records with one id, if the other is none."""
    if earlier.type == last.type:
        return []
    return [node for node in (earlier, last) if node.type == _SNAPSHOT]
