"""What there is to tell of a session that is being written, one thing at a time."""

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from steno.session.story.compactions import Compaction
from steno.session.story.prompts import Prompt
from steno.session.story.steps import Step
from steno.session.story.usage import Totals

__all__ = ["Brief", "Ending", "Event", "Telling"]

Telling: TypeAlias = Literal[
    "turn",
    "step",
    "outcome",
    "words",
    "thought",
    "queued",
    "hook",
    "error",
    "note",
    "unknown",
    "seam",
    "end",
    "damage",
    "anew",
    "gone",
]
"""turn     a prompt was written
step     a tool was called, or a task reported
outcome  the result of a call came
words    what the model said
thought  reasoning
queued   what a person typed meanwhile
hook     a hook ran
error    the API refused, or answered again
note     reminders, local commands, notices
unknown  a kind of record or block this version does not know
seam     the conversation was compacted
end      nothing more is to be expected until somebody does something; `ending` says why
damage   bytes that are no record
anew     the file was cut short or replaced; it is told from its beginning
gone     the file is not there any more
"""
Ending: TypeAlias = Literal["", "answered", "asks", "interrupted", "failed", "left"]


class Brief(msgspec.Struct, frozen=True):
    """What a sub-agent was started as."""

    kind: str = ""
    description: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to tell."""

    kind: Telling
    time: datetime | None = None
    turn: int = 0
    """The number of its turn; 0 where it is not known, because the file was not read from its start."""
    agent: str = ""
    """The sub-agent that it is about, where its records lie inside the session's own file."""
    prompt: Prompt | None = None
    back: bool = False
    """Whether the prompt goes on from an earlier place, so that what came behind it is abandoned."""
    step: Step | None = None
    text: str = ""
    """All the words of an answer, a thought or a queued prompt."""
    compaction: Compaction | None = None
    ending: Ending = ""
    steps: int = 0
    """How many steps a turn took, at its end."""
    duration: float | None = None
    usage: Totals = Totals()
    size: int = 0
    """How many bytes are damaged."""
