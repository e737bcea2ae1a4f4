"""The text of hits: read again from the file or archive, matched by a pattern, cut to excerpts.

The index stores no text, so excerpts show the current content; a deleted or changed record is reported as such. The
text is tokenized as for the index and the match located again. Regular expressions are limited in time by an alarm
signal; on Windows and in other threads there is no limit, and a pattern such as `(a+)+$` may not terminate.
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
    """The text and location of a message."""

    message: int
    length: int
    turn: int
    time: int | None
    uuid: str = ""
    parts: list[TextPart] = []
    loss_reason: TextLossReason = ""
    """Why the text is missing: the file is deleted and not archived, or its bytes have changed."""
    archived: bool = False
    """Whether the text was read from the archive."""


def message_offset(message: int) -> int:
    """Return the offset of a message in its file."""
    return message & _OFFSET_MASK


class HitReader:
    """Reader of message texts. Close it, or use it in a `with` block."""

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
        """Yield the texts of messages, skipping those that are no longer in the index."""
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
"""Approximate number of characters in an excerpt."""
_CONTEXT_BEFORE: Final = 48
_CLUSTER_LENGTH: Final = 120
_MAX_SNAP: Final = 24


class Excerpt(msgspec.Struct):
    """A part of a text."""

    part: TextPart
    text: str
    """The excerpt exactly as in the part."""
    start: int
    """Offset of the excerpt in the part."""
    marks: list[Span]
    """Matches as character ranges of `text`."""
    is_at_start: bool
    """Whether the excerpt starts at the beginning of the part."""
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
    """Return the best matching excerpt of a message; None if the message does not match.

    `pattern` finds additional required matches.
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
    """Return the part of a text where most of the search terms occur close together."""
    spans = sorted((span, number) for number, spans in enumerate(spans_by_group) for span in spans)
    start = _best_start(spans)
    text = part.text
    first = _snap_to_word(text, max(0, start - _CONTEXT_BEFORE), start)
    last = min(len(text), first + EXCERPT_LENGTH)
    marks = [(at - first, min(end, last) - first) for (at, end), _ in spans if first <= at < last]
    return Excerpt(part, text[first:last], first, _merge_spans(marks), first == 0, last == len(text))


def _best_start(spans: list[tuple[Span, int]]) -> int:
    """Return the start of the best cluster of matches.

    Terms that are rare in the text have more weight.
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
    """Return the start of the line of a match, or of a word shortly before it."""
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
"""Maximum number of characters searched in one text."""
_TIME_LIMIT: Final = 1.0
_MAX_PATTERN_LENGTH: Final = 1_000
_MAX_PATTERN_MATCHES: Final = 200
_CAPITAL_PATTERN: Final = re.compile(r"(?<!\\)(?:\\\\)*[A-Z]")


class _PatternTimeout(Exception):
    """The pattern took too long on a text."""


class RegexPattern:
    """A regular expression that gives up on slow texts when used in a `with` block.

    Without a `with` block, on Windows and in other threads there is no time limit.

    Patterns without capital letters ignore case. `^` and `$` match at line ends.
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
        """Number of distinct texts on which the pattern timed out."""
        return len(self._slow_texts)

    @property
    def truncated_count(self) -> int:
        """Number of distinct texts that were too long and searched only at the beginning."""
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
        """Return the matches of a pattern; an empty list if it times out on the text."""
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

            # `re` checks for signals while matching, so the alarm interrupts it.
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise _PatternTimeout

    def filter_messages(
        self, reader: HitReader, messages: Iterable[int], scope: SearchScope, on_progress: Callable[[int], None]
    ) -> set[int]:
        """Return the messages that match, reading them in file order."""
        matching: set[int] = set()
        for text in reader.read_texts(sorted(messages)):
            on_progress(text.length)
            if any(scope.includes_part(part) and self.find_spans(part.text) for part in text.parts):
                matching.add(text.message)
        return matching


def _compile_pattern(text: str) -> "re.Pattern[str]":
    if not text or len(text) > _MAX_PATTERN_LENGTH:
        raise BadRequest(
            f"invalid pattern length: {len(text):,} characters", hint=f"Use 1 to {_MAX_PATTERN_LENGTH:,} characters."
        )
    flags = re.MULTILINE | (0 if _CAPITAL_PATTERN.search(text) else re.IGNORECASE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        reason = error.msg if isinstance(error, re.error) else "nested too deeply"
        raise BadRequest(f"invalid pattern: {reason}", hint="Use the syntax of Python's `re` module.") from error
