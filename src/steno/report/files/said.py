"""What one touch says about the file: as it was before, as it was after, a stretch of it."""

import re
from typing import Any, Final

import msgspec

from steno.format.tool_catalogue import facts_of
from steno.format.values import as_list, as_object
from steno.report.files.texts import Change, Hunk, normal
from steno.report.files.values import Touch

__all__ = ["Said", "said_by"]

_NUMBERED: Final = re.compile(r"^ *(\d+)(?:→|\t)(.*)$")
_REMINDER: Final = re.compile(r"\n*<system-reminder>.*", re.DOTALL)
_WHOLE: Final = 2_000
"""A read that names no range gives so many lines at most, and so many letters of each."""
_BIG: Final = 1 << 53


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What is known from one touch alone."""

    before: str | None = None
    """The whole file before it."""
    fresh: bool = False
    """Whether there was no such file before."""
    after: str | None = None
    """The whole file after it."""
    changes: tuple[tuple[Change, ...], ...] = ()
    """What was replaced: each a way to tell it, the most trustworthy first."""
    patch: tuple[Hunk, ...] = ()
    start: int = 0
    lines: tuple[str, ...] = ()
    """A stretch of the file, from line `start` on, after it."""
    total: int | None = None
    """How many lines the file has then."""


def said_by(touch: Touch) -> Said:
    """Return what a touch says."""
    reader = _READERS.get(facts_of(touch.tool).file_action or touch.tool)
    return reader(touch) if reader is not None else Said()


def _read(touch: Touch) -> Said:
    file = as_object(touch.result.get("file"))
    if touch.result and file is None:
        return Said()
    if file is None:
        return _numbered(touch)
    content = file.get("content")
    if not isinstance(content, str):
        return Said()
    start = _number(file.get("startLine")) or 1
    count, total = _number(file.get("numLines")), _number(file.get("totalLines"))
    lines = tuple(normal(content).split("\n"))
    if start <= 1 and count is not None and total is not None and count >= total:
        return Said(after=content)
    if count is not None and len(lines) > count:
        # The newline behind the last line that was asked for.
        lines = lines[:count]
    return Said(start=max(1, start), lines=lines, total=total)


def _numbered(touch: Touch) -> Said:
    """Read the lines with their numbers that the model was shown: all that old clients noted."""
    found = [_NUMBERED.match(line) for line in _REMINDER.sub("", touch.words).split("\n")]
    if not found or None in found:
        return Said()
    rows = [(int(each[1]), each[2]) for each in found if each is not None]
    start = rows[0][0]
    if [number for number, _ in rows] != list(range(start, start + len(rows))):
        return Said()
    lines = tuple(line for _, line in rows)
    ranged = touch.asked.get("offset") is not None or touch.asked.get("limit") is not None
    cut = len(lines) >= _WHOLE or any(len(line) >= _WHOLE for line in lines)
    if start == 1 and not ranged and not cut:
        return Said(after="\n".join(lines))
    return Said(start=start, lines=lines)


def _attached(touch: Touch) -> Said:
    content = as_object(touch.result.get("content"))
    return _read(msgspec.structs.replace(touch, result=content)) if content else Said()


def _noticed(touch: Touch) -> Said:
    said = _numbered(touch)
    if said.after is None:
        return said
    return Said(start=1, lines=tuple(said.after.split("\n")))


def _kept(touch: Touch) -> Said:
    if touch.result.get("missing") is True:
        return Said(fresh=True)
    return Said(before=touch.words)


def _write(touch: Touch) -> Said:
    result = touch.result
    content = result.get("content", touch.asked.get("content"))
    return Said(
        before=_text(result.get("originalFile")),
        fresh=result.get("type") == "create",
        after=content if isinstance(content, str) else None,
        patch=_hunks(result.get("structuredPatch")),
    )


def _edit(touch: Touch) -> Said:
    result, asked = touch.result, touch.asked
    told = _change(result.get("oldString"), result.get("newString"), result.get("replaceAll"))
    given = _change(asked.get("old_string"), asked.get("new_string"), asked.get("replace_all"))
    before = _text(result.get("originalFile"))
    return Said(
        before=before,
        fresh=given is not None and not given.old and not before,
        changes=tuple((each,) for each in (told, given) if each is not None),
        patch=_hunks(result.get("structuredPatch")),
    )


def _multi_edit(touch: Touch) -> Said:
    ways: list[tuple[Change, ...]] = []
    for edits in (touch.result.get("edits"), touch.asked.get("edits")):
        some = [as_object(each) or {} for each in as_list(edits) or ()]
        made = [
            _change(each.get("old_string"), each.get("new_string"), each.get("replace_all"))
            for each in some
        ]
        whole = tuple(each for each in made if each is not None)
        if whole and len(whole) == len(made):
            ways.append(whole)
    before = _text(touch.result.get("originalFileContents"))
    fresh = bool(ways) and not ways[0][0].old and not before
    patch = _hunks(touch.result.get("structuredPatch"))
    return Said(before=before, fresh=fresh, changes=tuple(ways), patch=patch)


def _notebook(touch: Touch) -> Said:
    result = touch.result
    return Said(before=_text(result.get("original_file")), after=_text(result.get("updated_file")))


_READERS: Final = {
    "read": _read,
    "attached": _attached,
    "noticed": _noticed,
    "kept": _kept,
    "write": _write,
    "replace": _edit,
    "replace_many": _multi_edit,
    "cell": _notebook,
}


# Values that may be anything


def _change(old: Any, new: Any, every: Any) -> Change | None:
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    return Change(normal(old), normal(new), every is True)


def _hunks(value: Any) -> tuple[Hunk, ...]:
    """Return a recorded patch; nothing if any of it is not as it should be."""
    made: list[Hunk] = []
    for each in as_list(value) or ():
        fields = as_object(each) or {}
        numbers = [_number(fields.get(name)) for name in _PLACES]
        lines = as_list(fields.get("lines"))
        if lines is None or not all(isinstance(line, str) for line in lines):
            return ()
        old, olds, new, news = numbers
        if old is None or olds is None or new is None or news is None:
            return ()
        made.append(Hunk(old, olds, new, news, tuple(lines)))
    return tuple(made)


_PLACES: Final = ("oldStart", "oldLines", "newStart", "newLines")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _BIG:
        return None
    return int(value)
