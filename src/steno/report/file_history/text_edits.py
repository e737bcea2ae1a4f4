"""Applies edits and recorded patches to text, and holds partially known text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self

import msgspec

from steno.format.line_diff import readable_diff
from steno.report.file_history.file_versions import KnownLines

_NO_NEWLINE_MARK: Final = "\\"
_MAX_COMPARED_PAIRS: Final = 4_000_000
"""Maximum number of line pairs for an exact diff; beyond it, changes are estimated."""
_TAB_SPACES: Final = "  "


class TextChange(msgspec.Struct, frozen=True):
    """A replacement of text."""

    old: str
    new: str
    replace_all: bool = False


class PatchHunk(msgspec.Struct, frozen=True):
    """A hunk of a recorded patch; each line starts with its sign."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[str, ...]

    def lines_of_side(self, sign: str) -> list[str]:
        """Return the lines of one side: `-` for before, `+` for after."""
        return [line[1:] for line in self.lines if line[:1] in (" ", sign)]

    def ends_without_newline(self, sign: str) -> bool:
        """Return whether one side ends without a newline."""
        before = ""
        for line in self.lines:
            if line.startswith(_NO_NEWLINE_MARK) and before in (" ", sign):
                return True
            before = line[:1]
        return False


def normalize_newlines(text: str) -> str:
    """Return a text with LF newlines, as Claude Code records it."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def text_lines(text: str) -> list[str]:
    r"""Return the lines of a text, without an empty line after the final newline.

    >>> text_lines("a\r\nb\n"), text_lines("")
    (['a', 'b'], [])
    """
    lines = normalize_newlines(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def equal_texts(first: str, second: str) -> bool:
    """Return whether two texts are equal except for newlines."""
    return first == second or normalize_newlines(first) == normalize_newlines(second)


def apply_change(text: str, change: TextChange) -> Iterator[str]:
    """Yield the possible results of an edit, most likely first; nothing if it does not match.

    When Claude Code deletes lines, it also deletes the newline after them.
    """
    old, new = change.old, change.new
    if not old:
        # An empty `old` creates a file or fills an empty one.
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
    """Return a text with a recorded patch applied; None if the patch does not match.

    Some Claude Code versions record tabs as spaces; such patches do not match here.
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
    """Return whether a recorded patch is consistent with two texts."""
    if not hunks:
        return True
    result = apply_patch(before, hunks)
    if result is not None:
        # A patch without a no-newline mark does not show whether the file ends with a newline.
        marks_newline = any(hunk.ends_without_newline("+") or hunk.ends_without_newline("-") for hunk in hunks)
        differs_in_newline = f"{result}\n" == after or result == f"{after}\n"
        return result == after or (differs_in_newline and not marks_newline)
    result = apply_patch(_expand_tabs(before), [_expand_hunk_tabs(hunk) for hunk in hunks])
    return result is not None and result == _expand_tabs(after)


def _expand_tabs(text: str) -> str:
    """Return a text with leading tabs expanded to spaces, as in some recorded patches."""
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
    """Return the numbers of added and removed lines."""
    changes = readable_diff(text_lines(before), text_lines(after), max_pairs=_MAX_COMPARED_PAIRS)
    return sum(len(part.b) for part in changes if not part.common), sum(
        len(part.a) for part in changes if not part.common
    )


class PartialText:
    """A text of which only some lines are known. If the text ends with a newline, its last line is empty."""

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self._known: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._known)

    def copy(self) -> Self:
        """Return a copy."""
        copy_ = type(self)(self.total)
        for piece in self.pieces():
            copy_.set_lines(piece.start, piece.lines)
        return copy_

    def set_lines(self, start: int, lines: Iterable[str]) -> None:
        """Add known lines."""
        for number, line in enumerate(lines, start):
            self._known[number] = line

    def agrees(self, start: int, lines: Iterable[str], total: int | None = None) -> bool:
        """Return whether lines are consistent with the known lines."""
        if total is not None and self.total is not None and total != self.total:
            return False
        known = self._known
        return all(known.get(number, line) == line for number, line in enumerate(lines, start))

    def matches_text(self, text: str) -> bool:
        """Return whether a text is consistent with the known lines."""
        lines = normalize_newlines(text).split("\n")
        return self.agrees(1, lines) and all(number <= len(lines) for number in self._known)

    @property
    def text(self) -> str | None:
        """The whole text, if every line is known."""
        if self.total is None or len(self._known) < self.total:
            return None
        line_numbers = range(1, self.total + 1)
        if not all(number in self._known for number in line_numbers):
            return None
        return "\n".join(self._known[number] for number in line_numbers)

    def apply_patch(self, hunks: Sequence[PatchHunk]) -> bool:
        """Apply a recorded patch; return False if it does not match, and drop the known lines."""
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
        """Return the known lines as consecutive pieces."""
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
