"""Converts new bytes of a session to events: prompts, steps, outcomes, text, turn ends.

    follower = Follower()
    for event in follower.feed(data): …

Records are processed in file order, by the same rules as a finished session. The events do not depend on how the bytes
are split.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from steno.format.dialects.detection import ConvertedFeed
from steno.format.lenient_json import DECODE_ERRORS, decode_lenient
from steno.format.lines import LINE_CAP, LineFeed
from steno.format.message import RedactedThinking, Text, Thinking, read_blocks
from steno.format.records import Gap, Piece, Record
from steno.format.source import BytesSource
from steno.format.tool_catalogue import AGENT_TOOLS, AWAITED_TOOLS
from steno.session.transcript import Node, Transcript, read_node
from steno.session.turns.compactions import Compaction, compaction_at, is_compaction
from steno.session.turns.prompts import Prompt, is_tentative, origin_by_tag
from steno.session.turns.step_builder import TurnDraft, answered_calls
from steno.session.turns.steps import WORK_KINDS, Step, StepDraft, one_line
from steno.session.turns.turn_builder import TurnBuilder
from steno.session.turns.usage import Totals

EventKind: TypeAlias = Literal[
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
"""turn     a prompt
step     a tool call, or a background task report
outcome  the result of a tool call
words    text of the model
thought  thinking
queued   a prompt queued while the agent is busy
hook     a hook run
error    an API error, or a retry
note     reminders, local commands, notices
unknown  an unknown type of record or block
seam     a compaction
end      the turn ended or needs user input; `ending` is the reason
damage   bytes that are not a record
anew     the file was truncated or replaced; events restart from its beginning
gone     the file was deleted"""
Ending: TypeAlias = Literal["", "answered", "asks", "interrupted", "failed", "left"]


class SubagentTask(msgspec.Struct, frozen=True):
    """Type and description with which a sub-agent was started."""

    kind: str = ""
    description: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a session."""

    kind: EventKind
    time: datetime | None = None
    turn: int = 0
    """Turn number; 0 if unknown because the file was not read from its start."""
    agent: str = ""
    """Sub-agent that the event belongs to, if its records are in the session file."""
    prompt: Prompt | None = None
    back: bool = False
    """Whether the prompt continues from an earlier record, so that later records are abandoned."""
    step: Step | None = None
    text: str = ""
    """Full text of an answer, thinking or queued prompt."""
    compaction: Compaction | None = None
    ending: Ending = ""
    steps: int = 0
    """Number of steps of a turn, at its end."""
    duration: float | None = None
    usage: Totals = Totals()
    size: int = 0
    """Number of damaged bytes."""


T = TypeVar("T")

_WORK_KINDS: Final = frozenset(("words", "step", "thought", "error", "unknown"))


class RecentTurns:
    """Keeps the events of the last `last` turns, or of all turns since a Unix time."""

    def __init__(self, last: int = 1, since: float | None = None) -> None:
        self._turns: deque[list[Event]] = deque([[]], last or 1 if since is None else None)
        self._keeps_nothing = last == 0 and since is None
        self._since = since
        self._conditional_start: int | None = None

    def feed(self, events: Iterable[Event]) -> None:
        """Process the next events."""
        for event in events:
            self._feed_event(event)
        if self._since is not None:
            while len(self._turns) > 1 and self._is_old(self._turns[0], self._since):
                self._turns.popleft()

    def _feed_event(self, event: Event) -> None:
        current = self._turns[-1]
        prompt = event.prompt if event.kind == "turn" and not event.agent else None
        if prompt is not None and is_tentative(prompt.origin, answered=False):
            self._conditional_start = len(current)
        elif prompt is not None or (event.kind in _WORK_KINDS and self._conditional_start is not None):
            start = len(current) if self._conditional_start is None else self._conditional_start
            self._conditional_start = None
            new_turn = current[start:] if prompt is None else []
            if prompt is None:
                del current[start:]
            if current:
                self._turns.append(new_turn)
                current = new_turn
            else:
                current += new_turn
        current.append(event)

    def _is_old(self, turn: list[Event], since: float) -> bool:
        times = [event.time.timestamp() for event in turn if event.time is not None]
        return not times or max(times) < since

    @property
    def events(self) -> list[Event]:
        """The kept events."""
        if self._keeps_nothing:
            return []
        if self._since is not None and self._is_old(self._turns[-1], self._since):
            return []
        return [event for turn in self._turns for event in turn]


def remember_newest(entries: dict[str, T], name: str, value: T, limit: int) -> None:
    """Store a value as the newest, and drop the oldest beyond `limit`."""
    entries.pop(name, None)
    entries[name] = value
    if len(entries) > limit:
        del entries[next(iter(entries))]


