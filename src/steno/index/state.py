"""What a stretch of a transcript gives the index, and what the next one has to know."""

from typing import Any, Final, TypeAlias

import msgspec

from steno.format.dialects.names import Dialect
from steno.index.course import Course
from steno.session.liveness import Ending, LastMessage, ending_of
from steno.session.step_records import StepCounts

__all__ = [
    "RULES",
    "SHIFT",
    "Call",
    "Doc",
    "Harvest",
    "LastState",
    "Row",
    "State",
    "Turn",
    "decode_state",
    "encode_state",
    "is_converted_state",
]

RULES: Final = "10"
"""Which rules files are read by. Whoever changes what is kept of a record, or which words of it are
searched, counts on: then everything is read again."""
SHIFT: Final = 40
"""A message's id is the number of its file shifted by this, plus its offset."""
Row: TypeAlias = tuple[Any, ...]


class Turn(msgspec.Struct, gc=False):
    """One row of `turns`, still growing."""

    number: int = 0
    message: int = 0
    started: int | None = None
    ended: int | None = None
    messages: int = 0
    calls: int = 0
    failed: int = 0
    faint: bool = False
    """It asks the model nothing unless an answer follows: a command of the client's own."""


class Call(msgspec.Struct, gc=False):
    """A tool call that has no result so far."""

    message: int
    place: int
    name: str
    kind: str = ""
    """Of a call for a sub-agent, which kind is asked for."""


class LastState(msgspec.Struct, gc=False):
    """The last message of the conversation, and what the client noted after it."""

    kind: LastMessage = ""
    calls: list[str] = []
    """The ids of its tool calls."""
    left: bool = False
    """Whether the client was closed."""
    refused: bool = False
    """Whether the API returned an error."""


class State(msgspec.Struct):
    """What reading on has to know of everything before."""

    session: str = ""
    agent: str = ""
    project: str = ""
    branch: str = ""
    version: str = ""
    dialect: Dialect = "claude"
    converted: bool = False
    """Whether the file has records in a dialect, and places in it are those of its converted form."""
    model: str = ""
    custom: str = ""
    ai: str = ""
    summary: str = ""
    """The last summary of the session itself; old clients wrote those of others, too."""
    summary_at: int = -1
    """The message that it is."""
    far_summaries: dict[str, tuple[int, str]] = {}
    """Summaries, and the messages that they are, by a leaf that has not been met so far."""
    last_prompt: str = ""
    first_prompt: str = ""
    first_command: str = ""
    started: int | None = None
    ended: int | None = None
    messages: int = 0
    calls: int = 0
    step_counts: StepCounts = StepCounts()
    prompted: bool = False
    commanded: bool = False
    """Whether a command was given, which is a prompt once the model answers."""
    main: bool = False
    """Whether anything in it was not said by a sub-agent."""
    last_uuid: str = ""
    course: Course = msgspec.field(default_factory=Course)
    turn: Turn = msgspec.field(default_factory=Turn)
    before: Turn | None = None
    """The turn that goes on if the model does, unasked, behind a compaction."""
    repeated: str = ""
    """The answer that was last said again behind a compaction."""
    repeated_calls: list[str] = []
    """The calls of such answers that have no result yet."""
    open: dict[str, Call] = {}
    last: LastState = msgspec.field(default_factory=LastState)
    backups: dict[str, str] = {}
    """The fingerprint of the newest backup of each file."""
    unplaced: list[Row] = []
    """Backups that were named before the folder was known that their paths begin in."""

    @property
    def ending(self) -> Ending:
        """What the session ends with."""
        last = self.last
        open_tools = [self.open[call].name for call in last.calls if call in self.open]
        return ending_of(last.kind, open_tools, left=last.left, refused=last.refused)


class Doc(msgspec.Struct, gc=False, array_like=True):
    """Some words to be searched, and what they can be filtered by."""

    message: int
    time: int
    kind: str
    text: str
    project: str = ""
    branch: str = ""
    model: str = ""
    tool: str = ""
    failed: bool = False


class Harvest(msgspec.Struct):
    """What one stretch gave: rows in the order of the columns of their tables."""

    file: int
    start: int
    done: int
    """Up to here it was read: the end of the last whole line."""
    state: State
    more: bool = False
    """Whether the stretch ended before the file did."""
    messages: list[Row] = []
    turns: list[Row] = []
    calls: list[Row] = []
    answers: list[Row] = []
    """Results of calls in earlier stretches: (result, ended, failed, message, place)."""
    edits: list[Row] = []
    links: list[Row] = []
    usage: list[Row] = []
    docs: list[Doc] = []
    sizes: list[Row] = []
    """Lines of changes in earlier stretches: (added, removed, message, place)."""
    backups: list[Row] = []
    in_dialect: bool = False
    """Whether a record in a dialect was met: nothing was read, the file is to be converted."""


class _Form(msgspec.Struct):
    converted: bool = False


def is_converted_state(raw: bytes) -> bool:
    """Return whether the file of a state has records in a dialect, without reading the rest."""
    try:
        return bool(raw) and msgspec.msgpack.decode(raw, type=_Form).converted
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def encode_state(state: State) -> bytes:
    """Return a state as it is kept between two looks at a file."""
    return msgspec.msgpack.encode(state)


def decode_state(raw: bytes) -> State:
    """Return a state that was kept; a new one for nothing.

    Raises:
        Damaged: it is not what was kept.
    """
    from steno.index.database import Damaged

    try:
        return msgspec.msgpack.decode(raw, type=State) if raw else State()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Damaged(f"the index is damaged: {error}") from error
