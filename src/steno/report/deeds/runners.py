"""The numbers that test runners print at the end, where a step's outcome does not have them."""

import re
from typing import Final

from steno.report.deeds.suites import SuiteRun

__all__ = ["numbers_in"]

_RUNS: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^(?:\[\w{1,9}\] )?Tests run: (?P<all>\d{1,9}), Failures: (?P<bad>\d{1,9}), Errors: (?P<worse>\d{1,9})",
        (
            r"^Tests: (?P<all>\d{1,9}), Assertions: \d{1,9}(?:, Errors: (?P<worse>\d{1,9}))?"
            r"(?:, Failures: (?P<bad>\d{1,9}))?"
        ),
        r"^OK \((?P<all>\d{1,9}) tests?, \d{1,9} assertions?\)",
        r"^(?P<all>\d{1,9}) examples?, (?P<bad>\d{1,9}) failures?",
        r"\bFailed:\s{1,9}(?P<bad>\d{1,9}), Passed:\s{1,9}(?P<good>\d{1,9})",
        (
            r"^Ran (?P<all>\d{1,9}) tests? in [^\n]{1,40}\n\nFAILED \((?:failures=(?P<bad>\d{1,9}))?(?:, )?"
            r"(?:errors=(?P<worse>\d{1,9}))?"
        ),
        r"(?P<good>\d{1,9}) passed [|;] (?P<bad>\d{1,9}) failed",
        r"^[#\u2139] pass (?P<good>\d{1,9})\n[#\u2139] fail (?P<bad>\d{1,9})",
        r"^\s{0,9}(?P<bad>\d{1,9}) failed\n(?:[^\n]{0,400}\n){0,200}?\s{0,9}(?P<good>\d{1,9}) passed",
        r"^\s{0,9}(?P<good>\d{1,9}) passed \(",
    )
)
"""Maven, PHPUnit (twice), RSpec, .NET, unittest, Deno, Node, Playwright (twice)."""


def numbers_in(text: str) -> SuiteRun | None:
    """Return what the last run of tests in an output said, in numbers.

    >>> str(numbers_in("10 examples, 2 failures"))
    '2 failed, 8 passed'
    """
    for pattern in _RUNS:
        runs = list(pattern.finditer(text))
        if runs:
            said = {name: int(each or 0) for name, each in runs[-1].groupdict().items()}
            failed = said.get("bad", 0) + said.get("worse", 0)
            return SuiteRun(said.get("good", max(0, said.get("all", 0) - failed)), failed)
    return None
