"""A brief and its parts. Times are seconds since 1970; all text is as the session has it.

`brief --json` writes these structs as they are, with times as ISO 8601 text. The texts below the
fields are the descriptions in the published schema, `docs/reference/brief.schema.json`.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from steno.report.brief.turn_content import (
    AssistantText,
    ContextCompaction,
    FileBackup,
    Moment,
    QueueOperation,
    SubAgent,
    ToolCall,
)
from steno.session.story.status import Standing
from steno.session.story.steps import State

__all__ = [
    "SCHEMA_VERSION",
    "Asked",
    "Brief",
    "BriefDocument",
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

SCHEMA_VERSION: Final = 1
"""The version of the JSON form. It rises when a field is removed or changes its meaning."""
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
    """Relative to the project folder for files inside it."""
    edits: int = 0
    """How many calls changed it."""
    added: int = 0
    """Lines added."""
    removed: int = 0
    """Lines removed."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A command: how often it was run, and how it ended the last time."""

    command: str
    """The command, without the `cd` before it and the pipe into `tail` behind it."""
    outcome: str = ""
    """The result of the last run in a few words."""
    state: State = "ok"
    """How the last run ended."""
    times: int = 1
    """How often it was run."""
    failed: int = 0
    """How many of the runs failed."""
    turn: int = 0
    """The turn of the last run."""


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """A command that runs tests: the number of runs and the result of the last one."""

    command: str
    """The command."""
    ok: bool
    """Whether the last run passed."""
    passed: int | None = None
    """Tests that passed in the last run; null where the runner did not print it."""
    failed: int | None = None
    """Tests that failed in the last run; null where the runner did not print it."""
    times: int = 1
    """How often it was run."""
    bad: int = 0
    """How many of the runs failed."""
    turn: int = 0
    """The turn of the last run."""


