"""Stages that repair single records: lines, fields, ids, content, images, dialects, size.

Lines are split or left out where they are not one record; every message gets what clients need of it: a type, an id, a
time, a message. Of records with one id the last counts, as for the real client. Content that the API would refuse is
replaced. A file in a dialect is written as the real client would have written it. Slimming leaves out progress notes,
snapshots that a later one replaces, and copies of tool output, which no client sends.
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
    "line.control": "escape raw control characters; clients skip the line with them",
    "line.number": "write a number that JSON does not have as null; clients skip the line with it",
    "line.utf8": "write bytes that are no UTF-8 as U+FFFD",
    "line.surrogate": "write half a surrogate pair as U+FFFD",
}
_LOSSES: Final = {
    "line.number": "a number that JSON does not have (NaN or an infinity)",
    "line.utf8": "bytes that are no UTF-8",
    "line.surrogate": "half a surrogate pair",
}


def repair_lines(plan: EditPlan) -> None:
    """Make every line one sound record."""
    nodes = iter(plan.transcript.nodes)
    for piece in plan.transcript.pieces():
        if isinstance(piece, Gap):
            _remove_gap(plan, piece)
            continue
        node = next(nodes)
        if any(note.id == "line.glued" for note in piece.notes):
            plan.end_line(node, "line.glued", "begin a new line here: another record is before")
        for name in _line_oddities(piece):
            lost = f"{_LOSSES[name]}, in line {plan.line(node):,}" if name in _LOSSES else ""
            plan.rewrite(node, name, _REWRITES[name], lost=lost)


def _remove_gap(plan: EditPlan, gap: Gap) -> None:
    harm = [note for note in gap.damage if note.id != "line.bom"]
    if not harm or harm[0].id in _KEPT_DAMAGE:
        return
    note = harm[0]
    if note.id == "line.nul-run" and not gap.head.strip(b"\0\r\n"):
        plan.remove(gap, note.id, f"leave out {gap.length:,} zero bytes")
        return
    excerpt = gap.head[:_EXCERPT].decode("utf-8", "replace").strip()
    excerpt += "…" if len(gap.head.strip()) > _EXCERPT else ""
    line_text = f"line {plan.line(gap):,}"
    lost = f"{gap.length:,} bytes that are no record, in {line_text}: {excerpt}"
    plan.remove(gap, note.id, f"leave out {gap.length:,} bytes that are no record", lost=lost)


def _line_oddities(record: Record) -> list[str]:
    """Return the oddities of a line that a client, or the API, stumbles over."""
    oddities = [note.id for note in record.notes if note.id in _REWRITES]
    line = record.line
    if b"\\u" in line or not line.isascii():
        oddities += [flaw.id for flaw in find_flaws(line, record.offset) if flaw.id in _REWRITES]
    return list(dict.fromkeys(oddities))


_ROLES: Final = ("user", "assistant")
_MILLISECOND: Final = timedelta(milliseconds=1)


def repair_fields(plan: EditPlan, *, written: datetime) -> None:
    """Give messages their type, id, time and message; set aside those that say nothing."""
    _remove_sidechain_marks(plan)
    times = _TimeAssigner(plan, written)
    # Read along, not record by record: most need nothing, and are passed over at a glance.
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
                description = "set aside a record without a type that says nothing"
                plan.set_aside(node, "fields.no-type", description)
            continue
        if _repair_record(plan, node, record, role):
            times.assign(node)


def _repair_record(plan: EditPlan, node: Node, record: Record, role: str) -> bool:
    """Give a message what it lacks but for its time; return whether it stays one."""
    if node.type != role:
        plan.change(node, "fields.no-type", f"say that it is the {role}'s", {"type": role})
    if not isinstance(plan.fields(node).get("message"), dict):
        plan.set_aside(node, "fields.no-message", "set aside a message that says nothing")
        return False
    if node.has_message and not node.has_content and not record.blocks:
        plan.set_aside(node, "message.no-content", "set aside a message without content")
        return False
    if not node.uuid:
        name = new_uuid(node.index, record.line)
        plan.change(node, "fields.no-uuid", "give the record an id", {"uuid": name})
    return True


def _remove_sidechain_marks(plan: EditPlan) -> None:
    """Take a sub-agent's marks off a file of nothing else: it is a conversation of its own."""
    nodes = plan.transcript.nodes
    if not all(node.sidechain for node in nodes if node.is_message):
        return
    for node in nodes:
        if node.sidechain and node.type in CONVERSATION:
            description = "take a sub-agent's mark away: every message of the file has it"
            plan.change(node, "sidechain.all", description, {"isSidechain": False})


