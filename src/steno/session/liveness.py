"""Session status and liveness: the one definition that lists, pages and commands share.

A session was active at the time of its own last record, or when its file was seen growing. The
modification time of the file alone never counts: a copy or a restore refreshes it on every file.
Nothing here reads a clock or a file.
"""

from collections.abc import Collection
from typing import Final, Literal, TypeAlias

from steno.format.tool_catalogue import AWAITED_TOOLS

__all__ = [
    "LIVE_SECONDS",
    "QUIET",
    "SKEW",
    "TOOL",
    "WAITING",
    "Ending",
    "LastMessage",
    "SessionStatus",
    "activity_age",
    "ending_of",
    "is_live",
    "status_at",
]

Ending: TypeAlias = Literal[
    "", "question", "tool", "prompt", "refused", "answered", "finished", "interrupted", "failed"
]
"""What a session's records end with, independent of the time.

(empty)      no message
question     an unanswered question of the agent
tool         a tool call without a result
prompt       a prompt or tool result without an answer
refused      an API error that the client may still retry
answered     an answer; the client may still be open
finished     an answer, and the client was closed
interrupted  cut off by the user or by closing the client
failed       an API error
"""
LastMessage: TypeAlias = Literal["", "prompt", "interrupt", "answer", "error", "other"]
"""The last message of the conversation; a tool result counts as a prompt."""
SessionStatus: TypeAlias = Literal[
    "running", "waiting", "finished", "interrupted", "failed", "empty"
]
QUIET: Final = 300.0
"""Seconds for which a model may think without a record being written."""
TOOL: Final = 1800.0
"""Seconds for which a tool may run without a record being written."""
WAITING: Final = 900.0
"""Seconds for which an answered session counts as waiting for the user."""
_QUESTION: Final = 86_400.0
LIVE_SECONDS: Final[dict[Ending, float]] = {
    "tool": TOOL,
    "prompt": QUIET,
    "refused": QUIET,
    "answered": WAITING,
    "question": _QUESTION,
}
"""For how long after its last activity a session with such an ending is live."""
SKEW: Final = 300.0
"""Seconds by which a record may be ahead of this machine's clock and still be recent."""
_OVER: Final[dict[Ending, SessionStatus]] = {
    "": "empty",
    "question": "waiting",
    "tool": "interrupted",
    "prompt": "interrupted",
    "refused": "failed",
    "answered": "finished",
    "finished": "finished",
    "interrupted": "interrupted",
    "failed": "failed",
}
_DURING: Final[dict[Ending, SessionStatus]] = {
    "question": "waiting",
    "tool": "running",
    "prompt": "running",
    "refused": "running",
    "answered": "waiting",
}


def ending_of(
    last: LastMessage, open_tools: Collection[str], *, left: bool, refused: bool
) -> Ending:
    """Return what a session ends with.

    `open_tools` names the tools that the last message calls and that have no result; `left` means
    the client was closed afterwards, `refused` that the API returned an error afterwards.

    >>> ending_of("answer", ["Bash"], left=False, refused=False)
    'tool'
    """
    if not last:
        return ""
    if open_tools:
        if left:
            return "interrupted"
        return "question" if AWAITED_TOOLS.intersection(open_tools) else "tool"
    if last == "error":
        return "failed"
    if refused:
        return "failed" if left else "refused"
    if last == "interrupt":
        return "interrupted"
    if last == "prompt":
        return "interrupted" if left else "prompt"
    return "finished" if left else "answered"


def activity_age(now: float, last_record: float | None, grown: float | None = None) -> float:
    """Return the seconds since a session was last active; infinite where that is not known.

    A record further ahead of the clock than machines differ is not recent.

    >>> activity_age(1000.0, 400.0, 900.0), activity_age(1000.0, 5000.0), activity_age(1000.0, None)
    (100.0, inf, inf)
    """
    times = [each for each in (last_record, grown) if each is not None and each <= now + SKEW]
    return max(0.0, now - max(times)) if times else float("inf")


def is_live(ending: Ending, age: float) -> bool:
    """Return whether a session is at work, or waits for a user who may still be there.

    >>> is_live("answered", 60.0), is_live("answered", 3600.0), is_live("finished", 0.0)
    (True, False, False)
    """
    return age <= LIVE_SECONDS.get(ending, -1.0)


def status_at(ending: Ending, age: float) -> SessionStatus:
    """Return the status of a session that was active so many seconds ago.

    >>> status_at("tool", 60.0), status_at("tool", 3600.0), status_at("question", 1e9)
    ('running', 'interrupted', 'waiting')
    """
    return _DURING[ending] if is_live(ending, age) else _OVER[ending]
