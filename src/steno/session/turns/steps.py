"""Steps: the tool calls, texts and notes inside a turn."""

from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from steno.session.transcript import Node

if TYPE_CHECKING:
    from steno.session.turns.compactions import Compaction
    from steno.session.turns.subagents import Thread


StepKind: TypeAlias = Literal["tool", "agent", "thought", "words", "queued", "hook", "error", "note", "unknown"]
"""tool     a tool call and its result
agent    a sub-agent's work, or its report
thought  thinking
words    text of the model between two tool calls
queued   a prompt queued while the agent is busy
hook     a hook run
error    an API error, or a retry
note     reminders, local commands, notices: shown on demand
unknown  an unknown type of record or block"""
StepState: TypeAlias = Literal["ok", "failed", "denied", "open", "interrupted", "unknown"]
"""`unknown` marks a tool call whose result is deleted: it was answered, but the outcome is not recorded."""
RESULT_DELETED: Final = "result deleted"
"""Outcome of a call whose result is deleted."""
WORK_KINDS: Final = frozenset(("tool", "agent", "error", "unknown"))
"""Kinds of steps that are counted: work was done, or the API returned an error."""
_MAX_LINE_LENGTH = 500


class FileTouch(msgspec.Struct, frozen=True):
    """A file that was read or changed."""

    path: str
    verb: str
    added: int = 0
    removed: int = 0

    @property
    def changes(self) -> bool:
        """Whether the file was changed, not only read."""
        return self.verb != "Read"


class Step(msgspec.Struct, frozen=True):
    """One step of a turn, as shown in a list."""

    kind: StepKind
    verb: str
    subject: str = ""
    outcome: str = ""
    state: StepState = "ok"
    started: datetime | None = None
    ended: datetime | None = None
    duration: float | None = None
    """Seconds from the call to its result."""
    tokens: int | None = None
    """Output tokens of the step's response; set only on the first step of that response."""
    call: Node | None = None
    """The first record of the step."""
    result: Node | None = None
    call_id: str = ""
    agent: "Thread | None" = None
    touch: FileTouch | None = None
    command: str = ""
    """The full shell command, if any."""
    retries: int = 0
    seam: "Compaction | None" = None
    """The compaction that a note within a turn represents."""

    @property
    def is_work(self) -> bool:
        """Whether it counts as a step: work was done, or the API returned an error.

        Thinking, text, notes and hooks do not count; nor does the later report of a sub-agent, because its work was
        counted with the call.
        """
        if self.kind == "agent" and self.call is not None and self.call.type == "attachment":
            return False
        return self.kind in WORK_KINDS

    @property
    def is_deleted(self) -> bool:
        """Whether the step shows the content of a deleted record."""
        return self.call is not None and self.call.type == "deleted"

    @property
    def has_failed(self) -> bool:
        """Whether it counts as a failed step."""
        return self.state == "failed" and self.is_work


class StepDraft(msgspec.Struct, eq=False):
    """A step under construction: a tool's result may come much later than its call."""

    kind: StepKind
    verb: str
    subject: str = ""
    call: Node | None = None
    started: datetime | None = None
    outcome: str = ""
    state: StepState = "ok"
    ended: datetime | None = None
    result: Node | None = None
    call_id: str = ""
    agent: "Thread | None" = None
    touch: FileTouch | None = None
    command: str = ""
    retries: int = 0
    message_id: str = ""
    text: str = ""
    seam: "Compaction | None" = None

    @property
    def is_deleted(self) -> bool:
        """Whether the step shows the content of a deleted record."""
        return self.call is not None and self.call.type == "deleted"

    def build(self, tokens: int | None = None, *, cut: bool = False) -> Step:
        """Return the current step; `cut` marks an open step as interrupted."""
        state: StepState = "interrupted" if cut and self.state == "open" else self.state
        # Positional arguments: keywords would dominate the run time, and steps are the most frequent objects.
        return Step(
            self.kind,
            self.verb,
            self.subject,
            self.outcome,
            state,
            self.started,
            self.ended,
            self._seconds(),
            tokens,
            self.call,
            self.result,
            self.call_id,
            self.agent,
            self.touch if state in ("ok", "open") else None,
            self.command,
            self.retries,
            self.seam,
        )

    def _seconds(self) -> float | None:
        if self.started is None or self.ended is None:
            return None
        return max(0.0, (self.ended - self.started).total_seconds())


def one_line(text: str, max_length: int = _MAX_LINE_LENGTH) -> str:
    r"""Return the first non-empty line, truncated to `max_length`.

    >>> one_line("\n  make test\nmake lint")
    'make test …'
    """
    line, more, _ = text.strip().partition("\n")
    line = line.rstrip()
    if len(line) > max_length:
        return f"{line[: max_length - 1]}…"
    return f"{line} …" if more else line
