"""Builds the index rows of a transcript, record by record."""

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, as_object, decode_lenient
from steno.format.message import SYNTHETIC, read_envelope
from steno.format.records import Record
from steno.format.sidecars import (
    BACKUP_TYPES,
    BackupEntry,
    absolute_path,
    backup_fingerprint,
    read_backups,
    snapshot_time,
)
from steno.format.tool_catalogue import AGENT_TOOLS, EDITING_TOOLS, PATH_FIELDS
from steno.index.line_decoder import IndexedLine, LineBlock, count_changed_lines, count_patch_lines, to_millis
from steno.index.searchable_text import TextPart, text_parts
from steno.index.session_stats import (
    FILE_ID_SHIFT,
    Extraction,
    ExtractionState,
    LastMessageState,
    OpenCall,
    Row,
    TextDocument,
    TurnState,
    call_and_result_ids,
)
from steno.index.usage_rows import UsageRowBuilder, response_key
from steno.session.session_status import LastMessage, StepCounts, count_record, is_step_record
from steno.session.turns.compactions import RepeatTracker, repeated_id
from steno.session.turns.prompts import (
    PERSON_ORIGINS,
    Origin,
    begins_turn,
    is_tentative,
    origin_by_tag,
    origin_of,
    prompt_text,
    shorten_title,
    tag_content,
    typed_command,
)
from steno.session.turns.tool_outcomes import call_outcome


def record_backups(state: ExtractionState, line: bytes, message_id: int, time: int | None) -> None:
    """Record the files that a snapshot names for the first time or with a new backup."""
    fields = as_object(decode_lenient(line)) or {}
    snapshot = snapshot_time(fields)
    for entry in read_backups(fields):
        if not entry.path or state.backups.get(entry.path) == backup_fingerprint(entry):
            continue
        state.backups[entry.path] = backup_fingerprint(entry)
        backup_time = to_millis(snapshot if entry.time is None else entry.time)
        row_time = time if backup_time is None else backup_time
        state.unplaced.append((message_id, entry.path, entry.folder, state.turn.number, entry.version, row_time))


def resolved_backups(state: ExtractionState) -> list[Row]:
    """Return the rows of backups with known absolute paths, and keep the others in the state."""
    rows: dict[tuple[int, str], Row] = {}
    unresolved: list[Row] = []
    for row in state.unplaced:
        message, path, folder, turn, version, time = row
        entry = BackupEntry(path=path, folder=folder)
        if state.project or entry.is_placed:
            absolute = absolute_path(entry, state.project)
            rows[message, absolute] = (message, absolute, turn, version, time)
        else:
            unresolved.append(row)
    state.unplaced = unresolved
    return list(rows.values())


_MAX_UNMATCHED: Final = 64
"""Maximum number of summaries whose leaf is unknown."""


class SummaryTitles:
    """The summaries of one part; the state contains those whose leaf was not found yet."""

    def __init__(self, state: ExtractionState) -> None:
        self._state = state
        self._new_leaves: set[str] = set()

    def add_summary(self, leaf: str, message: int, title: str) -> None:
        """Add a summary; summaries of other sessions name a leaf that is not in this file."""
        state = self._state
        if not leaf:
            return
        if leaf in (state.last_uuid, *state.stats.parents):
            self._set_title(message, title)
            return
        unmatched = state.far_summaries
        unmatched.pop(leaf, None)
        unmatched[leaf] = message, title
        if len(unmatched) > _MAX_UNMATCHED:
            del unmatched[next(iter(unmatched))]
        if state.last_uuid:
            self._new_leaves.add(leaf)

    def match_record(self, uuid: str | None) -> None:
        """Match a record with the leaves of earlier summaries."""
        if uuid in self._state.far_summaries:
            self.match_leaves((uuid,))

    @property
    def unseen_leaves(self) -> set[str]:
        """Leaves of summaries in this part that may be earlier records of the file."""
        return self._new_leaves.intersection(self._state.far_summaries)

    def match_leaves(self, leaves: Iterable[str]) -> None:
        """Assign the summaries with these leaves, which are records of the file, to this session."""
        for leaf in leaves:
            self._set_title(*self._state.far_summaries.pop(leaf))

    def _set_title(self, message: int, title: str) -> None:
        """Use a summary as title, unless a later one is already used."""
        state = self._state
        if message >= state.summary_at:
            state.summary, state.summary_at = title, message


