"""Slimming: what fills a file without being part of the conversation is left out.

Gigabytes are mostly progress notes, copies of what a tool gave back, and snapshots that a later
one replaces. No client sends any of it.
"""

from typing import Any, Final, Literal, TypeAlias, cast

from steno.check.repair.edits import Drafts, Edit
from steno.session.nodes import Node

__all__ = ["slim"]

_Kind: TypeAlias = Literal["progress", "snapshots", "copies"]
_SAID: Final[dict[_Kind, str]] = {
    "progress": "notes of progress ({:,})",
    "snapshots": "snapshots that later ones replace ({:,})",
    "copies": "the client's own copies of what tools gave back ({:,})",
}
_LONG: Final = 1000
_NOTE: Final = "[{:,} characters left out]"
_COPIES: Final = ("content", "stdout", "oldString", "newString", "originalFile", "file", "prompt")


def slim(drafts: Drafts) -> None:
    """Leave out progress, replaced snapshots, and copies of tool output: one edit for each kind."""
    current = _current_snapshots(drafts)
    found: dict[_Kind, list[Node]] = {}
    for node in drafts.transcript.nodes:
        if node.type == "progress":
            drafts.leave_out(node)
            found.setdefault("progress", []).append(node)
        elif node.type == "file-history-snapshot" and node.index not in current:
            drafts.leave_out(node)
            found.setdefault("snapshots", []).append(node)
        elif node.is_result and _shorten(drafts, node):
            found.setdefault("copies", []).append(node)
    drafts.edits.extend(_told(drafts, kind, nodes) for kind, nodes in found.items())


def _told(drafts: Drafts, kind: _Kind, nodes: list[Node]) -> Edit:
    what = _SAID[kind].format(len(nodes))
    action = "change" if kind == "copies" else "remove"
    return Edit("", action, drafts.line(nodes[0]), "", f"leave out {what}", what)


def _current_snapshots(drafts: Drafts) -> set[int]:
    """Return the last snapshot of each message."""
    last: dict[str, int] = {}
    for node in drafts.transcript.of_type("file-history-snapshot"):
        last[str(drafts.fields(node).get("messageId"))] = node.index
    return set(last.values())


def _shorten(drafts: Drafts, node: Node) -> bool:
    kept = drafts.fields(node).get("toolUseResult")
    if not isinstance(kept, dict):
        return False
    shorter = _without_copies(cast("dict[str, Any]", kept))
    if shorter == kept:
        return False
    drafts.put(node, {"toolUseResult": shorter})
    return True


def _without_copies(value: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's own result with long texts that stand elsewhere replaced by their size."""
    return {key: _short(item) if key in _COPIES else item for key, item in value.items()}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return _NOTE.format(len(value)) if len(value) > _LONG else value
    if isinstance(value, list):
        return [_short(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _short(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
