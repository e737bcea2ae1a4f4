"""Views of tools that read or change files.

A change comes from the recorded patch, else from the recorded original file, else from the arguments of
the call.
"""

import re
from typing import Final

import msgspec

from steno.format.lenient_json import decode_lenient
from steno.format.line_diff import Hunk
from steno.format.tool_catalogue import tool_facts
from steno.report import humanize as say
from steno.sanitize.html import SafeHtml
from steno.web.render.code import language_of
from steno.web.render.diff import count_changes, diff_table, diff_texts, slice_hunks
from steno.web.render.markdown import markdown_to_html
from steno.web.tool_views.components import (
    Excerpt,
    Fact,
    Link,
    box,
    call_links,
    code_html,
    fact_list,
    join_html,
    note_box,
    record_links,
    take_excerpt,
)
from steno.web.tool_views.generic_view import document_facts, result_images, result_view
from steno.web.tool_views.record_images import image_gallery
from steno.web.tool_views.view_context import (
    Fields,
    ToolCall,
    ViewContext,
    as_fields,
    as_items,
    as_number,
    as_text,
    first_text,
)

_NUMBERED: Final = re.compile(r" *(\d{1,9})(?:→|\t)([^\n]*)")
_REMINDER_TAG: Final = "<system-reminder>"
_MAX_CELLS: Final = 30
_EN_DASH: Final = "\N{EN DASH}"


def read_view(call: ToolCall) -> SafeHtml:
    """Return the file content that a call returned."""
    path = as_text(call.tool_input.get("file_path"))
    if call.failed or call.step.result is None:
        return result_view(call, label=path)
    offset = call.step.result.offset
    file = as_fields(call.result_fields.get("file"))
    html = file_view(call.result_fields, call.context, path=path, offset=offset)
    if not html and not file and call.result_text:
        html = _numbered_text_box(call, path, offset)
    has_images = call.has_images
    if not html and has_images:
        html = box(result_images(call), title=path, links=record_links(call.context, offset))
    html = html or result_view(call, label=path)
    if not has_images:
        html = join_html(html, document_facts(call))
    reminder_at = call.result_text.find(_REMINDER_TAG)
    return join_html(html, note_box(call.result_text[reminder_at:][:2_000], icon="say")) if reminder_at >= 0 else html


def file_view(result_fields: Fields, context: ViewContext, *, path: str, offset: int) -> SafeHtml:
    """Return a file from a tool result or an attachment; empty for unknown shapes."""
    file = as_fields(result_fields.get("file"))
    name = as_text(file.get("filePath")) or path
    if isinstance(file.get("content"), str):
        return _text_file_box(file, context, name, offset)
    if isinstance(file.get("cells"), list):
        return _notebook_box(file, context, name, offset)
    kind = as_text(result_fields.get("type"))
    header_links = record_links(context, offset)
    if kind == "image" or (isinstance(file.get("base64"), str) and kind != "pdf"):
        record = next(node for node in context.transcript.nodes if node.offset == offset)
        images_html = image_gallery(context.transcript.record(record), context)
        return (
            box(images_html, title=name, end=_original_size(file), links=header_links) if images_html else SafeHtml("")
        )
    if kind in ("pdf", "parts"):
        pages = as_number(file.get("count")) or as_number(file.get("pages"))
        facts_html = fact_list(
            Fact("document", "PDF"),
            Fact("pages", f"{pages:,}" if pages else ""),
            Fact("size", _original_size(file)),
            Fact("output directory", first_text(file, "outputDir")),
        )
        return box(facts_html, title=name, links=header_links)
    if kind == "file_unchanged":
        return box(note_box("File unchanged since the last read"), title=name, links=header_links)
    return SafeHtml("")


def _original_size(file: Fields) -> str:
    size = as_number(file.get("originalSize"))
    return say.size(size) if size is not None else ""