_MESSAGE_TYPES: Final = frozenset(("user", "assistant"))
_MAX_OPEN_CALLS: Final = 1_000
_LAST_MESSAGE_KINDS: Final[dict[Origin, LastMessage]] = {
    "human": "prompt",
    "queued": "prompt",
    "result": "prompt",
    "interrupt": "interrupt",
}
_EXIT_COMMANDS: Final = frozenset(("/exit", "/quit"))
_MAX_TITLE_LENGTH: Final = 200


class RowBuilder:
    """Builds the rows of one part from its records, in order."""

    def __init__(self, file: int, start: int, state: ExtractionState, inactive: frozenset[str]) -> None:
        self.end = start
        """Offset up to which all records were processed."""
        self._file = file
        self._start = start
        self._state = state
        self._inactive = inactive  # records that do not affect the ending
        self._usage_rows = UsageRowBuilder(file)
        self._messages: list[Row] = []
        self._turns: dict[int, TurnState] = {}
        self._calls: list[list[Any]] = []
        self._open_calls: dict[str, list[Any]] = {}
        """Calls of this part without a result so far."""
        self._subagent_kinds: dict[str, str] = {}
        """Types of the sub-agents requested by those calls."""
        self._late_results: list[Row] = []
        self._edits: dict[tuple[int, int], list[Any]] = {}
        self._late_edit_sizes: list[Row] = []
        self._link_rows: list[Row] = []
        self._documents: list[TextDocument] = []
        self.summaries = SummaryTitles(state)

    def add_record(
        self, line: IndexedLine, data: bytes, offset: int, length: int, record: Record | None = None
    ) -> None:
        """Add one record; `record` is given for irregular lines."""
        self.end = offset + length
        state = self._state
        message_id = (self._file << FILE_ID_SHIFT) + offset
        time = to_millis(line.timestamp)
        kind = line.type or ""
        is_message = kind in _MESSAGE_TYPES
        self._count_step_record(line, record)
        repeats = is_message and self._is_repeated(line, data, offset, record)
        is_linked = state.stats.follow_record(line, irregular=record is not None or repeats)
        previous = state.last
        if is_message and not line.is_sidechain:
            state.last = LastMessageState(*_last_message_of(line))
        if repeats:
            self._note_graph_record(line, time)
            state.stats.add_note()
            return
        if kind == "user" and not _count_tool_results(line):
            if record is None:
                record = _decode_record(data, offset)
            self._add_prompt(line, record, message_id, time, is_linked=is_linked)
        state.last = previous if line.uuid in self._inactive else _merge_last_state(previous, state.last)
        if line.uuid is not None:
            self._note_graph_record(line, time)
        self._rejoin_previous_turn(line)
        parts = text_parts(line, data)
        if is_message or parts:
            # Without the newline, which may be written after the record.
            self._messages.append((message_id, len(data), state.turn.number, time, kind))
        if parts:
            self._add_documents(parts, line, message_id, time)
        if is_message:
            self._add_message(line, message_id, time, record or data, is_linked=is_linked)
        else:
            self._add_state_record(line, kind, message_id, data)
        if is_linked and kind != "user":
            self._update_stats(line, kind, data, time)

    def _count_step_record(self, line: IndexedLine, record: Record | None) -> None:
        state = self._state
        if record is not None:
            state.step_counts = count_record(state.step_counts, record)
        elif is_step_record(line.type, sidechain=bool(line.is_sidechain)):
            answered = state.step_counts.answered or (line.type == "assistant" and _is_text_answer(line))
            state.step_counts = StepCounts(state.step_counts.records + 1, answered)

    def _note_graph_record(self, line: IndexedLine, time: int | None) -> None:
        state = self._state
        self.summaries.match_record(line.uuid)
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

    def _add_documents(self, parts: list[TextPart], line: IndexedLine, message_id: int, time: int | None) -> None:
        project = self._state.project
        branch = line.git_branch or self._state.branch
        model = (line.message.model or "") if line.message is not None else ""
        for part in parts:
            tool = part.tool or (self._tool_of_call(part.call) if part.call else "")
            document = TextDocument(message_id, time or 0, part.kind, part.text, project, branch, model, tool)
            document.failed = part.failed
            self._documents.append(document)

    def _tool_of_call(self, call: str) -> str:
        row = self._open_calls.get(call)
        if row is not None:
            return row[4]
        open_call = self._state.open.get(call)
        return open_call.name if open_call is not None else ""

    def _is_repeated(self, line: IndexedLine, raw: bytes, offset: int, record: Record | None) -> bool:
        """Return whether a message repeats an earlier one after a compaction."""
        state, message = self._state, line.message
        if line.repeats_compact_summary:
            record = record or _decode_record(raw, offset)
            return begins_turn(origin_of(record, agent=bool(line.is_sidechain)))
        # Most records are not repeated, so only candidates are checked.
        if line.type == "user":
            may_repeat = bool(state.repeated_calls)
        else:
            message_id = message.id if message is not None else None
            may_repeat = bool(message_id) and message_id in (state.repeated, repeated_id(line.parent_uuid))
        if not may_repeat:
            return False
        repeats = RepeatTracker(state.repeated, state.repeated_calls)
        call_ids, results = call_and_result_ids(line)
        if message is not None and line.type == "assistant":
            is_repeat = repeats.is_repeated_answer(line.parent_uuid, message.id, call_ids)
        else:
            is_repeat = repeats.are_repeated_results(results)
        state.repeated, state.repeated_calls = repeats.message_id, sorted(repeats.calls)
        return is_repeat

    # Turns

    def _add_prompt(
        self, line: IndexedLine, record: Record, message_id: int, time: int | None, *, is_linked: bool
    ) -> None:
        state, previous = self._state, self._state.turn
        is_sidechain = bool(line.is_sidechain)
        origin = origin_of(record, agent=is_sidechain)
        if not is_sidechain:
            state.last.kind = _LAST_MESSAGE_KINDS.get(origin, "other")
            command = tag_content(prompt_text(record), "command-name") if origin == "command" else ""
            state.last.left = command.strip() in _EXIT_COMMANDS
        if is_linked:
            state.stats.add_prompt(origin, time)
        if not begins_turn(origin, tentative=True) or (is_sidechain and state.main):
            return
        tentative = is_tentative(origin, answered=False)
        if origin != "summary":
            state.before = None
        elif previous.number and not previous.tentative:
            state.before = previous
        number = previous.number if previous.tentative else previous.number + 1
        state.turn = TurnState(number, message_id, time, time, tentative=tentative)
        if origin in PERSON_ORIGINS or origin in ("agent", "fork"):
            text = prompt_text(record)
            state.first_command = state.first_command or shorten_title(typed_command(text))
            state.commanded = state.commanded or origin == "command"
            state.prompted = state.prompted or not tentative
            if not state.first_prompt and not origin_by_tag(text):
                state.first_prompt = shorten_title(text)

    def _add_message(
        self, line: IndexedLine, message_id: int, time: int | None, source: Record | bytes, *, is_linked: bool
    ) -> None:
        state, turn, message_body = self._state, self._state.turn, line.message
        if not line.is_sidechain:
            state.main = True
        state.messages += 1
        turn.messages += 1
        turn.ended = turn.ended if time is None else time
        self._turns[turn.number] = turn
        if message_body is None:
            return
        if line.type == "assistant":
            # A synthetic message is not an answer, unless it reports a failed request.
            if message_body.model and (message_body.model != SYNTHETIC or line.is_api_error_message):
                turn.tentative = False
                state.prompted = state.prompted or state.commanded
            if message_body.model and message_body.model != SYNTHETIC and not (line.is_sidechain and state.main):
                state.model = message_body.model
            agent = (line.agent_id or state.agent) if line.is_sidechain else ""
            self._usage_rows.add_line(line, message_id, turn.number, time, line.git_branch or "", agent)
        if message_body.content.__class__ is list:
            results = self._add_blocks(line, cast("list[LineBlock]", message_body.content), message_id, time)
            if results and is_linked:
                self._count_results(source, results, time)
        if line.forked_from is not None and line.forked_from.session_id:
            self._add_link(message_id, "fork", line.forked_from.session_id)

    def _rejoin_previous_turn(self, line: IndexedLine) -> None:
        """Continue the previous turn if the model continues after a compaction without a prompt."""
        state = self._state
        is_sidechain = line.is_sidechain and state.main
        if state.before is not None and line.type == "assistant" and not is_sidechain:
            state.turn, state.before = state.before, None

    def _add_blocks(
        self, line: IndexedLine, blocks: list[LineBlock], message_id: int, time: int | None
    ) -> list[tuple[str, bool]]:
        results: list[tuple[str, bool]] = []
        for position, block in enumerate(blocks):
            if block.type == "tool_use":
                self._add_call(line, block, message_id, position, time)
            elif block.type == "tool_result":
                results.append(self._add_result(line, block, message_id, time))
        return results

    def _add_call(self, line: IndexedLine, block: LineBlock, message_id: int, position: int, time: int | None) -> None:
        turn, call_id, name = self._state.turn, block.id or "", block.name or ""
        self._state.calls += 1
        turn.calls += 1
        tool_input = cast("dict[str, Any]", block.input) if block.input.__class__ is dict else {}
        path = next((value for key in PATH_FIELDS if isinstance(value := tool_input.get(key), str)), "")
        key = response_key(line, message_id)
        row = [message_id, position, turn.number, call_id, name, key, path, time, None, None, None]
        self._calls.append(row)
        if call_id:
            self._track_call(call_id, row)
            if name in AGENT_TOOLS and isinstance(kind := tool_input.get("subagent_type"), str):
                self._subagent_kinds[call_id] = kind[:_MAX_TITLE_LENGTH]
        if name in EDITING_TOOLS and path:
            self._edits[message_id, position] = [
                *(message_id, position, turn.number, path, name),
                *count_changed_lines(tool_input),
                time,
            ]

    def _track_call(self, call_id: str, row: list[Any]) -> None:
        """Keep a call until its result arrives; drop the oldest of too many open calls."""
        earlier_calls = self._state.open
        earlier_calls.pop(call_id, None)
        self._open_calls.pop(call_id, None)
        self._open_calls[call_id] = row
        if len(earlier_calls) + len(self._open_calls) > _MAX_OPEN_CALLS:
            oldest = earlier_calls or self._open_calls
            del oldest[next(iter(oldest))]

    def _add_result(self, line: IndexedLine, block: LineBlock, message_id: int, time: int | None) -> tuple[str, bool]:
        """Add a tool result; return the ID of its call, if that was open, and whether it failed."""
        call_id, failed = block.tool_use_id or "", bool(block.is_error)
        tool = self._tool_of_call(call_id)
        row = self._open_calls.pop(call_id, None)
        kind = self._subagent_kinds.pop(call_id, "")
        if row is not None:
            row[8:] = message_id, time, int(failed)
            position = (row[0], row[1])
        else:
            earlier_call = self._state.open.pop(call_id, None)
            if earlier_call is None:
                return "", failed
            self._late_results.append((message_id, time, int(failed), earlier_call.message, earlier_call.place))
            kind, position = earlier_call.kind, (earlier_call.message, earlier_call.place)
        if failed:
            self._state.turn.failed += 1
        elif tool in EDITING_TOOLS and _count_tool_results(line) == 1:
            sizes = count_patch_lines(line.tool_use_result)
            if sizes is not None:
                self._set_edit_size(position, sizes)
        if tool in AGENT_TOOLS and (agent := _agent_id_in(line)):
            self._add_link(message_id, "agent", agent, kind)
        return call_id, failed

    # Statistics

    def _count_results(self, source: Record | bytes, results: list[tuple[str, bool]], time: int | None) -> None:
        """Count the results of calls that failed and were not denied.

        `source` is the record, or its line.
        """
        record = source if isinstance(source, Record) else None
        failed_count = 0
        for call, failed in results:
            if failed and call:
                if record is None:
                    record = _decode_record(cast("bytes", source), 0)
                blocks = (result for result in record.tool_results if result.tool_use_id == call)
                failed_count += any(call_outcome("", block, record).state == "failed" for block in blocks)
        all_expected = all(call for call, _ in results)
        self._state.stats.add_results(time, all_expected=all_expected, failed=failed_count)

    def _update_stats(self, line: IndexedLine, kind: str, data: bytes, time: int | None) -> None:
        stats = self._state.stats
        if kind == "assistant":
            stats.add_response_line(line, time)
        elif kind == "progress":
            if b"hook_progress" in data:
                stats.add_note()
        elif kind != "system":
            stats.add_note()
        elif line.subtype == "compact_boundary":
            stats.add_compaction()
        elif line.subtype == "api_error":
            stats.add_api_error(time, retried=True)
        elif line.subtype == "turn_duration":
            stats.set_duration(line.duration_ms)
        else:
            stats.add_note()

    def _set_edit_size(self, position: tuple[int, int], sizes: tuple[int, int]) -> None:
        edit = self._edits.get(position)
        if edit is None:
            self._late_edit_sizes.append((*sizes, *position))
        else:
            edit[5:7] = sizes

    # Other records

    def _add_summary(self, line: IndexedLine, message: int) -> None:
        if title := shorten_title(line.summary or ""):
            self._add_link(message, "summary", line.leaf_uuid or "", title)
            self.summaries.add_summary(line.leaf_uuid or "", message, title)

    def _add_state_record(self, line: IndexedLine, kind: str, message: int, data: bytes) -> None:
        state = self._state
        if kind in BACKUP_TYPES:
            record_backups(state, data, message, to_millis(line.timestamp))
        if kind == "custom-title":
            state.custom = line.custom_title or state.custom
        elif kind == "ai-title":
            state.ai = line.ai_title or state.ai
        elif kind == "last-prompt":
            if line.last_prompt and not origin_by_tag(line.last_prompt):
                state.last_prompt = shorten_title(line.last_prompt)
        elif kind == "summary":
            self._add_summary(line, message)
        elif kind == "system":
            self._add_system_record(line, message)
        elif kind == "cost-state":
            # Recent versions of Claude Code write it when they exit.
            state.last.left = True
        elif line.pr_url:
            self._add_link(message, "pr", line.pr_url)

    def _add_system_record(self, line: IndexedLine, message: int) -> None:
        if line.subtype == "compact_boundary":
            self._add_link(message, "compacted", line.uuid or "")
        elif line.subtype == "api_error":
            self._state.last.refused = True

    def _add_link(self, message: int, kind: str, target: str, note: str = "") -> None:
        self._link_rows.append((self._file, message, kind, target, note))

    def build(self, size: int) -> Extraction:
        """Return all rows extracted from a file of the given size."""
        state = self._state
        for call, row in self._open_calls.items():
            state.open[call] = OpenCall(row[0], row[1], row[4], self._subagent_kinds.get(call, ""))
        return Extraction(
            self._file,
            self._start,
            self.end,
            state,
            self.end < size,
            self._messages,
            [_turn_row(self._file, turn) for turn in self._turns.values()],
            [tuple(row) for row in self._calls],
            self._late_results,
            [tuple(row) for row in self._edits.values()],
            self._link_rows,
            self._usage_rows.rows(),
            self._documents,
            self._late_edit_sizes,
            resolved_backups(state),
        )


