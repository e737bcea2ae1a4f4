"""What an edit changed, in the shape that Claude Code records it (`structuredPatch`).

The difference is the shortest one (Myers, 1986), with the client's choice where several are as
short, so that the same edit gives the same hunks.
"""

import re
from itertools import pairwise
from typing import Any, Final, TypeAlias

__all__ = ["Hunk", "changes", "structured_patch"]

Hunk: TypeAlias = dict[str, Any]
Change: TypeAlias = tuple[int, int, int, int]
"""Lines `[a, b)` of the old text became lines `[c, d)` of the new one."""
_Path: TypeAlias = tuple[int, Any]
"""How far a path came in the old text, and its last step: (is an addition, line, step before)."""

_AROUND: Final = 3
_NO_NEWLINE: Final = "\\ No newline at end of file"
_TABS: Final = re.compile(r"^\t+")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
# A whole file rewritten beyond recognition is told as one change rather than searched for hours.
_MOST_STEPS: Final = 250_000


def structured_patch(old: str, new: str) -> list[Hunk]:
    r"""Return what changed between two texts, with three lines around every change.

    Tabs at the beginning of a line are two spaces each, as the client records them.

    >>> structured_patch("a\nb\n", "a\nc\n")[0]["lines"]
    [' a', '-b', '+c']
    """
    before, after = _lines(old), _lines(new)
    return [_hunk(before, after, group) for group in _grouped(changes(before, after))]


def changes(before: list[str], after: list[str]) -> list[Change]:
    """Return which lines became which, in order."""
    removed, added = _steps(before, after)
    found: list[Change] = []
    old = new = 0
    while old < len(before) or new < len(after):
        start = (old, new)
        while old in removed or new in added:
            old += old in removed
            new += new in added
        if (old, new) == start:
            old, new = old + 1, new + 1
        else:
            found.append((start[0], old, start[1], new))
    return found


def _lines(text: str) -> list[str]:
    return _LINE.findall(text)


def _steps(before: list[str], after: list[str]) -> tuple[set[int], set[int]]:
    """Return the numbers of the lines that go and of those that come."""
    last = _search(before, after)
    if last is None:
        return _middle(before, after)
    removed: set[int] = set()
    added: set[int] = set()
    while last:
        is_addition, line, last = last
        (added if is_addition else removed).add(line)
    return removed, added


def _search(before: list[str], after: list[str]) -> Any:
    """Return the last step of the shortest way, `()` for none to take, None when it is too far."""
    search = _Search(before, after)
    if search.is_end(search.paths[0][0], 0):
        return ()
    for distance in range(1, len(before) + len(after) + 1):
        found = search.go(distance)
        if found is not None:
            return found
        if search.work > _MOST_STEPS:
            break
    return None


class _Search:
    """The furthest paths so far, by diagonal: how many lines went more than came."""

    def __init__(self, before: list[str], after: list[str]) -> None:
        self.before, self.after = before, after
        self.lowest, self.highest = -len(after) - 1, len(before) + 1
        self.paths: dict[int, _Path] = {0: (self.follow(0, 0), ())}
        self.work = 0

    def is_end(self, old: int, diagonal: int) -> bool:
        return old >= len(self.before) and old - diagonal >= len(self.after)

    def follow(self, old: int, diagonal: int) -> int:
        """Return how far both texts are the same from here on."""
        before, after = self.before, self.after
        most = min(len(before), len(after) + diagonal)
        while old < most and before[old] == after[old - diagonal]:
            old += 1
        return old

    def go(self, distance: int) -> Any:
        """Take one more step on every path; return the last step of one that came to the end."""
        # Diagonals beyond the end of either text are left out, two at a time to keep the parity.
        first = max(-distance, self.lowest + (self.lowest + distance) % 2)
        for diagonal in range(first, min(distance, self.highest) + 1, 2):
            self.work += 1
            path = self.step(diagonal)
            if path is None:
                continue
            old = self.follow(path[0], diagonal)
            if self.is_end(old, diagonal):
                return path[1]
            self.paths[diagonal] = (old, path[1])
            if old >= len(self.before):
                self.highest = min(self.highest, diagonal - 1)
            if old - diagonal >= len(self.after):
                self.lowest = max(self.lowest, diagonal + 1)
        return None

    def step(self, diagonal: int) -> _Path | None:
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


def _middle(before: list[str], after: list[str]) -> tuple[set[int], set[int]]:
    """Return everything between what both begin with and what both end with."""
    most = min(len(before), len(after))
    start = next((n for n in range(most) if before[n] != after[n]), most)
    rest = range(1, most - start + 1)
    end = next((n - 1 for n in rest if before[-n] != after[-n]), most - start)
    return set(range(start, len(before) - end)), set(range(start, len(after) - end))


def _grouped(found: list[Change]) -> list[list[Change]]:
    """Put changes together that are so near each other that their surroundings touch."""
    groups = [found[:1]] if found else []
    for one, other in pairwise(found):
        if other[0] - one[1] <= 2 * _AROUND:
            groups[-1].append(other)
        else:
            groups.append([other])
    return groups


def _hunk(before: list[str], after: list[str], group: list[Change]) -> Hunk:
    start = max(0, group[0][0] - _AROUND)
    end = min(len(before), group[-1][1] + _AROUND)
    lines: list[str] = []
    at = start
    for old, old_end, new, new_end in group:
        _put(lines, " ", before[at:old])
        _put(lines, "-", before[old:old_end])
        _put(lines, "+", after[new:new_end])
        at = old_end
    _put(lines, " ", before[at:end])
    grown = sum((d - c) - (b - a) for a, b, c, d in group)
    return {
        "oldStart": start + 1,
        "oldLines": end - start,
        "newStart": start + 1 + group[0][2] - group[0][0],
        "newLines": end - start + grown,
        "lines": lines,
    }


def _put(lines: list[str], sign: str, texts: list[str]) -> None:
    for text in texts:
        shown = _TABS.sub(lambda tabs: "  " * len(tabs[0]), text)
        lines.append(sign + shown.removesuffix("\n"))
        if not text.endswith("\n"):
            lines.append(_NO_NEWLINE)
