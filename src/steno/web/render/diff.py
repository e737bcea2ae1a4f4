"""Diff rows of two texts or of a recorded patch, with changed words marked.

Work is bounded: texts that are too large to compare are shown as removed and added in full.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Final

import msgspec
from markupsafe import Markup

from steno.format.line_diff import Hunk, count_equal_pairs, group_changes, matching_ranges, readable_diff, signed_runs
from steno.sanitize.html import SafeHtml, escape_text, trusted_markup
from steno.web.render.code import client_highlight_class, highlighted_lines

_TOKEN: Final = re.compile(r"\w+|\s+|.", re.DOTALL)
_CHANGE_BLOCK: Final = re.compile(r"-[-\\]*+(\+[+\\]*+)?")
"""Matches the signs of consecutive removed lines and the added lines after them, including `\\` notes."""
_MAX_MARKED_LINE: Final = 600
"""Characters."""
_MOST_WORDS: Final = 200
_MOST_PAIRS: Final = 4_000
"""Maximum pairs of equal words in two lines."""
_MAX_UNEVEN_LINES: Final = 6
"""Maximum lines to pair by similarity if the numbers of removed and added lines differ."""
_MIN_SIMILARITY: Final = 0.4
"""Minimum similarity of a removed and an added line that form a pair."""


class ChangeMarker:
    """Marks changed words in changed lines, for a limited number of lines."""

    def __init__(self, max_comparisons: int = 400) -> None:
        self._comparisons_left = max_comparisons
        """Number of lines that may still be compared."""

    def pairs(self, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the indexes of removed lines and of the added lines that replace them."""
        for removed, added in _change_blocks(lines):
            if len(removed) == len(added):
                yield from zip(removed, added, strict=True)
            elif max(len(removed), len(added)) <= _MAX_UNEVEN_LINES:
                yield from self._nearest_pairs(lines, removed, added)

    def _nearest_pairs(
        self, lines: Sequence[str], removed: Sequence[int], added: Sequence[int]
    ) -> Iterator[tuple[int, int]]:
        """Pair each removed line with the most similar added line, in order."""
        word_counts = {
            line_number: Counter(_TOKEN.findall(lines[line_number][1:_MAX_MARKED_LINE]))
            for line_number in (*removed, *added)
        }
        free = list(added)
        for a in removed:
            similarities = [_similarity(word_counts[a], word_counts[b]) for b in free]
            best = max(similarities, default=0)
            if best >= _MIN_SIMILARITY:
                place = similarities.index(best)
                yield a, free[place]
                free = free[place + 1 :]

    def mark_changes(self, old: str, new: str) -> tuple[str, str] | None:
        """Return both lines with changed words marked; None if they are not similar."""
        if self._comparisons_left <= 0 or max(len(old), len(new)) > _MAX_MARKED_LINE:
            return None
        self._comparisons_left -= 1
        a, b = _TOKEN.findall(old), _TOKEN.findall(new)
        if max(len(a), len(b)) > _MOST_WORDS or count_equal_pairs(a, b) > _MOST_PAIRS:
            return None
        ranges = matching_ranges(a, b)
        if 2 * sum([len(part.a) for part in ranges if part.common]) < _MIN_SIMILARITY * (len(a) + len(b)):
            return None
        left = [_words_html(a[part.a.start : part.a.stop], marked=not part.common) for part in ranges]
        right = [_words_html(b[part.b.start : part.b.stop], marked=not part.common) for part in ranges]
        return "".join(left), "".join(right)


