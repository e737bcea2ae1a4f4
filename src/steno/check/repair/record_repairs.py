"""Repair stages for single records: lines, fields, IDs, content, images, dialects, size.

Lines are split or removed if they are not one record. Every message gets the fields that Claude Code needs: a type, an
ID, a time and a message. Of records with the same ID, the last wins, as in Claude Code. Content that the API would
reject is replaced. Dialect records are rewritten in Claude Code's format. Slimming removes progress records, replaced
snapshots and copies of tool output, none of which are sent.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias

from steno.check.record_graph import RecordGraph
from steno.check.repair.edits import REMOVED, Edit, EditPlan, message_of, new_uuid, objects_in
from steno.check.rules.chain import colliding_snapshots, has_same_content
from steno.check.rules.message import misnamed_lines, unnamed_responses
from steno.format.dialects.converted_source import NO_MODEL
from steno.format.dialects.detection import is_converted
from steno.format.encode import encode
from steno.format.lenient_json import as_list, as_object, describe_value
from steno.format.message import THINKING_TYPES
from steno.format.records import Gap, Record, read_time, time_text
from steno.format.salvage import find_flaws
from steno.session.resume.api_rules import (
    IMAGE_NOTE,
    MANY_IMAGES,
    MAX_SIDE_AMONG_MANY,
    block_flaw,
    fix_block,
    image_flaw,
    is_blank,
    result_flaws,
)
from steno.session.transcript import CONVERSATION, Node

_KEPT_DAMAGE: Final = frozenset(("line.oversize", "line.depth"))
_EXCERPT: Final = 60
_REWRITES: Final = {
    "line.control": "escape raw control characters: Claude Code skips lines that contain them",
    "line.number": "replace numbers that JSON does not allow with null: Claude Code skips lines that contain them",
    "line.utf8": "replace invalid UTF-8 bytes with U+FFFD",
    "line.surrogate": "replace unpaired surrogates with U+FFFD",
}
_LOSSES: Final = {
    "line.number": "a number that JSON does not allow (NaN or an infinity)",
    "line.utf8": "invalid UTF-8 bytes",
    "line.surrogate": "an unpaired surrogate",
}


def repair_lines(plan: EditPlan) -> None:
    """Turn every line into one valid record."""
    nodes = iter(plan.transcript.nodes)
    for piece in plan.transcript.pieces():
        if isinstance(piece, Gap):
            _remove_gap(plan, piece)
            continue
        node = next(nodes)
        if any(note.id == "line.glued" for note in piece.notes):
            plan.end_line(node, "line.glued", "add the missing newline before this record")
        for name in _line_oddities(piece):
            lost = f"{_LOSSES[name]}, in line {plan.line(node):,}" if name in _LOSSES else ""
            plan.rewrite(node, name, _REWRITES[name], lost=lost)


def _remove_gap(plan: EditPlan, gap: Gap) -> None:
    harm = [note for note in gap.damage if note.id != "line.bom"]
    if not harm or harm[0].id in _KEPT_DAMAGE:
        return
    note = harm[0]
    if note.id == "line.nul-run" and not gap.head.strip(b"\0\r\n"):
        plan.remove(gap, note.id, f"remove {gap.length:,} zero bytes")
        return
    excerpt = gap.head[:_EXCERPT].decode("utf-8", "replace").strip()
    excerpt += "…" if len(gap.head.strip()) > _EXCERPT else ""
    line_text = f"line {plan.line(gap):,}"
    lost = f"{gap.length:,} bytes that are not a record, in {line_text}: {excerpt}"
    plan.remove(gap, note.id, f"remove {gap.length:,} bytes that are not a record", lost=lost)


def _line_oddities(record: Record) -> list[str]:
    """Return the findings of a line that make Claude Code or the API fail."""
    oddities = [note.id for note in record.notes if note.id in _REWRITES]
    line = record.line
    if b"\\u" in line or not line.isascii():
        oddities += [flaw.id for flaw in find_flaws(line, record.offset) if flaw.id in _REWRITES]
    return list(dict.fromkeys(oddities))


_ROLES: Final = ("user", "assistant")
_MILLISECOND: Final = timedelta(milliseconds=1)


def repair_fields(plan: EditPlan, *, written: datetime) -> None:
    """Add the missing type, ID, time and message of messages; set aside those without content."""
    _remove_sidechain_marks(plan)
    times = _TimeAssigner(plan, written)
    # Iterate the records in order instead of looking up each one: most need no edit.
    records = (piece for piece in plan.transcript.pieces() if isinstance(piece, Record))
    for node, record in zip(plan.transcript.nodes, records, strict=True):
        if node.type and not node.is_message:
            continue
        if _is_complete(node, record):
            times.assign(node)
            continue
        role = record.role or _role_of(record)
        if not role:
            if not node.type and (node.uuid or "message" in record.fields):
                description = "set aside a record without a type and a message"
                plan.set_aside(node, "fields.no-type", description)
            continue
        if _repair_record(plan, node, record, role):
            times.assign(node)


def _repair_record(plan: EditPlan, node: Node, record: Record, role: str) -> bool:
    """Add the missing fields of a message except its time; return whether it stays a message."""
    if node.type != role:
        plan.change(node, "fields.no-type", f"set the record type to {role}", {"type": role})
    if not isinstance(plan.fields(node).get("message"), dict):
        plan.set_aside(node, "fields.no-message", "set aside a record without a message")
        return False
    if node.has_message and not node.has_content and not record.blocks:
        plan.set_aside(node, "message.no-content", "set aside a message without content")
        return False
    if not node.uuid:
        name = new_uuid(node.index, record.line)
        plan.change(node, "fields.no-uuid", "give the record an ID", {"uuid": name})
    return True


def _remove_sidechain_marks(plan: EditPlan) -> None:
    """Remove the sidechain flags of a file that contains only sub-agent records."""
    nodes = plan.transcript.nodes
    if not all(node.sidechain for node in nodes if node.is_message):
        return
    for node in nodes:
        if node.sidechain and node.type in CONVERSATION:
            description = "remove the isSidechain flag: every message of the file has it"
            plan.change(node, "sidechain.all", description, {"isSidechain": False})


def _is_complete(node: Node, record: Record) -> bool:
    """Return whether a record has everything a message needs, except perhaps a time."""
    has_all = node.is_message and node.has_message and node.has_content and bool(node.uuid)
    return has_all and record.role == node.type


def _role_of(record: Record) -> str:
    """Return the role of a record without a type."""
    if record.type or record.message is None:
        return ""
    role = _message(record).get("role")
    if role in _ROLES:
        return str(role)
    return "assistant" if record.tool_uses or record.message.id else "user"


def _message(record: Record) -> dict[str, Any]:
    if record.message is None:
        return {}
    return as_object(record.fields.get("message")) or {}


class _TimeAssigner:
    """Assigns times to messages without one: slightly after the previous record."""

    def __init__(self, plan: EditPlan, written: datetime) -> None:
        self._drafts = plan
        nodes = plan.transcript.nodes
        known = next((time for node in nodes if (time := read_time(node.timestamp))), None)
        self._start = known or written
        self._last: datetime | None = None
        self._at = 0

    def assign(self, node: Node) -> None:
        """Write the time of a message as ISO text, and assign one if it is missing."""
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
            finding, lost = "time.not-iso", f"the unreadable timestamp {node.timestamp!r}"
        fields = {"timestamp": time_text(time)}
        self._drafts.change(node, finding, "write the timestamp in Claude Code's format", fields, lost=lost)

    def _catch_up(self, node: Node) -> None:
        nodes = self._drafts.transcript.nodes
        while self._at < node.index:
            time = read_time(nodes[self._at].timestamp)
            self._last = time or self._last
            self._at += 1


def just_after(time: datetime) -> datetime:
    """Return the time one millisecond later."""
    return time + _MILLISECOND


def repair_ids(plan: EditPlan) -> None:
    """Remove duplicate records, and set aside records whose ID a later one has."""
    repeats = plan.graph.duplicates
    snapshots = {node.index: node for pair in repeats for node in colliding_snapshots(*pair)}
    for snapshot in snapshots.values():
        description = "remove the ID of a file snapshot: another record has it, and snapshots need none"
        plan.change(snapshot, "ids.snapshot-collision", description, {"uuid": REMOVED})
    for earlier, last in repeats:
        # The next run of this stage handles the remaining records with this ID.
        if earlier.index in snapshots or last.index in snapshots:
            continue
        first, second = plan.fields(earlier), plan.fields(last)
        if not has_same_content(first, second):
            description = "set aside a record whose ID a later record has: Claude Code keeps the later one"
            plan.set_aside(earlier, "ids.conflict", description, unlink=False)
        elif plan.is_removed(last) or _without_time(first) != _without_time(second):
            # Claude Code uses the parent of the later record, so keep that one.
            _remove_copy(plan, earlier, first, second)
        else:
            # Keep the first copy: its position and time fit its neighbours.
            _remove_copy(plan, last, second, first)


def _remove_copy(plan: EditPlan, node: Node, copy: dict[str, Any], kept_fields: dict[str, Any]) -> None:
    if plan.is_removed(node):
        return
    other = [f"{key} {describe_value(copy[key])}" for key in copy if kept_fields.get(key) != copy[key]]
    lost = f"fields of a duplicate record: {', '.join(other)}" if other else ""
    plan.remove(node, "ids.duplicate", "remove a duplicate record", lost=lost)


def _without_time(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "timestamp"}


_Block = dict[str, Any]
_NO_CONTENT: Final = "(no content)"
_FINDINGS_BY_TYPE: Final = {
    "text": "message.empty-text",
    "thinking": "message.unsigned-thinking",
    "redacted_thinking": "message.unsigned-thinking",
    "image": "message.image",
    "document": "message.image",
    "tool_use": "tools.input",
    "server_tool_use": "tools.input",
}


def repair_content(plan: EditPlan) -> None:
    """Repair the messages of the conversation, block by block."""
    graph = plan.graph
    _name_responses(plan, graph)
    with_content = {node.message_id for node in graph.messages if _says_something(plan, node)} - {None}
    for node in graph.messages:
        # A blank line of a response with other content is harmless: every version drops it.
        if node.type == "user" or node.message_id not in with_content or _says_something(plan, node):
            _repair_message(plan, node)


def _says_something(plan: EditPlan, node: Node) -> bool:
    """Return whether a line of an answer is more than blank text."""
    if node.type != "assistant":
        return False
    content = message_of(plan, node).get("content")
    if isinstance(content, str):
        return bool(content.strip())
    items = as_list(content)
    return not items or any(not is_blank(item) for item in items)


# Responses


def _name_responses(plan: EditPlan, graph: RecordGraph) -> None:
    """Set the response ID of each line, so that no version splits or merges responses."""
    for run, name in unnamed_responses(graph.conversation):
        new = name or _new_name(run[0])
        for node in run:
            _rename_response(plan, node, new, "message.no-id", "set the response ID")
    other: dict[str | None, str] = {}
    for node, name in misnamed_lines(graph):
        new = name or other.setdefault(node.message_id, _new_name(node))
        description = "set the ID of the surrounding response"
        _rename_response(plan, node, new, "message.mixed", description)
        if name:
            _remove_foreign_thinking(plan, node)


def _new_name(node: Node) -> str:
    """Return a response ID for a line that differs from the current one."""
    names = (f"msg_{new_uuid(*parts).replace('-', '')[:24]}" for parts in ((node.uuid,), (node.uuid, node.message_id)))
    return next(name for name in names if name != node.message_id)


def _rename_response(plan: EditPlan, node: Node, name: str, finding: str, description: str) -> None:
    message = {**message_of(plan, node), "id": name}
    plan.change(node, finding, description, {"message": message})


def _remove_foreign_thinking(plan: EditPlan, node: Node) -> None:
    """Remove thinking from a line that was moved to another response.

    The API accepts thinking only in the response that it was signed for.
    """
    message = message_of(plan, node)
    blocks = as_list(message.get("content")) or []
    remaining = [block for block in blocks if (as_object(block) or {}).get("type") not in THINKING_TYPES]
    if len(remaining) == len(blocks):
        return
    description = "remove thinking that was signed for another response"
    if remaining:
        fields = {"message": {**message, "content": remaining}}
        lost = f"in {node.type} {node.uuid}: thinking signed for another response"
        plan.change(node, "message.mixed", description, fields, lost=lost)
    else:
        plan.set_aside(node, "message.mixed", f"set aside the record: {description}")


# Blocks


def _repair_message(plan: EditPlan, node: Node) -> None:
    message = message_of(plan, node)
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        return
    items = as_list(content)
    blocks = [_as_block(item) for item in ([content] if items is None else items)]
    flawed = [(block, flaw) for block in blocks if (flaw := block_flaw(block, node.type))]
    if blocks and blocks == items and not flawed:
        return
    remaining = [fixed for block in blocks if (fixed := fix_block(block, node.type)) is not None]
    finding = _block_finding(*flawed[0]) if flawed else _content_finding(items)
    fixes = [_describe_fix(block, flaw) for block, flaw in flawed] or ["write content as blocks"]
    description = "; ".join(dict.fromkeys(fixes))
    losses = "; ".join(dict.fromkeys(loss for item_and_flaw in flawed if (loss := _describe_loss(*item_and_flaw))))
    lost = f"in {node.type} {node.uuid}: {losses}" if losses else ""
    if not remaining and node.type == "assistant":
        plan.set_aside(node, finding, f"set aside the record: {flawed[0][1] if flawed else 'empty'}")
        return
    if not remaining:
        remaining = [{"type": "text", "text": _NO_CONTENT}]
        description = "insert a placeholder text into a message without content to send"
    plan.change(node, finding, description, {"message": {**message, "content": remaining}}, lost=lost)


def _as_block(item: Any) -> _Block:
    """Return an object unchanged, and any other value as a text block."""
    block = as_object(item)
    if block is not None:
        return block
    text = "" if item is None else encode(item).decode("utf-8", "replace")
    return {"type": "text", "text": item if isinstance(item, str) else text}


def _content_finding(items: list[Any] | None) -> str:
    """Return the finding for content without an invalid block."""
    if items is None:
        return "message.no-content"
    return "message.unknown-block" if items else "message.empty-text"


def _block_finding(block: _Block, _flaw: str) -> str:
    kind = str(block.get("type"))
    if kind == "tool_result":
        kind = next(result_flaws(block), (kind, ""))[0]
    return _FINDINGS_BY_TYPE.get(kind, "message.unknown-block")


def _describe_fix(block: _Block, flaw: str) -> str:
    match block.get("type"):
        case "text":
            return "remove empty text"
        case "thinking" | "redacted_thinking":
            return "remove thinking without a signature, which the API rejects"
        case "image" | "document" | "tool_result":
            return f"replace content that the API rejects with a note: {flaw}"
        case "tool_use" if as_object(block.get("input")) is None:
            return "make the input of a tool call an object"
        case "tool_use":
            return "give a tool call an ID and a name"
        case _:
            return f"remove {flaw}, which the API rejects"


def _describe_loss(block: _Block, flaw: str) -> str:
    """Describe the content of a block that the repaired message no longer contains, if any."""
    match block.get("type"):
        case "text":
            text = block.get("text")
            return (
                ""
                if isinstance(text, str | None)
                else f"the text of a block, which was not text: {describe_value(text)}"
            )
        case "tool_use":
            name = block.get("name")
            return "" if isinstance(name, str | None) else f"the name of a tool call: {describe_value(name)}"
        case "tool_result" if all(kind == "text" for kind, _ in result_flaws(block)):
            return ""
        case _:
            return _describe_fix(block, flaw)


_Blocks = list[dict[str, Any]]


def repair_images(plan: EditPlan) -> None:
    """Replace images that are too large in a request with many images by notes."""
    messages = plan.graph.messages
    holders = [(node, images) for node in messages if (images := _images(plan, node))]
    if sum(len(images) for _, images in holders) <= MANY_IMAGES:
        return
    for node, images in holders:
        sides = [side for image in images if (side := image_flaw(image.get("source"))[1])]
        if max(sides, default=0) > MAX_SIDE_AMONG_MANY:
            message = message_of(plan, node)
            content = _with_notes(message["content"])
            description = (
                f"replace an image with a note: {max(sides):,} pixels a side exceeds the limit for many images"
            )
            fields = {"message": {**message, "content": content}}
            plan.change(node, "message.image", description, fields, lost=f"an image in {node.uuid}")


def _images(plan: EditPlan, node: Node) -> _Blocks:
    blocks = objects_in(message_of(plan, node).get("content"))
    inner = [inner_block for block in blocks for inner_block in objects_in(block.get("content"))]
    return [block for block in (*blocks, *inner) if block.get("type") == "image"]


def _with_notes(content: Any) -> Any:
    """Return content with notes in place of images that are too large."""
    blocks = as_list(content)
    if blocks is None:
        return content
    noted: list[Any] = []
    for block in blocks:
        fields = as_object(block) or {}
        side = image_flaw(fields.get("source"))[1] if fields.get("type") == "image" else 0
        if side > MAX_SIDE_AMONG_MANY:
            noted.append({"type": "text", "text": IMAGE_NOTE.format(f"{side:,} pixels a side")})
        elif fields.get("type") == "tool_result":
            noted.append({**fields, "content": _with_notes(fields.get("content"))})
        else:
            noted.append(block)
    return noted


_FINDING: Final = "fields.dialect"


def convert_dialect(plan: EditPlan) -> None:
    """Write every record in Claude Code's format; set aside deleted and inactive records."""
    source = plan.transcript.source
    if not is_converted(source):
        return
    hidden = source.hidden_ids()
    for node in plan.transcript.nodes:
        if node.type == "deleted":
            plan.set_aside(node, _FINDING, "set aside a deleted record", unlink=False)
        elif node.uuid in hidden:
            description = "set aside a record of an inactive branch"
            plan.set_aside(node, _FINDING, description, unlink=False)
        elif source.is_inserted(node.offset):
            plan.rewrite(node, _FINDING, "add a record that Claude Code writes here")
        elif not source.is_changed(node.offset):
            continue
        elif source.is_client(node.offset):
            description = "relink to the new previous record"
            plan.rewrite(node, _FINDING, description)
        elif node.type == "assistant" and not node.model:
            message = as_object(plan.fields(node).get("message")) or {}
            fields = {"message": {"model": NO_MODEL, **message}}
            plan.change(node, _FINDING, "convert to Claude Code's format", fields)
        elif node.uuid:
            plan.rewrite(node, _FINDING, "convert to Claude Code's format")