_FINAL_STOP_REASONS: Final = frozenset(("end_turn", "stop_sequence", "max_tokens", "refusal"))
_COUNTED_KINDS: Final = WORK_KINDS | {"thought"}
_EVENT_KINDS: Final[dict[str, EventKind]] = {
    "tool": "step",
    "agent": "step",
    "thought": "thought",
    "words": "words",
    "queued": "queued",
    "hook": "hook",
    "error": "error",
    "note": "note",
    "unknown": "unknown",
}
_MAX_PARENTS: Final = 1 << 16
"""Maximum number of remembered parents: a prompt that continues from an older record is not recognized as a rewind."""
_DraftState = tuple[str, str, str, int]


class LiveConversation:
    """One conversation of a file: that of the session, or of a sub-agent inside it.

    Keeps the current and the previous turn. The turn builder keeps one step for each call of all turns, because a
    result may arrive at any time.
    """

    def __init__(self, name: str, *, agent: bool, from_start: bool) -> None:
        self._name = name
        self._from_start = from_start
        self._compactions: dict[int, Compaction] = {}
        self._builder = TurnBuilder({}, self._compactions, agent=agent)
        self._dropped_turns = 0
        self._reported_steps = 0
        """Number of steps of the turn that were reported."""
        self._counted_responses: set[str] = set()
        self._last_ending: Ending = ""
        self._continued_parents: dict[str, None] = {}
        self.first_prompt = ""
        """The first prompt."""

    @property
    def number(self) -> int:
        """Number of the current turn; 0 if unknown."""
        return self._dropped_turns + len(self._builder.finished) + 1 if self._from_start else 0

    def feed(self, record: Record, node: Node) -> Iterator[Event]:
        """Process the next record and yield its events."""
        builder = self._builder
        previous = builder.current
        last_draft = previous.drafts[-1] if previous.drafts else None
        prompt, state, interrupted = previous.prompt, _draft_state(last_draft), previous.interrupted
        compaction = compaction_at(record, node) if is_compaction(node) else None
        if compaction is not None:
            self._compactions[node.index] = compaction
        builder.add(record, node)
        current = builder.current
        self._compactions.clear()
        if current is not previous:
            self._drop_finished_turns()
        if compaction is not None:
            yield self._make_event("seam", record, compaction=compaction)
        if current.prompt is not None and current.prompt is not prompt:
            yield from self._turn_event(record, current.prompt, goes_back=node.parent in self._continued_parents)
        if node.parent and record.role:
            remember_newest(self._continued_parents, node.parent, None, _MAX_PARENTS)
        if last_draft is not None and last_draft.result is not node and _draft_state(last_draft) != state:
            yield from self._updated_step(record, last_draft)
        yield from self._new_steps(record, node, current)
        yield from self._outcome_events(record, node, current)
        yield from self._end_event(record, current, interrupted=current.interrupted and not interrupted)

    def client_closed(self, record: Record) -> Iterator[Event]:
        """Yield an event for the end of the session."""
        if self._last_ending != "left":
            self._last_ending = "left"
            yield self._make_event("end", record, ending="left")

    def _make_event(self, kind: EventKind, record: Record, **fields: object) -> Event:
        event = Event(kind=kind, time=record.time, turn=self.number, agent=self._name)
        return msgspec.structs.replace(event, **fields)

    def _drop_finished_turns(self) -> None:
        """Drop all finished turns but the last, which may still change."""
        done = self._builder.finished
        self._dropped_turns += max(len(done) - 1, 0)
        del done[:-1]
        # Steps passed over from there belong to earlier records, so they are not reported.
        self._reported_steps = 0
        self._counted_responses.clear()

    def _turn_event(self, record: Record, prompt: Prompt, *, goes_back: bool) -> Iterator[Event]:
        self.first_prompt = self.first_prompt or prompt.text.strip()
        self._last_ending = ""
        yield self._make_event("turn", record, prompt=prompt, back=goes_back)

    # Steps

    def _updated_step(self, record: Record, draft: StepDraft) -> Iterator[Event]:
        """Yield an event for a step that changed: a retry, or a hook that failed later."""
        if draft.kind not in ("tool", "agent"):
            yield self._make_event(_EVENT_KINDS[draft.kind], record, step=draft.build())

    def _new_steps(self, record: Record, node: Node, current: TurnDraft) -> Iterator[Event]:
        thoughts = iter([b for b in record.blocks if isinstance(b, Thinking | RedactedThinking)])
        new_drafts = current.drafts[self._reported_steps :]
        self._reported_steps = len(current.drafts)
        for draft in new_drafts:
            # A note inserted earlier shifts steps that were already reported.
            if draft.call is not node or draft.is_deleted:
                continue
            text = draft.text
            if draft.kind == "thought":
                block = next(thoughts, None)
                text = block.thinking if isinstance(block, Thinking) else ""
            elif draft.kind == "queued":
                text = draft.subject
            self._last_ending = "" if draft.kind in _COUNTED_KINDS or draft.kind == "words" else self._last_ending
            yield self._make_event(
                _EVENT_KINDS[draft.kind], record, step=draft.build(self._output_tokens(draft, current)), text=text
            )
        if current.output is not None and current.output[0] is node:
            output_line = one_line(current.output[1])
            step = Step(kind="note", verb="Output", subject=output_line, started=record.time, call=node)
            yield self._make_event("note", record, step=step, text=current.output[1])

    def _output_tokens(self, draft: StepDraft, current: TurnDraft) -> int | None:
        message_id = draft.message_id
        if not message_id or message_id in self._counted_responses or draft.state == "open":
            return None
        self._counted_responses.add(message_id)
        return current.counter.output_of(message_id)

    def _outcome_events(self, record: Record, node: Node, current: TurnDraft) -> Iterator[Event]:
        for call_id in dict.fromkeys((*node.results, *answered_calls(record))):
            draft = self._builder.step_of_call(call_id)
            if draft is not None and (draft.result is node or draft.state == "unknown"):
                self._last_ending = ""
                step = draft.build(self._output_tokens(draft, current))
                yield self._make_event("outcome", record, step=step)

    # Ends

    def _end_event(self, record: Record, current: TurnDraft, *, interrupted: bool) -> Iterator[Event]:
        ending = "interrupted" if interrupted else self._ending_at(record, current)
        if not ending or self._last_ending in (ending, "left"):
            return
        self._last_ending = ending
        seconds = current.seconds
        if seconds is None and current.started is not None and current.ended is not None:
            seconds = max(0.0, (current.ended - current.started).total_seconds())
        yield self._make_event(
            "end",
            record,
            ending=ending,
            steps=sum(draft.kind in _COUNTED_KINDS for draft in current.drafts),
            duration=seconds,
            usage=current.counter.totals(),
        )

    def _ending_at(self, record: Record, current: TurnDraft) -> Ending:
        if record.type == "system":
            # The end of a failed or interrupted turn was already reported.
            is_end = record.subtype == "turn_duration" and current.last == "end" and not self._last_ending
            return "answered" if is_end else ""
        if record.role != "assistant":
            return ""
        if record.envelope.is_api_error_message:
            return "failed"
        if any(block.name in AWAITED_TOOLS for block in record.tool_uses):
            return "asks"
        stop = record.message.stop_reason if record.message is not None else None
        return "answered" if stop in _FINAL_STOP_REASONS and current.last == "words" else ""


