"""What test runners said, in numbers."""

import re
from typing import Final

import msgspec

__all__ = ["SuiteRun", "Verdict", "suite_run"]

_PASSED: Final = re.compile(r"(\d{1,9}) (?:passed|passing)\b")
_FAILED: Final = re.compile(r"(\d{1,9}) (?:failed|failing|errors?)\b")
_RAN: Final = re.compile(r"Ran (\d{1,9}) tests?, (OK|FAILED)(?: \(([^)]*)\))?")
_WRONG: Final = re.compile(r"(?:failures|errors)=(\d{1,9})")


class SuiteRun(msgspec.Struct, frozen=True):
    """One run of some tests."""

    passed: int
    failed: int

    def __str__(self) -> str:
        said = [f"{self.failed:,} failed"] if self.failed else []
        if self.passed or not said:
            said.append(f"{self.passed:,} passed")
        return ", ".join(said)


class Verdict(msgspec.Struct, frozen=True):
    """What a run of tests came to."""

    ok: bool
    numbers: SuiteRun | None = None
    """How many passed and failed, where the runner said it."""

    @property
    def failing(self) -> int | None:
        """How many failed, where that is known."""
        if self.numbers is not None:
            return self.numbers.failed
        return 0 if self.ok else None

    def __str__(self) -> str:
        if self.numbers is None or (self.numbers.passed, self.numbers.failed) == (0, 0):
            return "passed" if self.ok else "failed"
        return str(self.numbers)


def suite_run(outcome: str) -> SuiteRun | None:
    """Return the numbers in a step's outcome, if a test runner wrote it.

    >>> str(suite_run("exit 1, 3 failed, 118 passed")), suite_run("43 lines")
    ('3 failed, 118 passed', None)
    """
    if ran := _RAN.search(outcome):
        wrong = sum(map(int, _WRONG.findall(ran[3] or ""))) or int(ran[2] == "FAILED")
        return SuiteRun(max(0, int(ran[1]) - wrong), wrong)
    passed, failed = _PASSED.findall(outcome), _FAILED.findall(outcome)
    if not passed and not failed:
        return None
    return SuiteRun(sum(map(int, passed)), sum(map(int, failed)))
