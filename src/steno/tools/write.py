"""Write: makes a file, or puts a whole new text in the place of one that was read before."""

import asyncio
import os
from functools import partial
from typing import Any, Final

import msgspec

from steno.store.beneath import Folder
from steno.tools.base import ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.inputs import taken
from steno.tools.patch import structured_patch
from steno.tools.texts import (
    Form,
    Text,
    decode,
    encode,
    form_of,
    load,
    place,
    remember,
    settled,
    stamp_of,
)
from steno.tools.words import failed, shown, spoken

__all__ = ["CURRENT", "Draft", "Write", "save", "take_up"]

CURRENT: Final = "what you know of it is current, so there is no need to read it again"
_DESCRIPTION: Final = """\
Writes a whole file, and makes its folders.

- A file that exists must have been read with Read in this conversation, and must not have changed \
since. Its encoding and line ends are kept.
- To change a part of a file, use Edit: it is safer, and says less.
"""
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "description": "The path of the file, absolute if possible",
        },
        "content": {"type": "string", "description": "The whole text of the file"},
    },
    "required": ["file_path", "content"],
    "additionalProperties": False,
}


class Draft(msgspec.Struct, frozen=True):
    """A file that is about to be written: where it is and what is in it now."""

    path: str
    """As it was asked for."""
    real: str
    """Where it lies, with all links followed."""
    status: os.stat_result | None
    """None for a file that is to be made."""
    text: Text | None
    """None for what is no text."""

    @property
    def form(self) -> Form:
        """How its text is written down."""
        return self.text.form if self.text is not None else Form()


def take_up(given: str, context: ToolContext, call: str) -> Draft:
    """Look at a file that is to be written.

    Raises:
        ToolFailure: it was not read before, has changed since, or is no file to write to.
    """
    path = place(given, context)
    real = settled(path, context, call)
    try:
        os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        return Draft(path, real, None, Text("", Form()))
    except OSError as error:
        raise failed("write", path, error) from error
    # A link is only left here where links lead in a circle.
    data, status = load(path, real, context)
    known = context.seen.get(real)
    if known is None:
        raise ToolFailure(f"{shown(path)} exists but was not read yet: read it first with Read")
    if known != stamp_of(status):
        raise ToolFailure(
            f"{shown(path)} has changed since it was read, by the user or a program: read it again"
        )
    if not os.access(real, os.W_OK):
        raise ToolFailure(f"{shown(path)} is read-only")
    return Draft(path, real, status, decode(data, form_of(context, real, status)))


async def save(draft: Draft, raw: str, form: Form, context: ToolContext) -> None:
    """Put a text in a file's place.

    Raises:
        ToolFailure: it cannot be written, or was changed this moment; nothing was changed then.
    """
    data = encode(raw, form, draft.path)
    context.before_change(draft.real)
    status = await asyncio.to_thread(_put, draft, data)
    remember(context, draft.real, status, form)


def _put(draft: Draft, data: bytes) -> os.stat_result:
    """Write beside the file and exchange both, so that nobody ever sees half a file."""
    above, name = os.path.split(draft.real)
    try:
        with Folder(above, make=True) as folder:
            changed = partial(_refuse_changed, draft, folder)
            return folder.put(name, data, draft.status, before=changed)
    except OSError as error:
        raise failed("write", draft.path, error) from error


def _refuse_changed(draft: Draft, folder: Folder) -> None:
    try:
        now = stamp_of(folder.status(os.path.basename(draft.real)))
    except FileNotFoundError:
        now = None
    before = None if draft.status is None else stamp_of(draft.status)
    if now != before:
        raise ToolFailure(f"{shown(draft.path)} was changed this very moment: read it again")


class _Input(msgspec.Struct, forbid_unknown_fields=True):
    file_path: str
    content: str


class Write:
    """The tool."""

    spec = own_spec("Write", description=_DESCRIPTION, schema=_SCHEMA)

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Write a file."""
        asked = taken(tool_input, _Input)
        draft = await asyncio.to_thread(take_up, asked.file_path, context, call)
        before, form = draft.text, draft.form
        content = asked.content.removeprefix("\ufeff") if form.bom else asked.content
        if form.encoding == "latin-1" and not _fits(content, form):
            # All of it is new, so nothing is lost when it is written in what can hold everything.
            form = Form(newline=form.newline)
        await save(draft, form.dress(content), form, context)
        old = before.text if before is not None and draft.status is not None else None
        detail: dict[str, Any] = {
            "type": "create" if draft.status is None else "update",
            "filePath": spoken(draft.path),
            "content": asked.content,
            "structuredPatch": [],
            "originalFile": old,
            "userModified": False,
        }
        if old is not None:
            detail["structuredPatch"] = await asyncio.to_thread(structured_patch, old, content)
        done = "Made" if draft.status is None else "Wrote"
        return ToolResult(f"{done} {shown(draft.path)}; {CURRENT}.", detail)


def _fits(text: str, form: Form) -> bool:
    try:
        text.encode(form.encoding)
    except UnicodeEncodeError:
        return False
    return True
