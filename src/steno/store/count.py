"""How many turns and sub-agents a session has, by a fast scan that decodes only what matters."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from steno.format.dialects.detection import convert_source, converted, is_converted
from steno.format.source import Source
from steno.store.archive.opened import opened
from steno.store.found import Found

if TYPE_CHECKING:
    from steno.session.story.prompts import Origin

__all__ = ["count_agents", "count_turns"]

_LONGEST: Final = 64 << 20
_MOST_READ: Final = 256 << 20
"""Bytes of the largest file that is scanned; a listing shows no number for a larger one."""
_SAMPLE: Final = 1 << 16
_SEAM: Final = "compact_boundary"
_REPEATED: Final = "repeatsCompactSummary"
_REPEATS: Final = b'"repeatsCompactSummary"'
_ASIDE: Final = [b'"isSidechain":true', b'"isSidechain": true']


def count_turns(found: Found) -> int | None:
    """Return how many turns lead to where the session stands, rewound ones left out.

    None for a file that is too large to be scanned for a listing.

    Raises:
        Unreadable: the file cannot be read any more.
    """
    if found.size > _MOST_READ:
        return None
    from steno.session.story.prompts import FAINT

    places: dict[str | None, int] = {}
    turns: list[str | None] = []
    last = 0
    with opened(found) as original:
        source = converted(original)
        starts = None if is_converted(source) else _starts(source)
        if starts is None:
            return _turns_told(convert_source(source))
        ends = (*(start[0] for start in starts[1:]), source.size)
        answers = _Answers(source)
        # Where the file begins in the middle of a turn, that one counts too.
        cut = bool(starts and starts[0][0] and answers.between(0, starts[0][0]))
        for (offset, parent, origin), end in zip(starts, ends, strict=False):
            # Behind a compaction the turn before goes on.
            if origin == "summary" and (turns or cut):
                continue
            if origin in FAINT and not answers.between(offset, end):
                continue
            # A rewind hangs the new prompt on the parent of the one it replaces. A prompt without a
            # parent behind a boundary goes on, as one published description has it.
            goes_on = parent is None and bool(turns) and _is_compacted(source, last, offset)
            place = len(turns) if goes_on else places.get(parent, len(turns))
            for gone in turns[place:]:
                places.pop(gone, None)
            del turns[place:]
            places[parent] = place
            turns.append(parent)
            last = offset
    return len(turns) + cut or min(len(starts), 1)


def _turns_told(source: Source) -> int:
    """Return how many turns a session has by telling all of it."""
    from steno.session.session import Session
    from steno.session.transcript import load

    return len(Session(load(source)).turns())


def count_agents(found: Found, files: Sequence[Found]) -> int:
    """Return how many sub-agents a session has; `files` are those with a file of their own.

    Raises:
        Unreadable: a file cannot be read any more.
    """
    from steno.session.story.figures import agents_among
    from steno.store.library import open_found

    if found.size > _MOST_READ:
        return sum(not _warms_up(each) for each in files)
    with opened(found) as source:
        if next(_having(source, _ASIDE, 0), None) is None:
            return sum(not _warms_up(each) for each in files)
    # Those inside the session's own file are told apart by what they hang on.
    with open_found(found) as session:
        return len(agents_among(session.all_agents))


def _warms_up(agent: Found) -> bool:
    """Whether a sub-agent was only started to be ready."""
    from steno.format.lines import read_bytes
    from steno.format.records import Record
    from steno.session.story.prompts import words_of
    from steno.session.story.threads import WARMUP

    with opened(agent) as source:
        head = source.read(0, min(source.size, _SAMPLE))
    if WARMUP.encode() not in head:
        return False
    records = (piece for piece in read_bytes(head) if isinstance(piece, Record))
    first = next((record for record in records if record.type == "user"), None)
    return first is not None and words_of(first).strip() == WARMUP


def _starts(source: Source) -> list[tuple[int, str | None, "Origin"]] | None:
    """Return where turns may begin, the parents of these records, and where their words come from.

    None where a prompt is written in a dialect: the file is to be converted.
    """
    from steno.format.lines import read_bytes
    from steno.format.records import Record
    from steno.session.story.prompts import FAINT, STARTS, origin_of

    starts: list[tuple[int, str | None, Origin]] = []
    for offset, line in _candidates(source, b"user", b"human"):
        if b'"type":"tool_result"' in line:
            continue
        for piece in read_bytes(line):
            if not isinstance(piece, Record) or piece.type not in ("user", "human"):
                continue
            if piece.dialect != "claude":
                return None
            origin = origin_of(piece)
            if piece.is_sidechain or not (origin in FAINT or origin in STARTS):
                continue
            # Said again behind a compaction, so that it stays in view.
            if origin in STARTS and _REPEATS in line and piece.fields.get(_REPEATED) is True:
                continue
            starts.append((offset, piece.parent_uuid, origin))
    return starts


class _Answers:
    """Says whether the model spoke in parts of a file that are asked about in order: one pass."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines: Iterator[tuple[int, bytes]] | None = None
        self._held: tuple[int, bytes] | None = None

    def between(self, start: int, end: int) -> bool:
        """Whether the model said anything from `start` on and before `end`."""
        if self._lines is None:
            self._lines = _candidates(self._source, b"assistant", start=start)
        while (item := self._held or next(self._lines, None)) is not None:
            self._held = item
            if item[0] >= end:
                return False
            self._held = None
            if item[0] >= start and _is_answer(item[1]):
                return True
        return False


