"""Session statistics and the extraction state that is carried between two reads of a file.

In a linear session each record continues the previous one: nobody went back and nothing is missing.
Its figures are counted here record by record, with the definitions of `steno.session.turns`. Anything
else makes the statistics `loose`: the session is then read in full and counted by
`steno.session.turns.figures`, and counting continues from there. When in doubt it is loose, which
costs time but is never wrong.
"""

from typing import Any, Final, TypeAlias, cast

import msgspec

from steno.format.lenient_json import valid_duration
from steno.format.message import CALL_TYPES, SYNTHETIC, THINKING_TYPES
from steno.format.records import Dialect
from steno.index.line_decoder import IndexedLine, LineBlock
from steno.session.session_status import Ending, LastMessage, StepCounts, ending_of
from steno.session.turns.prompts import Origin, begins_turn, is_tentative, is_unprompted, takes_turn_over
from steno.session.turns.session_facts import SessionCounts

_CONVERSATION_TYPES: Final = frozenset(("user", "assistant", "system", "attachment"))
_LINKED_TYPES: Final = _CONVERSATION_TYPES | {"progress"}
_MAX_PARENTS: Final = 256
"""How many records may stand between two messages."""


class TurnStats(msgspec.Struct, gc=False):
    """The turn that is going on."""

    begun: bool = False
    """Whether any record is in it."""
    origin: Origin | None = None
    answered: bool = False
    seam: bool = False
    """Whether it begins with a compaction."""
    started: int | None = None
    ended: int | None = None
    measured: int | None = None
    """How long it took, as the client says."""
    erring: bool = False
    """Whether the last thing in it is an error of the API."""
    murky: bool = False
    """Whether something came since that may be the last thing instead."""
    retried: bool = False
    """Whether that error was tried again."""
    pending: int = 0
    """Failed steps that were none after all, if an answer comes."""

    @property
    def is_tentative(self) -> bool:
        """Whether nothing has come of it yet."""
        return is_tentative(self.origin, answered=self.answered)

    @property
    def duration_ms(self) -> int:
        """How many milliseconds it took."""
        if self.measured is not None:
            return self.measured
        if self.started is None or self.ended is None:
            return 0
        return max(0, self.ended - self.started)

    def extend(self, time: int | None) -> None:
        """Note that it lasts at least until now."""
        if time is None:
            return
        self.started = time if self.started is None else self.started
        self.ended = time if self.ended is None else max(time, self.ended)


