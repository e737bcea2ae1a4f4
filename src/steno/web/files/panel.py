"""One version in full, or what lies between two: with line numbers and colours."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from markupsafe import Markup

from steno.report import words
from steno.report.files.history import diff, shown, surviving
from steno.report.files.texts import normal
from steno.report.files.timeline import how_of, what_of
from steno.report.files.values import History, Piece, Version
from steno.safe.html import trusted
from steno.web.render.code import code_block, language_of
from steno.web.render.diff import Hunk, diff_table

__all__ = ["Panel", "View", "between", "panel_of"]

View: TypeAlias = Literal["diff", "before", "after"]
_LINES: Final = 5_000


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a file at one time, or between two."""

    body: Markup
    view: View
    views: tuple[View, ...]
    """What there is to see."""
    how: str
    """How it is known."""
    added: int = 0
    removed: int = 0
    standing: tuple[int, int] | None = None
    """How many of the lines it put in stand in the last version, and how many it put in."""
    more: int = 0
    """How many lines are left out."""


def panel_of(history: History, version: Version, view: str, *, full: bool) -> Panel:
    """Return a version: what it changed, the file before it, or the file after it."""
    earlier = history.before(version)
    old = None if version.before is None else normal(version.before)
    new = _text(version)
    can: list[View] = []
    if version.changes and old is not None and new is not None:
        can.append("diff")
    if version.changes and (old or earlier is not None):
        can.append("before")
    can.append("after")
    names: dict[str, View] = {each: each for each in can}
    chosen = names.get(view, can[0])
    language = language_of(history.path)
    more = 0
    if chosen == "diff" and old is not None and new is not None:
        body = _diff(old, new, language)
    else:
        seen = version
        if chosen == "before":
            seen = earlier if old is None else msgspec.structs.replace(version, text=old)
        body, more = _whole(seen, language, full=full)
    return Panel(
        body=body,
        view=chosen,
        views=tuple(can),
        how=how_of(version),
        added=version.added,
        removed=version.removed,
        standing=_standing(history, version, old, new),
        more=more,
    )


def between(history: History, a: Version, b: Version) -> Panel:
    """Return what lies between two versions."""
    old, new = _text(a), _text(b)
    if old is None or new is None:
        which = [what_of(each) for each, text in ((a, old), (b, new)) if text is None]
        body = _note(f"The whole file is not known: {', '.join(which).lower()}.")
        return Panel(body=body, view="diff", views=("diff",), how="")
    stretches = diff(old, new, 0)
    lines = [line[:1] for stretch in stretches for line in stretch.lines]
    return Panel(
        body=_diff(old, new, language_of(history.path)),
        view="diff",
        views=("diff",),
        how="",
        added=lines.count("+"),
        removed=lines.count("-"),
    )


def _text(version: Version | None) -> str | None:
    return None if version is None else shown(version)


def _standing(
    history: History, version: Version, old: str | None, new: str | None
) -> tuple[int, int] | None:
    last = next((_text(each) for each in reversed(history.versions) if each.text is not None), None)
    if last is None or old is None or new is None or version.verb not in ("edit", "write"):
        return None
    counted = surviving(old, new, last)
    return counted if counted[1] else None


def _diff(old: str, new: str, language: str) -> Markup:
    stretches = diff(old, new)
    if not stretches:
        return _note("Not a line is different.")
    hunks = [Hunk(each.old, each.new, each.lines) for each in stretches]
    return trusted(diff_table(hunks, language))


def _whole(version: Version | None, language: str, *, full: bool) -> tuple[Markup, int]:
    text = _text(version)
    if version is None or (text is None and not version.pieces):
        words_ = version.note if version is not None and version.note else ""
        return _note(words_ or "Nobody recorded the file as it was then."), 0
    if text is None:
        return Markup("").join(_in_part(version.pieces, version.total, language)), 0
    if not text:
        return _note("The file is empty."), 0
    lines = text.split("\n")
    if full or len(lines) <= _LINES:
        return trusted(code_block(text, language, start=1)), 0
    begin = code_block("\n".join(lines[:_LINES]), language, start=1)
    return trusted(begin), len(lines) - _LINES


def _in_part(pieces: Sequence[Piece], total: int | None, language: str) -> Iterator[Markup]:
    """Yield the stretches that are known, and how long the gaps between them are."""
    at = 1
    for piece in pieces:
        if piece.start > at:
            yield _gap(piece.start - at)
        yield trusted(code_block("\n".join(piece.lines), language, start=piece.start))
        at = piece.start + len(piece.lines)
    if total is None:
        yield _note("Whether there are more lines is not known.")
    elif at <= total:
        yield _gap(total - at + 1)


def _gap(number: int) -> Markup:
    return Markup('<p class="unknown-lines">{} not known</p>').format(words.count(number, "line"))


def _note(text: str) -> Markup:
    return Markup('<p class="nothing">{}</p>').format(text)
