"""Applies edits and recorded patches to text, and holds partially known text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self

import msgspec

from steno.format.line_diff import readable_diff
from steno.report.file_history.file_versions import KnownLines

_NO_NEWLINE_MARK: Final = "\\"
_MAX_COMPARED_PAIRS: Final = 4_000_000
"""Pairs of lines; with more, what changed is only estimated."""
_TAB_SPACES: Final = "  "


class TextChange(msgspec.Struct, frozen=True):
    """Words that take the place of others."""

    old: str
    new: str
    replace_all: bool = False


class PatchHunk(msgspec.Struct, frozen=True):
    """A stretch of a recorded patch; lines bear their sign."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[str, ...]

    def lines_of_side(self, sign: str) -> list[str]:
        """Return the lines of one side: `-` for before, `+` for after."""
        return [line[1:] for line in self.lines if line[:1] in (" ", sign)]

    def ends_without_newline(self, sign: str) -> bool:
        """Whether one side ends in a line without a newline."""
        before = ""
        for line in self.lines:
            if line.startswith(_NO_NEWLINE_MARK) and before in (" ", sign):
                return True
            before = line[:1]
        return False


def normalize_newlines(text: str) -> str:
    """Return a text with the line endings that clients keep."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def text_lines(text: str) -> list[str]:
    r"""Return the lines of a text; the newline at its end begins no line.

    >>> text_lines("a\r\nb\n"), text_lines("")
    (['a', 'b'], [])
    """
    lines = normalize_newlines(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def equal_texts(first: str, second: str) -> bool:
    """Whether two texts are the same but for their line endings."""
    return first == second or normalize_newlines(first) == normalize_newlines(second)


def apply_change(text: str, change: TextChange) -> Iterator[str]:
    """Yield what an edit may have made of a text, the likeliest first; nothing if it does not fit.

    A client that takes lines out takes the newline behind them out, too.
    """
    old, new = change.old, change.new
    if not old:
        # So a file is made, or an empty one filled.
        if not text.strip():
            yield new
        return
    if old not in text:
        return
    max_count = -1 if change.replace_all else 1
    if not new and not old.endswith("\n") and f"{old}\n" in text:
        yield text.replace(f"{old}\n", new, max_count)
    yield text.replace(old, new, max_count)


def apply_patch(text: str, hunks: Sequence[PatchHunk]) -> str | None:
    """Return a text with a recorded patch carried out; None where the patch is of another text.

    Some clients note patches with tabs made spaces: these fit, and what they add is not believed.
    """
    before = text.split("\n")
    after: list[str] = []
    position = 0
    for hunk in hunks:
        old = hunk.lines_of_side("-")
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        if start < position or before[start : start + len(old)] != old:
            return None
        after += before[position:start]
        after += hunk.lines_of_side("+")
        position = start + len(old)
        if position == len(before) and not hunk.ends_without_newline("+") and hunk.ends_without_newline("-"):
            after.append("")
        if hunk.ends_without_newline("+") and before[position:] == [""]:
            position += 1
    return "\n".join(after + before[position:])


def patch_matches(hunks: Sequence[PatchHunk], before: str, after: str) -> bool:
    """Whether a recorded patch may be what lies between two texts."""
    if not hunks:
        return True
    result = apply_patch(before, hunks)
    if result is not None:
        # A patch that marks no line as the last one without a newline does not say how it ends.
        marks_newline = any(hunk.ends_without_newline("+") or hunk.ends_without_newline("-") for hunk in hunks)
        differs_in_newline = f"{result}\n" == after or result == f"{after}\n"
        return result == after or (differs_in_newline and not marks_newline)
    result = apply_patch(_expand_tabs(before), [_expand_hunk_tabs(hunk) for hunk in hunks])
    return result is not None and result == _expand_tabs(after)


def _expand_tabs(text: str) -> str:
    """Return a text with the tabs that begin its lines made spaces, as some patches have it."""
    if "\t" not in text:
        return text
    return "\n".join(_expand_leading_tabs(line) for line in text.split("\n"))


def _expand_leading_tabs(line: str) -> str:
    bare = line.lstrip("\t")
    return _TAB_SPACES * (len(line) - len(bare)) + bare


def _expand_hunk_tabs(hunk: PatchHunk) -> PatchHunk:
    lines = tuple(line[:1] + _expand_leading_tabs(line[1:]) for line in hunk.lines)
    return PatchHunk(hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count, lines)


def count_changed_lines(before: str, after: str) -> tuple[int, int]:
    """Return how many lines were added, and how many removed."""
    changes = readable_diff(text_lines(before), text_lines(after), max_pairs=_MAX_COMPARED_PAIRS)
    return sum(len(part.b) for part in changes if not part.common), sum(
        len(part.a) for part in changes if not part.common
    )


class PartialText:
    """A text of which only some lines are known. The last of a text that ends in a newline is empty."""

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self._known: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._known)

    def copy(self) -> Self:
        """Return the same again."""
        copy_ = type(self)(self.total)
        for piece in self.pieces():
            copy_.set_lines(piece.start, piece.lines)
        return copy_

    def set_lines(self, start: int, lines: Iterable[str]) -> None:
        """Take in some lines."""
        for number, line in enumerate(lines, start):
            self._known[number] = line

    def agrees(self, start: int, lines: Iterable[str], total: int | None = None) -> bool:
        """Whether some lines may be of the same text."""
        if total is not None and self.total is not None and total != self.total:
            return False
        known = self._known
        return all(known.get(number, line) == line for number, line in enumerate(lines, start))

    def matches_text(self, text: str) -> bool:
        """Whether a text may be this one."""
        lines = normalize_newlines(text).split("\n")
        return self.agrees(1, lines) and all(number <= len(lines) for number in self._known)

    @property
    def text(self) -> str | None:
        """The whole, if every line of it is known."""
        if self.total is None or len(self._known) < self.total:
            return None
        line_numbers = range(1, self.total + 1)
        if not all(number in self._known for number in line_numbers):
            return None
        return "\n".join(self._known[number] for number in line_numbers)

    def apply_patch(self, hunks: Sequence[PatchHunk]) -> bool:
        """Carry out a recorded patch; False where it is of another text, which is then forgotten."""
        for hunk in hunks:
            if not self.agrees(hunk.old_start, hunk.lines_of_side("-")):
                self._known = {}
                self.total = None
                break
        matched = bool(self._known)
        shift = 0
        for hunk in hunks:
            old, new = len(hunk.lines_of_side("-")), hunk.lines_of_side("+")
            start = (hunk.old_start if hunk.old_count else hunk.old_start + 1) + shift
            growth = len(new) - old
            self._known = {
                (number if number < start else number + growth): line
                for number, line in self._known.items()
                if not start <= number < start + old
            }
            self.set_lines(start, new)
            shift += growth
        if self.total is not None:
            self.total += shift
        return matched

    def pieces(self) -> tuple[KnownLines, ...]:
        """Return what is known, in stretches."""
        known_pieces: list[KnownLines] = []
        piece_lines: list[str] = []
        first = 0
        for number in sorted(self._known):
            if piece_lines and number != first + len(piece_lines):
                known_pieces.append(KnownLines(first, tuple(piece_lines)))
                piece_lines = []
            if not piece_lines:
                first = number
            piece_lines.append(self._known[number])
        if piece_lines:
            known_pieces.append(KnownLines(first, tuple(piece_lines)))
        return tuple(known_pieces)
