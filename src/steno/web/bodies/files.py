"""Reading files: numbered lines in colour, pictures, notebooks, documents."""

import re
from typing import Final

from steno.report import words as say
from steno.safe.html import Html
from steno.web.bodies.about import About, Call
from steno.web.bodies.parts import Fact, box, coloured, facts, joined, note, raw_doors, window
from steno.web.bodies.pictures import gallery
from steno.web.bodies.plain import documents, pictures, result
from steno.web.bodies.values import Fields, as_fields, as_items, as_number, as_text, first_text
from steno.web.render.code import language_of
from steno.web.render.markdown import marked

__all__ = ["file_view", "numbered", "read"]

_NUMBERED: Final = re.compile(r" *(\d{1,9})(?:→|\t)([^\n]*)")
_REMINDER: Final = "<system-reminder>"
_CELLS: Final = 30
_TO: Final = "\N{EN DASH}"


def read(call: Call) -> Html:
    """Return what was read."""
    path = as_text(call.asked.get("file_path"))
    if call.failed or call.step.result is None:
        return result(call, plain=path)
    offset = call.step.result.offset
    file = as_fields(call.fields.get("file"))
    made = file_view(call.fields, call.about, path=path, offset=offset)
    if not made and not file and call.text:
        made = _as_told(call, path, offset)
    pictured = call.has_pictures
    if not made and pictured:
        made = box(pictures(call), title=path, doors=raw_doors(call.about, offset))
    made = made or result(call, plain=path)
    if not pictured:
        made = joined(made, documents(call))
    aside = call.text.find(_REMINDER)
    return joined(made, note(call.text[aside:][:2_000], icon="say")) if aside >= 0 else made


def file_view(kept: Fields, about: About, *, path: str, offset: int) -> Html:
    """Return a file as the client keeps it in results and attachments; nothing for other shapes."""
    file = as_fields(kept.get("file"))
    name = as_text(file.get("filePath")) or path
    if isinstance(file.get("content"), str):
        return _text_file(file, about, name, offset)
    if isinstance(file.get("cells"), list):
        return _notebook(file, about, name, offset)
    kind = as_text(kept.get("type"))
    doors = raw_doors(about, offset)
    if kind == "image" or (isinstance(file.get("base64"), str) and kind != "pdf"):
        record = next(node for node in about.transcript.nodes if node.offset == offset)
        shown = gallery(about.transcript.record(record), about)
        return box(shown, title=name, end=_size(file), doors=doors) if shown else Html("")
    if kind in ("pdf", "parts"):
        pages = as_number(file.get("count")) or as_number(file.get("pages"))
        said = facts(
            Fact("document", "PDF"),
            Fact("pages", f"{pages:,}" if pages else ""),
            Fact("size", _size(file)),
            Fact("kept in", first_text(file, "outputDir")),
        )
        return box(said, title=name, doors=doors)
    if kind == "file_unchanged":
        return box(
            note("The file had not changed since it was last read."), title=name, doors=doors
        )
    return Html("")


def _size(file: Fields) -> str:
    size = as_number(file.get("originalSize"))
    return say.size(size) if size is not None else ""


def _text_file(file: Fields, about: About, name: str, offset: int) -> Html:
    content = as_text(file.get("content"))
    start = as_number(file.get("startLine"))
    count, whole = as_number(file.get("numLines")), as_number(file.get("totalLines"))
    start = 1 if start is None else start
    shown = window(content, about, offset=offset)
    end, foot = "", ()
    if count is not None and whole is not None and whole > count:
        end = f"lines {start:,}{_TO}{start + count - 1:,} of {whole:,}"
        foot = (Fact("", f"{say.count(whole - count, 'line')} not shown to the model"),)
    elif count is not None:
        end = say.count(count, "line")
    body = coloured(shown, language_of(name), start) if content else note("The file is empty.")
    doors = raw_doors(about, offset)
    return box(body, title=name, end=end, doors=doors, shown=shown, foot=foot)


def _notebook(file: Fields, about: About, name: str, offset: int) -> Html:
    cells = [as_fields(cell) for cell in as_items(file.get("cells"))]
    made: list[Html] = []
    for cell in cells[: len(cells) if about.full else _CELLS]:
        source = cell.get("source")
        lines = source if isinstance(source, str) else "".join(map(as_text, as_items(source)))
        shown = window(lines, about, offset=offset)
        kind = first_text(cell, "cellType", "cell_type") or "cell"
        if kind == "markdown":
            body = Html(f'<div class="said prose">{marked(shown.text)}</div>')
        else:
            body = coloured(shown, as_text(cell.get("language")) or "python", None)
        made.append(box(body, plain=kind, end=first_text(cell, "cell_id", "id"), shown=shown))
    whole = say.count(len(cells), "cell")
    end = whole if len(made) == len(cells) else f"{len(made):,} of {whole}"
    inside = Html(f'<div class="cells">{joined(*made)}</div>')
    return box(inside, title=name, end=end, doors=raw_doors(about, offset))


def numbered(text: str) -> tuple[str, int] | None:
    """Return the lines of a text that has numbers before them, and the first number.

    >>> numbered("    7→def f():")
    ('def f():', 7)
    """
    first = _NUMBERED.match(text)
    if first is None:
        return None
    lines: list[str] = []
    for line in text.split("\n"):
        found = _NUMBERED.fullmatch(line)
        if found is None:
            break
        lines.append(found[2])
    return "\n".join(lines), int(first[1])


def _as_told(call: Call, path: str, offset: int) -> Html:
    """Return what the model was told, where the client kept nothing of its own."""
    found = numbered(call.text.lstrip("\n"))
    if found is None:
        return Html("")
    content, start = found
    shown = window(content, call.about, offset=offset)
    body = coloured(shown, language_of(path), start)
    end = say.count(content.count("\n") + 1, "line")
    return box(body, title=path, end=end, doors=raw_doors(call.about, offset), shown=shown)