def _draft_state(draft: StepDraft | None) -> _DraftState:
    if draft is None:
        return "", "", "", 0
    return draft.state, draft.subject, draft.outcome, draft.retries


# Limits for long-running sessions; beyond them the oldest entries are dropped.
_MAX_RECORDS: Final = 1 << 16
"""Reported records; an older one that is copied is reported again."""
_MAX_CALLS: Final = 512
"""Calls without a result; the record of an older one is not available with its outcome."""
_MAX_AGENTS: Final = 1024
"""Sub-agents; records of an older one start a new conversation."""
_MAX_QUEUED: Final = 256
"""Queued prompts; an older one is reported again when it is sent."""


class _RecentRecords(Transcript):
    """Records that may still be requested: those just reported, and calls without a result."""

    def __init__(self) -> None:
        super().__init__(BytesSource(b""), [], [])
        self.open_calls: dict[str, Record] = {}
        self.current: dict[int, Record] = {}

    def record(self, node: Node) -> Record:
        """Return a record reported in the last portion, or whose call was answered in it."""
        recent = self.current.get(node.offset)
        return recent if recent is not None else super().record(node)

    def start_portion(self) -> None:
        """Drop the reported records."""
        self.current.clear()

    def remember(self, record: Record, node: Node) -> None:
        """Keep a record while it is reported, and a call until it is answered."""
        self.current[node.offset] = record
        for name in node.uses:
            remember_newest(self.open_calls, name, record, _MAX_CALLS)
        for name in node.results:
            call = self.open_calls.pop(name, None)
            if call is not None:
                self.current[call.offset] = call


