"""The text of hits: read again from the file or archive, matched by a pattern, cut to excerpts.

The index stores no text, so what is shown is the current content; a record that is gone or changed
is reported as such. The text is tokenized as for the index and the match located again. Regular
expressions have a time limit by an alarm signal; on Windows and in other threads there is no limit,
and a pattern such as `(a+)+$` may not terminate.
"""

import re
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Final, Literal, Self

import msgspec

from steno.errors import BadRequest, Unreadable
from steno.format.records import Record
from steno.format.source import BytesSource, OpenSource
from steno.index.line_decoder import line_from_record
from steno.index.search.finder import QueryForms
from steno.index.search.scope import SearchScope
from steno.index.search.terms import Span, Token, find_spans
from steno.index.searchable_text import TextPart, text_parts
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.extract import decoded_lines, open_indexed_file
from steno.store.file_source import FileSource

if TYPE_CHECKING:
    from signal import Handlers


TextLossReason = Literal["", "gone", "changed"]
_MAX_OPEN_FILES: Final = 8
_OFFSET_MASK: Final = (1 << FILE_ID_SHIFT) - 1


class HitText(msgspec.Struct):
    """What a message says, and where it lies."""

    message: int
    length: int
    turn: int
    time: int | None
    uuid: str = ""
    parts: list[TextPart] = []
    loss_reason: TextLossReason = ""
    """Why there are no words: the file is gone and not archived, or holds other bytes there."""
    archived: bool = False
    """Whether it was read from the archive."""


def message_offset(message: int) -> int:
    """Return where in its file a message begins."""
    return message & _OFFSET_MASK


