"""Counts turns, sub-agents and step records by a fast scan that decodes only relevant lines."""

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
"""Bytes of the largest file that is scanned; a listing shows no number for a larger one."""
_SAMPLE_SIZE: Final = 1 << 16
_COMPACT_BOUNDARY: Final = "compact_boundary"
_REPEATED_FIELD: Final = "repeatsCompactSummary"
_REPEATED_KEY: Final = b'"repeatsCompactSummary"'
# However the line spaces its fields.
_STEP_MARKS: Final = [b'"user"', b'"assistant"', b'"human"', b'"tool_result"', b'"compact_system"']
_SIDECHAIN_MARKS: Final = [b'"isSidechain":true', b'"isSidechain": true']


def count_turns(file: DiscoveredFile) -> int | None:
    """Return how many turns lead to where the session stands, rewound ones left out.

    None for a file that is too large to be scanned for a listing.

    Raises:
        Unreadable: the file cannot be read any more.
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
        # Where the file begins in the middle of a turn, that one counts too.
        starts_inside_turn = bool(starts and starts[0][0] and answers.answered_between(0, starts[0][0]))
        for (offset, parent, origin), end in zip(starts, ends, strict=False):
            # Behind a compaction the turn before goes on.
            if origin == "summary" and (turns or starts_inside_turn):
                continue
            if is_tentative(origin, answered=False) and not answers.answered_between(offset, end):
                continue
            # A rewind hangs the new prompt on the parent of the one it replaces. A prompt without a
            # parent behind a boundary goes on, as one published description has it.
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
    """Return how many turns a session has by telling all of it."""
    from steno.session.session import Session
    from steno.session.transcript import load

    return len(Session(load(source)).turns())


def count_agents(file: DiscoveredFile, files: Sequence[DiscoveredFile]) -> int:
    """Return how many sub-agents a session has; `files` are those with a file of their own.

    Raises:
        Unreadable: a file cannot be read any more.
    """
    from steno.session.turns.session_facts import working_agents
    from steno.store.session_lookup import open_file_session

    if file.size > _MAX_SCANNED_SIZE:
        return sum(not _is_warmup(agent) for agent in files)
    with open_file(file) as source:
        if next(_lines_containing(source, _SIDECHAIN_MARKS, 0), None) is None:
            return sum(not _is_warmup(each) for each in files)
    # Those inside the session's own file are told apart by what they hang on.
    with open_file_session(file) as session:
        return len(working_agents(session.all_agents))


def count_step_records(file: DiscoveredFile) -> StepCounts | None:
    """Return how many lines a session has in `steps.jsonl`, and whether one is a text answer.

    None for a file that is too large to be scanned for a listing.

    Raises:
        Unreadable: the file cannot be read any more.
    """
    if file.size > _MAX_SCANNED_SIZE:
        return None
    with open_file(file) as original:
        source = convert_if_dialect(original)
        counts = _scan_step_counts(source)
        # A record of a dialect further down: what it is depends on the records around it.
        return counts or _scan_step_counts(convert_source(source)) or StepCounts()


def _scan_step_counts(source: Source) -> StepCounts | None:
    """Return the counts of a file; None where it is to be converted first."""
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
    """Whether a sub-agent was only started to be ready."""
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
    """Return where turns may begin, the parents of these records, and where their words come from.

    None where a prompt is written in a dialect: the file is to be converted.
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
            # Said again behind a compaction, so that it stays in view.
            if begins_turn(origin) and _REPEATED_KEY in line and piece.fields.get(_REPEATED_FIELD) is True:
                continue
            starts.append((offset, piece.parent_uuid, origin))
    return starts


class _AnswerScanner:
    """Says whether the model spoke in parts of a file that are asked about in order: one pass."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines: Iterator[tuple[int, bytes]] | None = None
        self._pending_line: tuple[int, bytes] | None = None

    def answered_between(self, start: int, end: int) -> bool:
        """Whether the model said anything from `start` on and before `end`."""
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
    """Whether the conversation was compacted from `start` on and before `end`."""
    from steno.format.message import read_envelope

    for offset, line in _lines_containing(source, [b'"compact_boundary"'], start):
        if end is not None and offset >= end:
            return False
        record = read_envelope(line)
        if record is not None and record.subtype == _COMPACT_BOUNDARY and not record.is_sidechain:
            return True
    return False


def _candidate_lines(source: Source, *types: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that may be records of some types, without looking at the others."""
    return _lines_containing(source, _type_needles(source.read(start, _SAMPLE_SIZE), types), start)


def _lines_containing(source: Source, needles: list[bytes], start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold one of some words, from a place on."""
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
            # No prompt is that long; what is left of the line will hold no whole record.
            parts = []
        buffered = sum(map(len, parts))
        start += len(chunk)
    rest = b"".join(parts)
    yield from _matching_lines(needles, rest, start - buffered, buffered)


def _type_needles(sample: bytes, types: Iterable[bytes]) -> list[bytes]:
    """Return how this file writes that a record is of a type; nearly always in one way."""
    needles = [b'"type":"%s"' % name for name in types]
    if b'"type": "' in sample:
        needles += [needle.replace(b":", b": ") for needle in needles]
    return needles


def _matching_lines(needles: list[bytes], data: bytes, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with a needle in them, in file order and each once."""
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
