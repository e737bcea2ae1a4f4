"""Edit and MultiEdit: replace exact pieces of a file's text, and nothing else."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.tools.base import ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.inputs import taken
from steno.tools.patch import structured_patch
from steno.tools.texts import Form, Text
from steno.tools.words import shown, spoken
from steno.tools.write import CURRENT, Draft, save, take_up

__all__ = ["Edit", "MultiEdit", "replaced"]

_EDIT_WORDS: Final = """\
Replaces a piece of a file's text.

- The file must have been read with Read in this conversation, and must not have changed since.
- `old_string` is compared exactly, white space included, without the line numbers that Read puts \
in front. It must occur once: take in more of what is around it, or set `replace_all`.
- An empty `old_string` makes a new file of `new_string`.
- Encoding and line ends of the file are kept.
"""
_MULTI_WORDS: Final = """\
Makes several replacements in one file, one after the other, as Edit does. Each sees what the ones \
before it have made. When one of them fails, none is made.
"""
_OLD: Final = {"type": "string", "description": "The text to replace, exactly as it is in the file"}
_NEW: Final = {"type": "string", "description": "The text to put in its place"}
_ALL: Final = {
    "type": "boolean",
    "default": False,
    "description": "Replace it wherever it occurs",
}
_PATH: Final = {"type": "string", "description": "The path of the file, absolute if possible"}
_CHANGE: Final[dict[str, Any]] = {"old_string": _OLD, "new_string": _NEW, "replace_all": _ALL}
_EDIT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"file_path": _PATH, **_CHANGE},
    "required": ["file_path", "old_string", "new_string"],
    "additionalProperties": False,
}
_MULTI_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "file_path": _PATH,
        "edits": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": _CHANGE,
                "required": ["old_string", "new_string"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["file_path", "edits"],
    "additionalProperties": False,
}
_NAMED: Final = 8
_QUOTED: Final = 200
_BRIEF: Final = 50


class _Change(msgspec.Struct, forbid_unknown_fields=True):
    old_string: str
    new_string: str
    replace_all: bool = False


class _EditInput(_Change, kw_only=True, forbid_unknown_fields=True):
    file_path: str


class _MultiInput(msgspec.Struct, forbid_unknown_fields=True):
    file_path: str
    edits: list[_Change]


class Edit:
    """The tool that makes one replacement."""

    spec = own_spec("Edit", description=_EDIT_WORDS, schema=_EDIT_SCHEMA)

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Make the replacement."""
        asked = taken(tool_input, _EditInput)
        draft, old, patch = await _edit(asked.file_path, [asked], context, call)
        detail = {
            "filePath": spoken(draft.path),
            "oldString": asked.old_string,
            "newString": asked.new_string,
            "originalFile": old,
            "structuredPatch": patch,
            "userModified": False,
            "replaceAll": asked.replace_all,
        }
        done = "Made" if draft.status is None else "Changed"
        return ToolResult(f"{done} {shown(draft.path)}; {CURRENT}.", detail)


