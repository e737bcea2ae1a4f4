"""What the guard says of a tool call."""

from typing import Literal, TypeAlias

import msgspec

__all__ = ["MODES", "Decision", "Isolation", "Mode", "Verdict"]

Mode: TypeAlias = Literal["default", "plan", "acceptEdits", "bypassPermissions", "dontAsk"]
MODES: tuple[Mode, ...] = ("default", "plan", "acceptEdits", "bypassPermissions", "dontAsk")
Verdict: TypeAlias = Literal["allow", "ask", "deny"]
Isolation: TypeAlias = Literal["", "read", "edit", "fixed"]
"""How an allowed command runs.

`read`: confined, without writes. `edit`: confined, with writes in the working folders. `fixed`: a
built-in with a fixed argument shape, not confined. Empty: not confined, because a rule, a mode or
the user allows it.
"""


class Decision(msgspec.Struct, frozen=True):
    """Whether a call may be made, and why."""

    verdict: Verdict
    reason: str
    """In plain words, for the person who is asked and the model that is refused."""
    rule: str = ""
    """The rule that decided, as it is written in the settings; empty when none did."""
    paths: tuple[str, ...] = ()
    """Where the files that it names really lay when it was judged; only those may be opened."""
    offers: tuple[str, ...] = ()
    """For `ask`: rules that would allow this and its like, the narrowest first."""
    isolation: Isolation = ""
    """For an allowed command: how it must be confined."""
    exact: bool = False
    """Whether this very command was allowed, and not only a prefix of it."""
    together: tuple[str, ...] = ()
    """Where no rule alone would allow it: those that do together, one for each part."""