def _is_answer(line: bytes) -> bool:
    from steno.format.envelope import read_envelope

    record = read_envelope(line)
    if record is None or record.type != "assistant" or record.is_sidechain:
        return False
    return bool(record.is_api_error_message) or b'"<synthetic>"' not in line


def _is_compacted(source: Source, start: int, end: int | None = None) -> bool:
    """Whether the conversation was compacted from `start` on and before `end`."""
    from steno.format.envelope import read_envelope

    for offset, line in _having(source, [b'"compact_boundary"'], start):
        if end is not None and offset >= end:
            return False
        record = read_envelope(line)
        if record is not None and record.subtype == _SEAM and not record.is_sidechain:
            return True
    return False


def _candidates(source: Source, *types: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that may be records of some types, without looking at the others."""
    return _having(source, _needles(source.read(start, _SAMPLE), types), start)


def _having(source: Source, needles: list[bytes], start: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold one of some words, from a place on."""
    parts: list[bytes] = []
    held = 0
    for chunk in source.chunks(start):
        last = chunk.rfind(b"\n") + 1
        if last:
            data = b"".join((*parts, chunk)) if parts else chunk
            yield from _lines_with(needles, data, start - held, held + last)
            parts = [chunk[last:]]
        elif held < _LONGEST:
            parts.append(chunk)
        else:
            # No prompt is that long; what is left of the line will hold no whole record.
            parts = []
        held = sum(map(len, parts))
        start += len(chunk)
    rest = b"".join(parts)
    yield from _lines_with(needles, rest, start - held, held)


def _needles(sample: bytes, types: Iterable[bytes]) -> list[bytes]:
    """Return how this file writes that a record is of a type; nearly always in one way."""
    needles = [b'"type":"%s"' % name for name in types]
    if b'"type": "' in sample:
        needles += [needle.replace(b":", b": ") for needle in needles]
    return needles


def _lines_with(
    needles: list[bytes], data: bytes, offset: int, end: int
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with a needle in them, in file order and each once."""
    if len(needles) == 1:
        yield from _lines_with_one(needles[0], data, offset, end)
        return
    found = dict(line for needle in needles for line in _lines_with_one(needle, data, offset, end))
    yield from sorted(found.items())


def _lines_with_one(
    needle: bytes, data: bytes, offset: int, end: int
) -> Iterator[tuple[int, bytes]]:
    at = data.find(needle, 0, end)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        stop = data.find(b"\n", at, end)
        stop = end if stop < 0 else stop
        yield offset + start, data[start:stop]
        at = data.find(needle, stop, end)