class MultiEdit:
    """The tool that makes several replacements, or none."""

    spec = own_spec("MultiEdit", description=_MULTI_WORDS, schema=_MULTI_SCHEMA)

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Make the replacements."""
        asked = taken(tool_input, _MultiInput)
        draft, old, patch = await _edit(asked.file_path, asked.edits, context, call)
        detail = {
            "filePath": spoken(draft.path),
            "edits": msgspec.to_builtins(asked.edits),
            "originalFileContents": old,
            "structuredPatch": patch,
            "userModified": False,
        }
        count = len(asked.edits)
        lines = [f"Made {count} change{'s' * (count > 1)} in {shown(draft.path)}; {CURRENT}:"]
        lines += [
            f'{number}. "{_brief(change.old_string)}" is now "{_brief(change.new_string)}"'
            for number, change in enumerate(asked.edits, 1)
        ]
        return ToolResult("\n".join(lines), detail)


async def _edit(
    path: str, edits: Sequence[_Change], context: ToolContext, call: str
) -> tuple[Draft, str, list[dict[str, Any]]]:
    """Make all replacements in a file; return it, its text before, and what changed."""
    if not edits:
        raise ToolFailure("there is nothing to change: `edits` is empty")
    draft = await asyncio.to_thread(take_up, path, context, call)
    text = draft.text
    if text is None:
        raise ToolFailure(f"{shown(draft.path)} is not a text file")
    if draft.status is None and edits[0].old_string:
        raise ToolFailure(
            f"{shown(draft.path)} does not exist: to make it, leave `old_string` empty or use Write"
        )
    new = await asyncio.to_thread(_replaced_in_turn, text, edits, draft)
    if new == text.raw and draft.status is not None:
        raise ToolFailure("the file would be the same afterwards: nothing was changed")
    await save(draft, new, text.form, context)
    before = text.text
    return (
        draft,
        before,
        await asyncio.to_thread(structured_patch, before, Text(new, text.form).text),
    )


def _replaced_in_turn(text: Text, edits: Sequence[_Change], draft: Draft) -> str:
    raw = text.raw
    for number, change in enumerate(edits, 1):
        where = shown(draft.path) + (f" (edit {number} of {len(edits)})" if len(edits) > 1 else "")
        old, new = change.old_string, change.new_string
        raw = replaced(raw, old, new, text.form, every=change.replace_all, where=where)
    return raw


def replaced(raw: str, old: str, new: str, form: Form, *, every: bool, where: str) -> str:
    """Return a file's text with one piece of it replaced; all other line ends stay as they are.

    Raises:
        ToolFailure: the piece is not there, or not only once, or is replaced by itself.
    """
    if old == new:
        raise ToolFailure("`old_string` and `new_string` are the same: there is nothing to change")
    if not old:
        if raw:
            raise ToolFailure(
                f"{where} exists and is not empty: an empty `old_string` only makes a new file"
            )
        return form.dress(new)
    pattern = _pattern(old)
    found = list(_spans(pattern, raw, overlapping=not every))
    if not found:
        raise ToolFailure(_not_found(raw, old, where))
    if len(found) > 1 and not every:
        raise ToolFailure(_ambiguous(raw, old, found, where))
    pieces: list[str] = []
    at = 0
    for start, end in found:
        pieces += [raw[at:start], _ends_like(raw[start:end], form).dress(new)]
        at = end
    return "".join(pieces) + raw[at:]


def _pattern(old: str) -> re.Pattern[str]:
    """Return what finds a piece of the text that was shown in the text as it is."""
    words = old.replace("\r\n", "\n")
    signs = {"\n": r"\r?\n", "\r": r"\r(?!\n)"}
    return re.compile(
        "".join(signs.get(part) or re.escape(part) for part in re.split("([\r\n])", words))
    )


def _spans(pattern: re.Pattern[str], raw: str, *, overlapping: bool) -> Iterator[tuple[int, int]]:
    at = 0
    while (match := pattern.search(raw, at)) is not None:
        # A line feed alone would be found again inside of the pair that it is the end of.
        at = match.start() + (2 if raw.startswith("\r\n", match.start()) else 1)
        if not overlapping:
            at = match.end()
        yield match.span()


def _ends_like(piece: str, form: Form) -> Form:
    """Return the form with the line ends of a piece, which may not be those of the file."""
    pairs = piece.count("\r\n")
    singles = piece.count("\n") - pairs
    if pairs == singles:
        return form
    return Form(form.encoding, form.bom, "\r\n" if pairs > singles else "\n")


# What to say when it does not fit


def _line(raw: str, at: int) -> int:
    return raw.count("\n", 0, at) + 1


def _ambiguous(raw: str, old: str, found: list[tuple[int, int]], where: str) -> str:
    lines = [str(_line(raw, start)) for start, _ in found[:_NAMED]]
    more = ", …" if len(found) > _NAMED else ""
    return (
        f"`old_string` is {len(found)} times in {where}, in lines {', '.join(lines)}{more}: "
        f"take in more of what is around it, or set `replace_all`.\nIt was: {_quoted(old)}"
    )


def _not_found(raw: str, old: str, where: str) -> str:
    words = f"`old_string` is not in {where}.\nIt was: {_quoted(old)}"
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    lines = [str(n) for n, line in enumerate(raw.split("\n"), 1) if first and first in line]
    if not lines:
        return words
    near = ", ".join(lines[:_NAMED]) + (", …" if len(lines) > _NAMED else "")
    return (
        f"{words}\nIts first words are in line {near}: look there for other white space, quotes "
        "or line breaks."
    )


def _quoted(text: str) -> str:
    # A call can hold halves of characters, which no message can.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… ({len(text):,} characters)"


def _brief(text: str) -> str:
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}…"
