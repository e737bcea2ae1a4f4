"""Write: creates a file, or replaces the content of a file that was read before."""

import asyncio
import os
from functools import partial
from typing import Any, Final

import msgspec

from steno.store.dirfd import Directory
from steno.tools.context import ToolContext
from steno.tools.file_content import (
    DecodedText,
    TextFormat,
    approved_real_path,
    decode_text,
    encode_text,
    file_stamp,
    known_text_format,
    load_file,
    remember_file,
    resolve_tool_path,
)
from steno.tools.output import file_error, json_safe_name, quote_name
from steno.tools.patch import structured_patch
from steno.tools.protocol import ToolFailure, ToolResult, builtin_spec, parse_input

NO_REREAD_NEEDED: Final = "No need to read the file again."
_DESCRIPTION: Final = """\
Writes a file, creating parent directories as needed.

- An existing file must have been read with Read in this conversation and must not have changed \
since. Its encoding and line endings are kept.
- To change part of a file, use Edit: it needs fewer tokens and is less error-prone.
"""
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "Path of the file, preferably absolute"},
        "content": {"type": "string", "description": "The complete content of the file"},
    },
    "required": ["file_path", "content"],
    "additionalProperties": False,
}


class FileDraft(msgspec.Struct, frozen=True):
    """A file to be written: its path and current content."""

    path: str
    """The path in the call, made absolute."""
    real_path: str
    """The path with all links resolved."""
    status: os.stat_result | None
    """Status of the current file; None for a new file."""
    text: DecodedText | None
    """Text of the current file; None for a binary file."""

    @property
    def text_format(self) -> TextFormat:
        """Encoding and line endings of the current content."""
        return self.text.text_format if self.text is not None else TextFormat()


def open_draft(path_argument: str, context: ToolContext, call: str) -> FileDraft:
    """Check and load a file that is to be written.

    Raises:
        ToolFailure: The file was not read before, has changed since, or is not writable.
    """
    path = resolve_tool_path(path_argument, context)
    real_path = approved_real_path(path, context, call)
    try:
        os.lstat(real_path)
    except (FileNotFoundError, NotADirectoryError):
        return FileDraft(path, real_path, None, DecodedText("", TextFormat()))
    except OSError as error:
        raise file_error("write", path, error) from error
    # Only links in a cycle remain in a real path.
    data, status = load_file(path, real_path, context)
    known_stamp = context.file_stamps.get(real_path)
    if known_stamp is None:
        raise ToolFailure(f"{quote_name(path)} exists but was not read yet. Read it first.")
    if known_stamp != file_stamp(status):
        raise ToolFailure(f"{quote_name(path)} has changed since it was read. Read it again before writing.")
    if not os.access(real_path, os.W_OK):
        raise ToolFailure(f"{quote_name(path)} is read-only.")
    return FileDraft(path, real_path, status, decode_text(data, known_text_format(context, real_path, status)))


async def save_draft(draft: FileDraft, raw: str, text_format: TextFormat, context: ToolContext) -> None:
    """Replace the content of a file.

    Raises:
        ToolFailure: The file cannot be written or has just changed; it was left unchanged.
    """
    data = encode_text(raw, text_format, draft.path)
    context.before_change(draft.real_path)
    status = await asyncio.to_thread(_replace_file, draft, data)
    remember_file(context, draft.real_path, status, text_format)


def _replace_file(draft: FileDraft, data: bytes) -> os.stat_result:
    """Write a temporary file and rename it, so that the file is never incomplete."""
    parent, name = os.path.split(draft.real_path)
    try:
        with Directory(parent, make=True) as folder:
            refuse_if_changed = partial(_refuse_changed, draft, folder)
            return folder.replace_file(name, data, draft.status, before_replace=refuse_if_changed)
    except OSError as error:
        raise file_error("write", draft.path, error) from error


def _refuse_changed(draft: FileDraft, folder: Directory) -> None:
    try:
        current = file_stamp(folder.status(os.path.basename(draft.real_path)))
    except FileNotFoundError:
        current = None
    previous = None if draft.status is None else file_stamp(draft.status)
    if current != previous:
        raise ToolFailure(f"{quote_name(draft.path)} changed during the call. Read it again before writing.")


class _WriteInput(msgspec.Struct, forbid_unknown_fields=True):
    file_path: str
    content: str


class Write:
    """The Write tool: creates or replaces a file."""

    spec = builtin_spec("Write", description=_DESCRIPTION, schema=_SCHEMA)

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Write the file."""
        write_input = parse_input(tool_input, _WriteInput)
        draft = await asyncio.to_thread(open_draft, write_input.file_path, context, call)
        old_content, text_format = draft.text, draft.text_format
        content = write_input.content.removeprefix("\ufeff") if text_format.bom else write_input.content
        if text_format.encoding == "latin-1" and not _can_encode(content, text_format):
            # The whole content is new, so changing the encoding loses nothing.
            text_format = TextFormat(newline=text_format.newline)
        await save_draft(draft, text_format.apply_line_ends(content), text_format, context)
        old_text = old_content.text if old_content is not None and draft.status is not None else None
        detail: dict[str, Any] = {
            "type": "create" if draft.status is None else "update",
            "filePath": json_safe_name(draft.path),
            "content": write_input.content,
            "structuredPatch": [],
            "originalFile": old_text,
            "userModified": False,
        }
        if old_text is not None:
            detail["structuredPatch"] = await asyncio.to_thread(structured_patch, old_text, content)
        verb = "Created" if draft.status is None else "Updated"
        count = len(write_input.content.splitlines())
        size = f"{count:,} line{'s' * (count != 1)}"
        return ToolResult(f"{verb} {quote_name(draft.path)} ({size}). {NO_REREAD_NEEDED}", detail)


def _can_encode(text: str, text_format: TextFormat) -> bool:
    try:
        text.encode(text_format.encoding)
    except UnicodeEncodeError:
        return False
    return True
