"""Edit and MultiEdit: exact string replacements in a file."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.tools.builtin.write import NO_REREAD_NEEDED, FileDraft, open_draft, save_draft
from steno.tools.context import ToolContext
from steno.tools.file_content import DecodedText, TextFormat
from steno.tools.output import json_safe_name, quote_name
from steno.tools.patch import structured_patch
from steno.tools.protocol import ToolFailure, ToolResult, builtin_spec, parse_input

_EDIT_DESCRIPTION: Final = """\
Replaces text in a file.

- You must have read the file with Read in this conversation, and it must not have changed since.
- `old_string` must match the text of the file exactly, including whitespace, but without the line numbers \
that Read shows.
- `old_string` must be unique in the file: include more context, or set `replace_all`.
- An empty `old_string` creates a new file with `new_string` as content.
- Encoding and line endings of the file are kept.
"""
_MULTI_EDIT_DESCRIPTION: Final = """\
Makes several replacements in one file, in the given order. Each edit works like Edit, on the result of the \
previous edits. If one edit fails, no edit is applied.
"""
_OLD_STRING_SCHEMA: Final = {"type": "string", "description": "The exact text to replace"}
_NEW_STRING_SCHEMA: Final = {"type": "string", "description": "The replacement text"}
_REPLACE_ALL_SCHEMA: Final = {"type": "boolean", "default": False, "description": "Replace all occurrences"}
_PATH_SCHEMA: Final = {"type": "string", "description": "Path of the file, preferably absolute"}
_CHANGE_SCHEMA: Final[dict[str, Any]] = {
    "old_string": _OLD_STRING_SCHEMA,
    "new_string": _NEW_STRING_SCHEMA,
    "replace_all": _REPLACE_ALL_SCHEMA,
}
_EDIT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"file_path": _PATH_SCHEMA, **_CHANGE_SCHEMA},
    "required": ["file_path", "old_string", "new_string"],
    "additionalProperties": False,
}
_MULTI_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "file_path": _PATH_SCHEMA,
        "edits": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": _CHANGE_SCHEMA,
                "required": ["old_string", "new_string"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["file_path", "edits"],
    "additionalProperties": False,
}
_MAX_NAMED_LINES: Final = 8
_MAX_QUOTED_LENGTH: Final = 200
_MAX_BRIEF_LENGTH: Final = 50


class _Replacement(msgspec.Struct, forbid_unknown_fields=True):
    old_string: str
    new_string: str
    replace_all: bool = False


class _EditInput(_Replacement, kw_only=True, forbid_unknown_fields=True):
    file_path: str


class _MultiEditInput(msgspec.Struct, forbid_unknown_fields=True):
    file_path: str
    edits: list[_Replacement]


class Edit:
    """The Edit tool: one replacement."""

    spec = builtin_spec("Edit", description=_EDIT_DESCRIPTION, schema=_EDIT_SCHEMA)

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Apply the replacement."""
        edit_input = parse_input(tool_input, _EditInput)
        draft, old_text, patch = await _apply_edits(edit_input.file_path, [edit_input], context, call)
        detail = {
            "filePath": json_safe_name(draft.path),
            "oldString": edit_input.old_string,
            "newString": edit_input.new_string,
            "originalFile": old_text,
            "structuredPatch": patch,
            "userModified": False,
            "replaceAll": edit_input.replace_all,
        }
        verb = "Created" if draft.status is None else "Edited"
        return ToolResult(f"{verb} {quote_name(draft.path)}. {NO_REREAD_NEEDED}", detail)