class Helper(msgspec.Struct, frozen=True, kw_only=True):
    """The task and the report of a sub-agent."""

    kind: str
    """The type of the sub-agent."""
    task: str
    """The short description in the call."""
    status: str
    """`completed`, `failed`, `killed`, `running` or `unknown`."""
    steps: int = 0
    """How many calls it made, those of its own sub-agents included."""
    failed: int = 0
    """How many of its steps failed."""
    changed: int = 0
    """How many files it changed."""
    report: str = ""
    """The beginning of its report; `turns[].agents[].report` has all of it."""
    turn: int = 0
    """The turn that started it."""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that was made."""

    subject: str
    """The first line of its message."""
    hash: str = ""
    """Its hash, as git printed it."""
    branch: str = ""
    """Its branch, as git printed it."""
    files: int = 0
    """Files in it."""
    added: int = 0
    """Lines added."""
    removed: int = 0
    """Lines removed."""
    pushed: bool = False
    """Whether a push was seen to succeed behind it."""
    turn: int = 0
    """The turn that made it."""


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request that was made."""

    url: str
    """Its address."""
    title: str = ""
    """Its title."""
    turn: int = 0
    """The turn that made it."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was settled."""

    kind: DecisionKind
    """`plan`: an approved plan; `answer`: an answer of a person; `refused`; `said` by the agent."""
    text: str
    """The decision."""
    about: str = ""
    """The question answered, or the call refused."""
    turn: int = 0
    """The turn of it."""


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that failed, and what became of it."""

    what: str
    """What failed: a command, or a call."""
    said: str = ""
    """The line of the output that says most."""
    times: int = 1
    """How often it failed."""
    solved: bool = False
    """Whether it was later seen to work."""
    after: tuple[str, ...] = ()
    """The files that were changed between the first failure and when it worked."""
    turn: int = 0
    """The turn in which it failed first."""
    until: int = 0
    """The turn in which it worked."""


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is still open."""

    kind: OpenKind
    """What sort of thing it is."""
    text: str
    """The open item."""
    about: str = ""
    """More about it: the state of a todo, the result of the tests."""
    of: int = 1
    """How many of the same kind there are, of files that are in no commit."""
    turn: int = 0
    """The turn it comes from; 0 where none is known."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The work in a turn or in a session."""

    tools: dict[str, int] = {}
    """How often each tool was called, the most frequent first; every sub-agent is `Agent`."""
    files: tuple[Changed, ...] = ()
    """The files that file tools changed, those with the most lines first."""
    changed: int = 0
    """How many files were changed in all."""
    added: int = 0
    """Lines added to them."""
    removed: int = 0
    """Lines removed from them."""
    snapshot_files: tuple[str, ...] = ()
    """Files that only the client's backups show as changed: no file tool changed them."""
    commands: tuple[Ran, ...] = ()
    """Those that did something; tests, commits and mere looks are not among them."""
    looks: int = 0
    """How many commands only looked at something."""
    tests: tuple[Tested, ...] = ()
    """Commands that run tests."""
    helpers: tuple[Helper, ...] = ()
    """The sub-agents in short; `turns[].agents` has everything about them."""
    commits: tuple[Commit, ...] = ()
    """The commits that were made."""
    pulls: tuple[Pull, ...] = ()
    """The pull requests that were made."""
    decisions: tuple[Decision, ...] = ()
    """The decision."""
    troubles: tuple[Trouble, ...] = ()
    """What failed, and how that ended."""
    slips: int = 0
    """Number of calls that failed for a trivial reason: a file not read before, no match."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: the prompt, the work and the answer."""

    number: int
    """Its number in the session, from 1."""
    uuid: str = ""
    """The id of the record that asks."""
    origin: str = ""
    """Who asked: `human`, `command`, `shell`, `notification`, `teammate`, `agent`, `fork`, `other`."""
    text: str = ""
    """The prompt."""
    images: int = 0
    """Pictures and documents in the prompt."""
    meanwhile: tuple[str, ...] = ()
    """Messages sent while the agent was working."""
    answer: str = ""
    """The texts after the last call; `texts` has all of them."""
    started: Moment | None = None
    """When it began."""
    seconds: float | None = None
    """How long it took."""
    interrupted: bool = False
    """Whether it was interrupted."""
    compacted: bool = False
    """Whether the conversation was summed up right before it."""
    idle: bool = False
    """Whether nothing came of it: a command of the client itself."""
    texts: tuple[AssistantText, ...] = ()
    """Every text of the model in order, the answer included."""
    calls: tuple[ToolCall, ...] = ()
    """Every tool call in order; those of sub-agents are with the sub-agent."""
    agents: tuple[SubAgent, ...] = ()
    """The sub-agents that were started in it, each before those it started itself."""
    backups: tuple[FileBackup, ...] = ()
    """The files that got a new backup version in it."""
    compactions: tuple[ContextCompaction, ...] = ()
    """How the context was made smaller: a full compaction right before it, others during it."""
    queue: tuple[QueueOperation, ...] = ()
    """What entered and left the queue during it."""
    work: Work = Work()
    """A summary of its work."""


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """One session in brief."""

    id: str
    """The session's id."""
    title: str = ""
    """Its title, or its first prompt."""
    project: str = ""
    """The folder it began in."""
    branch: str = ""
    """The git branch it was last on."""
    models: tuple[str, ...] = ()
    """The models that answered."""
    started: Moment | None = None
    """When its first record was written."""
    ended: Moment | None = None
    """When its last record was written."""
    seconds: float = 0.0
    """How long its turns took."""
    standing: Standing = "finished"
    """Its status."""
    reason: str = ""
    """Why that is its status."""
    turns: tuple[Asked, ...] = ()
    """The turns, oldest first."""
    elsewhere: int = 0
    """Number of turns left out: outside the requested time, or copies."""
    work: Work = Work()
    """A summary of the work in the turns."""
    open: tuple[Open, ...] = ()
    """Open items at the end of the session."""
    gaps: int = 0
    """How many stretches of the file could not be read."""
    omitted: dict[str, int] = {}
    """The number of items of each kind left out to fit a budget."""


class BriefDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `steno brief --json` writes."""

    schema_version: int = SCHEMA_VERSION
    """The version of this schema. Fields may be added without a new version."""
    notice: str = ""
    """Says that the texts below are quoted from sessions."""
    briefs: tuple[Brief, ...] = ()
    """The sessions, newest first."""
    sessions_left_out: int = 0
    """How many more sessions matched."""