def _turn_row(file: int, turn: TurnState) -> Row:
    return (file, turn.number, turn.message, turn.started, turn.ended, turn.messages, turn.calls, turn.failed)


def _count_tool_results(line: IndexedLine) -> int:
    content = line.message.content if line.message is not None else None
    if content.__class__ is not list:
        return 0
    return sum(block.type == "tool_result" for block in cast("list[LineBlock]", content))


def _is_text_answer(line: IndexedLine) -> bool:
    content = line.message.content if line.message is not None else None
    if content.__class__ is str:
        return bool(cast("str", content).strip())
    blocks = cast("list[LineBlock]", content) if content.__class__ is list else []
    if any(block.type == "tool_use" for block in blocks):
        return False
    return any(block.type == "text" and (block.text or "").strip() for block in blocks)


def _decode_record(line: bytes, offset: int) -> Record:
    """Return the record of a decoded line; fields that were not decoded may have any type."""
    envelope = read_envelope(line)
    if envelope is None:
        raise ValueError(offset)
    return Record(line, offset, b"", envelope)


def _last_message_of(line: IndexedLine) -> tuple[LastMessage, list[str]]:
    """Return the kind of a message and the IDs of its tool calls."""
    content = line.message.content if line.message is not None else None
    blocks = cast("list[LineBlock]", content) if content.__class__ is list else []
    if line.type == "assistant":
        calls = [block.id for block in blocks if block.type == "tool_use" and block.id]
        return "error" if line.is_api_error_message else "answer", calls[:_MAX_OPEN_CALLS]
    # Prompts are distinguished later by their origin.
    return "prompt" if _count_tool_results(line) else "other", []


def _merge_last_state(previous: LastMessageState, current: LastMessageState) -> LastMessageState:
    """Return the new ending state: a command, its output or a notice does not change the ending."""
    if current.kind != "other" or not previous.kind:
        return current
    return LastMessageState(previous.kind, previous.calls, current.left, previous.refused)


class _AgentResult(msgspec.Struct, rename="camel", gc=False):
    agent_id: str | None = None


def _agent_id_in(line: IndexedLine) -> str:
    """Return the ID of the sub-agent named in a result."""
    try:
        return msgspec.json.decode(line.tool_use_result, type=_AgentResult).agent_id or ""
    except DECODE_ERRORS:
        return ""
