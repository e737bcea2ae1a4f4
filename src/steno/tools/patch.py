"""What an edit changed, in the shape that Claude Code records it (`structuredPatch`).

The difference is the shortest one (Myers, 1986), with the client's choice where several are as
short, so that the same edit gives the same hunks.
"""

import re
from itertools import pairwise
from typing import Any, Final, TypeAlias

PatchHunk: TypeAlias = dict[str, Any]
LineChange: TypeAlias = tuple[int, int, int, int]
"""Lines `[a, b)` of the old text became lines `[c, d)` of the new one."""
_EditPath: TypeAlias = tuple[int, Any]
"""How far a path came in the old text, and its last step: (is an addition, line, step before)."""

_CONTEXT_LINES: Final = 3
_NO_NEWLINE: Final = "\\ No newline at end of file"
_LEADING_TABS: Final = re.compile(r"^\t+")
_LINE_PATTERN: Final = re.compile(r"[^\n]*\n|[^\n]+")
# A whole file rewritten beyond recognition is told as one change rather than searched for hours.
_MAX_SEARCH_STEPS: Final = 250_000


def structured_patch(old: str, new: str) -> list[PatchHunk]:
    r"""Return what changed between two texts, with three lines around every change.

    Tabs at the beginning of a line are two spaces each, as the client records them.

    >>> structured_patch("a\nb\n", "a\nc\n")[0]["lines"]
    [' a', '-b', '+c']
    """
    before, after = _split_lines(old), _split_lines(new)
    return [_make_hunk(before, after, group) for group in _group_changes(diff_lines(before, after))]


def diff_lines(before: list[str], after: list[str]) -> list[LineChange]:
    """Return which lines became which, in order."""
    removed, added = _edit_script(before, after)
    line_changes: list[LineChange] = []
    old_line = new_line = 0
    while old_line < len(before) or new_line < len(after):
        start = (old_line, new_line)
        while old_line in removed or new_line in added:
            old_line += old_line in removed
            new_line += new_line in added
        if (old_line, new_line) == start:
            old_line, new_line = old_line + 1, new_line + 1
        else:
            line_changes.append((start[0], old_line, start[1], new_line))
    return line_changes


def _split_lines(text: str) -> list[str]:
    return _LINE_PATTERN.findall(text)


def _edit_script(before: list[str], after: list[str]) -> tuple[set[int], set[int]]:
    """Return the numbers of the lines that go and of those that come."""
    step = _shortest_edit(before, after)
    if step is None:
        return _changed_middle(before, after)
    removed: set[int] = set()
    added: set[int] = set()
    while step:
        is_addition, line, step = step
        (added if is_addition else removed).add(line)
    return removed, added


def _shortest_edit(before: list[str], after: list[str]) -> Any:
    """Return the last step of the shortest way, `()` for none to take, None when it is too far."""
    search = _MyersSearch(before, after)
    if search.is_end(search.paths[0][0], 0):
        return ()
    for distance in range(1, len(before) + len(after) + 1):
        step = search.advance(distance)
        if step is not None:
            return step
        if search.step_count > _MAX_SEARCH_STEPS:
            break
    return None


class _MyersSearch:
    """The furthest paths so far, by diagonal: how many lines went more than came."""

    def __init__(self, before: list[str], after: list[str]) -> None:
        self.before, self.after = before, after
        self.lowest, self.highest = -len(after) - 1, len(before) + 1
        self.paths: dict[int, _EditPath] = {0: (self.follow_equal_lines(0, 0), ())}
        self.step_count = 0

    def is_end(self, old: int, diagonal: int) -> bool:
        return old >= len(self.before) and old - diagonal >= len(self.after)

    def follow_equal_lines(self, old: int, diagonal: int) -> int:
        """Return how far both texts are the same from here on."""
        before, after = self.before, self.after
        end = min(len(before), len(after) + diagonal)
        while old < end and before[old] == after[old - diagonal]:
            old += 1
        return old

    def advance(self, distance: int) -> Any:
        """Take one more step on every path; return the last step of one that came to the end."""
        # Diagonals beyond the end of either text are left out, two at a time to keep the parity.
        first = max(-distance, self.lowest + (self.lowest + distance) % 2)
        for diagonal in range(first, min(distance, self.highest) + 1, 2):
            self.step_count += 1
            path = self.extend_path(diagonal)
            if path is None:
                continue
            old = self.follow_equal_lines(path[0], diagonal)
            if self.is_end(old, diagonal):
                return path[1]
            self.paths[diagonal] = (old, path[1])
            if old >= len(self.before):
                self.highest = min(self.highest, diagonal - 1)
            if old - diagonal >= len(self.after):
                self.lowest = max(self.lowest, diagonal + 1)
        return None

    def extend_path(self, diagonal: int) -> _EditPath | None:
        """Return the better of the two ways onto a diagonal: a line less, or a line more."""
        less, more = self.paths.pop(diagonal - 1, None), self.paths.get(diagonal + 1)
        if less is not None and less[0] >= len(self.before):
            less = None
        if more is not None and not 0 <= more[0] - diagonal - 1 < len(self.after):
            more = None
        if more is not None and (less is None or less[0] < more[0]):
            return more[0], (True, more[0] - diagonal - 1, more[1])
        if less is not None:
            return less[0] + 1, (False, less[0], less[1])
        self.paths.pop(diagonal, None)
        return None


def _changed_middle(before: list[str], after: list[str]) -> tuple[set[int], set[int]]:
    """Return everything between what both begin with and what both end with."""
    min_length = min(len(before), len(after))
    start = next((n for n in range(min_length) if before[n] != after[n]), min_length)
    suffix_lengths = range(1, min_length - start + 1)
    end = next((n - 1 for n in suffix_lengths if before[-n] != after[-n]), min_length - start)
    return set(range(start, len(before) - end)), set(range(start, len(after) - end))


def _group_changes(line_changes: list[LineChange]) -> list[list[LineChange]]:
    """Put changes together that are so near each other that their surroundings touch."""
    groups = [line_changes[:1]] if line_changes else []
    for previous, following in pairwise(line_changes):
        if following[0] - previous[1] <= 2 * _CONTEXT_LINES:
            groups[-1].append(following)
        else:
            groups.append([following])
    return groups


def _make_hunk(before: list[str], after: list[str], group: list[LineChange]) -> PatchHunk:
    start = max(0, group[0][0] - _CONTEXT_LINES)
    end = min(len(before), group[-1][1] + _CONTEXT_LINES)
    lines: list[str] = []
    index = start
    for old, old_end, new, new_end in group:
        _add_lines(lines, " ", before[index:old])
        _add_lines(lines, "-", before[old:old_end])
        _add_lines(lines, "+", after[new:new_end])
        index = old_end
    _add_lines(lines, " ", before[index:end])
    growth = sum((d - c) - (b - a) for a, b, c, d in group)
    return {
        "oldStart": start + 1,
        "oldLines": end - start,
        "newStart": start + 1 + group[0][2] - group[0][0],
        "newLines": end - start + growth,
        "lines": lines,
    }


def _add_lines(lines: list[str], prefix: str, texts: list[str]) -> None:
    for text in texts:
        displayed = _LEADING_TABS.sub(lambda tabs: "  " * len(tabs[0]), text)
        lines.append(prefix + displayed.removesuffix("\n"))
        if not text.endswith("\n"):
            lines.append(_NO_NEWLINE)
