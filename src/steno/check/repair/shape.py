"""Shape: each message gets what every client needs of it: a type, an id, a time, a message."""

from datetime import datetime, timedelta
from typing import Any, Final

from steno.check.repair.edits import Drafts, new_uuid
from steno.format.records import Record, read_time, time_text
from steno.format.values import as_object
from steno.session.nodes import CONVERSATION, Node

__all__ = ["just_after", "mend_shape"]

_ROLES: Final = ("user", "assistant")
_FOREIGN: Final = ("toolName", "toolArguments", "subtype", "content")
_STEP: Final = timedelta(milliseconds=1)


def mend_shape(drafts: Drafts, *, written: datetime) -> None:
    """Give messages their type, id, time and message; set aside those that say nothing."""
    _unmark(drafts)
    clock = _Clock(drafts, written)
    # Read along, not record by record: most need nothing, and are passed over at a glance.
    records = (piece for piece in drafts.transcript.pieces() if isinstance(piece, Record))
    for node, record in zip(drafts.transcript.nodes, records, strict=True):
        if node.type and not node.is_message:
            continue
        if _is_plain(node, record):
            clock.set(node)
            continue
        role = record.role or _role_of(record)
        if not role:
            if not node.type and (node.uuid or "message" in record.fields):
                what = "set aside a record without a type that says nothing"
                drafts.set_aside(node, "fields.no-type", what)
            continue
        if _mend_record(drafts, node, record, role):
            clock.set(node)


def _mend_record(drafts: Drafts, node: Node, record: Record, role: str) -> bool:
    """Give a message what it lacks but for its time; return whether it stays one."""
    if node.type != role:
        drafts.change(node, "fields.no-type", f"say that it is the {role}'s", {"type": role})
    if not isinstance(drafts.fields(node).get("message"), dict):
        drafts.set_aside(node, "fields.no-message", "set aside a message that says nothing")
        return False
    if node.has_message and not node.has_content and not record.blocks:
        drafts.set_aside(node, "message.no-content", "set aside a message without content")
        return False
    if not node.uuid:
        name = new_uuid(node.index, record.line)
        drafts.change(node, "fields.no-uuid", "give the record an id", {"uuid": name})
    return True


def _unmark(drafts: Drafts) -> None:
    """Take a sub-agent's marks off a file of nothing else: it is a conversation of its own."""
    nodes = drafts.transcript.nodes
    if not all(node.sidechain for node in nodes if node.is_message):
        return
    for node in nodes:
        if node.sidechain and node.type in CONVERSATION:
            what = "take a sub-agent's mark away: every message of the file has it"
            drafts.change(node, "sidechain.all", what, {"isSidechain": False})


def _is_plain(node: Node, record: Record) -> bool:
    """Whether a record is a message as clients write them, but perhaps for its time."""
    whole = node.is_message and node.has_message and node.has_content and bool(node.uuid)
    return whole and record.role == node.type


def _role_of(record: Record) -> str:
    """Return whose words a record without a type must be."""
    if record.type or record.message is None:
        return ""
    told = _message(record).get("role")
    if told in _ROLES:
        return str(told)
    return "assistant" if record.tool_uses or record.message.id else "user"


def _message(record: Record) -> dict[str, Any]:
    if record.message is None:
        return {}
    return as_object(record.fields.get("message")) or {}


class _Clock:
    """Times for messages that have none: a little after the record before them in the file."""

    def __init__(self, drafts: Drafts, written: datetime) -> None:
        self._drafts = drafts
        nodes = drafts.transcript.nodes
        known = next((time for node in nodes if (time := read_time(node.timestamp))), None)
        self._start = known or written
        self._last: datetime | None = None
        self._at = 0

    def set(self, node: Node) -> None:
        """Write a time as text that clients read, and one that rises where there was none."""
        self._catch_up(node)
        time = read_time(node.timestamp)
        if isinstance(node.timestamp, str) and time is not None:
            return
        if time is None:
            time = self._start if self._last is None else just_after(self._last)
        self._last = time
        finding = "time.missing" if node.timestamp is None else "time.number"
        lost = ""
        if isinstance(node.timestamp, str):
            finding, lost = "time.not-iso", f"the time {node.timestamp!r}, which cannot be read"
        fields = {"timestamp": time_text(time)}
        self._drafts.change(node, finding, "write its time as clients do", fields, lost=lost)

    def _catch_up(self, node: Node) -> None:
        nodes = self._drafts.transcript.nodes
        while self._at < node.index:
            time = read_time(nodes[self._at].timestamp)
            self._last = time or self._last
            self._at += 1


def just_after(time: datetime) -> datetime:
    """Return the moment behind another."""
    return time + _STEP
