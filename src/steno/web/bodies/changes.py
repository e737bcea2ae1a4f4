"""Changing files: a diff of what was there and what came, from the best witness there is.

In this order: the patch that the client recorded, the whole file before, the words of the call.
"""

from typing import Final

import msgspec

from steno.format.loose import loose
from steno.format.tool_catalogue import facts_of
from steno.safe.html import Html
from steno.web.bodies.about import About, Call
from steno.web.bodies.parts import (
    Door,
    Fact,
    Window,
    box,
    call_doors,
    coloured,
    joined,
    window,
)
from steno.web.bodies.plain import result
from steno.web.bodies.values import Fields, as_fields, as_items, as_number, as_text, first_text
from steno.web.render.code import language_of
from steno.web.render.diff import Hunk, between, cut, diff_table, sizes

__all__ = ["changes", "hunks_of_patch"]

_ROWS: Final = 120
_FULL_ROWS: Final = 3_000
_LONGEST: Final = 2_000_000
"""Letters; files that are longer are not compared."""


class _Change(msgspec.Struct, frozen=True):
    """What happened to a file, as far as it is known."""

    path: str
    hunks: list[Hunk] = []
    whole: str | None = None
    """The text of a file that is new, or of which nobody knows what it was."""
    tags: tuple[str, ...] = ()
    numbers: bool = True
    language: str = ""


def changes(call: Call) -> Html:
    """Return what a call changed, or wanted to."""
    kept = call.fields
    asked = call.asked
    path = first_text(kept, "filePath", "notebook_path") or first_text(
        asked, "file_path", "notebook_path"
    )
    change = _notebook(call, path) if call.tool == "NotebookEdit" else _found(call, path)
    if change is None:
        return Html("")
    tags = [*change.tags]
    if kept.get("userModified") is True:
        tags.append("edited by the user")
    if asked.get("replace_all") is True or kept.get("replaceAll") is True:
        tags.append("every occurrence")
    if call.step.state in ("failed", "denied"):
        tags.append("not done")
    made = _drawn(call, change, tags)
    bad = call.failed or as_text(kept.get("error"))
    return joined(made, result(call)) if bad else made


def _drawn(call: Call, change: _Change, tags: list[str]) -> Html:
    about = call.about
    doors = call_doors(call)
    language = change.language or language_of(change.path)
    if change.whole is not None:
        text = change.whole
        shown = window(text, about, offset=call.offset)
        lines = text.removesuffix("\n").count("\n") + 1 if text else 0
        body = coloured(shown, language, 1)
        size = lines, 0
        return box(body, title=change.path, tags=tags, sizes=size, doors=doors, shown=shown)
    most = _FULL_ROWS if about.full else _ROWS
    begin = max(0, about.begin) if about.full else 0
    shown, whole = cut(change.hunks, begin, most)
    body = diff_table(shown, language, side=about.side)
    return box(
        body,
        title=change.path,
        tags=tags,
        sizes=sizes(change.hunks),
        doors=(*_turned(about), *doors),
        foot=() if change.numbers else (Fact("", "Line numbers are not known."),),
        shown=_rest(about, begin, sum([len(hunk.lines) for hunk in shown]), whole),
    )


def _turned(about: About) -> tuple[Door, ...]:
    if not about.here:
        return ()
    full = 1 if about.full else None
    if about.side:
        return (Door("Inline", about.shown(diff=None, full=full), stays=True),)
    return (Door("Side by side", about.shown(diff="side", full=full), stays=True),)


def _rest(about: About, begin: int, shown: int, whole: int) -> Window:
    if not begin and shown >= whole:
        return Window("")
    said = f"rows {begin + 1:,} to {begin + shown:,} of {whole:,}"
    if not about.full:
        return Window("", said=said, doors=(Door("Show all", about.shown(full=1), stays=True),))
    end = begin + shown
    doors = [Door("From the start", about.shown(full=1), stays=True)] if begin else []
    if end < whole:
        doors.append(Door("Next", about.shown(full=1, **{"from": end}), stays=True))
    return Window("", said=said, doors=tuple(doors))


# Witnesses