class SessionStats(msgspec.Struct):
    """What was counted so far; the turn that is going on is not among the turns yet."""

    turns: int = 0
    worked: int = 0
    steps: int = 0
    failed: int = 0
    compactions: int = 0
    loose: bool = False
    told: SessionCounts | None = None
    """The figures when it was last told in full."""
    mark: SessionCounts = SessionCounts()
    """What was counted here by then."""
    near: list[str] = []
    """The records that the next one may hang on: the last message, and what came with it."""
    response: str = ""
    """The response that these belong to."""
    uses: list[str] = []
    """What that response called."""
    scene: TurnStats = msgspec.field(default_factory=TurnStats)

    def current_figures(self) -> SessionCounts:
        """Return the figures so far: what was told, and what was counted since."""
        current = self._counted_figures()
        if self.told is None:
            return current
        full, baseline = self.told, self.mark
        return SessionCounts(
            turns=full.turns + current.turns - baseline.turns,
            steps=full.steps + current.steps - baseline.steps,
            failed=full.failed + current.failed - baseline.failed,
            worked=full.worked + current.worked - baseline.worked,
            compactions=full.compactions + current.compactions - baseline.compactions,
            agents=full.agents,
            branches=full.branches,
        )

    def set_full_figures(self, figures: SessionCounts, leaf: str) -> None:
        """Take the figures of the whole; from `leaf` on the conversation goes on."""
        self.told, self.mark = figures, self._counted_figures()
        # Else somebody went back, and whatever comes next may be anywhere.
        self.loose = leaf not in self.near

    def _counted_figures(self) -> SessionCounts:
        turn_stats = self.scene
        counts_as_turn = turn_stats.begun and not self._joins_previous
        return SessionCounts(
            turns=self.turns + counts_as_turn,
            steps=self.steps,
            failed=self.failed,
            worked=self.worked + turn_stats.duration_ms * counts_as_turn,
            compactions=self.compactions,
        )

    # Where a record hangs

    def follow_record(self, line: IndexedLine, *, irregular: bool) -> bool:
        """Take in where a record hangs; say whether it is part of the conversation."""
        kind = line.type or ""
        if line.is_sidechain:
            # A sub-agent inside the file of its session.
            self.loose = True
            return False
        if line.uuid is None:
            if kind == "last-prompt":
                self.loose = self.loose or bool(line.leaf_uuid and line.leaf_uuid not in self.near)
            elif kind in _CONVERSATION_TYPES:
                self.loose = True
            return False
        is_linked = self._link(line, line.uuid, kind)
        if irregular or not is_linked or kind not in _LINKED_TYPES or self._continues_turn(kind):
            self.loose = True
        return True

    def _continues_turn(self, kind: str) -> bool:
        """Whether a turn goes on behind a compaction, so that it began before what is counted."""
        turn_stats = self.scene
        return is_unprompted(turn_stats.origin, after_compaction=turn_stats.seam) and (
            turn_stats.answered or kind == "assistant"
        )

    def _link(self, line: IndexedLine, uuid: str, kind: str) -> bool:
        """Go on with a record; say whether it hangs on what came last."""
        parent = line.parent_uuid
        if parent is None and kind == "system" and line.subtype == "compact_boundary":
            parent = line.logical_parent_uuid
        if uuid in self.near or (self.near and parent not in self.near):
            if kind == "progress":
                return True
            self.near, self.uses, self.response = [uuid], call_and_result_ids(line)[0], ""
            return False
        if kind == "assistant" or (kind == "user" and not line.is_meta):
            uses, results = call_and_result_ids(line)
            message = (line.message.id if line.message is not None else None) or ""
            if results:
                if not all(call in self.uses for call in results):
                    self.near.append(uuid)
                    return False
            elif not message or message != self.response:
                self.near, self.uses, self.response = [], [], message
            self.uses += uses
        self.near.append(uuid)
        if len(self.near) > _MAX_PARENTS:
            del self.near[0]
            return False
        return True

    # What it says

    def add_prompt(self, origin: Origin, time: int | None) -> None:
        """Take in what a person, or the client, says."""
        turn_stats = self.scene
        if begins_turn(origin, tentative=turn_stats.is_tentative):
            self._begin_turn(origin, time)
            return
        self.add_note()
        if origin == "interrupt":
            turn_stats.extend(time)

    def _begin_turn(self, origin: Origin, time: int | None) -> None:
        turn_stats = self.scene
        if takes_turn_over(tentative=turn_stats.is_tentative, first=not self.turns, after_compaction=turn_stats.seam):
            self.loose = self.loose or turn_stats.erring
            turn_stats.begun, turn_stats.origin, turn_stats.started, turn_stats.ended = (True, origin, time, None)
            return
        self._close_turn()
        self.scene = TurnStats(begun=True, origin=origin, started=time)

    def add_compaction(self) -> None:
        """Take in a compaction."""
        self.compactions += 1
        # What introduces the first turn may be nothing, or a turn of its own.
        self.loose = self.loose or (not self.turns and self.scene.is_tentative)
        self._close_turn()
        self.scene = TurnStats(begun=True, seam=True)

    @property
    def _joins_previous(self) -> bool:
        return bool(self.turns) and self.scene.is_tentative

    def _close_turn(self) -> None:
        if self.scene.begun and not self._joins_previous:
            self.turns += 1
            self.worked += self.scene.duration_ms

    def add_response_line(self, line: IndexedLine, time: int | None) -> None:
        """Take in a line of a response."""
        message, turn_stats = line.message, self.scene
        turn_stats.begun = True
        if message is None:
            self.loose = True
            return
        if message.model == SYNTHETIC or line.is_api_error_message:
            # Nobody calls a tool in the model's name.
            self.loose = self.loose or bool(call_and_result_ids(line)[0])
            if not line.is_api_error_message:
                self.add_note()
                return
            turn_stats.answered = True
            self.add_api_error(time, retried=False)
            return
        turn_stats.answered = True
        self.failed -= turn_stats.pending
        self.loose = self.loose or (turn_stats.murky and bool(turn_stats.pending))
        turn_stats.pending = 0
        if self._count_calls(message.content):
            turn_stats.extend(time)
            turn_stats.erring = False
        else:
            self.loose = self.loose or turn_stats.erring

    def _count_calls(self, content: str | list[LineBlock] | None) -> bool:
        """Count the calls in a response; say whether there is anything in it."""
        if content.__class__ is str:
            return bool(cast("str", content).strip())
        has_content = False
        for block in cast("list[LineBlock]", content or ()):
            if block.type in CALL_TYPES:
                self.steps += 1
                has_content = True
            elif block.type == "text":
                has_content = has_content or bool((block.text or "").strip())
            elif block.type in THINKING_TYPES:
                has_content = True
            else:
                self.loose = True
        return has_content

    def add_results(self, time: int | None, *, all_expected: bool, failed: int) -> None:
        """Take in the results of calls; `known` says that each was waited for."""
        self.scene.begun = True
        self.loose = self.loose or not all_expected
        self.failed += failed
        self.scene.extend(time)

    def add_api_error(self, time: int | None, *, retried: bool) -> None:
        """Take in an error of the API; those in a row are one step."""
        turn_stats = self.scene
        turn_stats.begun = True
        turn_stats.extend(time)
        if not turn_stats.erring:
            self.steps += 1
            self.failed += 1
            turn_stats.erring, turn_stats.retried, turn_stats.murky = True, False, False
        self.loose = self.loose or turn_stats.murky
        if retried and not turn_stats.retried:
            turn_stats.retried = True
            turn_stats.pending += 1

    def set_duration(self, duration: float | None) -> None:
        """Take in how long a turn took."""
        self.scene.begun = True
        duration_ms = valid_duration(duration)
        if duration_ms is not None:
            self.scene.measured = round(duration_ms)

    def add_note(self) -> None:
        """Take in whatever leaves no more than a note."""
        self.scene.begun = True
        self.scene.murky = self.scene.erring or bool(self.scene.pending)