def _change_blocks(lines: Sequence[str]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the indexes of removed and of added lines, per block of changes."""
    signs = "".join([line[:1] or " " for line in lines])
    for match in _CHANGE_BLOCK.finditer(signs):
        if match[1]:
            places = range(*match.span())
            removed = [place for place in places if signs[place] == "-"]
            yield removed, [place for place in places if signs[place] == "+"]


def _similarity(a: Counter[str], b: Counter[str]) -> float:
    """Return the similarity of two lines by their words, from 0 to 1."""
    shared = sum([min(count, b[word]) for word, count in a.items() if word in b])
    return 2 * shared / max(1, a.total() + b.total())


def _words_html(parts: Iterable[str], *, marked: bool) -> str:
    text = escape_text("".join(parts))
    return f"<b>{text}</b>" if marked and text else text


_NO_MARKUP: Final = Markup("")
_MAX_ROWS: Final = 4_000
"""Maximum rows of a diff; longer diffs are cut with a note."""
_NO_NEWLINE: Final = "\0"
"""Marks a last line without a line end during the comparison."""
_NO_NEWLINE_NOTE: Final = "\\ No newline at end of file"
_MAX_LINE: Final = 2_000
"""Maximum characters of a line; longer lines are cut."""
_TABLE_START: Final = ' tabindex="0" role="region" aria-label="changes"><table><tbody>\n'
_NEXT_CELL: Final = '</td><td class="no">'
_EQUAL_CELLS: Final = '</td><td class="sg"> </td><td>'
_EQUAL_ROW: Final = '<tr class=""><td class="no">'
_ADDED_ROW: Final = '<tr class="add"><td class="no"></td><td class="no">'
_ADDED_CELLS: Final = '</td><td class="sg">+</td><td>'
_REMOVED_ROW: Final = '<tr class="del"><td class="no">'
_REMOVED_CELLS: Final = '</td><td class="no"></td><td class="sg">\N{MINUS SIGN}</td><td>'
_NOTE_ROW: Final = '<tr class="rem"><td class="no"></td><td class="no"></td><td class="sg"> </td><td>'
_GAP_ROW: Final = '<tr class="gap"><td colspan="4">{}</td></tr>'
_MAX_EQUAL_LINES: Final = 300_000
"""Maximum pairs of equal lines in two texts."""


class DiffRow(msgspec.Struct, frozen=True):
    """A row of a diff."""

    sign: str
    old: int | None = None
    new: int | None = None
    text: Markup = _NO_MARKUP


class RowPair(msgspec.Struct, frozen=True):
    """A row of a side-by-side diff; either side may be empty."""

    old: DiffRow | None
    new: DiffRow | None


# Comparing


def diff_texts(old: str, new: str, *, context: int = 3) -> list[Hunk]:
    """Return the changes between two texts."""
    before, after = _lines(old, new), _lines(new, old)
    ranges = readable_diff(before, after, max_equal_pairs=_MAX_EQUAL_LINES)
    hunks: list[Hunk] = []
    for group in group_changes(ranges, context):
        lines: list[str] = []
        for sign, run in signed_runs(group, before, after):
            lines += [f"{sign}{line}" for line in run]
            if run and run[-1].endswith(_NO_NEWLINE):
                lines[-1:] = [lines[-1].removesuffix(_NO_NEWLINE), _NO_NEWLINE_NOTE]
        hunks.append(Hunk(group[0].a.start + 1, group[0].b.start + 1, tuple(lines)))
    return hunks


def _lines(text: str, other: str) -> list[str]:
    """Return the lines of a text; mark a missing line end at the end of the text if the other text has one."""
    if not text:
        return []
    alone = bool(other) and other.endswith("\n") and not text.endswith("\n")
    return (text + _NO_NEWLINE * alone).removesuffix("\n").split("\n")


def count_changes(hunks: Sequence[Hunk]) -> tuple[int, int]:
    """Return the numbers of added and removed lines."""
    lines = [line[:1] for hunk in hunks for line in hunk.lines]
    return lines.count("+"), lines.count("-")


def slice_hunks(hunks: Sequence[Hunk], start: int, max_rows: int) -> tuple[list[Hunk], int]:
    """Return the hunks in a range of rows, and the total number of rows."""
    total_rows = sum([len(hunk.lines) for hunk in hunks])
    if not start and total_rows <= max_rows:
        return [hunk for hunk in hunks if hunk.lines], total_rows
    visible: list[Hunk] = []
    position = 0
    for hunk in hunks:
        low, high = max(0, start - position), max(0, start + max_rows - position)
        visible_lines = hunk.lines[low:high]
        if visible_lines and not low:
            visible.append(Hunk(hunk.old, hunk.new, visible_lines))
        elif visible_lines:
            skipped = Counter(line[:1] for line in islice(hunk.lines, low))
            unchanged = sum(count for sign, count in skipped.items() if sign not in ("+", "-", "\\"))
            old, new = hunk.old + unchanged + skipped["-"], hunk.new + unchanged + skipped["+"]
            visible.append(Hunk(old, new, visible_lines))
        position += len(hunk.lines)
    return visible, total_rows


# Rows


def diff_rows(hunks: Sequence[Hunk], language: str = "") -> Iterator[DiffRow]:
    """Yield the rows of a diff; a row with the sign `…` separates hunks."""
    marker = ChangeMarker()
    for position, hunk in enumerate(hunks):
        if position:
            yield DiffRow("…")
        lines = _clip_lines(hunk.lines)
        yield from _number_rows(hunk, _highlighted_lines(lines, language, marker))


def _clip_lines(lines: Sequence[str]) -> Sequence[str]:
    if max(map(len, lines), default=0) <= _MAX_LINE:
        return lines
    return [_clip_line(line) for line in lines]


def _clip_line(line: str) -> str:
    if len(line) <= _MAX_LINE:
        return line
    return f"{line[:_MAX_LINE]}… ({len(line) - 1:,} characters)"


def _number_rows(hunk: Hunk, texts: Sequence[str]) -> Iterator[DiffRow]:
    old, new = hunk.old, hunk.new
    for line, text in zip(hunk.lines, map(trusted_markup, texts), strict=True):
        match line[:1]:
            case "-":
                yield DiffRow("-", old=old, text=text)
                old += 1
            case "+":
                yield DiffRow("+", new=new, text=text)
                new += 1
            case "\\":
                yield DiffRow("\\", text=text)
            case _:
                yield DiffRow(" ", old, new, text)
                old, new = old + 1, new + 1


def _highlighted_lines(lines: Sequence[str], language: str, marker: ChangeMarker) -> list[str]:
    """Return lines as HTML, with highlighted code and marked changes."""
    texts = highlighted_lines("\n".join([line[1:] for line in lines]), language)
    if len(texts) != len(lines):
        texts = [escape_text(line[1:]) for line in lines]
    for a, b in marker.pairs(lines):
        marked_pair = marker.mark_changes(lines[a][1:], lines[b][1:])
        if marked_pair is not None:
            texts[a], texts[b] = marked_pair
    return texts


def paired_rows(rows: Sequence[DiffRow]) -> Iterator[RowPair]:
    """Yield the rows of a diff, paired side by side."""
    removed: list[DiffRow] = []
    added: list[DiffRow] = []
    for row in rows:
        if row.sign == "\\" and (removed or added):
            (added or removed).append(row)
        elif row.sign == "+":
            added.append(row)
        elif row.sign == "-" and not added:
            removed.append(row)
        else:
            yield from _pair_changed(removed, added)
            removed, added = ([row], []) if row.sign == "-" else ([], [])
            if row.sign != "-":
                yield RowPair(row, row)
    yield from _pair_changed(removed, added)


def _pair_changed(removed: Sequence[DiffRow], added: Sequence[DiffRow]) -> Iterator[RowPair]:
    return (RowPair(old, new) for old, new in zip_longest(removed, added))


def diff_table(
    hunks: Sequence[Hunk], language: str = "", *, side_by_side: bool = False, max_rows: int = _MAX_ROWS
) -> SafeHtml:
    """Return a diff as a table, optionally side by side."""
    from steno.web.templating import render_part

    visible, total_rows = slice_hunks(hunks, 0, max_rows)
    hidden_rows = max(0, total_rows - max_rows)
    if side_by_side:
        pairs = list(paired_rows(list(diff_rows(visible, language))))
        return SafeHtml(render_part("diff-side.html.j2", pairs=pairs, cut=hidden_rows))
    rows = "".join(_table_rows(visible, language))
    more_row = _GAP_ROW.format(f"{hidden_rows:,} more lines; see the raw record") if hidden_rows else ""
    opening = f'<div class="diff{client_highlight_class(language)}"{_TABLE_START}'
    return SafeHtml(f"{opening}{rows}{more_row}</tbody></table></div>")


def _table_rows(hunks: Sequence[Hunk], language: str) -> list[str]:
    """Return the rows as HTML, without a template for speed."""
    rows: list[str] = []
    marker = ChangeMarker()
    for hunk in hunks:
        if rows:
            rows.append(_GAP_ROW.format("…"))
        old, new = hunk.old, hunk.new
        lines = _clip_lines(hunk.lines)
        for line, text in zip(lines, _highlighted_lines(lines, language, marker), strict=True):
            sign = line[:1]
            if sign == "+":
                rows.append(f"{_ADDED_ROW}{new or ''}{_ADDED_CELLS}{text or ' '}</td></tr>")
                new += 1
            elif sign == "-":
                rows.append(f"{_REMOVED_ROW}{old or ''}{_REMOVED_CELLS}{text or ' '}</td></tr>")
                old += 1
            elif sign == "\\":
                rows.append(f"{_NOTE_ROW}{text or ' '}</td></tr>")
            else:
                rows.append(f"{_EQUAL_ROW}{old or ''}{_NEXT_CELL}{new or ''}{_EQUAL_CELLS}{text or ' '}</td></tr>")
                old, new = old + 1, new + 1
    return rows