def _text_file_box(file: Fields, context: ViewContext, name: str, offset: int) -> SafeHtml:
    content = as_text(file.get("content"))
    start = as_number(file.get("startLine"))
    count, total_lines = as_number(file.get("numLines")), as_number(file.get("totalLines"))
    start = 1 if start is None else start
    excerpt = take_excerpt(content, context, offset=offset)
    end, footer = "", ()
    if count is not None and total_lines is not None and total_lines > count:
        end = f"lines {start:,}{_EN_DASH}{start + count - 1:,} of {total_lines:,}"
        footer = (Fact("", f"{say.count(total_lines - count, 'line')} not shown to the model"),)
    elif count is not None:
        end = say.count(count, "line")
    body = code_html(excerpt, language_of(name), start) if content else note_box("Empty file")
    header_links = record_links(context, offset)
    return box(body, title=name, end=end, links=header_links, excerpt=excerpt, footer=footer)


def _notebook_box(file: Fields, context: ViewContext, name: str, offset: int) -> SafeHtml:
    cells = [as_fields(cell) for cell in as_items(file.get("cells"))]
    cell_boxes: list[SafeHtml] = []
    for cell in cells[: len(cells) if context.full else _MAX_CELLS]:
        source = cell.get("source")
        lines = source if isinstance(source, str) else "".join(map(as_text, as_items(source)))
        excerpt = take_excerpt(lines, context, offset=offset)
        kind = first_text(cell, "cellType", "cell_type") or "cell"
        if kind == "markdown":
            body = SafeHtml(f'<div class="said prose">{markdown_to_html(excerpt.text)}</div>')
        else:
            body = code_html(excerpt, as_text(cell.get("language")) or "python", None)
        cell_boxes.append(box(body, label=kind, end=first_text(cell, "cell_id", "id"), excerpt=excerpt))
    cell_count = say.count(len(cells), "cell")
    end = cell_count if len(cell_boxes) == len(cells) else f"{len(cell_boxes):,} of {cell_count}"
    inside = SafeHtml(f'<div class="cells">{join_html(*cell_boxes)}</div>')
    return box(inside, title=name, end=end, links=record_links(context, offset))


def strip_line_numbers(text: str) -> tuple[str, int] | None:
    """Return the lines of a text without their line numbers, and the first number.

    >>> strip_line_numbers("    7→def f():")
    ('def f():', 7)
    """
    first = _NUMBERED.match(text)
    if first is None:
        return None
    lines: list[str] = []
    for line in text.split("\n"):
        match = _NUMBERED.fullmatch(line)
        if match is None:
            break
        lines.append(match[2])
    return "\n".join(lines), int(first[1])


def _numbered_text_box(call: ToolCall, path: str, offset: int) -> SafeHtml:
    """Return a file from the result text, if no structured result was recorded."""
    unnumbered = strip_line_numbers(call.result_text.lstrip("\n"))
    if unnumbered is None:
        return SafeHtml("")
    content, start = unnumbered
    excerpt = take_excerpt(content, call.context, offset=offset)
    body = code_html(excerpt, language_of(path), start)
    end = say.count(content.count("\n") + 1, "line")
    return box(body, title=path, end=end, links=record_links(call.context, offset), excerpt=excerpt)


_MAX_ROWS: Final = 120
_MAX_FULL_ROWS: Final = 3_000
_MAX_COMPARED: Final = 2_000_000
"""Maximum characters of a compared text."""


class _FileChange(msgspec.Struct, frozen=True):
    """The changes of a tool call to a file."""

    path: str
    hunks: list[Hunk] = []
    full_text: str | None = None
    """Full text of a file that is new or whose previous text is unknown."""
    tags: tuple[str, ...] = ()
    has_line_numbers: bool = True
    language: str = ""


