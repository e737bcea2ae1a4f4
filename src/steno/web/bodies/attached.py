"""Attachments: what the client put beside a prompt, of every kind there is."""

from collections.abc import Callable
from typing import Any, Final

from steno.format.loose import loose
from steno.format.records import Record
from steno.report import words as say
from steno.safe.html import Html
from steno.web.bodies.about import About
from steno.web.bodies.boards import Item, board_of
from steno.web.bodies.files import file_view, numbered
from steno.web.bodies.parts import (
    Fact,
    box,
    coloured,
    facts,
    joined,
    paths,
    printed,
    prose,
    raw_doors,
    window,
)
from steno.web.bodies.pictures import gallery
from steno.web.bodies.plain import described
from steno.web.bodies.tidy import tidy
from steno.web.bodies.values import Fields, as_fields, as_items, as_number, as_text, first_text
from steno.web.render.code import language_of

__all__ = ["attachment"]

_FILES: Final = 20


def attachment(record: Record, about: About) -> Html:
    """Return what was attached, and what the model was told of it."""
    raw = record.envelope.attachment
    value = loose(raw) if raw else None
    data = as_fields(value)
    if not data:
        return box(tidy(value), plain="attachment", doors=raw_doors(about, record.offset))
    maker = _MAKERS.get(as_text(data.get("type")))
    made = maker(data, record, about) if maker is not None else Html("")
    if not made:
        made = described(data, about, offset=record.offset, leave=frozenset(("type",)))
    return joined(made, gallery(record, about) if maker is None else Html(""), _told(record, about))


def _told(record: Record, about: About) -> Html:
    """Return the words in which the model was told, where the client kept them."""
    items = as_items(record.fields.get("rendered"))
    words = [_words(item) for item in items]
    text = "\n\n".join(word for word in words if word)
    doors = raw_doors(about, record.offset)
    if text:
        body, shown, _ = printed(text, about, offset=record.offset)
        return box(body, plain="What the model was told", doors=doors, shown=shown)
    return box(tidy(items), plain="What the model was told", doors=doors) if items else Html("")


def _words(item: Any) -> str:
    fields = as_fields(item)
    content = fields.get("content", fields.get("text"))
    if isinstance(item, str | None.__class__):
        return as_text(item)
    if isinstance(content, str):
        return content
    return "\n".join(_words(each) for each in as_items(content))


_Maker = Callable[[Fields, Record, About], Html]


def _file(data: Fields, record: Record, about: About) -> Html:
    path = first_text(data, "displayPath", "filename", "path")
    content: Any = data.get("content")
    shown = file_view(as_fields(content), about, path=path, offset=record.offset)
    text = as_text(content) or as_text(data.get("snippet"))
    if shown or not text:
        return shown
    return _lines(text, path, about, record.offset, as_number(data.get("lineStart")))


def _lines(text: str, path: str, about: About, offset: int, start: int | None = None) -> Html:
    found = numbered(text)
    if found is not None:
        text, start = found
    shown = window(text, about, offset=offset)
    body = coloured(shown, language_of(path), start)
    return box(body, title=path, doors=raw_doors(about, offset), shown=shown)


def _directory(data: Fields, record: Record, about: About) -> Html:
    names = as_text(data.get("content")).strip().split("\n")
    body, shown = paths(names, about, offset=record.offset)
    title = first_text(data, "displayPath", "path")
    return box(body, title=title, doors=raw_doors(about, record.offset), shown=shown)


def _memory(data: Fields, record: Record, about: About) -> Html:
    content = as_fields(data.get("content"))
    text = as_text(content.get("content")) or as_text(data.get("content"))
    path = first_text(data, "displayPath", "path") or first_text(content, "path")
    if not text:
        return Html("")
    body = prose(text, about, offset=record.offset)
    kind = first_text(content, "type")
    return box(body, title=path, end=kind, doors=raw_doors(about, record.offset), kind="page-of")


def _instructions(data: Fields, record: Record, about: About) -> Html:
    files = [as_fields(file) for file in as_items(data.get("files"))]
    made = [
        box(
            prose(as_text(file.get("content")), about, offset=record.offset),
            title=as_text(file.get("path")),
            end=as_text(file.get("type")),
            doors=raw_doors(about, record.offset),
            kind="page-of",
        )
        for file in files[:_FILES]
    ]
    more = len(files) - len(made)
    return joined(*made, facts(Fact("more files", f"{more:,}" if more > 0 else "")))


def _reminder(data: Fields, record: Record, about: About) -> Html:
    del record, about
    items = [as_fields(item) for item in as_items(data.get("content"))]
    found = [
        Item(
            first_text(item, "id") or str(place),
            first_text(item, "content", "subject"),
            as_text(item.get("status")),
        )
        for place, item in enumerate(items)
    ]
    return board_of(found, None) if found else Html("")


def _listing(data: Fields, record: Record, about: About) -> Html:
    names = [as_text(name) for name in as_items(data.get("names"))]
    text = as_text(data.get("content"))
    count = as_number(data.get("skillCount"))
    body, shown, _ = printed(text or "\n".join(names), about, offset=record.offset)
    end = say.count(count if count is not None else len(names), "skill")
    return box(body, plain="Skills", end=end, doors=raw_doors(about, record.offset), shown=shown)


def _snapshot(data: Fields, record: Record, about: About) -> Html:
    prompts = [_words(each) for each in as_items(data.get("systemPrompt"))]
    tools = [as_fields(tool) for tool in as_items(data.get("tools"))]
    names = [as_text(tool.get("name")) for tool in tools]
    made: list[Html] = []
    for text in prompts[:_FILES]:
        body, shown, _ = printed(text, about, offset=record.offset)
        doors = raw_doors(about, record.offset)
        made.append(box(body, plain="System prompt", doors=doors, shown=shown))
    leave = frozenset(("type", "systemPrompt", "tools"))
    rest = described(data, about, offset=record.offset, leave=leave)
    return joined(*made, facts(Fact("tools", ", ".join(name for name in names if name))), rest)


def _structured(data: Fields, record: Record, about: About) -> Html:
    body = tidy(data.get("data"), full=about.full)
    return box(body, plain="Structured output", doors=raw_doors(about, record.offset))


_MAKERS: Final[dict[str, _Maker]] = {
    "compact_file_reference": _file,
    "directory": _directory,
    "edited_text_file": _file,
    "file": _file,
    "instructions": _instructions,
    "nested_memory": _memory,
    "prompt_snapshot": _snapshot,
    "relevant_memories": _memory,
    "selected_lines_in_ide": _file,
    "skill_listing": _listing,
    "structured_output": _structured,
    "task_reminder": _reminder,
    "todo_reminder": _reminder,
}