def _is_complete(node: Node, record: Record) -> bool:
    """Whether a record is a message as clients write them, but perhaps for its time."""
    has_all = node.is_message and node.has_message and node.has_content and bool(node.uuid)
    return has_all and record.role == node.type


def _role_of(record: Record) -> str:
    """Return whose words a record without a type must be."""
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
    """Times for messages that have none: a little after the record before them in the file."""

    def __init__(self, plan: EditPlan, written: datetime) -> None:
        self._drafts = plan
        nodes = plan.transcript.nodes
        known = next((time for node in nodes if (time := read_time(node.timestamp))), None)
        self._start = known or written
        self._last: datetime | None = None
        self._at = 0

    def assign(self, node: Node) -> None:
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
    return time + _MILLISECOND


def repair_ids(plan: EditPlan) -> None:
    """Leave out copies, and set aside records whose id a later one has."""
    repeats = plan.graph.duplicates
    snapshots = {node.index: node for pair in repeats for node in colliding_snapshots(*pair)}
    for snapshot in snapshots.values():
        description = "take away the id of a snapshot: another record has it, and a snapshot needs none"
        plan.change(snapshot, "ids.snapshot-collision", description, {"uuid": REMOVED})
    for earlier, last in repeats:
        # With a snapshot out of the way, what is left under its id is looked at once more.
        if earlier.index in snapshots or last.index in snapshots:
            continue
        first, second = plan.fields(earlier), plan.fields(last)
        if not has_same_content(first, second):
            description = "set aside a record whose id a later one has; clients take the later"
            plan.set_aside(earlier, "ids.conflict", description, unlink=False)
        elif plan.is_removed(last) or _without_time(first) != _without_time(second):
            # Clients go by the later one's parent, so that is the one to keep.
            _remove_copy(plan, earlier, first, second)
        else:
            # The first stays where it is: its place and time fit its neighbours.
            _remove_copy(plan, last, second, first)


def _remove_copy(plan: EditPlan, node: Node, copy: dict[str, Any], kept_fields: dict[str, Any]) -> None:
    if plan.is_removed(node):
        return
    other = [f"{key} {describe_value(copy[key])}" for key in copy if kept_fields.get(key) != copy[key]]
    lost = f"what only a copy of a record had: {', '.join(other)}" if other else ""
    plan.remove(node, "ids.duplicate", "leave out a copy of another record", lost=lost)


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
    """Mend the messages of the conversation, block by block."""
    graph = plan.graph
    _name_responses(plan, graph)
    with_content = {node.message_id for node in graph.messages if _says_something(plan, node)} - {None}
    for node in graph.messages:
        # A blank line of an answer that says more is dropped by every client, and harms nobody.
        if node.type == "user" or node.message_id not in with_content or _says_something(plan, node):
            _repair_message(plan, node)


def _says_something(plan: EditPlan, node: Node) -> bool:
    """Whether an answer's line is more than blank text, if only more trouble."""
    if node.type != "assistant":
        return False
    content = message_of(plan, node).get("content")
    if isinstance(content, str):
        return bool(content.strip())
    items = as_list(content)
    return not items or any(not is_blank(item) for item in items)


# Responses


def _name_responses(plan: EditPlan, graph: RecordGraph) -> None:
    """Let each line say which response it belongs to, so that no client tears or merges them."""
    for run, name in unnamed_responses(graph.conversation):
        new = name or _new_name(run[0])
        for node in run:
            _rename_response(plan, node, new, "message.no-id", "give the line the name of its response")
    other: dict[str | None, str] = {}
    for node, name in misnamed_lines(graph):
        new = name or other.setdefault(node.message_id, _new_name(node))
        description = "give the line the name of the response it stands in"
        _rename_response(plan, node, new, "message.mixed", description)
        if name:
            _remove_foreign_thinking(plan, node)


