"""Read: shows text files with line numbers, images, PDF files and notebooks."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias

import msgspec

from steno.tools.builtin.notebook import cell_blocks, cell_details, is_notebook, parse_notebook
from steno.tools.builtin.pdf import PdfFile, pdf_result
from steno.tools.context import ToolContext
from steno.tools.file_content import (
    MAX_FILE_SIZE,
    approved_real_path,
    decode_text,
    detect_image_type,
    file_stamp,
    image_result,
    known_text_format,
    open_regular_file,
    read_up_to,
    remember_file,
    resolve_tool_path,
)
from steno.tools.output import file_error, format_size, json_safe_name, quote_name
from steno.tools.protocol import ToolFailure, ToolResult, builtin_spec, parse_input

JsonObject: TypeAlias = dict[str, Any]
_DESCRIPTION: Final = """\
Reads a file.

- Text is returned with line numbers followed by a tab, at most 2,000 lines at a time. Use `offset` \
and `limit` to read more. Very long lines are truncated.
- PNG, JPEG, GIF and WebP files are returned as images, PDF files as documents (`pages` selects \
pages, for example "3" or "1-5"), Jupyter notebooks as cells with outputs.
- It cannot read directories: use Glob, or ls in Bash.
- To read several files, make the calls in one response.
"""
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "Path of the file, preferably absolute"},
        "offset": {"type": "integer", "description": "First line to read (first cell of a notebook)"},
        "limit": {"type": "integer", "description": "Number of lines (or cells) to read"},
        "pages": {"type": "string", "description": 'Pages of a PDF, for example "3" or "1-5"; at most 20'},
        "allow_large": {
            "type": "boolean",
            "description": "Raise the size limits; use it only if the whole content is needed",
        },
    },
    "required": ["file_path"],
    "additionalProperties": False,
}
_DEFAULT_LINES: Final = 2_000
_DEFAULT_CHARACTERS: Final = 128 << 10
_LARGE_FACTOR: Final = 8
_MAX_LINE_LENGTH: Final = 2_000
# Counting the lines of larger files takes too long.
_MAX_STREAMED_SIZE: Final = 2 << 30
_CHUNK_SIZE: Final = 1 << 20
_HEAD_SIZE: Final = 1 << 12
_MAX_PDF_SIZE: Final = 16 << 20


class _ReadInput(msgspec.Struct, forbid_unknown_fields=True):
    file_path: str
    offset: int | None = None
    limit: int | None = None
    pages: str | None = None
    allow_large: bool = False

    @property
    def first_line(self) -> int:
        return max(self.offset or 1, 1)

    @property
    def max_lines(self) -> int:
        return self.limit or (_DEFAULT_LINES * _LARGE_FACTOR if self.allow_large else _DEFAULT_LINES)

    @property
    def max_characters(self) -> int:
        return _DEFAULT_CHARACTERS * _LARGE_FACTOR if self.allow_large else _DEFAULT_CHARACTERS


class Read:
    """The Read tool: shows the content of a file."""

    spec = builtin_spec("Read", description=_DESCRIPTION, schema=_SCHEMA)

    async def run(self, tool_input: JsonObject, context: ToolContext, call: str) -> ToolResult:
        """Read the file and return its content."""
        read_input = parse_input(tool_input, _ReadInput)
        if (read_input.offset or 0) < 0 or (read_input.limit is not None and read_input.limit < 1):
            raise ToolFailure("`offset` and `limit` must be positive.")
        path = resolve_tool_path(read_input.file_path, context)
        real_path = await asyncio.to_thread(approved_real_path, path, context, call)
        result = await asyncio.to_thread(_read_file, path, real_path, read_input, context)
        return result if isinstance(result, ToolResult) else await pdf_result(result, read_input.pages)


def _read_file(path: str, real_path: str, read_input: _ReadInput, context: ToolContext) -> ToolResult | PdfFile:
    descriptor, status = open_regular_file(path, real_path, context)
    try:
        head = read_up_to(descriptor, _HEAD_SIZE, path)
        if head.startswith(b"%PDF-"):
            result: ToolResult | PdfFile = PdfFile(path, _read_all(descriptor, head, _MAX_PDF_SIZE, path))
        elif detect_image_type(head):
            result = image_result(path, _read_all(descriptor, head, MAX_FILE_SIZE, path))
        elif read_input.pages is not None:
            raise ToolFailure(f"{quote_name(path)} is not a PDF. Omit `pages`.")
        elif status.st_size > MAX_FILE_SIZE and not is_notebook(path):
            return _stream_lines(descriptor, head, status, path, read_input, context)
        else:
            data = _read_all(descriptor, head, MAX_FILE_SIZE, path)
            return _text_result(path, real_path, data, status, read_input, context)
    finally:
        os.close(descriptor)
    context.file_stamps[real_path] = file_stamp(status)
    return result


def _read_all(descriptor: int, head: bytes, max_size: int, path: str) -> bytes:
    data = head + read_up_to(descriptor, max_size + 1 - len(head), path)
    if len(data) > max_size:
        raise ToolFailure(f"{quote_name(path)} is too large to read (more than {format_size(max_size)}).")
    return data


# Text


def _text_result(
    path: str, real_path: str, data: bytes, status: os.stat_result, read_input: _ReadInput, context: ToolContext
) -> ToolResult:
    text = decode_text(data, known_text_format(context, real_path, status))
    if text is None:
        raise _binary_file_error(path, len(data))
    if is_notebook(path):
        result = _notebook_result(path, text.text, read_input)
    else:
        lines = text.text.split("\n")
        result = _numbered_result(
            path, lines[read_input.first_line - 1 :][: read_input.max_lines], len(lines), read_input
        )
    remember_file(context, real_path, status, text.text_format)
    return result


def _binary_file_error(path: str, size: int) -> ToolFailure:
    return ToolFailure(f"{quote_name(path)} is a binary file ({format_size(size)}). Use Bash to inspect it.")


def _stream_lines(
    descriptor: int, head: bytes, status: os.stat_result, path: str, read_input: _ReadInput, context: ToolContext
) -> ToolResult:
    """Return lines of a file that is too large to load into memory."""
    size = status.st_size
    if size > _MAX_STREAMED_SIZE:
        raise ToolFailure(
            f"{quote_name(path)} is too large to read ({format_size(size)}). Search it with Grep, or "
            "use head, tail or sed in Bash."
        )
    if b"\0" in head:
        raise _binary_file_error(path, size)
    collected = bytearray()
    number, last = 1, read_input.first_line + read_input.max_lines
    # Long lines are truncated anyway, so the collected bytes can be limited as well.
    max_size = 4 * read_input.max_characters
    for chunk in _read_chunks(descriptor, head, path):
        count = chunk.count(b"\n")
        if number + count >= read_input.first_line and number < last and len(collected) < max_size:
            collected += _select_lines(chunk, read_input.first_line - number, last - number)[
                : max_size - len(collected)
            ]
        number += count
    text = decode_text(_trim_partial_character(collected) if len(collected) >= max_size else bytes(collected))
    if text is None:
        raise _binary_file_error(path, size)
    lines = text.text.split("\n")
    context.file_stamps[os.path.realpath(path)] = file_stamp(status)
    return _numbered_result(path, lines[: read_input.max_lines], number, read_input)


def _trim_partial_character(collected: bytearray) -> bytes:
    for drop in range(4):
        part = bytes(collected[: len(collected) - drop])
        with suppress(UnicodeDecodeError):
            part.decode("utf-8")
            return part
    return bytes(collected)


def _read_chunks(descriptor: int, head: bytes, path: str) -> Iterator[bytes]:
    yield head
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK_SIZE)
        except OSError as error:
            raise file_error("read", path, error) from error
        if not chunk:
            return
        yield chunk


def _select_lines(chunk: bytes, skip: int, until: int) -> bytes:
    """Return the lines of a chunk between two line numbers relative to its start."""
    start = 0
    for _ in range(skip):
        start = chunk.index(b"\n", start) + 1
    end = start
    for _ in range(until - max(skip, 0)):
        end = chunk.find(b"\n", end) + 1
        if not end:
            return chunk[start:]
    return chunk[start:end]


def _numbered_result(path: str, lines: list[str], total: int, read_input: _ReadInput) -> ToolResult:
    first = read_input.first_line
    shown_lines = _fit_lines([_shorten_line(line) for line in lines], read_input.max_characters)
    detail = {
        "type": "text",
        "file": {
            "filePath": json_safe_name(path),
            "content": "\n".join(shown_lines),
            "numLines": len(shown_lines),
            "startLine": first,
            "totalLines": total,
        },
    }
    if total == 1 and shown_lines == [""]:
        return ToolResult(f"{quote_name(path)} is empty.", detail)
    if not shown_lines:
        return ToolResult(f"{quote_name(path)} has only {total:,} lines; offset {first:,} is past the end.", detail)
    content = "\n".join(f"{number}\t{line}" for number, line in enumerate(shown_lines, first))
    next_line = first + len(shown_lines)
    if next_line <= total:
        content += f"\n\n(Showing lines {first:,} to {next_line - 1:,} of {total:,}. Use offset: {next_line} for more.)"
    return ToolResult(content, detail)


def _shorten_line(line: str) -> str:
    if len(line) <= _MAX_LINE_LENGTH:
        return line
    return f"{line[:_MAX_LINE_LENGTH]}… (line truncated, {len(line) - _MAX_LINE_LENGTH:,} more characters)"


def _fit_lines(lines: list[str], max_characters: int) -> list[str]:
    size = 0
    for count, line in enumerate(lines):
        size += len(line) + 1
        if size > max_characters:
            return lines[:count]
    return lines


def _notebook_result(path: str, text: str, read_input: _ReadInput) -> ToolResult:
    cells = cell_details(parse_notebook(text, path))
    selected = cells[read_input.first_line - 1 :][: read_input.limit or len(cells)]
    blocks: list[JsonObject] = []
    size = 0
    for count, cell in enumerate(selected):
        blocks_of_cell = cell_blocks(cell)
        size += sum(len(block.get("text", "")) for block in blocks_of_cell)
        if blocks and size > read_input.max_characters:
            note = f"(The notebook has {len(cells):,} cells. Use offset: {read_input.first_line + count} for more.)"
            blocks.append({"type": "text", "text": note})
            selected = selected[:count]
            break
        blocks += blocks_of_cell
    detail = {"type": "notebook", "file": {"filePath": json_safe_name(path), "cells": selected}}
    return ToolResult(blocks or f"{quote_name(path)} has no cells to show.", detail)