class MultiEdit:
    """The MultiEdit tool: several replacements, applied all or not at all."""

    spec = builtin_spec("MultiEdit", description=_MULTI_EDIT_DESCRIPTION, schema=_MULTI_SCHEMA)

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Apply the replacements."""
        edit_input = parse_input(tool_input, _MultiEditInput)
        draft, old_text, patch = await _apply_edits(edit_input.file_path, edit_input.edits, context, call)
        detail = {
            "filePath": json_safe_name(draft.path),
            "edits": msgspec.to_builtins(edit_input.edits),
            "originalFileContents": old_text,
            "structuredPatch": patch,
            "userModified": False,
        }
        count = len(edit_input.edits)
        lines = [f"Made {count} edit{'s' * (count > 1)} to {quote_name(draft.path)}. {NO_REREAD_NEEDED}"]
        lines += [
            f'{number}. Replaced "{_shorten(change.old_string)}" with "{_shorten(change.new_string)}"'
            for number, change in enumerate(edit_input.edits, 1)
        ]
        return ToolResult("\n".join(lines), detail)


async def _apply_edits(
    path: str, edits: Sequence[_Replacement], context: ToolContext, call: str
) -> tuple[FileDraft, str, list[dict[str, Any]]]:
    """Apply all replacements; return the draft, the old text and the patch."""
    if not edits:
        raise ToolFailure("`edits` is empty.")
    draft = await asyncio.to_thread(open_draft, path, context, call)
    text = draft.text
    if text is None:
        raise ToolFailure(f"{quote_name(draft.path)} is a binary file.")
    if draft.status is None and edits[0].old_string:
        raise ToolFailure(f"File not found: {quote_name(draft.path)}. Use Write or an empty `old_string` to create it.")
    new_text = await asyncio.to_thread(_replace_in_order, text, edits, draft)
    if new_text == text.raw_text and draft.status is not None:
        raise ToolFailure("The edits do not change the file. Nothing was written.")
    await save_draft(draft, new_text, text.text_format, context)
    old_text = text.text
    return (
        draft,
        old_text,
        await asyncio.to_thread(structured_patch, old_text, DecodedText(new_text, text.text_format).text),
    )


def _replace_in_order(text: DecodedText, edits: Sequence[_Replacement], draft: FileDraft) -> str:
    raw = text.raw_text
    for number, change in enumerate(edits, 1):
        where = quote_name(draft.path) + (f" (edit {number} of {len(edits)})" if len(edits) > 1 else "")
        old, new = change.old_string, change.new_string
        raw = replace_text(raw, old, new, text.text_format, replace_all=change.replace_all, where=where)
    return raw


def replace_text(raw: str, old: str, new: str, text_format: TextFormat, *, replace_all: bool, where: str) -> str:
    """Return the text with `old` replaced; all other line endings stay unchanged.

    Raises:
        ToolFailure: `old` is missing, is not unique, or equals `new`.
    """
    if old == new:
        raise ToolFailure("`old_string` and `new_string` are identical.")
    if not old:
        if raw:
            raise ToolFailure(f"{where} is not empty. An empty `old_string` can only create a new file.")
        return text_format.apply_line_ends(new)
    pattern = _match_pattern(old)
    spans = list(_find_spans(pattern, raw, overlapping=not replace_all))
    if not spans:
        raise ToolFailure(_not_found_message(raw, old, where))
    if len(spans) > 1 and not replace_all:
        raise ToolFailure(_ambiguous_message(raw, old, spans, where))
    pieces: list[str] = []
    index = 0
    for start, end in spans:
        pieces += [raw[index:start], _with_line_ends_of(raw[start:end], text_format).apply_line_ends(new)]
        index = end
    return "".join(pieces) + raw[index:]


def _match_pattern(old: str) -> re.Pattern[str]:
    """Return a pattern that matches the displayed text in the raw text, with any line endings."""
    normalized = old.replace("\r\n", "\n")
    expressions = {"\n": r"\r?\n", "\r": r"\r(?!\n)"}
    return re.compile("".join(expressions.get(part) or re.escape(part) for part in re.split("([\r\n])", normalized)))


def _find_spans(pattern: re.Pattern[str], raw: str, *, overlapping: bool) -> Iterator[tuple[int, int]]:
    index = 0
    while (match := pattern.search(raw, index)) is not None:
        # Skip a whole CRLF pair: its line feed alone would match again.
        index = match.start() + (2 if raw.startswith("\r\n", match.start()) else 1)
        if not overlapping:
            index = match.end()
        yield match.span()


def _with_line_ends_of(piece: str, text_format: TextFormat) -> TextFormat:
    """Return the format with the line endings of the replaced text, which may differ from those of the file."""
    pairs = piece.count("\r\n")
    singles = piece.count("\n") - pairs
    if pairs == singles:
        return text_format
    return TextFormat(text_format.encoding, text_format.bom, "\r\n" if pairs > singles else "\n")


# Error messages


def _line_number(raw: str, index: int) -> int:
    return raw.count("\n", 0, index) + 1


def _ambiguous_message(raw: str, old: str, spans: list[tuple[int, int]], where: str) -> str:
    lines = [str(_line_number(raw, start)) for start, _ in spans[:_MAX_NAMED_LINES]]
    more = ", …" if len(spans) > _MAX_NAMED_LINES else ""
    return (
        f"`old_string` occurs {len(spans)} times in {where}, in lines {', '.join(lines)}{more}. "
        f"Include more context to make it unique, or set `replace_all`.\nold_string: {_quote(old)}"
    )


def _not_found_message(raw: str, old: str, where: str) -> str:
    message = f"`old_string` was not found in {where}.\nold_string: {_quote(old)}"
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    lines = [str(n) for n, line in enumerate(raw.split("\n"), 1) if first and first in line]
    if not lines:
        return f"{message}\nRead the file again and copy the text exactly."
    near_lines = ", ".join(lines[:_MAX_NAMED_LINES]) + (", …" if len(lines) > _MAX_NAMED_LINES else "")
    return f"{message}\nIts first line occurs in line {near_lines}: check whitespace, quotes and line breaks there."


def _quote(text: str) -> str:
    # A call can contain unpaired surrogates, which cannot be encoded.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _MAX_QUOTED_LENGTH else f"{text[:_MAX_QUOTED_LENGTH]}… ({len(text):,} characters)"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_BRIEF_LENGTH else f"{text[:_MAX_BRIEF_LENGTH]}…"