def _new_name(node: Node) -> str:
    """Return a name for the response of a line, and not the one that it has."""
    names = (f"msg_{new_uuid(*parts).replace('-', '')[:24]}" for parts in ((node.uuid,), (node.uuid, node.message_id)))
    return next(name for name in names if name != node.message_id)


def _rename_response(plan: EditPlan, node: Node, name: str, finding: str, description: str) -> None:
    message = {**message_of(plan, node), "id": name}
    plan.change(node, finding, description, {"message": message})


def _remove_foreign_thinking(plan: EditPlan, node: Node) -> None:
    """Take the thinking out of a line that went into another response.

    The API wants the thinking of a response as it was signed, and nobody else's beside it.
    """
    message = message_of(plan, node)
    blocks = as_list(message.get("content")) or []
    remaining = [block for block in blocks if (as_object(block) or {}).get("type") not in THINKING_TYPES]
    if len(remaining) == len(blocks):
        return
    description = "take out thinking that was signed for another response"
    if remaining:
        fields = {"message": {**message, "content": remaining}}
        lost = f"in {node.type} {node.uuid}: thinking that was signed for another response"
        plan.change(node, "message.mixed", description, fields, lost=lost)
    else:
        plan.set_aside(node, "message.mixed", f"set the record aside: {description}")


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
    fixes = [_describe_fix(block, flaw) for block, flaw in flawed] or ["write its content as blocks"]
    description = "; ".join(dict.fromkeys(fixes))
    losses = "; ".join(dict.fromkeys(loss for item_and_flaw in flawed if (loss := _describe_loss(*item_and_flaw))))
    lost = f"in {node.type} {node.uuid}: {losses}" if losses else ""
    if not remaining and node.type == "assistant":
        plan.set_aside(node, finding, f"set the record aside: {flawed[0][1] if flawed else 'empty'}")
        return
    if not remaining:
        remaining = [{"type": "text", "text": _NO_CONTENT}]
        description = "put words in place of a message of which nothing can be sent"
    plan.change(node, finding, description, {"message": {**message, "content": remaining}}, lost=lost)


def _as_block(item: Any) -> _Block:
    """Return a block as it is, and anything else as text."""
    block = as_object(item)
    if block is not None:
        return block
    text = "" if item is None else encode(item).decode("utf-8", "replace")
    return {"type": "text", "text": item if isinstance(item, str) else text}


def _content_finding(items: list[Any] | None) -> str:
    """Return what is wrong with content that holds no bad block."""
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
            return "take out empty text"
        case "thinking" | "redacted_thinking":
            return "take out thinking without a signature, which the API refuses"
        case "image" | "document" | "tool_result":
            return f"put a note in place of what the API refuses: {flaw}"
        case "tool_use" if as_object(block.get("input")) is None:
            return "make the input of a call an object"
        case "tool_use":
            return "give a call an id and a name"
        case _:
            return f"take out {flaw}, which the API refuses"


def _describe_loss(block: _Block, flaw: str) -> str:
    """Return what the mended message no longer holds of a block, or nothing."""
    match block.get("type"):
        case "text":
            text = block.get("text")
            return "" if isinstance(text, str | None) else f"text that was none: {describe_value(text)}"
        case "tool_use":
            name = block.get("name")
            return "" if isinstance(name, str | None) else f"the name of a call: {describe_value(name)}"
        case "tool_result" if all(kind == "text" for kind, _ in result_flaws(block)):
            return ""
        case _:
            return _describe_fix(block, flaw)


_Blocks = list[dict[str, Any]]


def repair_images(plan: EditPlan) -> None:
    """Put notes in place of images that are too large to be among so many."""
    messages = plan.graph.messages
    holders = [(node, images) for node in messages if (images := _images(plan, node))]
    if sum(len(images) for _, images in holders) <= MANY_IMAGES:
        return
    for node, images in holders:
        sides = [side for image in images if (side := image_flaw(image.get("source"))[1])]
        if max(sides, default=0) > MAX_SIDE_AMONG_MANY:
            message = message_of(plan, node)
            content = _with_notes(message["content"])
            description = f"put a note in place of an image: {max(sides):,} pixels a side among so many"
            fields = {"message": {**message, "content": content}}
            plan.change(node, "message.image", description, fields, lost=f"an image in {node.uuid}")


