"""What the output of a command says: of tests whether they passed, of a failure the telling line."""

import re
from collections.abc import Callable
from typing import Final

from steno.report.deeds.runners import numbers_in
from steno.report.deeds.suites import SuiteRun, Verdict, suite_run
from steno.session.story.steps import Step

__all__ = ["telling_line", "tests_said"]

_GO_FAILED: Final = re.compile(r"^\s*--- FAIL:", re.MULTILINE)
_BAD: Final = re.compile(
    r"^(?:FAIL\b|FAILED\b|E   |npm ERR!|make(?:\[\d+\])?: \*\*\*|Tests? failed|error(?:\[|:)|\S+ ERROR )"
    r"|\bTests:\s+[1-9]\d* failed",
    re.MULTILINE,
)
_GOOD: Final = re.compile(
    r"^ok\b|\bPASS(?:ED)?\b|\bpass(?:ed|ing)\b|\bOK\b|[✓✔]|\b0 (?:failed|failures|errors)\b|\bsuccess",
    re.MULTILINE,
)
_PIPED: Final = re.compile(r"(?<!\|)\|(?!\|)")
_EXIT: Final = re.compile(r"\A(?:Error: )?Exit code -?\d+\s*")
_TAGS: Final = re.compile(r"</?tool_use_error>")
_COLOURS: Final = re.compile(r"\x1b(?:\[[0-9;:?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_RULES: Final = " \t" + "".join(map(chr, range(0x2500, 0x2580)))
"""What lines are drawn with."""
_SPINS: Final = " \t" + "".join(map(chr, range(0x2800, 0x2900)))
"""What a program turns while it works."""
_STRONG: Final = re.compile(
    r"^(?:[\w.]*(?:Error|Exception)\b.*:|error(?:\[\w+\])?:|fatal:|panic:|E   \S|--- FAIL:|✗"
    r"|npm ERR! (?!code|A complete|path)|ERROR\b|(?-i:FAILED |FAIL\t)|curl: \(|CONFLICT "
    r"|\[?\S{0,20}\]?\s?\S+\.\w+:\d+(?::\d+)?:?\s(?!\w*(?:Error|Exception)$))"
    r"|\berror TS\d+:",
    re.IGNORECASE,
)
_MARKED: Final = re.compile(r"[✗✖\u00d7✘] \S")
_WEAK: Final = re.compile(
    r"\berror\b|\bfail(?:ed|ure)?\b|not found|no such file|cannot|can't|denied|undefined|unable to"
    r"|timed? ?out|refused|does not exist|invalid|are ignored|unused|unresolved|conflicts? with|aborted",
    re.IGNORECASE,
)
_NOISE: Final = re.compile(
    r"npm warn|\s*[\u2500-\u257f]|% Total|Dload|\d+ +[\d.]+[kMG]? |Rebasing \(|\s*at \S+ \(|> ",
    re.IGNORECASE,
)
_PYTHON: Final = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)
_LONGEST: Final = 240
_SHORTEST: Final = 5
_ONLY_MARKS: Final = re.compile(r"[\W_]*")


def tests_said(step: Step, printed: Callable[[], str], *, by_name: bool) -> Verdict | None:
    """Return what a run of tests came to; None where no tests were run.

    `by_name` says that the command is called like one that runs tests.
    """
    numbers = suite_run(step.outcome)
    if by_name and (numbers is None or not numbers.passed):
        numbers = numbers_in(printed()) or numbers
    if numbers is not None:
        return Verdict(step.state == "ok" and not numbers.failed, numbers)
    if not by_name or step.outcome == "in background":
        return None
    text = printed()
    failing = len(_GO_FAILED.findall(text))
    # `go test | tail` ends well whatever the tests did.
    ok = step.state == "ok" and not failing and not _BAD.search(text)
    if ok and _PIPED.search(step.command) and not _GOOD.search(text):
        # And `go test | grep` may have said nothing at all.
        return None
    return Verdict(ok, SuiteRun(0, failing) if failing else None)


def telling_line(text: str) -> str:
    r"""Return the line of a failed command's output that says most.

    >>> telling_line("Exit code 1\ncollecting\nE   NameError: name 'x' is not defined\n1 failed")
    "NameError: name 'x' is not defined"
    """
    plain = _TAGS.sub("", _EXIT.sub("", _COLOURS.sub("", text)))
    lines = plain.replace("\r", "\n").split("\n")
    whole = [line.strip(_SPINS).lstrip().rstrip(_RULES) for line in lines]
    whole = [line for line in whole if not _ONLY_MARKS.fullmatch(line) and len(line) > _SHORTEST]
    lines = [line for line in whole if not _NOISE.match(line)] or whole
    if not lines:
        return ""
    if _PYTHON.search(plain):
        chosen = next((line for line in reversed(lines) if _STRONG.search(line)), lines[-1])
    else:
        ranked = (_STRONG.search, _MARKED.match, _WEAK.search)
        chosen = next((line for says in ranked for line in lines if says(line)), lines[0])
    return chosen.removeprefix("E   ").strip()[:_LONGEST]