def change_view(call: ToolCall) -> SafeHtml:
    """Return the changes that a tool call made or attempted."""
    result_fields = call.result_fields
    tool_input = call.tool_input
    path = first_text(result_fields, "filePath", "notebook_path") or first_text(
        tool_input, "file_path", "notebook_path"
    )
    change = _notebook_change(call, path) if call.tool == "NotebookEdit" else _file_change(call, path)
    if change is None:
        return SafeHtml("")
    tags = [*change.tags]
    if result_fields.get("userModified") is True:
        tags.append("edited by the user")
    if tool_input.get("replace_all") is True or result_fields.get("replaceAll") is True:
        tags.append("replace all")
    if call.step.state in ("failed", "denied"):
        tags.append("not applied")
    html = _change_html(call, change, tags)
    has_failed = call.failed or as_text(result_fields.get("error"))
    return join_html(html, result_view(call)) if has_failed else html


def _change_html(call: ToolCall, change: _FileChange, tags: list[str]) -> SafeHtml:
    context = call.context
    header_links = call_links(call)
    language = change.language or language_of(change.path)
    if change.full_text is not None:
        text = change.full_text
        visible = take_excerpt(text, context, offset=call.offset)
        lines = text.removesuffix("\n").count("\n") + 1 if text else 0
        body = code_html(visible, language, 1)
        size = lines, 0
        return box(body, title=change.path, tags=tags, sizes=size, links=header_links, excerpt=visible)
    max_rows = _MAX_FULL_ROWS if context.full else _MAX_ROWS
    start = max(0, context.start) if context.full else 0
    visible, total_rows = slice_hunks(change.hunks, start, max_rows)
    body = diff_table(visible, language, side_by_side=context.side_by_side)
    return box(
        body,
        title=change.path,
        tags=tags,
        sizes=count_changes(change.hunks),
        links=(*_toggle_link(context), *header_links),
        footer=() if change.has_line_numbers else (Fact("", "Line numbers unknown"),),
        excerpt=_diff_extent(context, start, sum([len(hunk.lines) for hunk in visible]), total_rows),
    )


def _toggle_link(context: ViewContext) -> tuple[Link, ...]:
    if not context.path:
        return ()
    full = 1 if context.full else None
    if context.side_by_side:
        return (Link("Inline", context.url(diff=None, full=full), same_item=True),)
    return (Link("Side by side", context.url(diff="side", full=full), same_item=True),)


def _diff_extent(context: ViewContext, start: int, visible_rows: int, total_rows: int) -> Excerpt:
    if not start and visible_rows >= total_rows:
        return Excerpt("")
    extent_label = f"rows {start + 1:,} to {start + visible_rows:,} of {total_rows:,}"
    if not context.full:
        return Excerpt("", extent_label=extent_label, links=(Link("Show all", context.url(full=1), same_item=True),))
    end = start + visible_rows
    header_links = [Link("From the start", context.url(full=1), same_item=True)] if start else []
    if end < total_rows:
        header_links.append(Link("Next", context.url(full=1, **{"from": end}), same_item=True))
    return Excerpt("", extent_label=extent_label, links=tuple(header_links))


# Sources of the changes


def _file_change(call: ToolCall, path: str) -> _FileChange | None:
    result_fields, tool_input = call.result_fields, call.tool_input
    hunks = parse_patch(result_fields.get("structuredPatch"))
    if hunks:
        return _FileChange(path, hunks)
    before = result_fields.get("originalFile", result_fields.get("originalFileContents"))
    content = result_fields.get("content", tool_input.get("content"))
    if isinstance(content, str) and tool_facts(call.tool).file_action not in ("replace", "replace_many"):
        return _written_change(result_fields, path, before, content)
    edits = _edits_of(result_fields, tool_input)
    if isinstance(before, str) and before and edits and len(before) <= _MAX_COMPARED:
        after = _apply_edits(before, edits)
        if after is not None:
            return _FileChange(path, diff_texts(before, after))
    if edits and edits[0].old == "" and len(edits) == 1:
        return _FileChange(path, full_text=edits[0].new, tags=("new file",))
    edit_hunks = [hunk for edit in edits for hunk in diff_texts(edit.old, edit.new)]
    return _FileChange(path, edit_hunks, has_line_numbers=False) if edit_hunks else None