def call_and_result_ids(line: IndexedLine) -> tuple[list[str], list[str]]:
    """Return the calls that a message makes, and those that it answers."""
    content = line.message.content if line.message is not None else None
    if content.__class__ is not list:
        return [], []
    blocks = cast("list[LineBlock]", content)
    call_ids = [block.id or "" for block in blocks if block.type == "tool_use"]
    return call_ids, [block.tool_use_id or "" for block in blocks if block.type == "tool_result"]


EXTRACTION_RULES: Final = "10"
"""Which rules files are read by. Whoever changes what is kept of a record, or which words of it are
searched, counts on: then everything is read again."""
FILE_ID_SHIFT: Final = 40
"""A message's id is the number of its file shifted by this, plus its offset."""
Row: TypeAlias = tuple[Any, ...]


class TurnState(msgspec.Struct, gc=False):
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


class OpenCall(msgspec.Struct, gc=False):
    """A tool call that has no result so far."""

    message: int
    place: int
    name: str
    kind: str = ""
    """Of a call for a sub-agent, which kind is asked for."""


class LastMessageState(msgspec.Struct, gc=False):
    """The last message of the conversation, and what the client noted after it."""

    kind: LastMessage = ""
    calls: list[str] = []
    """The ids of its tool calls."""
    left: bool = False
    """Whether the client was closed."""
    refused: bool = False
    """Whether the API returned an error."""


class ExtractionState(msgspec.Struct):
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
    course: SessionStats = msgspec.field(default_factory=SessionStats)
    turn: TurnState = msgspec.field(default_factory=TurnState)
    before: TurnState | None = None
    """The turn that goes on if the model does, unasked, behind a compaction."""
    repeated: str = ""
    """The answer that was last said again behind a compaction."""
    repeated_calls: list[str] = []
    """The calls of such answers that have no result yet."""
    open: dict[str, OpenCall] = {}
    last: LastMessageState = msgspec.field(default_factory=LastMessageState)
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


class TextDocument(msgspec.Struct, gc=False, array_like=True):
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


class Extraction(msgspec.Struct):
    """What one stretch gave: rows in the order of the columns of their tables."""

    file: int
    start: int
    end: int
    """Up to here it was read: the end of the last whole line."""
    state: ExtractionState
    has_more: bool = False
    """Whether the stretch ended before the file did."""
    messages: list[Row] = []
    turns: list[Row] = []
    calls: list[Row] = []
    late_results: list[Row] = []
    """Results of calls in earlier stretches: (result, ended, failed, message, place)."""
    edits: list[Row] = []
    links: list[Row] = []
    usage: list[Row] = []
    documents: list[TextDocument] = []
    edit_sizes: list[Row] = []
    """Lines of changes in earlier stretches: (added, removed, message, place)."""
    backups: list[Row] = []
    in_dialect: bool = False
    """Whether a record in a dialect was met: nothing was read, the file is to be converted."""


class _ConvertedFlag(msgspec.Struct):
    converted: bool = False


def is_converted_state(raw: bytes) -> bool:
    """Return whether the file of a state has records in a dialect, without reading the rest."""
    try:
        return bool(raw) and msgspec.msgpack.decode(raw, type=_ConvertedFlag).converted
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def encode_state(state: ExtractionState) -> bytes:
    """Return a state as it is kept between two looks at a file."""
    return msgspec.msgpack.encode(state)


def decode_state(raw: bytes) -> ExtractionState:
    """Return a state that was kept; a new one for nothing.

    Raises:
        Damaged: it is not what was kept.
    """
    from steno.index.database import IndexDamaged

    try:
        return msgspec.msgpack.decode(raw, type=ExtractionState) if raw else ExtractionState()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IndexDamaged(f"the index is damaged: {error}") from error