_SlimKind: TypeAlias = Literal["progress", "snapshots", "copies"]
_DESCRIPTIONS: Final[dict[_SlimKind, str]] = {
    "progress": "progress records",
    "snapshots": "replaced file snapshots",
    "copies": "copies of tool output",
}
_MIN_LONG_TEXT: Final = 1000
_OMISSION_NOTE: Final = "[{:,} characters left out]"
_NUMBERED: Final = re.compile(r"^ *\d+[→\t]", re.MULTILINE)
"""Line number prefix in file content that a tool shows to the model."""


def slim_records(plan: EditPlan) -> None:
    """Remove progress records, replaced snapshots and copies of tool output, one edit per kind."""
    current = _current_snapshots(plan)
    by_kind: dict[_SlimKind, list[tuple[Node, int]]] = {}
    texts = _SeenTexts()
    for node in plan.transcript.nodes:
        if node.type == "progress":
            plan.remove_without_edit(node)
            by_kind.setdefault("progress", []).append((node, node.length))
        elif node.type == "file-history-snapshot" and node.index not in current:
            plan.remove_without_edit(node)
            by_kind.setdefault("snapshots", []).append((node, node.length))
        elif node.is_message and (saved := _shorten(plan, node, texts)):
            by_kind.setdefault("copies", []).append((node, saved))
    plan.edits.extend(_edit_of(plan, kind, nodes) for kind, nodes in by_kind.items())


