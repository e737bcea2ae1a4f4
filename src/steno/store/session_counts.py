"""Counts turns, sub-agents and step records with a fast scan that decodes only relevant lines."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from steno.format.dialects.detection import convert_if_dialect, convert_source, is_converted
from steno.format.source import Source
from steno.session.session_status import StepCounts, count_record
from steno.store.archive.file_access import open_file
from steno.store.discovery import DiscoveredFile

if TYPE_CHECKING:
    from steno.session.turns.prompts import Origin


_MAX_LINE_LENGTH: Final = 64 << 20
_MAX_SCANNED_SIZE: Final = 256 << 20
"""Bytes above which a file is not scanned; a list then shows no count."""
_SAMPLE_SIZE: Final = 1 << 16
_COMPACT_BOUNDARY: Final = "compact_boundary"
_REPEATED_FIELD: Final = "repeatsCompactSummary"
_REPEATED_KEY: Final = b'"repeatsCompactSummary"'
# Matched without keys, because the spacing of fields varies.
_STEP_MARKS: Final = [b'"user"', b'"assistant"', b'"human"', b'"tool_result"', b'"compact_system"']
_SIDECHAIN_MARKS: Final = [b'"isSidechain":true', b'"isSidechain": true']


def count_turns(file: DiscoveredFile) -> int | None:
    """Return the number of turns of the current conversation, without rewound turns.

    None for a file that is too large to scan for a list.

    Raises:
        Unreadable: the file can no longer be read.
    """
    if file.size > _MAX_SCANNED_SIZE:
        return None
    from steno.session.turns.prompts import is_tentative

    depths: dict[str | None, int] = {}
    turns: list[str | None] = []
    last_offset = 0
    with open_file(file) as original:
        source = convert_if_dialect(original)
        starts = None if is_converted(source) else _turn_starts(source)
        if starts is None:
            return _count_turns_in_full(convert_source(source))
        ends = (*(start[0] for start in starts[1:]), source.size)
        answers = _AnswerScanner(source)
        # A file that starts in the middle of a turn includes that turn.
        starts_inside_turn = bool(starts and starts[0][0] and answers.answered_between(0, starts[0][0]))
        for (offset, parent, origin), end in zip(starts, ends, strict=False):
            # A turn continues after a compaction.
            if origin == "summary" and (turns or starts_inside_turn):
                continue
            if is_tentative(origin, answered=False) and not answers.answered_between(offset, end):
                continue
            # After a rewind the new prompt has the same parent as the prompt it replaces. A prompt without a parent
            # after a compaction boundary continues the conversation, as in one published description.
            continues = parent is None and bool(turns) and _is_compacted_between(source, last_offset, offset)
            depth = len(turns) if continues else depths.get(parent, len(turns))
            for rewound_parent in turns[depth:]:
                depths.pop(rewound_parent, None)
            del turns[depth:]
            depths[parent] = depth
            turns.append(parent)
            last_offset = offset
    return len(turns) + starts_inside_turn or min(len(starts), 1)


def _count_turns_in_full(source: Source) -> int:
    """Count turns by building all turns of the session."""
    from steno.session.session import Session
    from steno.session.transcript import load

    return len(Session(load(source)).turns())


def count_agents(file: DiscoveredFile, files: Sequence[DiscoveredFile]) -> int:
    """Return the number of sub-agents of a session; `files` are those with separate transcripts.

    Raises:
        Unreadable: a file can no longer be read.
    """
    from steno.session.turns.session_facts import working_agents
    from steno.store.session_lookup import open_file_session

    if file.size > _MAX_SCANNED_SIZE:
        return sum(not _is_warmup(agent) for agent in files)
    with open_file(file) as source:
        if next(_lines_containing(source, _SIDECHAIN_MARKS, 0), None) is None:
            return sum(not _is_warmup(agent) for agent in files)
    # Sub-agents inside the session's file are distinguished by their parent records.
    with open_file_session(file) as session:
        return len(working_agents(session.all_agents))


def count_step_records(file: DiscoveredFile) -> StepCounts | None:
    """Return the number of lines for `steps.jsonl`, and whether one is a text answer.

    None for a file that is too large to scan for a list.

    Raises:
        Unreadable: the file can no longer be read.
    """
    if file.size > _MAX_SCANNED_SIZE:
        return None
    with open_file(file) as original:
        source = convert_if_dialect(original)
        counts = _scan_step_counts(source)
        # A later record in a dialect: its meaning depends on the surrounding records, so the file is converted.
        return counts or _scan_step_counts(convert_source(source)) or StepCounts()


def _scan_step_counts(source: Source) -> StepCounts | None:
    """Return the counts of a file; None if it must be converted first."""
    from steno.format.lines import read_bytes
    from steno.format.records import Record

    counts = StepCounts()
    convertible = not is_converted(source)
    for _, line in _lines_containing(source, _STEP_MARKS, 0):
        for piece in read_bytes(line):
            if isinstance(piece, Record):
                if convertible and piece.dialect != "claude":
                    return None
                counts = count_record(counts, piece)
    return counts


def _is_warmup(agent: DiscoveredFile) -> bool:
    """Return whether a sub-agent was only a warm-up request."""
    from steno.format.lines import read_bytes
    from steno.format.records import Record
    from steno.session.turns.prompts import WARMUP_PROMPT, prompt_text

    with open_file(agent) as source:
        head = source.read(0, min(source.size, _SAMPLE_SIZE))
    if WARMUP_PROMPT.encode() not in head:
        return False
    records = (piece for piece in read_bytes(head) if isinstance(piece, Record))
    first = next((record for record in records if record.type == "user"), None)
    return first is not None and prompt_text(first).strip() == WARMUP_PROMPT


def _turn_starts(source: Source) -> list[tuple[int, str | None, "Origin"]] | None:
    """Return the offset, parent and origin of each record that may begin a turn.

    None if a prompt is in a dialect and the file must be converted.
    """
    from steno.format.lines import read_bytes
    from steno.format.records import Record
    from steno.session.turns.prompts import begins_turn, origin_of

    starts: list[tuple[int, str | None, Origin]] = []
    for offset, line in _candidate_lines(source, b"user", b"human"):
        if b'"type":"tool_result"' in line:
            continue
        for piece in read_bytes(line):
            if not isinstance(piece, Record) or piece.type not in ("user", "human"):
                continue
            if piece.dialect != "claude":
                return None
            origin = origin_of(piece)
            if piece.is_sidechain or not begins_turn(origin, tentative=True):
                continue
            # A prompt repeated after a compaction.
            if begins_turn(origin) and _REPEATED_KEY in line and piece.fields.get(_REPEATED_FIELD) is True:
                continue
            starts.append((offset, piece.parent_uuid, origin))
    return starts


class _AnswerScanner:
    """Checks parts of a file, requested in order, for model responses in a single pass."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines: Iterator[tuple[int, bytes]] | None = None
        self._pending_line: tuple[int, bytes] | None = None

    def answered_between(self, start: int, end: int) -> bool:
        """Return whether a model response starts in the range from `start` to before `end`."""
        if self._lines is None:
            self._lines = _candidate_lines(self._source, b"assistant", start=start)
        while (item := self._pending_line or next(self._lines, None)) is not None:
            self._pending_line = item
            if item[0] >= end:
                return False
            self._pending_line = None
            if item[0] >= start and _is_model_answer(item[1]):
                return True
        return False