def _found(call: Call, path: str) -> _Change | None:
    kept, asked = call.fields, call.asked
    hunks = hunks_of_patch(kept.get("structuredPatch"))
    if hunks:
        return _Change(path, hunks)
    before = kept.get("originalFile", kept.get("originalFileContents"))
    content = kept.get("content", asked.get("content"))
    if isinstance(content, str) and facts_of(call.tool).file_action not in (
        "replace",
        "replace_many",
    ):
        return _written(kept, path, before, content)
    edits = _edits(kept, asked)
    if isinstance(before, str) and before and edits and len(before) <= _LONGEST:
        after = _applied(before, edits)
        if after is not None:
            return _Change(path, between(before, after))
    if edits and edits[0].old == "" and len(edits) == 1:
        return _Change(path, whole=edits[0].new, tags=("new file",))
    made = [hunk for edit in edits for hunk in between(edit.old, edit.new)]
    return _Change(path, made, numbers=False) if made else None


def _written(kept: Fields, path: str, before: object, content: str) -> _Change:
    if isinstance(before, str) and before:
        if max(len(before), len(content)) <= _LONGEST:
            made = between(before, content)
            return (
                _Change(path, made) if made else _Change(path, whole=content, tags=("unchanged",))
            )
        return _Change(path, whole=content, tags=("written over",))
    if kept.get("type") == "update":
        return _Change(path, whole=content, tags=("written over",))
    return _Change(path, whole=content, tags=("new file",) if kept.get("type") else ())


class _Edit(msgspec.Struct, frozen=True):
    old: str
    new: str
    everywhere: bool = False


def _edits(kept: Fields, asked: Fields) -> list[_Edit]:
    """Return the replacements of a call, whether it had one or several."""
    several = as_items(asked.get("edits")) or as_items(kept.get("edits"))
    found = [as_fields(item) for item in several] or [asked]
    edits = [
        _Edit(as_text(each.get("old_string")), as_text(each.get("new_string")), _all(each))
        for each in found
        if isinstance(each.get("old_string"), str) or isinstance(each.get("new_string"), str)
    ]
    old, new = kept.get("oldString"), kept.get("newString")
    if not edits and isinstance(old, str) and isinstance(new, str):
        edits = [_Edit(old, new, kept.get("replaceAll") is True)]
    return edits


def _all(each: Fields) -> bool:
    return each.get("replace_all") is True


def _applied(text: str, edits: list[_Edit]) -> str | None:
    for edit in edits:
        if not edit.old or edit.old not in text:
            return None
        text = text.replace(edit.old, edit.new, -1 if edit.everywhere else 1)
    return text


def hunks_of_patch(patch: object) -> list[Hunk]:
    """Return a recorded patch; what is no patch gives nothing."""
    hunks: list[Hunk] = []
    for item in as_items(patch):
        fields = as_fields(item)
        lines = tuple([line for line in as_items(fields.get("lines")) if isinstance(line, str)])
        old, new = as_number(fields.get("oldStart")), as_number(fields.get("newStart"))
        if lines:
            hunks.append(Hunk(1 if old is None else old, 1 if new is None else new, lines))
    return hunks


# Notebooks


def _notebook(call: Call, path: str) -> _Change | None:
    kept, asked = call.fields, call.asked
    new = first_text(kept, "new_source") or first_text(asked, "new_source")
    mode = first_text(kept, "edit_mode") or first_text(asked, "edit_mode") or "replace"
    cell = first_text(kept, "cell_id", "cell_number") or first_text(asked, "cell_id", "cell_number")
    old = kept.get("old_source")
    if not isinstance(old, str):
        old = _cell(as_text(kept.get("original_file")), cell)
    kind = first_text(kept, "cell_type") or first_text(asked, "cell_type")
    language = "markdown" if kind == "markdown" else first_text(kept, "language") or "python"
    tags = tuple(word for word in (mode, kind, f"cell {cell}" if cell else "") if word)
    if mode == "delete" and not old:
        return _Change(path, whole="", tags=tags, language=language)
    if old is None or mode == "insert":
        return _Change(path, whole=new, tags=tags, language=language)
    hunks = between(old, "" if mode == "delete" else new)
    return _Change(path, hunks, tags=tags, language=language)


def _cell(notebook: str, name: str) -> str | None:
    """Return what a cell held before, from the notebook before."""
    if not notebook or not name or len(notebook) > _LONGEST:
        return None
    for cell in as_items(as_fields(loose(notebook.encode("utf-8", "replace"))).get("cells")):
        fields = as_fields(cell)
        if as_text(fields.get("id")) == name:
            source = fields.get("source")
            if isinstance(source, str):
                return source
            return "".join(map(as_text, as_items(source)))
    return None
