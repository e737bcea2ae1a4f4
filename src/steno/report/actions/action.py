"""Actions: the steps of a session in order, with tool input, output and test results."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.format.lenient_json import as_object, decode_lenient
from steno.format.message import ServerToolUse, Text, ToolResult, ToolUse
from steno.report.actions.shell_command import ShellCommand, parse_shell_command
from steno.session.transcript import Transcript
from steno.session.turns.steps import Step, StepState
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn

if TYPE_CHECKING:
    from steno.session.turns.subagents import SubagentReport


_PASSED: Final = re.compile(r"(\d{1,9}) (?:passed|passing)\b")
_FAILED: Final = re.compile(r"(\d{1,9}) (?:failed|failing|errors?)\b")
_UNITTEST_SUMMARY: Final = re.compile(r"Ran (\d{1,9}) tests?, (OK|FAILED)(?: \(([^)]*)\))?")
_UNITTEST_FAILURES: Final = re.compile(r"(?:failures|errors)=(\d{1,9})")


class SuiteCounts(msgspec.Struct, frozen=True):
    """Passed and failed tests of a test run."""

    passed: int
    failed: int

    def __str__(self) -> str:
        texts = [f"{self.failed:,} failed"] if self.failed else []
        if self.passed or not texts:
            texts.append(f"{self.passed:,} passed")
        return ", ".join(texts)


class TestResult(msgspec.Struct, frozen=True):
    """Result of a test run."""

    ok: bool
    counts: SuiteCounts | None = None
    """Numbers of passed and failed tests, if the test runner reported them."""

    @property
    def failing(self) -> int | None:
        """Number of failed tests, if known."""
        if self.counts is not None:
            return self.counts.failed
        return 0 if self.ok else None

    def __str__(self) -> str:
        if self.counts is None or (self.counts.passed, self.counts.failed) == (0, 0):
            return "passed" if self.ok else "failed"
        return str(self.counts)


def parse_test_counts(outcome: str) -> SuiteCounts | None:
    """Return the test counts in a step's outcome; None if it contains none.

    >>> str(parse_test_counts("exit 1, 3 failed, 118 passed")), parse_test_counts("43 lines")
    ('3 failed, 118 passed', None)
    """
    if summary := _UNITTEST_SUMMARY.search(outcome):
        failed_count = sum(map(int, _UNITTEST_FAILURES.findall(summary[3] or ""))) or int(summary[2] == "FAILED")
        return SuiteCounts(max(0, int(summary[1]) - failed_count), failed_count)
    passed, failed = _PASSED.findall(outcome), _FAILED.findall(outcome)
    if not passed and not failed:
        return None
    return SuiteCounts(sum(map(int, passed)), sum(map(int, failed)))


_RUNNER_PATTERNS: Final = tuple(
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
"""Patterns for Maven, PHPUnit (two patterns), RSpec, .NET, unittest, Deno, Node, Playwright (two patterns)."""


def parse_runner_output(text: str) -> SuiteCounts | None:
    """Return the counts of the last test run in an output; None if it contains none.

    >>> str(parse_runner_output("10 examples, 2 failures"))
    '2 failed, 8 passed'
    """
    for pattern in _RUNNER_PATTERNS:
        runs = list(pattern.finditer(text))
        if runs:
            counts = {name: int(value or 0) for name, value in runs[-1].groupdict().items()}
            failed = counts.get("bad", 0) + counts.get("worse", 0)
            return SuiteCounts(counts.get("good", max(0, counts.get("all", 0) - failed)), failed)
    return None


_GO_TEST_FAILED: Final = re.compile(r"^\s*--- FAIL:", re.MULTILINE)
_FAILURE_SIGNS: Final = re.compile(
    r"^(?:FAIL\b|FAILED\b|E   |npm ERR!|make(?:\[\d+\])?: \*\*\*|Tests? failed|error(?:\[|:)|\S+ ERROR )"
    r"|\bTests:\s+[1-9]\d* failed",
    re.MULTILINE,
)
_SUCCESS_SIGNS: Final = re.compile(
    r"^ok\b|\bPASS(?:ED)?\b|\bpass(?:ed|ing)\b|\bOK\b|[✓✔]|\b0 (?:failed|failures|errors)\b|\bsuccess", re.MULTILINE
)
_PIPE: Final = re.compile(r"(?<!\|)\|(?!\|)")
_EXIT_CODE: Final = re.compile(r"\A(?:Error: )?Exit code -?\d+\s*")
_ERROR_TAGS: Final = re.compile(r"</?tool_use_error>")
_COLOUR_CODES: Final = re.compile(r"\x1b(?:\[[0-9;:?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_LINE_DRAWING: Final = " \t" + "".join(map(chr, range(0x2500, 0x2580)))
"""Box-drawing characters and whitespace."""
_SPINNERS: Final = " \t" + "".join(map(chr, range(0x2800, 0x2900)))
"""Braille characters, which spinners use, and whitespace."""
_STRONG_ERROR: Final = re.compile(
    r"^(?:[\w.]*(?:Error|Exception)\b.*:|error(?:\[\w+\])?:|fatal:|panic:|E   \S|--- FAIL:|✗"
    r"|npm ERR! (?!code|A complete|path)|ERROR\b|(?-i:FAILED |FAIL\t)|curl: \(|CONFLICT "
    r"|\[?\S{0,20}\]?\s?\S+\.\w+:\d+(?::\d+)?:?\s(?!\w*(?:Error|Exception)$))"
    r"|\berror TS\d+:",
    re.IGNORECASE,
)
_MARKED_ERROR: Final = re.compile(r"[✗✖\u00d7✘] \S")
_WEAK_ERROR: Final = re.compile(
    r"\berror\b|\bfail(?:ed|ure)?\b|not found|no such file|cannot|can't|denied|undefined|unable to"
    r"|timed? ?out|refused|does not exist|invalid|are ignored|unused|unresolved|conflicts? with|aborted",
    re.IGNORECASE,
)
_NOISE_LINE: Final = re.compile(
    r"npm warn|\s*[\u2500-\u257f]|% Total|Dload|\d+ +[\d.]+[kMG]? |Rebasing \(|\s*at \S+ \(|> ", re.IGNORECASE
)
_PYTHON_TRACEBACK: Final = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)
_MAX_LINE_LENGTH: Final = 240
_MIN_LINE_LENGTH: Final = 5
_ONLY_PUNCTUATION: Final = re.compile(r"[\W_]*")


def test_result_of(step: Step, read_output: Callable[[], str], *, is_test_command: bool) -> TestResult | None:
    """Return the result of a test run; None if no tests ran.

    `is_test_command` is true if the command runs tests.
    """
    numbers = parse_test_counts(step.outcome)
    if is_test_command and (numbers is None or not numbers.passed):
        numbers = parse_runner_output(read_output()) or numbers
    if numbers is not None:
        return TestResult(step.state == "ok" and not numbers.failed, numbers)
    if not is_test_command or step.outcome == "in background":
        return None
    text = read_output()
    failing = len(_GO_TEST_FAILED.findall(text))
    # The exit code of `go test | tail` is that of `tail`.
    ok = step.state == "ok" and not failing and not _FAILURE_SIGNS.search(text)
    if ok and _PIPE.search(step.command) and not _SUCCESS_SIGNS.search(text):
        # The output of `go test | grep` may be empty even if tests ran.
        return None
    return TestResult(ok, SuiteCounts(0, failing) if failing else None)


def decisive_line(text: str) -> str:
    r"""Return the most informative line of a failed command's output.

    >>> decisive_line("Exit code 1\ncollecting\nE   NameError: name 'x' is not defined\n1 failed")
    "NameError: name 'x' is not defined"
    """
    plain_text = _ERROR_TAGS.sub("", _EXIT_CODE.sub("", _COLOUR_CODES.sub("", text)))
    lines = plain_text.replace("\r", "\n").split("\n")
    cleaned_lines = [line.strip(_SPINNERS).lstrip().rstrip(_LINE_DRAWING) for line in lines]
    cleaned_lines = [
        line for line in cleaned_lines if not _ONLY_PUNCTUATION.fullmatch(line) and len(line) > _MIN_LINE_LENGTH
    ]
    lines = [line for line in cleaned_lines if not _NOISE_LINE.match(line)] or cleaned_lines
    if not lines:
        return ""
    if _PYTHON_TRACEBACK.search(plain_text):
        chosen = next((line for line in reversed(lines) if _STRONG_ERROR.search(line)), lines[-1])
    else:
        ranked = (_STRONG_ERROR.search, _MARKED_ERROR.match, _WEAK_ERROR.search)
        chosen = next((line for is_match in ranked for line in lines if is_match(line)), lines[0])
    return chosen.removeprefix("E   ").strip()[:_MAX_LINE_LENGTH]


MAX_TEXT_LENGTH: Final = 20_000
"""Maximum number of characters read from one text."""
_LAUNCHED: Final = "async_launched"


class Action:
    """A step with its position, its sub-agent, and access to its records."""

    def __init__(self, step: Step, transcript: Transcript, turn: int, agent: str) -> None:
        self.step = step
        self.turn = turn
        self.agent = agent
        """Sub-agent that ran the step; empty for the session itself."""
        self.notice: SubagentReport | None = None
        """Report of a background sub-agent that has no records."""
        self._transcript = transcript

    @property
    def is_call(self) -> bool:
        """Whether the step starts with a tool call; false for a report that arrives later."""
        call = self.step.call
        return self.step.kind in ("tool", "agent") and call is not None and call.type == "assistant"

    @cached_property
    def shell_command(self) -> ShellCommand | None:
        """The parsed shell command; None if the step has no command."""
        return parse_shell_command(self.step.command) if self.step.command else None

    @property
    def tool_input(self) -> dict[str, Any]:
        """Input of the tool call."""
        if self.step.call is None:
            return {}
        for block in self._transcript.record(self.step.call).blocks:
            if isinstance(block, ToolUse | ServerToolUse) and block.id == self.step.call_id:
                return block.input
        return {}

    @property
    def output_text(self) -> str:
        """Tool result as text; if it is too long, only its beginning and end."""
        if self.step.result is None:
            return ""
        for block in self._transcript.record(self.step.result).blocks:
            if isinstance(block, ToolResult) and block.tool_use_id == self.step.call_id:
                text = block.text
                return (
                    text
                    if len(text) <= MAX_TEXT_LENGTH
                    else f"{text[: MAX_TEXT_LENGTH // 2]}\n{text[-MAX_TEXT_LENGTH // 2 :]}"
                )
        return ""

    @property
    def client_result(self) -> dict[str, Any]:
        """The `toolUseResult` that Claude Code recorded, if it is an object and belongs to this call alone."""
        if self.step.result is None:
            return {}
        record = self._transcript.record(self.step.result)
        raw = record.envelope.tool_use_result
        if not raw or len(record.tool_results) != 1:
            return {}
        return as_object(decode_lenient(raw)) or {}

    @property
    def reported_status(self) -> str:
        """Status of the started sub-agent, taken only from the call and the notification."""
        stated = self.client_result.get("status")
        if self.notice is not None and self.notice.status:
            return self.notice.status
        if isinstance(stated, str) and stated:
            return "unknown" if stated == _LAUNCHED else stated
        if self.step.state == "ok":
            return "completed"
        return "running" if self.step.state == "open" else self.step.state

    @property
    def reported_text(self) -> str:
        """Report of the started sub-agent, taken only from the call and the notification."""
        if self.notice is not None:
            return self.notice.report
        if self.client_result.get("status") == _LAUNCHED:
            return ""
        return self.output_text if self.step.state == "ok" else self.step.outcome

    @property
    def assistant_text(self) -> str:
        """Text of an assistant step."""
        if self.step.call is None:
            return ""
        blocks = self._transcript.record(self.step.call).blocks
        return "\n\n".join(block.text for block in blocks if isinstance(block, Text))[:MAX_TEXT_LENGTH]

    @cached_property
    def test_result(self) -> TestResult | None:
        """Result of the tests that the step ran; None if it ran none."""
        shell = self.shell_command
        if shell is None or self.step.state not in ("ok", "failed"):
            return None
        if shell.only_reads and not shell.runs_tests:
            # The command prints the output of an earlier test run.
            return None
        return test_result_of(self.step, lambda: self.output_text, is_test_command=shell.runs_tests)

    @property
    def final_state(self) -> StepState:
        """Final state; for a test run, the test result takes precedence over the exit code."""
        if self.test_result is None:
            return self.step.state
        return "ok" if self.test_result.ok else "failed"


def actions_of_turn(turn: Turn, transcript: Transcript, seen_threads: set[int]) -> Iterator[Action]:
    """Yield the actions of a turn; those of a sub-agent follow the call that started it.

    `seen_threads` holds the sub-agents already yielded: a later report refers to the same thread.
    """
    return _walk_steps(turn.steps, transcript, turn.number, "", seen_threads)


def actions_of_unlinked_agents(threads: Iterable[Thread], turn: int, seen_threads: set[int]) -> Iterator[Action]:
    """Yield the actions of sub-agents without a matching call."""
    for thread in threads:
        if id(thread) not in seen_threads and not thread.warmup:
            seen_threads.add(id(thread))
            yield from _walk_steps(thread.steps, thread.transcript, turn, _agent_name(thread), seen_threads)


def _walk_steps(
    steps: Iterable[Step], transcript: Transcript, turn: int, agent: str, seen_threads: set[int]
) -> Iterator[Action]:
    # Iterative: sub-agents can be nested arbitrarily deep in untrusted files.
    stack = [(iter(steps), transcript, agent)]
    while stack:
        remaining, source, name = stack[-1]
        step = next(remaining, None)
        if step is None:
            stack.pop()
            continue
        yield Action(step, source, turn, name)
        thread = step.agent
        if thread is not None and id(thread) not in seen_threads and not thread.warmup:
            seen_threads.add(id(thread))
            stack.append((iter(thread.steps), thread.transcript, _agent_name(thread)))


def _agent_name(thread: Thread) -> str:
    return thread.agent_id or "agent"
