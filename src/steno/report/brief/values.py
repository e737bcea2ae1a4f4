"""A brief and its parts. Times are seconds since 1970; all text is as the session has it."""

from typing import Literal, TypeAlias

import msgspec

from steno.session.story.status import Standing
from steno.session.story.steps import State

__all__ = [
    "Asked",
    "Brief",
    "Changed",
    "Commit",
    "Decision",
    "DecisionKind",
    "Helper",
    "Open",
    "OpenKind",
    "Pull",
    "Ran",
    "Tested",
    "Trouble",
    "Work",
]

DecisionKind: TypeAlias = Literal["plan", "answer", "refused", "said"]
"""plan     a plan that was approved
answer   what a person answered to a question of the agent
refused  what a person did not allow, and what they said instead
said     a sentence of the agent's that states a decision
"""
OpenKind: TypeAlias = Literal[
    "interrupted", "question", "todo", "tests", "error", "uncommitted", "running"
]
"""interrupted  the last turn was cut off, or never answered
question     the agent asked, and nobody answered
todo         an item of its list that is not done
tests        the last run of tests failed
error        something failed, and was not seen to work later
uncommitted  files that were changed and are in no commit of the session
running      a sub-agent or command in the background that never reported
"""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was changed."""

    path: str
    """From the project's folder on, where it lies below it."""
    edits: int = 0
    added: int = 0
    removed: int = 0


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A command: how often it was run, and how it ended the last time."""

    command: str
    outcome: str = ""
    state: State = "ok"
    times: int = 1
    failed: int = 0
    turn: int = 0


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """A command that runs tests: how often, and what came of it the last time."""

    command: str
    ok: bool
    passed: int | None = None
    failed: int | None = None
    """Of the last run; None where the runner did not say."""
    times: int = 1
    bad: int = 0
    """How many of the runs failed."""
    turn: int = 0


class Helper(msgspec.Struct, frozen=True, kw_only=True):
    """What a sub-agent was for, and what it reported."""

    kind: str
    task: str
    status: str
    steps: int = 0
    failed: int = 0
    changed: int = 0
    """How many files it changed."""
    report: str = ""
    turn: int = 0


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that was made."""

    subject: str
    hash: str = ""
    branch: str = ""
    files: int = 0
    added: int = 0
    removed: int = 0
    pushed: bool = False
    """Whether a push was seen to succeed behind it."""
    turn: int = 0


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request that was made."""

    url: str
    title: str = ""
    turn: int = 0


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was settled."""

    kind: DecisionKind
    text: str
    about: str = ""
    """The question that was answered, or what was refused."""
    turn: int = 0


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that failed, and what became of it."""

    what: str
    said: str = ""
    """The line of the output that says most."""
    times: int = 1
    solved: bool = False
    after: tuple[str, ...] = ()
    """The files that were changed between the first failure and when it worked."""
    turn: int = 0
    until: int = 0
    """The turn in which it worked."""


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is still open."""

    kind: OpenKind
    text: str
    about: str = ""
    of: int = 1
    """How many of the same kind there are, of files that are in no commit."""
    turn: int = 0


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, in a turn or in a session."""

    tools: dict[str, int] = {}
    """How often each tool was called, the most frequent first."""
    files: tuple[Changed, ...] = ()
    changed: int = 0
    """How many files were changed in all, and how many lines of them."""
    added: int = 0
    removed: int = 0
    commands: tuple[Ran, ...] = ()
    """Those that did something; tests, commits and mere looks are not among them."""
    looks: int = 0
    """How many commands only looked at something."""
    tests: tuple[Tested, ...] = ()
    helpers: tuple[Helper, ...] = ()
    commits: tuple[Commit, ...] = ()
    pulls: tuple[Pull, ...] = ()
    decisions: tuple[Decision, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    slips: int = 0
    """How many calls failed in a way that says nothing: a file not read before, no match."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: what was asked, what was done, what was answered."""

    number: int
    uuid: str = ""
    """The id of the record that asks."""
    origin: str = ""
    text: str = ""
    images: int = 0
    meanwhile: tuple[str, ...] = ()
    """What was said while the agent was at work."""
    answer: str = ""
    started: float | None = None
    seconds: float | None = None
    interrupted: bool = False
    compacted: bool = False
    """Whether the conversation was summed up right before it."""
    idle: bool = False
    """Whether nothing came of it: a command of the client itself."""
    work: Work = Work()


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """One session in brief."""

    id: str
    title: str = ""
    project: str = ""
    branch: str = ""
    models: tuple[str, ...] = ()
    started: float | None = None
    ended: float | None = None
    seconds: float = 0.0
    """How long its turns took."""
    standing: Standing = "finished"
    reason: str = ""
    turns: tuple[Asked, ...] = ()
    elsewhere: int = 0
    """How many turns are not told: outside the time that was asked for, or copies."""
    work: Work = Work()
    open: tuple[Open, ...] = ()
    gaps: int = 0
    """How many stretches of the file could not be read."""
    omitted: dict[str, int] = {}
    """What was left out for a budget: how many of what."""
