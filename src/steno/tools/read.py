"""Read: shows a file's text with line numbers, or an image, a PDF, a notebook."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias

import msgspec

from steno.tools.base import ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.images import media_type_of, show_image
from steno.tools.inputs import taken
from steno.tools.notebook import cell_blocks, cell_details, is_notebook, parse
from steno.tools.pdf import Pdf, show_pdf
from steno.tools.texts import (
    MOST_WHOLE,
    decode,
    form_of,
    open_file,
    place,
    read_up_to,
    remember,
    settled,
    stamp_of,
)
from steno.tools.words import failed, shown, size_words, spoken

__all__ = ["Read"]

Json: TypeAlias = dict[str, Any]
_DESCRIPTION: Final = """\
Reads a file.

- Text comes with line numbers, a tab behind each: up to 2,000 lines at a time. Go on with `offset` \
and `limit`. Very long lines are cut.
- PNG, JPEG, GIF and WebP images are shown as images; a PDF as a document (`pages` picks some of \
its pages, like "3" or "1-5"); a Jupyter notebook as its cells and their outputs.
- It reads files, not folders: for those use Glob, or ls in Bash.
- Read several files in one response when you will need them all.
"""
_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "description": "The path of the file, absolute if possible",
        },
        "offset": {
            "type": "integer",
            "description": "The first line to read (of a notebook, the first cell)",
        },
        "limit": {"type": "integer", "description": "How many lines (or cells) to read"},
        "pages": {
            "type": "string",
            "description": 'Which pages of a PDF, like "3" or "1-5"; at most 20 at a time',
        },
        "allow_large": {
            "type": "boolean",
            "description": "Read much more at a time than usual, if all of it is really needed",
        },
    },
    "required": ["file_path"],
    "additionalProperties": False,
}
_LINES: Final = 2_000
_CHARACTERS: Final = 128 << 10
_LARGE: Final = 8
_LONGEST: Final = 2_000
# To count the lines of more than this takes longer than anybody wants to wait.
_MOST_STREAMED: Final = 2 << 30
_CHUNK: Final = 1 << 20
_HEAD: Final = 1 << 12
_MOST_PDF: Final = 16 << 20


class _Input(msgspec.Struct, forbid_unknown_fields=True):
    file_path: str
    offset: int | None = None
    limit: int | None = None
    pages: str | None = None
    allow_large: bool = False

    @property
    def first(self) -> int:
        return max(self.offset or 1, 1)

    @property
    def most_lines(self) -> int:
        return self.limit or (_LINES * _LARGE if self.allow_large else _LINES)

    @property
    def most_characters(self) -> int:
        return _CHARACTERS * _LARGE if self.allow_large else _CHARACTERS


class Read:
    """The tool."""

    spec = own_spec("Read", description=_DESCRIPTION, schema=_SCHEMA)

    async def run(self, tool_input: Json, context: ToolContext, call: str) -> ToolResult:
        """Read a file."""
        asked = taken(tool_input, _Input)
        if (asked.offset or 0) < 0 or (asked.limit is not None and asked.limit < 1):
            raise ToolFailure("`offset` and `limit` count lines from 1 on")
        path = place(asked.file_path, context)
        real = await asyncio.to_thread(settled, path, context, call)
        found = await asyncio.to_thread(_read, path, real, asked, context)
        return found if isinstance(found, ToolResult) else await show_pdf(found, asked.pages)


def _read(path: str, real: str, asked: _Input, context: ToolContext) -> ToolResult | Pdf:
    descriptor, status = open_file(path, real, context)
    try:
        head = read_up_to(descriptor, _HEAD, path)
        if head.startswith(b"%PDF-"):
            found: ToolResult | Pdf = Pdf(path, _all(descriptor, head, _MOST_PDF, path))
        elif media_type_of(head):
            found = show_image(path, _all(descriptor, head, MOST_WHOLE, path))
        elif asked.pages is not None:
            raise ToolFailure(f"{shown(path)} is not a PDF: leave `pages` out")
        elif status.st_size > MOST_WHOLE and not is_notebook(path):
            return _streamed(descriptor, head, status, path, asked, context)
        else:
            data = _all(descriptor, head, MOST_WHOLE, path)
            return _text(path, real, data, status, asked, context)
    finally:
        os.close(descriptor)
    context.seen[real] = stamp_of(status)
    return found


def _all(descriptor: int, head: bytes, most: int, path: str) -> bytes:
    data = head + read_up_to(descriptor, most + 1 - len(head), path)
    if len(data) > most:
        raise ToolFailure(f"{shown(path)} is too big to be read (more than {size_words(most)})")
    return data


# Text


def _text(
    path: str, real: str, data: bytes, status: os.stat_result, asked: _Input, context: ToolContext
) -> ToolResult:
    text = decode(data, form_of(context, real, status))
    if text is None:
        raise _binary(path, len(data))
    if is_notebook(path):
        outcome = _cells(path, text.text, asked)
    else:
        lines = text.text.split("\n")
        outcome = _numbered(path, lines[asked.first - 1 :][: asked.most_lines], len(lines), asked)
    remember(context, real, status, text.form)
    return outcome


def _binary(path: str, size: int) -> ToolFailure:
    return ToolFailure(
        f"{shown(path)} is not a text file ({size_words(size)} of binary data): "
        "look at it with a program, in Bash"
    )


def _streamed(
    descriptor: int,
    head: bytes,
    status: os.stat_result,
    path: str,
    asked: _Input,
    context: ToolContext,
) -> ToolResult:
    """Show a part of a file that is too big to be taken into memory."""
    size = status.st_size
    if size > _MOST_STREAMED:
        raise ToolFailure(
            f"{shown(path)} is too big to be read ({size_words(size)}): search it with Grep, or "
            "take a part with head, tail or sed in Bash"
        )
    if b"\0" in head:
        raise _binary(path, size)
    kept = bytearray()
    number, last = 1, asked.first + asked.most_lines
    # Each line that is shown is cut anyway, so that what is kept of them has an end as well.
    most = 4 * asked.most_characters
    for chunk in _chunks(descriptor, head, path):
        count = chunk.count(b"\n")
        if number + count >= asked.first and number < last and len(kept) < most:
            kept += _part(chunk, asked.first - number, last - number)[: most - len(kept)]
        number += count
    text = decode(_whole(kept) if len(kept) >= most else bytes(kept))
    if text is None:
        raise _binary(path, size)
    lines = text.text.split("\n")
    context.seen[os.path.realpath(path)] = stamp_of(status)
    return _numbered(path, lines[: asked.most_lines], number, asked)


def _whole(kept: bytearray) -> bytes:
    """Leave out the character at the end that is only there in part."""
    for drop in range(4):
        part = bytes(kept[: len(kept) - drop])
        with suppress(UnicodeDecodeError):
            part.decode("utf-8")
            return part
    return bytes(kept)


def _chunks(descriptor: int, head: bytes, path: str) -> Iterator[bytes]:
    yield head
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except OSError as error:
            raise failed("read", path, error) from error
        if not chunk:
            return
        yield chunk


def _part(chunk: bytes, skip: int, until: int) -> bytes:
    """Return what a chunk has of some lines, counted by the line ends before them."""
    start = 0
    for _ in range(skip):
        start = chunk.index(b"\n", start) + 1
    end = start
    for _ in range(until - max(skip, 0)):
        end = chunk.find(b"\n", end) + 1
        if not end:
            return chunk[start:]
    return chunk[start:end]


def _numbered(path: str, lines: list[str], total: int, asked: _Input) -> ToolResult:
    """Show lines with their numbers, and say what is left."""
    first = asked.first
    fitting = _fitting([_cut(line) for line in lines], asked.most_characters)
    detail = {
        "type": "text",
        "file": {
            "filePath": spoken(path),
            "content": "\n".join(fitting),
            "numLines": len(fitting),
            "startLine": first,
            "totalLines": total,
        },
    }
    if total == 1 and fitting == [""]:
        return ToolResult(f"{shown(path)} exists, but it is empty.", detail)
    if not fitting:
        return ToolResult(
            f"{shown(path)} has only {total:,} lines: line {first:,} is behind its end.", detail
        )
    words = "\n".join(f"{number}\t{line}" for number, line in enumerate(fitting, first))
    after = first + len(fitting)
    if after <= total:
        words += f"\n\n(Lines {first:,} to {after - 1:,} of {total:,}; go on with offset: {after}.)"
    return ToolResult(words, detail)


def _cut(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    return f"{line[:_LONGEST]}… (line cut, {len(line) - _LONGEST:,} more characters)"


def _fitting(lines: list[str], most: int) -> list[str]:
    size = 0
    for count, line in enumerate(lines):
        size += len(line) + 1
        if size > most:
            return lines[:count]
    return lines


def _cells(path: str, text: str, asked: _Input) -> ToolResult:
    cells = cell_details(parse(text, path))
    wanted = cells[asked.first - 1 :][: asked.limit or len(cells)]
    blocks: list[Json] = []
    size = 0
    for count, cell in enumerate(wanted):
        added = cell_blocks(cell)
        size += sum(len(block.get("text", "")) for block in added)
        if blocks and size > asked.most_characters:
            words = f"({len(cells):,} cells in all; go on with offset: {asked.first + count}.)"
            blocks.append({"type": "text", "text": words})
            wanted = wanted[:count]
            break
        blocks += added
    detail = {"type": "notebook", "file": {"filePath": spoken(path), "cells": wanted}}
    return ToolResult(blocks or f"{shown(path)} has no cells to show.", detail)