def _edit_of(plan: EditPlan, kind: _SlimKind, nodes: list[tuple[Node, int]]) -> Edit:
    saved = sum(size for _, size in nodes)
    description = f"remove {_DESCRIPTIONS[kind]} ({len(nodes):,}; {saved:,} bytes)"
    action = "change" if kind == "copies" else "remove"
    line = plan.line(nodes[0][0])
    return Edit("", action, line, "", description, f"{_DESCRIPTIONS[kind]} ({len(nodes):,})")


def _current_snapshots(plan: EditPlan) -> set[int]:
    """Return the indexes of the last snapshot of each message."""
    last: dict[str, int] = {}
    for node in plan.transcript.of_type("file-history-snapshot"):
        last[str(plan.fields(node).get("messageId"))] = node.index
    return set(last.values())


def _shorten(plan: EditPlan, node: Node, texts: "_SeenTexts") -> int:
    """Remove texts from a tool's own result that occur elsewhere; return the bytes saved."""
    texts.add_message(message_of(plan, node).get("content"))
    tool_use_result = plan.fields(node).get("toolUseResult") if node.is_result else None
    shorter = texts.shorten(tool_use_result)
    if shorter == tool_use_result:
        return 0
    plan.patch_without_edit(node, {"toolUseResult": shorter})
    return len(encode(tool_use_result)) - len(encode(shorter))


