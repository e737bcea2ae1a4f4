"""Two texts, or a recorded patch → the rows of a diff, with the changed words marked.

Texts may be anything, and comparing two of them may take for ever: everything here is bounded by
how much there is to compare. What cannot be compared in bounds was taken out and put in as a whole.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Final

import msgspec
from markupsafe import Markup

from steno.safe.html import Html, escaped_text, trusted
from steno.web.render.changed import Marker
from steno.web.render.code import lines_of, plain_class

__all__ = ["Hunk", "Pair", "Row", "between", "cut", "diff_table", "pairs_of", "rows_of", "sizes"]

_NOTHING: Final = Markup("")
_MOST: Final = 4_000
"""Rows; a diff that is longer is cut, and says so."""
_OPEN: Final = "\0"
"""Stands at the end of a last line without an end, while texts are compared."""
_REMARK: Final = "\\ No newline at the end of the file"
_LONG_LINE: Final = 2_000
"""Letters; of a longer line the beginning is shown."""
_BEGIN: Final = ' tabindex="0" role="region" aria-label="changes"><table><tbody>\n'
_NEXT: Final = '</td><td class="no">'
_SIGN: Final = '</td><td class="sg"> </td><td>'
_SAME: Final = '<tr class=""><td class="no">'
_ADDED: Final = '<tr class="add"><td class="no"></td><td class="no">'
_PLUS: Final = '</td><td class="sg">+</td><td>'
_REMOVED: Final = '<tr class="del"><td class="no">'
_MINUS: Final = '</td><td class="no"></td><td class="sg">\N{MINUS SIGN}</td><td>'
_REMARKED: Final = (
    '<tr class="rem"><td class="no"></td><td class="no"></td><td class="sg"> </td><td>'
)
_GAP: Final = '<tr class="gap"><td colspan="4">{}</td></tr>'
_PAIRS: Final = 300_000
"""Pairs of equal lines that may be looked at to find out what changed."""


class Hunk(msgspec.Struct, frozen=True):
    """A stretch of a diff: where it begins in the old and in the new text, and its lines."""

    old: int
    new: int
    lines: tuple[str, ...]
    """Each with its sign: a space, `-` or `+`; `\\` begins a remark."""


class Row(msgspec.Struct, frozen=True):
    """One row."""

    sign: str
    old: int | None = None
    new: int | None = None
    text: Markup = _NOTHING


class Pair(msgspec.Struct, frozen=True):
    """One row of two texts side by side; either may have nothing there."""

    old: Row | None
    new: Row | None


# Comparing


def between(old: str, new: str, *, context: int = 3, start: int = 1) -> list[Hunk]:
    """Return what changed from one text to another; line numbers count from `start`."""
    before, after = _lines(old, new), _lines(new, old)
    hunks: list[Hunk] = []
    for group in _groups(_changes(before, after), context):
        lines: list[str] = []
        for same, a, b, c, d in group:
            for sign, found in (
                ((" ", before[a:b]),)
                if same
                else (
                    ("-", before[a:b]),
                    ("+", after[c:d]),
                )
            ):
                lines += [f"{sign}{line}" for line in found]
                if found and found[-1].endswith(_OPEN):
                    lines[-1:] = [lines[-1].removesuffix(_OPEN), _REMARK]
        hunks.append(Hunk(group[0][1] + start, group[0][3] + start, tuple(lines)))
    return hunks


def _lines(text: str, other: str) -> list[str]:
    """Return the lines of a text; where only its last one has no end, that is another one."""
    if not text:
        return []
    alone = bool(other) and other.endswith("\n") and not text.endswith("\n")
    return (text + _OPEN * alone).removesuffix("\n").split("\n")


_Code = tuple[bool, int, int, int, int]
"""Whether lines are the same, and which they are in the old and in the new text."""


def _changes(before: Sequence[str], after: Sequence[str]) -> list[_Code]:
    """Return how one text becomes the other."""
    head = _alike(before, after)
    tail = _alike(before[head:][::-1], after[head:][::-1])
    a, b = before[head : len(before) - tail], after[head : len(after) - tail]
    codes: list[_Code] = [(True, 0, head, 0, head)] if head else []
    if a or b:
        codes += [(s, i + head, j + head, k + head, m + head) for s, i, j, k, m in _middle(a, b)]
    if tail:
        codes.append((True, head + len(a), len(before), head + len(b), len(after)))
    return codes


def _alike(a: Sequence[str], b: Sequence[str]) -> int:
    return next(
        (at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def _middle(a: Sequence[str], b: Sequence[str]) -> list[_Code]:
    here, there = Counter(a), Counter(b)
    if sum(count * there[line] for line, count in here.items()) > _PAIRS:
        return [(False, 0, len(a), 0, len(b))]
    codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(tag == "equal", i, j, k, m) for tag, i, j, k, m in codes]


def _groups(codes: Sequence[_Code], context: int) -> Iterator[list[_Code]]:
    """Yield what belongs together: changes, and a few lines around them."""
    group: list[_Code] = []
    for place, (same, a, b, c, d) in enumerate(codes):
        if not same:
            group.append((same, a, b, c, d))
            continue
        before, after = (0 if place == 0 else context), (0 if place == len(codes) - 1 else context)
        if place and place < len(codes) - 1 and b - a <= 2 * context:
            group.append((same, a, b, c, d))
            continue
        if before:
            end = min(before, b - a)
            group.append((same, a, a + end, c, c + end))
        if any(not code[0] for code in group):
            yield group
        group = []
        if after:
            begin = min(after, b - a)
            group.append((same, b - begin, b, d - begin, d))
    if any(not code[0] for code in group):
        yield group


def sizes(hunks: Sequence[Hunk]) -> tuple[int, int]:
    """Return how many lines came and went."""
    lines = [line[:1] for hunk in hunks for line in hunk.lines]
    return lines.count("+"), lines.count("-")


def cut(hunks: Sequence[Hunk], begin: int, most: int) -> tuple[list[Hunk], int]:
    """Return the part of a diff that begins at a row, and how many rows there are in all."""
    whole = sum([len(hunk.lines) for hunk in hunks])
    if not begin and whole <= most:
        return [hunk for hunk in hunks if hunk.lines], whole
    shown: list[Hunk] = []
    place = 0
    for hunk in hunks:
        low, high = max(0, begin - place), max(0, begin + most - place)
        kept = hunk.lines[low:high]
        if kept and not low:
            shown.append(Hunk(hunk.old, hunk.new, kept))
        elif kept:
            skipped = Counter(line[:1] for line in islice(hunk.lines, low))
            both = sum(count for sign, count in skipped.items() if sign not in ("+", "-", "\\"))
            old, new = hunk.old + both + skipped["-"], hunk.new + both + skipped["+"]
            shown.append(Hunk(old, new, kept))
        place += len(hunk.lines)
    return shown, whole


# Rows


def rows_of(hunks: Sequence[Hunk], language: str = "") -> Iterator[Row]:
    """Yield the rows of a diff; between two stretches stands one with the sign `…`."""
    marker = Marker()
    for place, hunk in enumerate(hunks):
        if place:
            yield Row("…")
        lines = _short_lines(hunk.lines)
        yield from _numbered(hunk, _painted(lines, language, marker))


def _short_lines(lines: Sequence[str]) -> Sequence[str]:
    if max(map(len, lines), default=0) <= _LONG_LINE:
        return lines
    return [_clipped(line) for line in lines]


def _clipped(line: str) -> str:
    if len(line) <= _LONG_LINE:
        return line
    return f"{line[:_LONG_LINE]}… ({len(line) - 1:,} letters)"


def _numbered(hunk: Hunk, shown: Sequence[str]) -> Iterator[Row]:
    old, new = hunk.old, hunk.new
    for line, text in zip(hunk.lines, map(trusted, shown), strict=True):
        match line[:1]:
            case "-":
                yield Row("-", old=old, text=text)
                old += 1
            case "+":
                yield Row("+", new=new, text=text)
                new += 1
            case "\\":
                yield Row("\\", text=text)
            case _:
                yield Row(" ", old, new, text)
                old, new = old + 1, new + 1


def _painted(lines: Sequence[str], language: str, marker: Marker) -> list[str]:
    """Return the texts of some lines: the code in colour, a line that became another with marks."""
    shown = lines_of("\n".join([line[1:] for line in lines]), language)
    if len(shown) != len(lines):
        shown = [escaped_text(line[1:]) for line in lines]
    for a, b in marker.pairs(lines):
        marked = marker.marked(lines[a][1:], lines[b][1:])
        if marked is not None:
            shown[a], shown[b] = marked
    return shown


def pairs_of(rows: Sequence[Row]) -> Iterator[Pair]:
    """Yield the rows of a diff side by side."""
    removed: list[Row] = []
    added: list[Row] = []
    for row in rows:
        if row.sign == "\\" and (removed or added):
            (added or removed).append(row)
        elif row.sign == "+":
            added.append(row)
        elif row.sign == "-" and not added:
            removed.append(row)
        else:
            yield from _beside(removed, added)
            removed, added = ([row], []) if row.sign == "-" else ([], [])
            if row.sign != "-":
                yield Pair(row, row)
    yield from _beside(removed, added)


def _beside(removed: Sequence[Row], added: Sequence[Row]) -> Iterator[Pair]:
    return (Pair(old, new) for old, new in zip_longest(removed, added))


def diff_table(
    hunks: Sequence[Hunk], language: str = "", *, side: bool = False, most: int = _MOST
) -> Html:
    """Return a diff as a table, or as two beside each other."""
    from steno.web.paint import part

    shown, whole = cut(hunks, 0, most)
    rest = max(0, whole - most)
    if side:
        pairs = list(pairs_of(list(rows_of(shown, language))))
        return Html(part("diff-side.html.j2", pairs=pairs, cut=rest))
    rows = "".join(_table_rows(shown, language))
    more = _GAP.format(f"{rest:,} more lines, see the raw record") if rest else ""
    begin = f'<div class="diff{plain_class(language)}"{_BEGIN}'
    return Html(f"{begin}{rows}{more}</tbody></table></div>")


def _table_rows(hunks: Sequence[Hunk], language: str) -> list[str]:
    """Return the rows as HTML; a template would take longer than the comparing."""
    rows: list[str] = []
    marker = Marker()
    for hunk in hunks:
        if rows:
            rows.append(_GAP.format("…"))
        old, new = hunk.old, hunk.new
        lines = _short_lines(hunk.lines)
        for line, text in zip(lines, _painted(lines, language, marker), strict=True):
            sign = line[:1]
            if sign == "+":
                rows.append(f"{_ADDED}{new or ''}{_PLUS}{text or ' '}</td></tr>")
                new += 1
            elif sign == "-":
                rows.append(f"{_REMOVED}{old or ''}{_MINUS}{text or ' '}</td></tr>")
                old += 1
            elif sign == "\\":
                rows.append(f"{_REMARKED}{text or ' '}</td></tr>")
            else:
                rows.append(f"{_SAME}{old or ''}{_NEXT}{new or ''}{_SIGN}{text or ' '}</td></tr>")
                old, new = old + 1, new + 1
    return rows