class Follower:
    """Follows one file. `agent` marks a sub-agent file.

    Memory is bounded, except for the steps of the current turn and one step for each call.
    """

    def __init__(self, start: int = 0, *, agent: bool = False, cap: int = LINE_CAP) -> None:
        self._lines = LineFeed(start, cap=cap)
        self._converted = ConvertedFeed()
        self._agent = agent
        self._main = LiveConversation("", agent=agent, from_start=not start)
        self._inline: dict[str, LiveConversation] = {}
        self._groups: dict[str, str] = {}
        self._digests: dict[str, int] = {}
        self._count = 0
        self._queued_prompts: deque[str] = deque(maxlen=_MAX_QUEUED)
        self.pages: Transcript = _RecentRecords()
        """Provides the records of the last reported events."""
        self.tasks: dict[str, SubagentTask] = {}
        """Tasks of sub-agents by call ID and by prompt."""
        self.title = ""
        self._has_custom_title = False
        self.project = ""
        self.session_id = ""

    def feed(self, data: bytes) -> list[Event]:
        """Process the next bytes of the file and return the events."""
        if isinstance(self.pages, _RecentRecords):
            self.pages.start_portion()
        pieces = self._converted.feed(self._lines.feed(data))
        return [event for piece in pieces for event in self._piece_events(piece)]

    def _piece_events(self, piece: Piece) -> Iterator[Event]:
        if isinstance(piece, Gap):
            if piece.damage:
                yield Event(kind="damage", size=piece.length, text=piece.damage[0].id)
            return
        record = piece
        node = read_node(record, self._count)
        self._count += 1
        self._read_session_fields(record, node)
        if record.type == "queue-operation" and not node.uuid:
            yield from self._queue_event(record)
        elif record.type == "cost-state":
            yield from self._main.client_closed(record)
        if not (node.uuid or record.role) or self._is_copy(record, node):
            return
        if isinstance(self.pages, _RecentRecords):
            self.pages.remember(record, node)
        for event in self._conversation_of(node).feed(record, node):
            if not self._is_repeated(event):
                yield event

    def _is_copy(self, record: Record, node: Node) -> bool:
        """Return whether an identical record was already reported; Claude Code copies some on resume."""
        if not node.uuid:
            return False
        digest = hash(record.line)
        same = self._digests.get(node.uuid) == digest
        remember_newest(self._digests, node.uuid, digest, _MAX_RECORDS)
        return same

    def _conversation_of(self, node: Node) -> LiveConversation:
        if self._agent or not node.sidechain:
            return self._main
        name = node.agent_id or self._groups.get(node.parent or "") or f"@{node.index}"
        if node.uuid:
            remember_newest(self._groups, node.uuid, name, _MAX_RECORDS)
        conversation = self._inline.get(name) or LiveConversation(name, agent=True, from_start=True)
        remember_newest(self._inline, name, conversation, _MAX_AGENTS)
        return conversation

    # Session metadata

    def _read_session_fields(self, record: Record, node: Node) -> None:
        self.session_id = self.session_id or record.session_id or ""
        self.project = self.project or record.envelope.cwd or ""
        is_custom = record.type == "custom-title"
        if is_custom or (record.type == "ai-title" and not self._has_custom_title):
            title = record.fields.get("customTitle" if is_custom else "aiTitle")
            if isinstance(title, str) and title:
                self.title, self._has_custom_title = title, is_custom
        for block in record.tool_uses if node.uses else ():
            if block.name in AGENT_TOOLS:
                texts = {name: value for name, value in block.input.items() if isinstance(value, str)}
                task = SubagentTask(texts.get("subagent_type", ""), texts.get("description", ""))
                for name in (block.id, texts.get("prompt", "").strip()):
                    remember_newest(self.tasks, name, task, 2 * _MAX_AGENTS)

    @property
    def first_prompt(self) -> str:
        """The first prompt."""
        return self._main.first_prompt

    def task_of(self, agent: str) -> SubagentTask:
        """Return the task of a sub-agent inside this file."""
        conversation = self._inline.get(agent)
        return self.tasks.get(conversation.first_prompt, SubagentTask()) if conversation is not None else SubagentTask()

    # Queued prompts

    def _queue_event(self, record: Record) -> Iterator[Event]:
        """Yield an event when a prompt is queued; some versions record it nowhere else."""
        envelope = record.envelope
        if envelope.operation != "enqueue" or not envelope.content:
            return
        try:
            blocks = read_blocks(decode_lenient(envelope.content))
        except DECODE_ERRORS:
            return
        text = "\n\n".join(block.text for block in blocks if isinstance(block, Text))
        if not text.strip() or origin_by_tag(text) is not None:
            return
        self._queued_prompts.append(one_line(text))
        step = Step(kind="queued", verb="Queued", subject=one_line(text), started=record.time)
        yield Event(kind="queued", time=record.time, turn=self._main.number, step=step, text=text)

    def _is_repeated(self, event: Event) -> bool:
        """Return whether this is a queued prompt that was already reported when it was queued."""
        subject = event.step.subject if event.kind == "queued" and event.step else None
        if subject is None or subject not in self._queued_prompts:
            return False
        self._queued_prompts.remove(subject)
        return True
