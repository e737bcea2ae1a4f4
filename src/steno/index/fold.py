"""Records one after the other, and what the index keeps of each."""

from typing import Any, Final, cast

import msgspec

from steno.format.envelope import read_envelope
from steno.format.file_backups import BACKUP_TYPES
from steno.format.loose import REFUSED
from steno.format.records import Record
from steno.format.tool_catalogue import AGENT_TOOLS, EDITING_TOOLS
from steno.index.backups import note_backups, placed_backups
from steno.index.changes import lines_changed, lines_in_patch
from steno.index.course import calls_of
from steno.index.lines import Block, Line
from steno.index.moments import millis
from steno.index.state import SHIFT, Call, Doc, Harvest, LastState, Row, State, Turn
from steno.index.summaries import Summaries
from steno.index.tally import Tally, key_of
from steno.index.words import Part, parts_of
from steno.session.liveness import LastMessage
from steno.session.step_records import StepCounts, count_record, is_step_record
from steno.session.story.outcomes import outcome_of
from steno.session.story.prompts import (
    BY_PEOPLE,
    FAINT,
    STARTS,
    Origin,
    inside,
    origin_of,
    tagged,
    typed_command,
    words_of,
)
from steno.session.story.repeats import Repeats, repeated_id
from steno.session.story.titles import cut_title
from steno.session.story.usage import SYNTHETIC

__all__ = ["Fold"]

_ROLES: Final = frozenset(("user", "assistant"))
_PATHS: Final = ("file_path", "notebook_path", "path")
_OPEN_CALLS: Final = 1_000
_LAST: Final[dict[Origin, LastMessage]] = {
    "human": "prompt",
    "queued": "prompt",
    "result": "prompt",
    "interrupt": "interrupt",
}
_EXITS: Final = frozenset(("/exit", "/quit"))
_TITLE: Final = 200


