"""A step: one line of what happened inside a turn."""

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
thought  reasoning
words    what the model said between two tool calls
queued   what a person said meanwhile
hook     a hook that ran
error    the API refused, or was tried again
note     reminders, local commands, notices: shown on demand
unknown  a kind of record or block this version does not know
"""
StepState: TypeAlias = Literal["ok", "failed", "denied", "open", "interrupted", "unknown"]
"""unknown  a tool call whose result is deleted: it was answered, and nothing says how
"""
RESULT_DELETED: Final = "result deleted"
"""The outcome of such a call."""
WORK_KINDS: Final = frozenset(("tool", "agent", "error", "unknown"))
"""The kinds of steps that count: something was done, or the API refused."""
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
    """One thing that happened in a turn, in the words of a list."""

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
    """Output tokens of the response it came from; only on the first step of that response."""
    call: Node | None = None
    """The record it begins with."""
    result: Node | None = None
    call_id: str = ""
    agent: "Thread | None" = None
    touch: FileTouch | None = None
    command: str = ""
    """The whole shell command, where it is one."""
    retries: int = 0
    seam: "Compaction | None" = None
    """The compaction, of a note that stands for one within a turn."""

    @property
    def is_work(self) -> bool:
        """Whether it counts as a step: something was done, or the API refused.

        Thoughts, words, notes and hooks do not count; nor does the report that a sub-agent sends
        later, as its work was counted when it was called.
        """
        if self.kind == "agent" and self.call is not None and self.call.type == "attachment":
            return False
        return self.kind in WORK_KINDS

    @property
    def is_deleted(self) -> bool:
        """Whether it only says what a deleted record said."""
        return self.call is not None and self.call.type == "deleted"

    @property
    def has_failed(self) -> bool:
        """Whether it counts as a failed step."""
        return self.state == "failed" and self.is_work


class StepDraft(msgspec.Struct, eq=False):
    """A step in the making: a tool's result may come much later than its call."""

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
        """Whether it only says what a deleted record said."""
        return self.call is not None and self.call.type == "deleted"

    def build(self, tokens: int | None = None, *, cut: bool = False) -> Step:
        """Return the step as it stands; `cut` says that nothing more will come of an open one."""
        state: StepState = "interrupted" if cut and self.state == "open" else self.state
        # By place: names would take most of the time, and there are more steps than all else.
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
    r"""Return the first line that says something, cut if need be.

    >>> one_line("\n  make test\nmake lint")
    'make test …'
    """
    line, more, _ = text.strip().partition("\n")
    line = line.rstrip()
    if len(line) > max_length:
        return f"{line[: max_length - 1]}…"
    return f"{line} …" if more else line