def _is_model_answer(line: bytes) -> bool:
    from steno.format.message import read_envelope

    record = read_envelope(line)
    if record is None or record.type != "assistant" or record.is_sidechain:
        return False
    return bool(record.is_api_error_message) or b'"<synthetic>"' not in line


def _is_compacted_between(source: Source, start: int, end: int | None = None) -> bool:
    """Return whether a compaction boundary starts in the range from `start` to before `end`."""
    from steno.format.message import read_envelope

    for offset, line in _lines_containing(source, [b'"compact_boundary"'], start):
        if end is not None and offset >= end:
            return False
        record = read_envelope(line)
        if record is not None and record.subtype == _COMPACT_BOUNDARY and not record.is_sidechain:
            return True
    return False


def _candidate_lines(source: Source, *types: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that may be records of some types, without decoding the other lines."""
    return _lines_containing(source, _type_needles(source.read(start, _SAMPLE_SIZE), types), start)


def _lines_containing(source: Source, needles: list[bytes], start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that contain one of the needles, from an offset on."""
    parts: list[bytes] = []
    buffered = 0
    for chunk in source.chunks(start):
        last = chunk.rfind(b"\n") + 1
        if last:
            data = b"".join((*parts, chunk)) if parts else chunk
            yield from _matching_lines(needles, data, start - buffered, buffered + last)
            parts = [chunk[last:]]
        elif buffered < _MAX_LINE_LENGTH:
            parts.append(chunk)
        else:
            # No prompt is that long; the remainder of the line contains no complete record.
            parts = []
        buffered = sum(map(len, parts))
        start += len(chunk)
    rest = b"".join(parts)
    yield from _matching_lines(needles, rest, start - buffered, buffered)


def _type_needles(sample: bytes, types: Iterable[bytes]) -> list[bytes]:
    """Return the spellings of the type field in this file; nearly always one per type."""
    needles = [b'"type":"%s"' % name for name in types]
    if b'"type": "' in sample:
        needles += [needle.replace(b":", b": ") for needle in needles]
    return needles


def _matching_lines(needles: list[bytes], data: bytes, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield each line that contains a needle once, in file order."""
    if len(needles) == 1:
        yield from _lines_with_needle(needles[0], data, offset, end)
        return
    lines_by_offset = dict(line for needle in needles for line in _lines_with_needle(needle, data, offset, end))
    yield from sorted(lines_by_offset.items())


def _lines_with_needle(needle: bytes, data: bytes, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
    index = data.find(needle, 0, end)
    while index >= 0:
        start = data.rfind(b"\n", 0, index) + 1
        line_end = data.find(b"\n", index, end)
        line_end = end if line_end < 0 else line_end
        yield offset + start, data[start:line_end]
        index = data.find(needle, line_end, end)