class Fold:
    """Takes in the records of one stretch, in order."""

    def __init__(self, file: int, start: int, state: State, hidden: frozenset[str]) -> None:
        self.done = start
        """Up to here everything was taken in, or will never be."""
        self._file = file
        self._start = start
        self._state = state
        self._hidden = hidden  # a session does not end with these
        self._tally = Tally(file)
        self._messages: list[Row] = []
        self._turns: dict[int, Turn] = {}
        self._calls: list[list[Any]] = []
        self._here: dict[str, list[Any]] = {}
        """The calls of this stretch that have no result so far."""
        self._kinds: dict[str, str] = {}
        """The kinds of sub-agents that those ask for."""
        self._answers: list[Row] = []
        self._edits: dict[tuple[int, int], list[Any]] = {}
        self._sizes: list[Row] = []
        self._links: list[Row] = []
        self._docs: list[Doc] = []
        self.summaries = Summaries(state)

    def take(
        self, line: Line, raw: bytes, offset: int, length: int, record: Record | None = None
    ) -> None:
        """Take in one record; one that is not of the usual form comes with itself."""
        self.done = offset + length
        state = self._state
        message = (self._file << SHIFT) + offset
        time = millis(line.timestamp)
        kind = line.type or ""
        speaks = kind in _ROLES
        self._count_step(line, record)
        repeats = speaks and self._repeats(line, raw, offset, record)
        goes_on = state.course.follow(line, odd=record is not None or repeats)
        before = state.last
        if speaks and not line.is_sidechain:
            state.last = LastState(*_last_message(line))
        if repeats:
            self._place(line, time)
            state.course.noted()
            return
        if kind == "user" and not _results_in(line):
            if record is None:
                record = _record_of(raw, offset)
            self._prompt(line, record, message, time, goes_on=goes_on)
        state.last = before if line.uuid in self._hidden else _last_of(before, state.last)
        if line.uuid is not None:
            self._place(line, time)
        self._rejoin(line)
        parts = parts_of(line, raw)
        if speaks or parts:
            # Without the newline: it may come later than the record.
            self._messages.append((message, len(raw), state.turn.number, time, kind))
        if parts:
            self._index(parts, line, message, time)
        if speaks:
            self._speak(line, message, time, record or raw, goes_on=goes_on)
        else:
            self._note(line, kind, message, raw)
        if goes_on and kind != "user":
            self._go_on(line, kind, raw, time)

    def _count_step(self, line: Line, record: Record | None) -> None:
        """Count a line of `steps.jsonl`; a record of another form is counted as itself."""
        state = self._state
        if record is not None:
            state.step_counts = count_record(state.step_counts, record)
        elif is_step_record(line.type, sidechain=bool(line.is_sidechain)):
            answered = state.step_counts.answered or (line.type == "assistant" and _answers(line))
            state.step_counts = StepCounts(state.step_counts.records + 1, answered)

    def _place(self, line: Line, time: int | None) -> None:
        """Keep what a record of the graph says about the session."""
        state = self._state
        self.summaries.meet(line.uuid)
        if not line.is_sidechain:
            state.last_uuid = line.uuid or ""
        state.project = state.project or line.cwd or ""
        state.branch = line.git_branch or state.branch
        state.version = line.version or state.version
        state.session = state.session or line.session_id or ""
        if line.agent_id and line.is_sidechain:
            state.agent = state.agent or line.agent_id
        if time is not None:
            if state.started is None:
                state.started = time
            state.ended = time

    def _index(self, parts: list[Part], line: Line, message: int, time: int | None) -> None:
        """Have the words of a record searched."""
        project = self._state.project
        branch = line.git_branch or self._state.branch
        model = (line.message.model or "") if line.message is not None else ""
        for part in parts:
            tool = part.tool or (self._tool(part.call) if part.call else "")
            doc = Doc(message, time or 0, part.kind, part.text, project, branch, model, tool)
            doc.failed = part.failed
            self._docs.append(doc)

    def _tool(self, call: str) -> str:
        """Return the name of the tool that a result comes from."""
        here = self._here.get(call)
        if here is not None:
            return here[4]
        before = self._state.open.get(call)
        return before.name if before is not None else ""

    def _repeats(self, line: Line, raw: bytes, offset: int, record: Record | None) -> bool:
        """Whether a message only says again, behind a compaction, what stands before it."""
        state, body = self._state, line.message
        if line.repeats_compact_summary:
            record = record or _record_of(raw, offset)
            return origin_of(record, agent=bool(line.is_sidechain)) in STARTS
        # Nearly every record is none: only those that may be are looked at.
        if line.type == "user":
            maybe = bool(state.repeated_calls)
        else:
            name = body.id if body is not None else None
            maybe = bool(name) and name in (state.repeated, repeated_id(line.parent_uuid))
        if not maybe:
            return False
        repeats = Repeats(state.repeated, state.repeated_calls)
        uses, results = calls_of(line)
        if body is not None and line.type == "assistant":
            found = repeats.answer(line.parent_uuid, body.id, uses)
        else:
            found = repeats.results(results)
        state.repeated, state.repeated_calls = repeats.message_id, sorted(repeats.calls)
        return found

    # Turns

    def _prompt(
        self, line: Line, record: Record, message: int, time: int | None, *, goes_on: bool
    ) -> None:
        """Begin a turn, if that is what a user record does."""
        state, before = self._state, self._state.turn
        aside = bool(line.is_sidechain)
        origin = origin_of(record, agent=aside)
        if not aside:
            state.last.kind = _LAST.get(origin, "other")
            state.last.left = origin == "command" and _leaves(record)
        if goes_on:
            state.course.said(origin, time)
        if (origin not in STARTS and origin != "summary") or (aside and state.main):
            return
        faint = origin in FAINT
        if origin != "summary":
            state.before = None
        elif before.number and not before.faint:
            state.before = before
        number = before.number if before.faint else before.number + 1
        state.turn = Turn(number, message, time, time, faint=faint)
        if origin in BY_PEOPLE or origin in ("agent", "fork"):
            words = words_of(record)
            state.first_command = state.first_command or cut_title(typed_command(words))
            state.commanded = state.commanded or origin == "command"
            state.prompted = state.prompted or not faint
            if not state.first_prompt and not tagged(words):
                state.first_prompt = cut_title(words)

    def _speak(
        self, line: Line, message: int, time: int | None, source: Record | bytes, *, goes_on: bool
    ) -> None:
        """Count a message, and follow its calls and results."""
        state, turn, body = self._state, self._state.turn, line.message
        if not line.is_sidechain:
            state.main = True
        state.messages += 1
        turn.messages += 1
        turn.ended = turn.ended if time is None else time
        self._turns[turn.number] = turn
        if body is None:
            return
        if line.type == "assistant":
            # What the client says itself is no answer, except that a request failed.
            if body.model and (body.model != SYNTHETIC or line.is_api_error_message):
                turn.faint = False
                state.prompted = state.prompted or state.commanded
            if body.model and body.model != SYNTHETIC and not (line.is_sidechain and state.main):
                state.model = body.model
            agent = (line.agent_id or state.agent) if line.is_sidechain else ""
            self._tally.take(line, message, turn.number, time, line.git_branch or "", agent)
        if body.content.__class__ is list:
            results = self._blocks(line, cast("list[Block]", body.content), message, time)
            if results and goes_on:
                self._came(source, results, time)
        if line.forked_from is not None and line.forked_from.session_id:
            self._link(message, "fork", line.forked_from.session_id)

    def _rejoin(self, line: Line) -> None:
        """Go on in the turn before, if the model goes on behind a compaction unasked."""
        state = self._state
        aside = line.is_sidechain and state.main
        if state.before is not None and line.type == "assistant" and not aside:
            state.turn, state.before = state.before, None

    def _blocks(
        self, line: Line, blocks: list[Block], message: int, time: int | None
    ) -> list[tuple[str, bool]]:
        """Follow the calls and results of a message; return the results."""
        results: list[tuple[str, bool]] = []
        for place, block in enumerate(blocks):
            if block.type == "tool_use":
                self._call(line, block, message, place, time)
            elif block.type == "tool_result":
                results.append(self._answer(line, block, message, time))
        return results

    def _call(self, line: Line, block: Block, message: int, place: int, time: int | None) -> None:
        turn, call, name = self._state.turn, block.id or "", block.name or ""
        self._state.calls += 1
        turn.calls += 1
        given = cast("dict[str, Any]", block.input) if block.input.__class__ is dict else {}
        path = next((each for key in _PATHS if isinstance(each := given.get(key), str)), "")
        key = key_of(line, message)
        row = [message, place, turn.number, call, name, key, path, time, None, None, None]
        self._calls.append(row)
        if call:
            self._await(call, row)
            if name in AGENT_TOOLS and isinstance(kind := given.get("subagent_type"), str):
                self._kinds[call] = kind[:_TITLE]
        if name in EDITING_TOOLS and path:
            self._edits[message, place] = [
                *(message, place, turn.number, path, name),
                *lines_changed(given),
                time,
            ]

    def _await(self, call: str, row: list[Any]) -> None:
        """Keep a call in mind until its result comes; of too many that none comes for the newest."""
        waiting = self._state.open
        waiting.pop(call, None)
        self._here.pop(call, None)
        self._here[call] = row
        if len(waiting) + len(self._here) > _OPEN_CALLS:
            oldest = waiting or self._here
            del oldest[next(iter(oldest))]

    def _answer(self, line: Line, block: Block, message: int, time: int | None) -> tuple[str, bool]:
        """Take in the result of a call; return the call, if it was waited for, and how it went."""
        call, failed = block.tool_use_id or "", bool(block.is_error)
        tool = self._tool(call)
        here = self._here.pop(call, None)
        kind = self._kinds.pop(call, "")
        if here is not None:
            here[8:] = message, time, int(failed)
            at = (here[0], here[1])
        else:
            before = self._state.open.pop(call, None)
            if before is None:
                return "", failed
            self._answers.append((message, time, int(failed), before.message, before.place))
            kind, at = before.kind, (before.message, before.place)
        if failed:
            self._state.turn.failed += 1
        elif tool in EDITING_TOOLS and _results_in(line) == 1:
            sizes = lines_in_patch(line.tool_use_result)
            if sizes is not None:
                self._resize(at, sizes)
        if tool in AGENT_TOOLS and (agent := _agent_in(line)):
            self._link(message, "agent", agent, kind)
        return call, failed

    # The conversation

    def _came(
        self, source: Record | bytes, results: list[tuple[str, bool]], time: int | None
    ) -> None:
        """Count the results of calls that failed, and were not refused.

        `source` is the record, or the line that holds it.
        """
        record = source if isinstance(source, Record) else None
        number = 0
        for call, failed in results:
            if failed and call:
                if record is None:
                    record = _record_of(cast("bytes", source), 0)
                blocks = (each for each in record.tool_results if each.tool_use_id == call)
                number += any(outcome_of("", each, record).state == "failed" for each in blocks)
        known = all(call for call, _ in results)
        self._state.course.came(time, known=known, failed=number)

    def _go_on(self, line: Line, kind: str, raw: bytes, time: int | None) -> None:
        """Count what the model says, and what the client notes."""
        course = self._state.course
        if kind == "assistant":
            course.answered(line, time)
        elif kind == "progress":
            if b"hook_progress" in raw:
                course.noted()
        elif kind != "system":
            course.noted()
        elif line.subtype == "compact_boundary":
            course.seam()
        elif line.subtype == "api_error":
            course.erred(time, retried=True)
        elif line.subtype == "turn_duration":
            course.measured(line.duration_ms)
        else:
            course.noted()

    def _resize(self, at: tuple[int, int], sizes: tuple[int, int]) -> None:
        """Take the lines of a change from what became of it: the call knows only what it asked for."""
        edit = self._edits.get(at)
        if edit is None:
            self._sizes.append((*sizes, *at))
        else:
            edit[5:7] = sizes

    # Other records

    def _summary(self, line: Line, message: int) -> None:
        """Keep a summary, for whatever session it is."""
        if title := cut_title(line.summary or ""):
            self._link(message, "summary", line.leaf_uuid or "", title)
            self.summaries.take(line.leaf_uuid or "", message, title)

    def _note(self, line: Line, kind: str, message: int, raw: bytes) -> None:
        state = self._state
        if kind in BACKUP_TYPES:
            note_backups(state, raw, message, millis(line.timestamp))
        if kind == "custom-title":
            state.custom = line.custom_title or state.custom
        elif kind == "ai-title":
            state.ai = line.ai_title or state.ai
        elif kind == "last-prompt":
            if line.last_prompt and not tagged(line.last_prompt):
                state.last_prompt = cut_title(line.last_prompt)
        elif kind == "summary":
            self._summary(line, message)
        elif kind == "system":
            self._system(line, message)
        elif kind == "cost-state":
            # The newest clients write it when they are closed.
            state.last.left = True
        elif line.pr_url:
            self._link(message, "pr", line.pr_url)

    def _system(self, line: Line, message: int) -> None:
        if line.subtype == "compact_boundary":
            self._link(message, "compacted", line.uuid or "")
        elif line.subtype == "api_error":
            self._state.last.refused = True

    def _link(self, message: int, kind: str, target: str, note: str = "") -> None:
        self._links.append((self._file, message, kind, target, note))

    def result(self, size: int) -> Harvest:
        """Return what was gathered from a file of that size."""
        state = self._state
        for call, row in self._here.items():
            state.open[call] = Call(row[0], row[1], row[4], self._kinds.get(call, ""))
        return Harvest(
            self._file,
            self._start,
            self.done,
            state,
            self.done < size,
            self._messages,
            [_turn_row(self._file, turn) for turn in self._turns.values()],
            [tuple(row) for row in self._calls],
            self._answers,
            [tuple(row) for row in self._edits.values()],
            self._links,
            self._tally.rows(),
            self._docs,
            self._sizes,
            placed_backups(state),
        )


