"""What test runners say at the end of their output."""

import re
from functools import cache
from typing import Final

from steno.session.story.steps import one_line

__all__ = ["tests_in"]

_TAIL: Final = 4000
_LONGEST: Final = 80
_TOLD: Final = ("pass", "failed", "error", "Ran ")
"""Of these one stands in whatever a runner says."""
_RUNNERS: Final = (
    ("= ", r"=+ (?P<words>[^=\n]*\b(?:passed|failed|errors?)\b[^=\n]*?) in [\d.:]+ ?s"),
    (" in ", r"^(?P<words>\d+ (?:passed|failed|errors?)\b[^\n]*?) in [\d.:]+ ?s"),
    ("test result: ", r"^test result: \w+\. (?P<words>\d+ passed; \d+ failed)"),
    ("Tests:", r"^\s*Tests:\s+(?P<words>[^\n]*\b(?:passed|failed)\b[^\n]*)"),
    ("Tests", r"^\s*Tests\s+(?P<words>\d+ (?:passed|failed)[^\n(]*)"),
    (" passing", r"^\s*(?P<words>\d+ passing\b[^\n(]*)"),
    ("Ran ", r"^(?P<words>Ran \d+ tests?) in [\d.]+s\s+(?P<end>OK|FAILED[^\n]*)"),
)
"""Their last lines, and something in each that is quick to look for."""


def tests_in(text: str) -> str:
    """Return what a test runner says at the end of its output, or nothing.

    >>> tests_in("==== 1 failed, 8 passed in 0.12s ====")
    '1 failed, 8 passed'
    """
    tail = text[-_TAIL:]
    if not any(word in tail for word in _TOLD):
        return ""
    for sign, pattern in _RUNNERS:
        said = list(_compiled(pattern).finditer(tail)) if sign in tail else []
        if said:
            found = said[-1]
            end = found.groupdict().get("end")
            return one_line(f"{found['words'].strip()}{f', {end}' if end else ''}", _LONGEST)
    return ""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
