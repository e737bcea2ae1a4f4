"""How a session stands: still at work, waiting for the user, done, cut off, or failed.

A file does not say whether its client still lives. How long ago it was written to is the best
sign, and it is handed in: nothing here looks at a clock.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from steno.format.tool_catalogue import AWAITED_TOOLS
from steno.session.story.steps import Step
from steno.session.story.turns import Turn

__all__ = ["LIVE", "QUIET", "TOOL", "Standing", "Status", "status_of"]

Standing: TypeAlias = Literal["running", "waiting", "finished", "interrupted", "failed"]
LIVE: Final = 900.0
"""Seconds after the last write for which an answered session is taken to wait for the user."""
QUIET: Final = 300.0
"""Seconds a model may think without a line being written."""
TOOL: Final = 1800.0
"""Seconds a tool may run without a line being written."""


class Status(msgspec.Struct, frozen=True):
    """How a session stands, and why that is thought."""

    standing: Standing
    reason: str = ""

    def __str__(self) -> str:
        return self.standing


def status_of(
    turns: list[Turn], *, seconds_since_write: float | None = None, left: bool = False
) -> Status:
    """Return how a session stands after its last turn; `left` when the client closed it itself."""
    if not turns:
        return Status("finished", "nothing was said")
    age = float("inf") if seconds_since_write is None else seconds_since_write
    last = turns[-1]
    open_step = next((step for step in reversed(last.steps) if step.state == "open"), None)
    # An answer behind a call without a result says that the agent went on without it.
    if open_step is not None and not last.done:
        return _open(open_step, age, left=left)
    if last.interrupted:
        return Status("interrupted", "by the user")
    if last.failure is not None:
        return Status("failed", last.failure.subject or last.failure.verb)
    if not last.done:
        if age <= QUIET and not left:
            return Status("running", "the model is at it")
        return Status("interrupted", "no answer was recorded")
    if age <= LIVE and not left:
        return Status("waiting", "for the next prompt")
    return Status("finished", "the client was closed" if left else "the last prompt was answered")


def _open(step: Step, age: float, *, left: bool) -> Status:
    if step.verb in AWAITED_TOOLS and not left:
        return Status("waiting", "for an answer")
    if left or age > TOOL:
        return Status("interrupted", f"in {step.verb}, which gave no result")
    return Status("running", f"{step.verb} {step.subject}".strip())