class _SeenTexts:
    """Digests of the long texts seen so far, and the long texts of the current message."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._message_texts: list[str] = []

    def add_message(self, content: Any) -> None:
        """Record the texts of a message: text, tool input and tool results."""
        long = list(_long_texts(content))
        self._known.update(map(_digest, long))
        self._message_texts = [*long, *(_NUMBERED.sub("", text) for text in long)]

    def shorten(self, value: Any) -> Any:
        """Return a value with repeated long texts replaced by a note of their length."""
        if isinstance(value, str):
            if len(value) > _MIN_LONG_TEXT and self._is_repeated(value):
                return _OMISSION_NOTE.format(len(value))
            return value
        items, fields = as_list(value), as_object(value)
        if items is not None:
            return [self.shorten(item) for item in items]
        if fields is not None:
            return {key: self.shorten(item) for key, item in fields.items()}
        return value

    def _is_repeated(self, text: str) -> bool:
        digest = _digest(text)
        if digest in self._known:
            return True
        self._known.add(digest)
        stripped = text.rstrip("\n")
        return any(stripped in known_text for known_text in self._message_texts)


def _long_texts(value: Any) -> Iterator[str]:
    queue = [value]
    while queue:
        value = queue.pop()
        if isinstance(value, str):
            if len(value) > _MIN_LONG_TEXT:
                yield value
        else:
            queue.extend((as_object(value) or {}).values())
            queue.extend(as_list(value) or ())


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
