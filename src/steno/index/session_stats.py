"""Session statistics and the extraction state that is carried between two reads of a file.

In a linear session each record continues the previous one: nothing was rewound and nothing is missing. Its figures are
counted here record by record, with the definitions of `steno.session.turns`. In any other case `needs_full_count` is
set: the session is then read in full and counted by `steno.session.turns.session_facts`, and counting continues from
there. Setting it without need costs time but does not affect the result.
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
"""Maximum number of records between two messages."""


# `rename` keeps the field names of states that are stored in existing indexes.
class TurnStats(
    msgspec.Struct, gc=False, rename={"after_compaction": "seam", "ends_with_error": "erring", "error_unclear": "murky"}
):
    """The current turn."""

    begun: bool = False
    """Whether the turn has any record."""
    origin: Origin | None = None
    answered: bool = False
    after_compaction: bool = False
    """Whether the turn starts with a compaction."""
    started: int | None = None
    ended: int | None = None
    measured: int | None = None
    """Duration in milliseconds as recorded by Claude Code."""
    ends_with_error: bool = False
    """Whether the last step is an API error."""
    error_unclear: bool = False
    """Whether a later record may have replaced the API error as the last step."""
    retried: bool = False
    """Whether the request was retried after the API error."""
    pending: int = 0
    """Number of failed steps that do not count if an answer follows."""

    @property
    def is_tentative(self) -> bool:
        """Whether the turn has no effect so far."""
        return is_tentative(self.origin, answered=self.answered)

    @property
    def duration_ms(self) -> int:
        """Duration of the turn in milliseconds."""
        if self.measured is not None:
            return self.measured
        if self.started is None or self.ended is None:
            return 0
        return max(0, self.ended - self.started)

    def extend(self, time: int | None) -> None:
        """Extend the turn to include a time."""
        if time is None:
            return
        self.started = time if self.started is None else self.started
        self.ended = time if self.ended is None else max(time, self.ended)


class SessionStats(
    msgspec.Struct,
    rename={
        "needs_full_count": "loose",
        "full_counts": "told",
        "counts_at_full": "mark",
        "parents": "near",
        "turn": "scene",
    },
):
    """Counts so far; the current turn is not yet included in `turns`."""

    turns: int = 0
    worked: int = 0
    steps: int = 0
    failed: int = 0
    compactions: int = 0
    needs_full_count: bool = False
    full_counts: SessionCounts | None = None
    """Figures of the last full count."""
    counts_at_full: SessionCounts = SessionCounts()
    """Figures counted here at the time of the last full count."""
    parents: list[str] = []
    """IDs of the records that the next one may follow: the last message and its notes."""
    response: str = ""
    """ID of the response of these records."""
    uses: list[str] = []
    """IDs of the tool calls in that response."""
    turn: TurnStats = msgspec.field(default_factory=TurnStats)

    def current_figures(self) -> SessionCounts:
        """Return the figures so far: those of the last full count plus those counted since."""
        current = self._counted_figures()
        if self.full_counts is None:
            return current
        full, baseline = self.full_counts, self.counts_at_full
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
        """Set the figures of a full count; the conversation continues from `leaf`."""
        self.full_counts, self.counts_at_full = figures, self._counted_figures()
        # Otherwise the session was rewound, and the next record may follow any other.
        self.needs_full_count = leaf not in self.parents

    def _counted_figures(self) -> SessionCounts:
        turn_stats = self.turn
        counts_as_turn = turn_stats.begun and not self._joins_previous
        return SessionCounts(
            turns=self.turns + counts_as_turn,
            steps=self.steps,
            failed=self.failed,
            worked=self.worked + turn_stats.duration_ms * counts_as_turn,
            compactions=self.compactions,
        )

    # Links between records

    def follow_record(self, line: IndexedLine, *, irregular: bool) -> bool:
        """Follow the link of a record to its parent; return whether it belongs to the conversation."""
        kind = line.type or ""
        if line.is_sidechain:
            # A sub-agent inside the session's file.
            self.needs_full_count = True
            return False
        if line.uuid is None:
            if kind == "last-prompt":
                self.needs_full_count = self.needs_full_count or bool(
                    line.leaf_uuid and line.leaf_uuid not in self.parents
                )
            elif kind in _CONVERSATION_TYPES:
                self.needs_full_count = True
            return False
        is_linked = self._link(line, line.uuid, kind)
        if irregular or not is_linked or kind not in _LINKED_TYPES or self._continues_turn(kind):
            self.needs_full_count = True
        return True

    def _continues_turn(self, kind: str) -> bool:
        """Return whether a turn continues after a compaction, so that it started earlier."""
        turn_stats = self.turn
        return is_unprompted(turn_stats.origin, after_compaction=turn_stats.after_compaction) and (
            turn_stats.answered or kind == "assistant"
        )

    def _link(self, line: IndexedLine, uuid: str, kind: str) -> bool:
        """Link a record; return whether it follows one of the last records."""
        parent = line.parent_uuid
        if parent is None and kind == "system" and line.subtype == "compact_boundary":
            parent = line.logical_parent_uuid
        if uuid in self.parents or (self.parents and parent not in self.parents):
            if kind == "progress":
                return True
            self.parents, self.uses, self.response = [uuid], call_and_result_ids(line)[0], ""
            return False
        if kind == "assistant" or (kind == "user" and not line.is_meta):
            uses, results = call_and_result_ids(line)
            message = (line.message.id if line.message is not None else None) or ""
            if results:
                if not all(call in self.uses for call in results):
                    self.parents.append(uuid)
                    return False
            elif not message or message != self.response:
                self.parents, self.uses, self.response = [], [], message
            self.uses += uses
        self.parents.append(uuid)
        if len(self.parents) > _MAX_PARENTS:
            del self.parents[0]
            return False
        return True

    # Content of records

    def add_prompt(self, origin: Origin, time: int | None) -> None:
        """Add a user record that is not a tool result."""
        turn_stats = self.turn
        if begins_turn(origin, tentative=turn_stats.is_tentative):
            self._begin_turn(origin, time)
            return
        self.add_note()
        if origin == "interrupt":
            turn_stats.extend(time)

    def _begin_turn(self, origin: Origin, time: int | None) -> None:
        turn_stats = self.turn
        if takes_turn_over(
            tentative=turn_stats.is_tentative, first=not self.turns, after_compaction=turn_stats.after_compaction
        ):
            self.needs_full_count = self.needs_full_count or turn_stats.ends_with_error
            turn_stats.begun, turn_stats.origin, turn_stats.started, turn_stats.ended = (True, origin, time, None)
            return
        self._close_turn()
        self.turn = TurnStats(begun=True, origin=origin, started=time)

    def add_compaction(self) -> None:
        """Add a compaction."""
        self.compactions += 1
        # The prompt before the first turn may or may not become a separate turn.
        self.needs_full_count = self.needs_full_count or (not self.turns and self.turn.is_tentative)
        self._close_turn()
        self.turn = TurnStats(begun=True, after_compaction=True)

    @property
    def _joins_previous(self) -> bool:
        return bool(self.turns) and self.turn.is_tentative

    def _close_turn(self) -> None:
        if self.turn.begun and not self._joins_previous:
            self.turns += 1
            self.worked += self.turn.duration_ms

    def add_response_line(self, line: IndexedLine, time: int | None) -> None:
        """Add a line of a response."""
        message, turn_stats = line.message, self.turn
        turn_stats.begun = True
        if message is None:
            self.needs_full_count = True
            return
        if message.model == SYNTHETIC or line.is_api_error_message:
            # Synthetic messages never contain tool calls.
            self.needs_full_count = self.needs_full_count or bool(call_and_result_ids(line)[0])
            if not line.is_api_error_message:
                self.add_note()
                return
            turn_stats.answered = True
            self.add_api_error(time, retried=False)
            return
        turn_stats.answered = True
        self.failed -= turn_stats.pending
        self.needs_full_count = self.needs_full_count or (turn_stats.error_unclear and bool(turn_stats.pending))
        turn_stats.pending = 0
        if self._count_calls(message.content):
            turn_stats.extend(time)
            turn_stats.ends_with_error = False
        else:
            self.needs_full_count = self.needs_full_count or turn_stats.ends_with_error

    def _count_calls(self, content: str | list[LineBlock] | None) -> bool:
        """Count the tool calls in a response; return whether it has any content."""
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
                self.needs_full_count = True
        return has_content

    def add_results(self, time: int | None, *, all_expected: bool, failed: int) -> None:
        """Add tool results; `all_expected` means that each belongs to an open call."""
        self.turn.begun = True
        self.needs_full_count = self.needs_full_count or not all_expected
        self.failed += failed
        self.turn.extend(time)

    def add_api_error(self, time: int | None, *, retried: bool) -> None:
        """Add an API error; consecutive errors are one step."""
        turn_stats = self.turn
        turn_stats.begun = True
        turn_stats.extend(time)
        if not turn_stats.ends_with_error:
            self.steps += 1
            self.failed += 1
            turn_stats.ends_with_error, turn_stats.retried, turn_stats.error_unclear = True, False, False
        self.needs_full_count = self.needs_full_count or turn_stats.error_unclear
        if retried and not turn_stats.retried:
            turn_stats.retried = True
            turn_stats.pending += 1

    def set_duration(self, duration: float | None) -> None:
        """Set the recorded duration of the turn."""
        self.turn.begun = True
        duration_ms = valid_duration(duration)
        if duration_ms is not None:
            self.turn.measured = round(duration_ms)

    def add_note(self) -> None:
        """Add a record that only leaves a note."""
        self.turn.begun = True
        self.turn.error_unclear = self.turn.ends_with_error or bool(self.turn.pending)


def call_and_result_ids(line: IndexedLine) -> tuple[list[str], list[str]]:
    """Return the IDs of the tool calls in a message, and of those whose results it contains."""
    content = line.message.content if line.message is not None else None
    if content.__class__ is not list:
        return [], []
    blocks = cast("list[LineBlock]", content)
    call_ids = [block.id or "" for block in blocks if block.type == "tool_use"]
    return call_ids, [block.tool_use_id or "" for block in blocks if block.type == "tool_result"]


EXTRACTION_RULES: Final = "10"
"""Version of the extraction rules. Increase it after changing which fields of a record are indexed or which text is
searched; all files are then read again.
"""
FILE_ID_SHIFT: Final = 40
"""A message ID is the file ID shifted by this number of bits, plus the offset in the file."""
Row: TypeAlias = tuple[Any, ...]


class TurnState(msgspec.Struct, gc=False, rename={"tentative": "faint"}):
    """A row of `turns` that can still change."""

    number: int = 0
    message: int = 0
    started: int | None = None
    ended: int | None = None
    messages: int = 0
    calls: int = 0
    failed: int = 0
    tentative: bool = False
    """Whether the turn is a local command, which only counts if an answer follows."""


class OpenCall(msgspec.Struct, gc=False):
    """A tool call without a result so far."""

    message: int
    place: int
    name: str
    kind: str = ""
    """Type of the requested sub-agent, if the call starts one."""


class LastMessageState(msgspec.Struct, gc=False):
    """The last message of the conversation, with the state recorded after it."""

    kind: LastMessage = ""
    calls: list[str] = []
    """IDs of its tool calls."""
    left: bool = False
    """Whether Claude Code was closed."""
    refused: bool = False
    """Whether the API returned an error."""


class ExtractionState(msgspec.Struct, rename={"stats": "course"}):
    """The state needed to continue reading a file."""

    session: str = ""
    agent: str = ""
    project: str = ""
    branch: str = ""
    version: str = ""
    dialect: Dialect = "claude"
    converted: bool = False
    """Whether the file has records in a dialect; offsets then refer to its converted form."""
    model: str = ""
    custom: str = ""
    ai: str = ""
    summary: str = ""
    """Last summary of this session; old versions of Claude Code also wrote summaries of other sessions."""
    summary_at: int = -1
    """ID of the message with that summary."""
    far_summaries: dict[str, tuple[int, str]] = {}
    """Summaries with unknown leaves: message ID and title, by the ID of the leaf."""
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
    """Whether the session has a command, which counts as a prompt once the model answers."""
    main: bool = False
    """Whether the file has messages outside sub-agents."""
    last_uuid: str = ""
    stats: SessionStats = msgspec.field(default_factory=SessionStats)
    turn: TurnState = msgspec.field(default_factory=TurnState)
    before: TurnState | None = None
    """The previous turn, which continues if the model answers without a prompt after a compaction."""
    repeated: str = ""
    """ID of the last answer repeated after a compaction."""
    repeated_calls: list[str] = []
    """IDs of the tool calls in repeated answers that have no result yet."""
    open: dict[str, OpenCall] = {}
    last: LastMessageState = msgspec.field(default_factory=LastMessageState)
    backups: dict[str, str] = {}
    """Fingerprint of the newest backup of each file."""
    unplaced: list[Row] = []
    """Backups recorded before the directory of their relative paths was known."""

    @property
    def ending(self) -> Ending:
        """The ending of the session."""
        last = self.last
        open_tools = [self.open[call].name for call in last.calls if call in self.open]
        return ending_of(last.kind, open_tools, left=last.left, refused=last.refused)


class TextDocument(msgspec.Struct, gc=False, array_like=True):
    """A searchable text with its filter values."""

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
    """The rows extracted from a part of a file, in the column order of their tables."""

    file: int
    start: int
    end: int
    """End of the last complete line read."""
    state: ExtractionState
    has_more: bool = False
    """Whether the file has more bytes after this part."""
    messages: list[Row] = []
    turns: list[Row] = []
    calls: list[Row] = []
    late_results: list[Row] = []
    """Results of calls in earlier parts: (result, ended, failed, message, place)."""
    edits: list[Row] = []
    links: list[Row] = []
    usage: list[Row] = []
    documents: list[TextDocument] = []
    edit_sizes: list[Row] = []
    """Line counts of edits in earlier parts: (added, removed, message, place)."""
    backups: list[Row] = []
    in_dialect: bool = False
    """Whether a record in a dialect was found, so that the file must be converted and read again."""


class _ConvertedFlag(msgspec.Struct):
    converted: bool = False


def is_converted_state(raw: bytes) -> bool:
    """Return whether an encoded state belongs to a converted file, without decoding the rest."""
    try:
        return bool(raw) and msgspec.msgpack.decode(raw, type=_ConvertedFlag).converted
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def encode_state(state: ExtractionState) -> bytes:
    """Encode a state for storage between two reads of a file."""
    return msgspec.msgpack.encode(state)


def decode_state(raw: bytes) -> ExtractionState:
    """Decode a stored state; return a new one for empty data.

    Raises:
        IndexDamaged: the data is not a valid state.
    """
    from steno.index.database import IndexDamaged

    try:
        return msgspec.msgpack.decode(raw, type=ExtractionState) if raw else ExtractionState()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IndexDamaged(f"the index is damaged: {error}") from error