def _turn_row(file: int, turn: Turn) -> Row:
    return (
        file,
        turn.number,
        turn.message,
        turn.started,
        turn.ended,
        turn.messages,
        turn.calls,
        turn.failed,
    )


def _results_in(line: Line) -> int:
    content = line.message.content if line.message is not None else None
    if content.__class__ is not list:
        return 0
    return sum(block.type == "tool_result" for block in cast("list[Block]", content))


def _answers(line: Line) -> bool:
    """Return whether an assistant's line has text and calls no tool."""
    content = line.message.content if line.message is not None else None
    if content.__class__ is str:
        return bool(cast("str", content).strip())
    blocks = cast("list[Block]", content) if content.__class__ is list else []
    if any(block.type == "tool_use" for block in blocks):
        return False
    return any(block.type == "text" and (block.text or "").strip() for block in blocks)


def _record_of(line: bytes, offset: int) -> Record:
    """Return the record of a line that was decoded; fields that only it has may be of any type."""
    envelope = read_envelope(line)
    if envelope is None:
        raise ValueError(offset)
    return Record(line, offset, b"", envelope)


def _last_message(line: Line) -> tuple[LastMessage, list[str]]:
    """Return what kind of message a record is, and the ids of its tool calls."""
    content = line.message.content if line.message is not None else None
    blocks = cast("list[Block]", content) if content.__class__ is list else []
    if line.type == "assistant":
        calls = [block.id for block in blocks if block.type == "tool_use" and block.id]
        return "error" if line.is_api_error_message else "answer", calls[:_OPEN_CALLS]
    # A prompt is told apart by its origin.
    return "prompt" if _results_in(line) else "other", []


def _last_of(before: LastState, now: LastState) -> LastState:
    """Return what a session ends with: a command, its output or a notice leaves open what was."""
    if now.kind != "other" or not before.kind:
        return now
    return LastState(before.kind, before.calls, now.left, before.refused)


def _leaves(record: Record) -> bool:
    """Whether a command closes the client."""
    return inside(words_of(record), "command-name").strip() in _EXITS


class _Agent(msgspec.Struct, rename="camel", gc=False):
    agent_id: str | None = None


def _agent_in(line: Line) -> str:
    """Return which sub-agent a result names."""
    try:
        return msgspec.json.decode(line.tool_use_result, type=_Agent).agent_id or ""
    except REFUSED:
        return ""