def _written_change(result_fields: Fields, path: str, old_content: object, content: str) -> _FileChange:
    if isinstance(old_content, str) and old_content:
        if max(len(old_content), len(content)) <= _MAX_COMPARED:
            hunks = diff_texts(old_content, content)
            return _FileChange(path, hunks) if hunks else _FileChange(path, full_text=content, tags=("unchanged",))
        return _FileChange(path, full_text=content, tags=("overwritten",))
    if result_fields.get("type") == "update":
        return _FileChange(path, full_text=content, tags=("overwritten",))
    return _FileChange(path, full_text=content, tags=("new file",) if result_fields.get("type") else ())


class _Edit(msgspec.Struct, frozen=True):
    old: str
    new: str
    replace_all: bool = False


def _edits_of(result_fields: Fields, tool_input: Fields) -> list[_Edit]:
    """Return the replacements of a tool call."""
    edit_items = as_items(tool_input.get("edits")) or as_items(result_fields.get("edits"))
    edit_fields = [as_fields(item) for item in edit_items] or [tool_input]
    edits = [
        _Edit(as_text(edit_item.get("old_string")), as_text(edit_item.get("new_string")), _replaces_all(edit_item))
        for edit_item in edit_fields
        if isinstance(edit_item.get("old_string"), str) or isinstance(edit_item.get("new_string"), str)
    ]
    old, new = result_fields.get("oldString"), result_fields.get("newString")
    if not edits and isinstance(old, str) and isinstance(new, str):
        edits = [_Edit(old, new, result_fields.get("replaceAll") is True)]
    return edits


def _replaces_all(edit_fields: Fields) -> bool:
    return edit_fields.get("replace_all") is True


def _apply_edits(text: str, edits: list[_Edit]) -> str | None:
    for edit in edits:
        if not edit.old or edit.old not in text:
            return None
        text = text.replace(edit.old, edit.new, -1 if edit.replace_all else 1)
    return text


def parse_patch(patch: object) -> list[Hunk]:
    """Return the hunks of a recorded patch; empty if the value is not a patch."""
    hunks: list[Hunk] = []
    for item in as_items(patch):
        fields = as_fields(item)
        lines = tuple([line for line in as_items(fields.get("lines")) if isinstance(line, str)])
        old, new = as_number(fields.get("oldStart")), as_number(fields.get("newStart"))
        if lines:
            hunks.append(Hunk(1 if old is None else old, 1 if new is None else new, lines))
    return hunks


# Notebooks


def _notebook_change(call: ToolCall, path: str) -> _FileChange | None:
    result_fields, tool_input = call.result_fields, call.tool_input
    new = first_text(result_fields, "new_source") or first_text(tool_input, "new_source")
    mode = first_text(result_fields, "edit_mode") or first_text(tool_input, "edit_mode") or "replace"
    cell = first_text(result_fields, "cell_id", "cell_number") or first_text(tool_input, "cell_id", "cell_number")
    old = result_fields.get("old_source")
    if not isinstance(old, str):
        old = _old_cell_source(as_text(result_fields.get("original_file")), cell)
    kind = first_text(result_fields, "cell_type") or first_text(tool_input, "cell_type")
    language = "markdown" if kind == "markdown" else first_text(result_fields, "language") or "python"
    tags = tuple(tag for tag in (mode, kind, f"cell {cell}" if cell else "") if tag)
    if mode == "delete" and not old:
        return _FileChange(path, full_text="", tags=tags, language=language)
    if old is None or mode == "insert":
        return _FileChange(path, full_text=new, tags=tags, language=language)
    hunks = diff_texts(old, "" if mode == "delete" else new)
    return _FileChange(path, hunks, tags=tags, language=language)


def _old_cell_source(notebook: str, name: str) -> str | None:
    """Return the previous source of a notebook cell."""
    if not notebook or not name or len(notebook) > _MAX_COMPARED:
        return None
    for cell in as_items(as_fields(decode_lenient(notebook.encode("utf-8", "replace"))).get("cells")):
        fields = as_fields(cell)
        if as_text(fields.get("id")) == name:
            source = fields.get("source")
            if isinstance(source, str):
                return source
            return "".join(map(as_text, as_items(source)))
    return None
