"""Patches of edits, in the form that Claude Code records (`structuredPatch`)."""

import re
from typing import Any, Final, TypeAlias

from steno.format.line_diff import group_changes, recorded_diff, signed_runs

PatchHunk: TypeAlias = dict[str, Any]

_CONTEXT_LINES: Final = 3
_NO_NEWLINE: Final = "\\ No newline at end of file"
_LEADING_TABS: Final = re.compile(r"^\t+")
_LINE_PATTERN: Final = re.compile(r"[^\n]*\n|[^\n]+")


def structured_patch(old: str, new: str) -> list[PatchHunk]:
    r"""Return the hunks between two texts, with three lines of context.

    Leading tabs become two spaces each, as in the records of Claude Code.

    >>> structured_patch("a\nb\n", "a\nc\n")[0]["lines"]
    [' a', '-b', '+c']
    """
    before, after = _LINE_PATTERN.findall(old), _LINE_PATTERN.findall(new)
    return [
        {
            "oldStart": group[0].a.start + 1,
            "oldLines": group[-1].a.stop - group[0].a.start,
            "newStart": group[0].b.start + 1,
            "newLines": group[-1].b.stop - group[0].b.start,
            "lines": [
                line
                for sign, texts in signed_runs(group, before, after)
                for text in texts
                for line in _patch_lines(sign, text)
            ],
        }
        for group in group_changes(recorded_diff(before, after), _CONTEXT_LINES)
    ]


def _patch_lines(sign: str, text: str) -> list[str]:
    line = sign + _LEADING_TABS.sub(lambda tabs: "  " * len(tabs[0]), text).removesuffix("\n")
    return [line] if text.endswith("\n") else [line, _NO_NEWLINE]