class HitReader:
    """Reads messages again. Close it, or use it in a `with`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sources: dict[int, OpenSource | None] = {}
        self._archived_files: set[int] = set()
        self._tools: dict[int, dict[tuple[int, str], str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in list(self._sources):
            self._close_source(file)

    def read_texts(self, messages: Iterable[int]) -> Iterator[HitText]:
        """Yield what some messages say; those that are no longer in the index are left out."""
        for message in messages:
            row = self._connection.execute(
                "SELECT length, turn, time FROM messages WHERE id = ?", (message,)
            ).fetchone()
            if row is not None:
                yield self._load_text(HitText(message, *row))

    def _load_text(self, text: HitText) -> HitText:
        file = text.message >> FILE_ID_SHIFT
        source = self._source(file)
        if source is None:
            text.loss_reason = "gone"
            return text
        text.archived = file in self._archived_files
        text.loss_reason = "changed"
        with suppress(Unreadable):
            self._set_parts(text, source.read(message_offset(text.message), text.length))
        return text

    def _set_parts(self, text: HitText, raw: bytes) -> None:
        if len(raw) != text.length:
            return
        for piece in decoded_lines(BytesSource(raw)):
            if isinstance(piece, tuple):
                line, data = piece[0], piece[1]
            elif isinstance(piece, Record):
                line, data = line_from_record(piece), piece.line
            else:
                return
            text.uuid = line.uuid or ""
            text.parts = self._add_tool_names(text.message, text_parts(line, data))
            text.loss_reason = ""
            return

    def _add_tool_names(self, message: int, parts: list[TextPart]) -> list[TextPart]:
        if any(part.call and not part.tool for part in parts):
            names = self._tool_names(message >> FILE_ID_SHIFT)
            for part in parts:
                part.tool = part.tool or names.get((message, part.call), "")
        return parts

    def _tool_names(self, file: int) -> dict[tuple[int, str], str]:
        if file not in self._tools:
            if len(self._tools) >= _MAX_OPEN_FILES:
                self._tools.pop(next(iter(self._tools)))
            rows = self._connection.execute(
                "SELECT result, call, name FROM tool_calls WHERE message >= ? AND message < ?",
                (file << FILE_ID_SHIFT, (file + 1) << FILE_ID_SHIFT),
            )
            self._tools[file] = {(result, call): name for result, call, name in rows}
        return self._tools[file]

    def _source(self, file: int) -> OpenSource | None:
        if file not in self._sources:
            if len(self._sources) >= _MAX_OPEN_FILES:
                self._close_source(next(iter(self._sources)))
            self._sources[file] = self._open_source(file)
        return self._sources[file]

    def _open_source(self, file: int) -> OpenSource | None:
        try:
            source = open_indexed_file(self._connection, file)
        except Unreadable:
            return None
        if source is None:
            return None
        if not isinstance(getattr(source, "original", source), FileSource):
            self._archived_files.add(file)
        return source

    def _close_source(self, file: int) -> None:
        source = self._sources.pop(file)
        if source is not None:
            source.close()


EXCERPT_LENGTH: Final = 240
"""About so many letters an excerpt has."""
_CONTEXT_BEFORE: Final = 48
_CLUSTER_LENGTH: Final = 120
_MAX_SNAP: Final = 24


class Excerpt(msgspec.Struct):
    """A stretch of a text."""

    part: TextPart
    text: str
    """The stretch, just as it stands in the part."""
    start: int
    """Where in the part it begins."""
    marks: list[Span]
    """What was found, by letters of `text`."""
    is_at_start: bool
    """Whether nothing stands before it."""
    is_at_end: bool


class _PartMatches(msgspec.Struct):
    part: TextPart
    spans_by_group: list[list[Span]]


def best_excerpt(
    text: HitText,
    term_forms: QueryForms,
    scope: SearchScope,
    tokenize: Callable[[str], list[Token]],
    pattern: Callable[[str], Sequence[Span]] | None = None,
) -> Excerpt | None:
    """Return the stretch of a message that shows best why it was found; None if it was not.

    `pattern` finds what else must be there.
    """
    parts = [part for part in text.parts if scope.includes_part(part)]
    part_matches = [_match_part(part, term_forms, tokenize, pattern) for part in parts]
    group_count = len(term_forms.groups) + (pattern is not None)
    if not part_matches or not all(
        any(match.spans_by_group[group] for match in part_matches) for group in range(group_count)
    ):
        return None
    best = max(part_matches, key=_matched_groups)
    return cut_excerpt(best.part, best.spans_by_group)


def _match_part(
    part: TextPart,
    term_forms: QueryForms,
    tokenize: Callable[[str], list[Token]],
    pattern: Callable[[str], Sequence[Span]] | None,
) -> _PartMatches:
    spans_by_group: list[list[Span]] = []
    if term_forms.groups:
        tokens = tokenize(part.text)
        spans_by_group = [find_spans(forms, tokens) for forms in term_forms.groups]
    if pattern is not None:
        spans_by_group.append(list(pattern(part.text)))
    return _PartMatches(part, spans_by_group)


def _matched_groups(match: _PartMatches) -> int:
    return sum(bool(spans) for spans in match.spans_by_group)


def cut_excerpt(part: TextPart, spans_by_group: list[list[Span]]) -> Excerpt:
    """Return the stretch of a text where most of what was looked for stands together."""
    spans = sorted((span, number) for number, spans in enumerate(spans_by_group) for span in spans)
    start = _best_start(spans)
    text = part.text
    first = _snap_to_word(text, max(0, start - _CONTEXT_BEFORE), start)
    last = min(len(text), first + EXCERPT_LENGTH)
    marks = [(at - first, min(end, last) - first) for (at, end), _ in spans if first <= at < last]
    return Excerpt(part, text[first:last], first, _merge_spans(marks), first == 0, last == len(text))


def _best_start(spans: list[tuple[Span, int]]) -> int:
    """Return where the first of those matches begins that stand together best.

    What is rare in the text says more than what is everywhere.
    """
    weights = {number: 1 / count for number, count in Counter(n for _, n in spans).items()}
    best, best_score = 0, 0.0
    for index, ((start, _), _) in enumerate(spans):
        groups_in_reach: set[int] = set()
        for (at, _), number in spans[index:]:
            if at > start + _CLUSTER_LENGTH:
                break
            groups_in_reach.add(number)
        score = len(groups_in_reach) + sum(weights[number] for number in groups_in_reach)
        if score > best_score:
            best, best_score = start, score
    return best


def _snap_to_word(text: str, at: int, start: int) -> int:
    """Return where the line of a match begins, else a word shortly before it."""
    line = text.rfind("\n", at, start)
    if line >= 0:
        return line + 1
    space = text.find(" ", at, min(at + _MAX_SNAP, start))
    return space + 1 if at and space >= 0 else at


def _merge_spans(marks: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in marks:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


MAX_TEXT_LENGTH: Final = 4_000_000
"""So many letters of one text are looked at."""
_TIME_LIMIT: Final = 1.0
_MAX_PATTERN_LENGTH: Final = 1_000
_MAX_PATTERN_MATCHES: Final = 200
_CAPITAL_PATTERN: Final = re.compile(r"(?<!\\)(?:\\\\)*[A-Z]")


class _PatternTimeout(Exception):
    """The pattern took too long on one text."""


class RegexPattern:
    """A regular expression. Used in a `with`, it gives up on texts that take it too long.

    Outside of a `with` there is no limit on time, and none on Windows or in other threads.

    Small letters also mean capitals, unless there is a capital in it. `^` and `$` are the ends of
    lines.
    """

    def __init__(self, text: str, time_limit: float = _TIME_LIMIT) -> None:
        self._time_limit = time_limit
        self._armed = False
        self._previous_handler: Callable[[int, FrameType | None], object] | int | Handlers | None = None
        self._has_alarm = False
        self._slow_texts: set[tuple[int, int]] = set()
        self._truncated_texts: set[tuple[int, int]] = set()
        self._finditer = _compile_pattern(text).finditer

    @property
    def slow_count(self) -> int:
        """How many different texts took too long, and were given up."""
        return len(self._slow_texts)

    @property
    def truncated_count(self) -> int:
        """How many different texts were too long, and looked at only in their beginning."""
        return len(self._truncated_texts)

    def __enter__(self) -> Self:
        import signal
        import threading

        is_main_thread = threading.current_thread() is threading.main_thread()
        if is_main_thread and hasattr(signal, "setitimer"):
            self._previous_handler = signal.signal(signal.SIGALRM, self._on_alarm)
            self._has_alarm = True
        return self

    def __exit__(self, *_: object) -> None:
        import signal

        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._previous_handler)
            self._has_alarm = False

    def find_spans(self, text: str) -> list[Span]:
        """Return where the pattern fits; nothing when that takes too long, or did so before."""
        if len(text) > MAX_TEXT_LENGTH:
            self._truncated_texts.add((len(text), hash(text)))
            text = text[:MAX_TEXT_LENGTH]
        if self._slow_texts and (len(text), hash(text)) in self._slow_texts:
            return []
        try:
            self._set_alarm(self._time_limit)
            return self._match_spans(text)
        except _PatternTimeout:
            self._slow_texts.add((len(text), hash(text)))
            return []
        finally:
            with suppress(_PatternTimeout):
                self._set_alarm(0)

    def _match_spans(self, text: str) -> list[Span]:
        spans: list[Span] = []
        empty = False
        for match in self._finditer(text):
            if match.start() < match.end():
                spans.append(match.span())
                if len(spans) >= _MAX_PATTERN_MATCHES:
                    break
            elif not empty:
                empty = True
        self._armed = False
        return spans or ([(0, 0)] if empty else [])

    def _set_alarm(self, seconds: float) -> None:
        self._armed = bool(seconds)
        if self._has_alarm:
            import signal

            # `re` looks at signals while it works, so this stops it in the middle.
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise _PatternTimeout

    def filter_messages(
        self, reader: HitReader, messages: Iterable[int], scope: SearchScope, on_progress: Callable[[int], None]
    ) -> set[int]:
        """Return those messages in which the pattern fits; they are read in the order of files."""
        matching: set[int] = set()
        for text in reader.read_texts(sorted(messages)):
            on_progress(text.length)
            if any(scope.includes_part(part) and self.find_spans(part.text) for part in text.parts):
                matching.add(text.message)
        return matching


def _compile_pattern(text: str) -> "re.Pattern[str]":
    if not text or len(text) > _MAX_PATTERN_LENGTH:
        raise BadRequest(f"a pattern of {len(text):,} letters", hint=f"between 1 and {_MAX_PATTERN_LENGTH:,} will do")
    flags = re.MULTILINE | (0 if _CAPITAL_PATTERN.search(text) else re.IGNORECASE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        reason = error.msg if isinstance(error, re.error) else "too deep"
        raise BadRequest(f"not a pattern: {reason}", hint="as Python's `re` has them") from error
