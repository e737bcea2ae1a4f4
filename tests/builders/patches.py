"""The `structuredPatch` of an edit: hunks with three lines of context, as the real client has it."""

import difflib
import itertools

from tests.builders.blocks import Json

__all__ = ["patch"]

_CONTEXT = 3


def patch(before: str, after: str) -> list[Json]:
    """Return the hunks that turn one text into the other."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    hunks: list[Json] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        lines = list(itertools.chain.from_iterable(_lines(code, old, new) for code in group))
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks


def _lines(code: tuple[str, int, int, int, int], old: list[str], new: list[str]) -> list[str]:
    tag, old_from, old_to, new_from, new_to = code
    if tag == "equal":
        return [" " + line for line in old[old_from:old_to]]
    removed = ["-" + line for line in old[old_from:old_to]]
    return removed + ["+" + line for line in new[new_from:new_to]]