def _images(plan: EditPlan, node: Node) -> _Blocks:
    blocks = objects_in(message_of(plan, node).get("content"))
    inner = [inner_block for block in blocks for inner_block in objects_in(block.get("content"))]
    return [block for block in (*blocks, *inner) if block.get("type") == "image"]


def _with_notes(content: Any) -> Any:
    """Return content with notes for images that are too large."""
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
    """Write every record as the real client does; set aside what is deleted or not active."""
    source = plan.transcript.source
    if not is_converted(source):
        return
    hidden = source.hidden_ids()
    for node in plan.transcript.nodes:
        if node.type == "deleted":
            plan.set_aside(node, _FINDING, "set aside a record that is deleted", unlink=False)
        elif node.uuid in hidden:
            description = "set aside a record of a branch that is not active"
            plan.set_aside(node, _FINDING, description, unlink=False)
        elif source.is_inserted(node.offset):
            plan.rewrite(node, _FINDING, "add what the real client writes here")
        elif not source.is_changed(node.offset):
            continue
        elif source.is_client(node.offset):
            description = "hang it on what stands before it now"
            plan.rewrite(node, _FINDING, description)
        elif node.type == "assistant" and not node.model:
            message = as_object(plan.fields(node).get("message")) or {}
            fields = {"message": {"model": NO_MODEL, **message}}
            plan.change(node, _FINDING, "write it as the real client does", fields)
        elif node.uuid:
            plan.rewrite(node, _FINDING, "write it as the real client does")


_SlimKind: TypeAlias = Literal["progress", "snapshots", "copies"]
_DESCRIPTIONS: Final[dict[_SlimKind, str]] = {
    "progress": "notes of progress",
    "snapshots": "snapshots that later ones replace",
    "copies": "the client's own copies of what tools gave back",
}
_MIN_LONG_TEXT: Final = 1000
_OMISSION_NOTE: Final = "[{:,} characters left out]"
_NUMBERED: Final = re.compile(r"^ *\d+[→\t]", re.MULTILINE)
"""How the lines of a file begin that a tool shows to the model."""


def slim_records(plan: EditPlan) -> None:
    """Leave out progress, replaced snapshots, and copies of tool output: one edit for each kind."""
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
    description = f"leave out {_DESCRIPTIONS[kind]} ({len(nodes):,}; {saved:,} bytes)"
    action = "change" if kind == "copies" else "remove"
    line = plan.line(nodes[0][0])
    return Edit("", action, line, "", description, f"{_DESCRIPTIONS[kind]} ({len(nodes):,})")


def _current_snapshots(plan: EditPlan) -> set[int]:
    """Return the last snapshot of each message."""
    last: dict[str, int] = {}
    for node in plan.transcript.of_type("file-history-snapshot"):
        last[str(plan.fields(node).get("messageId"))] = node.index
    return set(last.values())


def _shorten(plan: EditPlan, node: Node, texts: "_SeenTexts") -> int:
    """Leave out what a tool's own result says again; return how many bytes that saves."""
    texts.add_message(message_of(plan, node).get("content"))
    tool_use_result = plan.fields(node).get("toolUseResult") if node.is_result else None
    shorter = texts.shorten(tool_use_result)
    if shorter == tool_use_result:
        return 0
    plan.patch_without_edit(node, {"toolUseResult": shorter})
    return len(encode(tool_use_result)) - len(encode(shorter))


class _SeenTexts:
    """The long texts of the file so far, each by a digest, and the message being looked at."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._message_texts: list[str] = []

    def add_message(self, content: Any) -> None:
        """Take in what a message says: words, what was asked of tools and what they gave back."""
        long = list(_long_texts(content))
        self._known.update(map(_digest, long))
        self._message_texts = [*long, *(_NUMBERED.sub("", text) for text in long)]

    def shorten(self, value: Any) -> Any:
        """Return a value with long texts that stand elsewhere replaced by their size."""
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
