"""One record at the moment it is read, as the rules see it."""

from typing import Any, Final

import msgspec

from steno.check.findings import Place
from steno.check.plain import Shape
from steno.format.envelope import decode_envelope
from steno.format.lines import Stretch
from steno.format.records import Record
from steno.format.spans import Span
from steno.session.nodes import Node

__all__ = ["Seen"]

_INNER: Final = {"attachment": "attachment", "progress": "data"}
_CALLS: Final = frozenset(("tool_use", "server_tool_use"))


class Seen(msgspec.Struct, eq=False, gc=False):
    """One record, the only time its body is at hand for free.

    Of a plain line it has the fields; its record is made when it is first asked for, which costs
    more than all the rest.
    """

    node: Node
    line: int
    fields: dict[str, Any]
    shape: Shape
    message: dict[str, Any] | None
    """The message in it, if it has one that is an object."""
    held: Record | Stretch
    """Its record, or the lines that its own is one of."""

    @property
    def record(self) -> Record:
        """The record itself."""
        held = self.held
        if isinstance(held, Stretch):
            start = self.node.offset - held.offset
            line = held.data[start : start + self.node.length - held.ended]
            ending = b"\n" if held.ended else b""
            held = self.held = Record(line, self.node.offset, ending, decode_envelope(line))
        return held

    @property
    def place(self) -> Place:
        """Where the record lies."""
        return Place(self.line, Span(self.node.offset, self.node.length), self.node.uuid or "")

    @property
    def kind(self) -> str:
        """The name the catalogue knows it by, the same as that of its record."""
        return (self._is_plain and self._plain_kind()) or self.record.kind

    @property
    def _is_plain(self) -> bool:
        return isinstance(self.held, Stretch)

    def _plain_kind(self) -> str:
        """Return what a plain line is called; nothing where that takes a closer look."""
        node, fields = self.node, self.fields
        match node.type:
            case "user":
                return f"user/{self._user_kind()}"
            case "assistant" if fields.get("isApiErrorMessage"):
                return "assistant/api_error"
            case "assistant":
                return self._answer_kind()
            case "system" if node.subtype:
                return f"system/{node.subtype}"
            case "attachment" | "progress" as outer:
                inner: Any = fields.get(_INNER[outer])
                name = inner.get("type") if inner.__class__ is dict else None
                return f"{outer}/{name}" if isinstance(name, str) else outer
            case "queue-operation" if operation := fields.get("operation"):
                return f"queue-operation/{operation}"
            case other:
                return other

    def _user_kind(self) -> str:
        if self.node.results:
            return "tool_result"
        if self.fields.get("isCompactSummary"):
            return "compact_summary"
        return "meta" if self.node.meta else "prompt"

    def _answer_kind(self) -> str:
        if self.node.uses:
            return "assistant/tool_use"
        content: Any = self.message.get("content") if self.message else None
        if isinstance(content, str):
            return "assistant/text"
        if content.__class__ is not list or not all(block.__class__ is dict for block in content):
            return ""
        kinds = [block.get("type") for block in content]
        # Whether one of these is of the form that it should have is another's question.
        odd = not kinds or not all(isinstance(kind, str) for kind in kinds)
        if odd or not _CALLS.isdisjoint(kinds) or kinds[0].endswith("thinking"):
            return ""
        return "assistant/text"
