"""Slimming: what fills a file without being part of the conversation is left out.

Gigabytes are mostly progress notes, copies of what a tool gave back, and snapshots that a later
one replaces. No client sends any of it. Of a copy only text goes that stands elsewhere in the file.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias

from steno.check.repair.edits import Drafts, Edit
from steno.check.repair.records import message_of
from steno.format.encode import encode
from steno.format.values import as_list, as_object
from steno.session.nodes import Node

__all__ = ["slim"]

_Kind: TypeAlias = Literal["progress", "snapshots", "copies"]
_SAID: Final[dict[_Kind, str]] = {
    "progress": "notes of progress",
    "snapshots": "snapshots that later ones replace",
    "copies": "the client's own copies of what tools gave back",
}
_LONG: Final = 1000
_NOTE: Final = "[{:,} characters left out]"
_NUMBERED: Final = re.compile(r"^ *\d+[→\t]", re.MULTILINE)
"""How the lines of a file begin that a tool shows to the model."""


def slim(drafts: Drafts) -> None:
    """Leave out progress, replaced snapshots, and copies of tool output: one edit for each kind."""
    current = _current_snapshots(drafts)
    found: dict[_Kind, list[tuple[Node, int]]] = {}
    texts = _Texts()
    for node in drafts.transcript.nodes:
        if node.type == "progress":
            drafts.leave_out(node)
            found.setdefault("progress", []).append((node, node.length))
        elif node.type == "file-history-snapshot" and node.index not in current:
            drafts.leave_out(node)
            found.setdefault("snapshots", []).append((node, node.length))
        elif node.is_message and (saved := _shorten(drafts, node, texts)):
            found.setdefault("copies", []).append((node, saved))
    drafts.edits.extend(_told(drafts, kind, nodes) for kind, nodes in found.items())


def _told(drafts: Drafts, kind: _Kind, nodes: list[tuple[Node, int]]) -> Edit:
    saved = sum(size for _, size in nodes)
    what = f"leave out {_SAID[kind]} ({len(nodes):,}; {saved:,} bytes)"
    action = "change" if kind == "copies" else "remove"
    line = drafts.line(nodes[0][0])
    return Edit("", action, line, "", what, f"{_SAID[kind]} ({len(nodes):,})")


def _current_snapshots(drafts: Drafts) -> set[int]:
    """Return the last snapshot of each message."""
    last: dict[str, int] = {}
    for node in drafts.transcript.of_type("file-history-snapshot"):
        last[str(drafts.fields(node).get("messageId"))] = node.index
    return set(last.values())


def _shorten(drafts: Drafts, node: Node, texts: "_Texts") -> int:
    """Leave out what a tool's own result says again; return how many bytes that saves."""
    texts.hear(message_of(drafts, node).get("content"))
    kept = drafts.fields(node).get("toolUseResult") if node.is_result else None
    shorter = texts.shortened(kept)
    if shorter == kept:
        return 0
    drafts.put(node, {"toolUseResult": shorter})
    return len(encode(kept)) - len(encode(shorter))


class _Texts:
    """The long texts of the file so far, each by a digest, and the message being looked at."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._said: list[str] = []

    def hear(self, content: Any) -> None:
        """Take in what a message says: words, what was asked of tools and what they gave back."""
        long = list(_long_texts(content))
        self._known.update(map(_digest, long))
        self._said = [*long, *(_NUMBERED.sub("", text) for text in long)]

    def shortened(self, value: Any) -> Any:
        """Return a value with long texts that stand elsewhere replaced by their size."""
        if isinstance(value, str):
            if len(value) > _LONG and self._stands_elsewhere(value):
                return _NOTE.format(len(value))
            return value
        items, fields = as_list(value), as_object(value)
        if items is not None:
            return [self.shortened(item) for item in items]
        if fields is not None:
            return {key: self.shortened(item) for key, item in fields.items()}
        return value

    def _stands_elsewhere(self, text: str) -> bool:
        digest = _digest(text)
        if digest in self._known:
            return True
        self._known.add(digest)
        whole = text.rstrip("\n")
        return any(whole in said for said in self._said)


def _long_texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if len(value) > _LONG:
                yield value
        else:
            waiting.extend((as_object(value) or {}).values())
            waiting.extend(as_list(value) or ())


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
