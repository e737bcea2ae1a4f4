"""Views of attachments, of a raw record, and of a gap."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from steno.format.catalogue import catalogue
from steno.format.lenient_json import decode_lenient
from steno.format.records import Gap, Record
from steno.format.source import Damage
from steno.report import humanize as say
from steno.sanitize.html import SafeHtml, escape_html
from steno.session.transcript import Transcript
from steno.web.render.code import code_block, language_of
from steno.web.tool_views.components import (
    Fact,
    Link,
    box,
    code_html,
    fact_list,
    join_html,
    markdown_html,
    note_box,
    path_list,
    record_links,
    take_excerpt,
    terminal_output,
)
from steno.web.tool_views.file_views import file_view, strip_line_numbers
from steno.web.tool_views.generic_view import json_view, object_view
from steno.web.tool_views.record_images import image_gallery
from steno.web.tool_views.task_board import BoardItem, board_html
from steno.web.tool_views.view_context import Fields, ViewContext, as_fields, as_items, as_number, as_text, first_text

_MAX_FILES: Final = 20


def attachment_view(record: Record, context: ViewContext) -> SafeHtml:
    """Return the content of an attachment and the text sent to the model for it."""
    raw = record.envelope.attachment
    value = decode_lenient(raw) if raw else None
    data = as_fields(value)
    if not data:
        return box(json_view(value), label="attachment", links=record_links(context, record.offset))
    view = _ATTACHMENT_VIEWS.get(as_text(data.get("type")))
    html = view(data, record, context) if view is not None else SafeHtml("")
    if not html:
        html = object_view(data, context, offset=record.offset, skipped=frozenset(("type",)))
    return join_html(
        html, image_gallery(record, context) if view is None else SafeHtml(""), _model_text_box(record, context)
    )


def _model_text_box(record: Record, context: ViewContext) -> SafeHtml:
    """Return the recorded text that was sent to the model for an attachment."""
    items = as_items(record.fields.get("rendered"))
    texts = [_item_text(item) for item in items]
    text = "\n\n".join(item_text for item_text in texts if item_text)
    header_links = record_links(context, record.offset)
    if text:
        body, excerpt, _ = terminal_output(text, context, offset=record.offset)
        return box(body, label="Sent to the model", links=header_links, excerpt=excerpt)
    return box(json_view(items), label="Sent to the model", links=header_links) if items else SafeHtml("")


def _item_text(item: Any) -> str:
    fields = as_fields(item)
    content = fields.get("content", fields.get("text"))
    if isinstance(item, str | None.__class__):
        return as_text(item)
    if isinstance(content, str):
        return content
    return "\n".join(_item_text(child) for child in as_items(content))


_AttachmentView = Callable[[Fields, Record, ViewContext], SafeHtml]


def _file_attachment(data: Fields, record: Record, context: ViewContext) -> SafeHtml:
    path = first_text(data, "displayPath", "filename", "path")
    content: Any = data.get("content")
    file_html = file_view(as_fields(content), context, path=path, offset=record.offset)
    text = as_text(content) or as_text(data.get("snippet"))
    if file_html or not text:
        return file_html
    return _code_box(text, path, context, record.offset, as_number(data.get("lineStart")))


def _code_box(text: str, path: str, context: ViewContext, offset: int, start: int | None = None) -> SafeHtml:
    unnumbered = strip_line_numbers(text)
    if unnumbered is not None:
        text, start = unnumbered
    excerpt = take_excerpt(text, context, offset=offset)
    body = code_html(excerpt, language_of(path), start)
    return box(body, title=path, links=record_links(context, offset), excerpt=excerpt)


def _directory_attachment(data: Fields, record: Record, context: ViewContext) -> SafeHtml:
    names = as_text(data.get("content")).strip().split("\n")
    body, excerpt = path_list(names, context, offset=record.offset)
    title = first_text(data, "displayPath", "path")
    return box(body, title=title, links=record_links(context, record.offset), excerpt=excerpt)


def _memory_attachment(data: Fields, record: Record, context: ViewContext) -> SafeHtml:
    content = as_fields(data.get("content"))
    text = as_text(content.get("content")) or as_text(data.get("content"))
    path = first_text(data, "displayPath", "path") or first_text(content, "path")
    if not text:
        return SafeHtml("")
    body = markdown_html(text, context, offset=record.offset)
    kind = first_text(content, "type")
    return box(body, title=path, end=kind, links=record_links(context, record.offset), kind="page-of")


def _instructions_attachment(data: Fields, record: Record, context: ViewContext) -> SafeHtml:
    files = [as_fields(file) for file in as_items(data.get("files"))]
    boxes = [
        box(
            markdown_html(as_text(file.get("content")), context, offset=record.offset),
            title=as_text(file.get("path")),
            end=as_text(file.get("type")),
            links=record_links(context, record.offset),
            kind="page-of",
        )
        for file in files[:_MAX_FILES]
    ]
    more = len(files) - len(boxes)
    return join_html(*boxes, fact_list(Fact("more files", f"{more:,}" if more > 0 else "")))


def _task_reminder(data: Fields, record: Record, context: ViewContext) -> SafeHtml:
    del record, context
    items = [as_fields(item) for item in as_items(data.get("content"))]
    board_items = [
        BoardItem(
            first_text(item, "id") or str(position), first_text(item, "content", "subject"), as_text(item.get("status"))
        )
        for position, item in enumerate(items)
    ]
    return board_html(board_items, None) if board_items else SafeHtml("")


def _skill_listing(data: Fields, record: Record, context: ViewContext) -> SafeHtml:
    names = [as_text(name) for name in as_items(data.get("names"))]
    text = as_text(data.get("content"))
    count = as_number(data.get("skillCount"))
    body, excerpt, _ = terminal_output(text or "\n".join(names), context, offset=record.offset)
    end = say.count(count if count is not None else len(names), "skill")
    return box(body, label="Skills", end=end, links=record_links(context, record.offset), excerpt=excerpt)


def _prompt_snapshot(data: Fields, record: Record, context: ViewContext) -> SafeHtml:
    prompts = [_item_text(prompt) for prompt in as_items(data.get("systemPrompt"))]
    tools = [as_fields(tool) for tool in as_items(data.get("tools"))]
    names = [as_text(tool.get("name")) for tool in tools]
    boxes: list[SafeHtml] = []
    for text in prompts[:_MAX_FILES]:
        body, excerpt, _ = terminal_output(text, context, offset=record.offset)
        header_links = record_links(context, record.offset)
        boxes.append(box(body, label="System prompt", links=header_links, excerpt=excerpt))
    leave = frozenset(("type", "systemPrompt", "tools"))
    other_fields = object_view(data, context, offset=record.offset, skipped=leave)
    return join_html(*boxes, fact_list(Fact("tools", ", ".join(name for name in names if name))), other_fields)


def _structured_output(data: Fields, record: Record, context: ViewContext) -> SafeHtml:
    body = json_view(data.get("data"), full=context.full)
    return box(body, label="Structured output", links=record_links(context, record.offset))


_ATTACHMENT_VIEWS: Final[dict[str, _AttachmentView]] = {
    "compact_file_reference": _file_attachment,
    "directory": _directory_attachment,
    "edited_text_file": _file_attachment,
    "file": _file_attachment,
    "instructions": _instructions_attachment,
    "nested_memory": _memory_attachment,
    "prompt_snapshot": _prompt_snapshot,
    "relevant_memories": _memory_attachment,
    "selected_lines_in_ide": _file_attachment,
    "skill_listing": _skill_listing,
    "structured_output": _structured_output,
    "task_reminder": _task_reminder,
    "todo_reminder": _task_reminder,
}


_MAX_GAP_BYTES: Final = 400_000
"""Maximum bytes of a gap that are shown."""
_MAX_LISTED: Final = 30
_BYTES_PER_ROW: Final = 16
_MAX_DUMP_BYTES: Final = 64


def record_view(record: Record, context: ViewContext) -> SafeHtml:
    """Return a record: facts, JSON, images and the raw line."""
    context = _with_path(context, record.offset)
    fields = record.fields
    head = fact_list(
        Fact("kind", record.kind or "none"),
        Fact("bytes", f"{record.length:,}"),
        Fact("offset", f"{record.offset:,}"),
        Fact("version", record.envelope.version or ""),
        Fact("time", str(record.timestamp or "")),
        Fact("in this file", _type_count(record, context.transcript)),
    )
    parts = [head, *(_damage_note(damage) for damage in record.damage[:_MAX_LISTED])]
    catalogue_text, css_class = _catalogue_entry(record)
    drift = (Link("Drift", context.links.health()),) if css_class else ()
    footer = (
        Fact("", "Preserved byte for byte"),
        Fact("", catalogue_text, css_class),
        Fact("", _unknown_fields(record)),
    )
    body = json_view(fields, full=context.full) if fields else note_box("Not valid JSON", "warn")
    parts.append(box(body, title=record.kind, label="formatted", links=drift, footer=footer))
    parts += [image_gallery(record, context), _raw_line_box(record.line, context, record.offset)]
    return join_html(*parts)


def gap_view(gap: Gap, context: ViewContext) -> SafeHtml:
    """Return the bytes between two records."""
    context = _with_path(context, gap.offset)
    raw = context.transcript.source.read(gap.offset, min(gap.length, _MAX_GAP_BYTES))
    empty = not raw.strip(b"\x00 \t\r\n")
    head = fact_list(
        Fact("kind", "gap"),
        Fact("bytes", f"{gap.length:,}"),
        Fact("offset", f"{gap.offset:,}"),
        Fact("content", "only whitespace or zero bytes" if empty else ""),
    )
    parts = [head, *(_damage_note(damage) for damage in gap.damage[:_MAX_LISTED])]
    if not gap.damage and empty:
        parts.append(note_box("Empty line; ignored by readers"))
    if gap.length > len(raw):
        parts.append(note_box(f"Showing the first {say.size(len(raw))} of {say.size(gap.length)}", "warn"))
    parts.append(_hex_dump(raw) if empty and raw else _raw_line_box(raw, context, gap.offset))
    return join_html(*parts)


def _with_path(context: ViewContext, offset: int) -> ViewContext:
    """Return the context; if the context has no path, set it to the path of a record."""
    return context if context.path else msgspec.structs.replace(context, path=f"record/{offset}")


def _hex_dump(raw: bytes) -> SafeHtml:
    rows = [raw[at : at + _BYTES_PER_ROW].hex(" ") for at in range(0, min(len(raw), _MAX_DUMP_BYTES), _BYTES_PER_ROW)]
    cut = f"{_MAX_DUMP_BYTES} of {say.count(len(raw), 'byte')}" if len(raw) > _MAX_DUMP_BYTES else ""
    return box(code_block("\n".join(rows)), label="Bytes", footer=(Fact("", cut),))


def _raw_line_box(raw: bytes, context: ViewContext, offset: int) -> SafeHtml:
    """Return the raw line; bytes that are not UTF-8 are escaped."""
    text = raw.decode("utf-8", "backslashreplace")
    excerpt = take_excerpt(text, context, offset=offset)
    body = SafeHtml(f'<pre class="out">{escape_html(excerpt.text)}</pre>')
    more_links = (Link("Records from here", _records_url(context, offset)),)
    return box(body, label="Raw line", links=more_links, excerpt=excerpt)


def _records_url(context: ViewContext, offset: int) -> str:
    return context.links.inside(context.key, "records", context.agent, **{"from": offset})


def _type_count(record: Record, transcript: Transcript) -> str:
    """Return the number of records in the file that have the same type."""
    count = sum(node.type == record.type and node.subtype == record.subtype for node in transcript.nodes)
    name = f"{record.type}/{record.subtype}" if record.subtype else record.type
    return f"{say.count(count, 'record')} of type {name}" if count and name else ""


def _catalogue_entry(record: Record) -> tuple[str, str]:
    """Return the catalogue entry of a record as text, and a CSS class."""
    entry = catalogue().kind(record.kind, record.dialect) or catalogue().kind(record.kind)
    if entry is None:
        return "Not in the catalogue", "warn"
    dialect = "" if record.dialect == "claude" else f" of the dialect {record.dialect}"
    seen_label = f", seen in versions {entry.seen[0]} to {entry.seen[-1]}" if entry.seen else ""
    claimed_note = ", from other sources only" if entry.claimed else ""
    role = "part of the conversation" if entry.family == "graph" else "not part of the conversation"
    return f"In the catalogue{dialect}{seen_label}, {role}{claimed_note}", ""


def _unknown_fields(record: Record) -> str:
    entry = catalogue().kind(record.kind, record.dialect) or catalogue().kind(record.kind)
    if entry is None:
        return ""
    known = {*catalogue().fields(entry), *catalogue().envelopes[entry.dialect], "type"}
    unknown = [name for name in record.fields if name not in known]
    more = f" and {len(unknown) - _MAX_LISTED} more" if len(unknown) > _MAX_LISTED else ""
    return f"Fields not in the catalogue: {', '.join(unknown[:_MAX_LISTED])}{more}" if unknown else ""


def _damage_note(damage: Damage) -> SafeHtml:
    message = ": ".join(part for part in (damage.id, damage.message or damage.hint) if part)
    where = f" (byte {damage.span.offset:,}, {say.count(damage.span.length, 'byte')})"
    return note_box(f"{message}{where}. {damage.hint}" if damage.message else f"{message}{where}", "warn", "warn")
