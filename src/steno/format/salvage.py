"""Recovers records from damaged lines, and reports flaws inside lines that can be decoded.

Every `{"` of a damaged line may start a record, and each attempt may read up to the end of the line. So each attempt
reads through a window that grows only while the text is valid up to its end, and all attempts on a line share a limit
proportional to the length of the line. Records not found within it become part of the gap. Finding flaws needs a
second, slower decode, so it is done only on request.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from steno.format.lenient_json import MAX_DEPTH, nesting_depth
from steno.format.message import read_envelope
from steno.format.records import Gap, Piece, Record
from steno.format.source import Damage, Span

_FIRST_WINDOW: Final = 4096
_GROWTH: Final = 8
_ALLOWANCE: Final = 32
_FREE_ALLOWANCE: Final = 1 << 20
_PER_TRY: Final = 512
_NEAR_END: Final = 16  # no literal and no escape is longer
_JSON_WHITESPACE: Final = " \t\r\n"
_VALUE_MAY_FOLLOW: Final = ":[,"
_OPENING_BRACE: Final = re.compile(r"[ \t\r]*\{")
_OBJECT_START: Final = re.compile(r'\{"[A-Za-z_][A-Za-z0-9_]*":')
# Only the presence of a number matters, and `len` accepts any length.
_FORGIVING: Final = json.JSONDecoder(strict=False, parse_int=len)


class ObjectMatch(NamedTuple):
    """An object with its position on the line; `inner` if it may be the value of another object."""

    start: int
    stop: int
    inner: bool
    fields: dict[str, Any]


class ObjectScanner:
    """Scanner for the JSON objects on one line."""

    def __init__(self, line: bytes) -> None:
        self.text = line.decode("latin-1")  # one character per byte, so that positions are byte offsets
        self._last_type = self.text.rfind('"type"')
        self._allowance = _ALLOWANCE * len(line) + _FREE_ALLOWANCE
        self._spent = {False: 0, True: 0}

    def object_at(self, at: int) -> ObjectMatch | None:
        """Return the object that starts at `at`, including preceding whitespace."""
        match = _OPENING_BRACE.match(self.text, at)
        if match is None:
            return None
        fields, length = self._read(match.end() - 1)
        return None if fields is None else ObjectMatch(at, match.end() - 1 + length, False, fields)

    def objects_from(self, at: int) -> Iterator[ObjectMatch]:
        """Yield possible records at or after `at`, including inner objects."""
        for match in _OBJECT_START.finditer(self.text, at):
            start = match.start()
            if start > self._last_type:
                return
            inner = self.text[start - 1 : start] in _VALUE_MAY_FOLLOW
            if self._spent[inner] > self._allowance:
                continue
            fields, length = self._read(start)
            self._spent[inner] += _PER_TRY + length
            if fields is not None:
                yield ObjectMatch(start, start + length, inner, fields)

    def _read(self, at: int) -> tuple[dict[str, Any] | None, int]:
        """Return the object at a brace and its length, or None and the number of characters read."""
        size = _FIRST_WINDOW
        spent = 0
        while True:
            window = self.text[at : at + size]
            try:
                fields, length = _FORGIVING.raw_decode(window)
            except json.JSONDecodeError as error:
                truncated = _is_truncated(error, window)
                spent += len(window) if truncated else error.pos
                if not truncated or at + size >= len(self.text):
                    return None, spent
                size *= _GROWTH
            except (ValueError, RecursionError):
                return None, spent + len(window)
            else:
                return fields, length


def _is_truncated(error: json.JSONDecodeError, window: str) -> bool:
    """Return whether decoding failed because the window ended."""
    if error.msg.startswith("Unterminated string"):
        return True
    return error.pos >= len(window.rstrip(_JSON_WHITESPACE)) - _NEAR_END


_SAFE_INTEGER: Final = 2**53
_SAFE_DIGITS: Final = 15
_MANY_DIGITS: Final = 20
_LONE_SURROGATE: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*+(\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|[c-fC-F][0-9a-fA-F]{2}))"
)
_SURROGATE_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def find_flaws(line: bytes, offset: int) -> tuple[Damage, ...]:
    """Return a note for each kind of flaw inside a decodable line."""
    damage: list[Damage] = []

    def note(name: str, at: int, length: int, message: str) -> None:
        damage.append(Damage(f"line.{name}", Span(offset + at, length), message))

    if not line.isascii():
        try:
            line.decode()
        except UnicodeDecodeError as error:
            note("utf8", error.start, error.end - error.start, error.reason)
    if b"\\u" in line and (lone := _lone_surrogate(line)) is not None:
        note("surrogate", lone, 6, line[lone : lone + 6].decode("ascii"))
    depth = nesting_depth(line)
    if depth > MAX_DEPTH:
        note("depth", 0, len(line), f"{depth:,} levels")
        return tuple(damage)
    _find_json_flaws(line, note)
    return tuple(damage)


def _lone_surrogate(line: bytes) -> int | None:
    blanked = _SURROGATE_PAIR.sub(lambda match: b"_" * len(match.group()), line)
    match = _LONE_SURROGATE.search(blanked)
    return match.start(1) if match else None


def _find_json_flaws(line: bytes, note: Any) -> None:
    """Decode again with hooks for flaws that decoders ignore silently."""
    seen: dict[str, str] = {}

    def check_keys(items: list[tuple[str, Any]]) -> None:
        if "duplicate-key" in seen or len(dict(items)) == len(items):
            return
        met: set[str] = set()
        for key, _ in items:
            if key in met:
                seen["duplicate-key"] = key
                return
            met.add(key)

    def check_integer(digits: str) -> int:
        if len(digits) > _SAFE_DIGITS and (len(digits) > _MANY_DIGITS or abs(int(digits)) > _SAFE_INTEGER):
            seen.setdefault("bigint", digits[:24])
        return 0

    decoder = json.JSONDecoder(object_pairs_hook=check_keys, parse_int=check_integer, strict=False)
    try:
        decoder.decode(line.decode("utf-8", "replace").strip())
    except (ValueError, RecursionError):
        return
    for name, detail in seen.items():
        note(name, 0, len(line), detail)


_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r"
_HEAD_SIZE: Final = 4096
_ZEROS: Final = re.compile(b"\0+")
_BLANKS: Final = re.compile(rb"[ \t\r]*")
_ID_FIELDS: Final = ("uuid", "sessionId", "messageId", "leafUuid", "hash")
_SOUND_END: Final = re.compile(r"[ \t\r\0]*(?:\{|\Z)")


def salvage(line: bytes, offset: int, *, ended: bool, after_zeros: bool = False) -> Iterator[Piece]:
    """Yield pieces that cover the line and its newline, with all readable records."""
    pieces = list(_salvage_pieces(line, offset, after_zeros=after_zeros))
    tail = b"\n" if ended else b""
    last = pieces.pop() if pieces else Gap(offset, 0, b"")
    yield from pieces
    if isinstance(last, Record):
        yield Record(last.line, last.offset, last.ending + tail, last.envelope, last.notes)
    else:
        head = last.head + tail if len(last.head) == last.length else last.head
        yield Gap(last.offset, last.length + len(tail), head, last.damage)


def _salvage_pieces(line: bytes, offset: int, *, after_zeros: bool) -> Iterator[Piece]:
    at = 0
    notes: list[Damage] = []
    if after_zeros:
        notes.append(Damage("line.nul-run", Span(offset, 0), "preceded by zero bytes"))
    if line.startswith(_BOM):
        bom = Damage("line.bom", Span(offset, len(_BOM)))
        yield Gap(offset, len(_BOM), _BOM, (bom,))
        at = len(_BOM)
    objects = ObjectScanner(line)
    end = len(line)
    behind_record = False
    candidate: ObjectMatch | None = None
    while at < end:
        if line[at] == 0:
            stop = _end_of_zeros(line, at)
            zeros = Damage("line.nul-run", Span(offset + at, stop - at), f"{stop - at:,} bytes")
            yield Gap(offset + at, stop - at, line[at : min(stop, at + _HEAD_SIZE)], (zeros,))
            notes.append(zeros)
            at = stop
            continue
        candidate = candidate or objects.object_at(at)
        if candidate is None:
            candidate = _next_record(objects, at + 1)
            start = candidate.start if candidate else end
            yield _damaged_gap(line, offset, at, start, after_record=behind_record)
            notes.append(Damage("line.spliced", Span(offset + start, 0), "after an incomplete record"))
            at = start
            continue
        record = _record_piece(line, offset, at, candidate.stop, tuple(notes))
        candidate = None
        if record is None:
            yield _damaged_gap(line, offset, at, end, after_record=behind_record)
            return
        yield record
        at = record.offset - offset + record.length
        behind_record = True
        notes = [Damage("line.glued", Span(offset + at, 0), "no newline before it")]


def _record_piece(line: bytes, offset: int, at: int, stop: int, notes: tuple[Damage, ...]) -> Record | None:
    """Build the record in `line[at:stop]`; whitespace after it becomes its ending."""
    body = line[at:stop]
    envelope = read_envelope(body)
    if envelope is None:
        return None
    blanks = _BLANKS.match(line, stop)
    ending = blanks.group() if blanks else b""
    end = stop + len(ending)
    if ending.endswith(b"\r") and end == len(line):
        notes = (*notes, Damage("line.crlf", Span(offset + end - 1, 1)))
    stripped = body.lstrip(_BLANK)
    irregularities = _irregularities(stripped, offset + stop - len(stripped))
    return Record(body, offset + at, ending, envelope, (*notes, *irregularities))


def _irregularities(body: bytes, offset: int) -> Iterator[Damage]:
    """Yield the flaws that make a strict reader such as Claude Code skip the line."""
    span = Span(offset, len(body))
    text = body.decode("utf-8", "replace").strip()
    constants: list[str] = []
    try:
        json.JSONDecoder(parse_constant=constants.append).decode(text)
    except json.JSONDecodeError as error:
        if "control character" in error.msg:
            yield Damage("line.control", span, error.msg)
    except (ValueError, RecursionError):
        return
    if constants:
        yield Damage("line.number", span, constants[0])


def _end_of_zeros(line: bytes, at: int) -> int:
    match = _ZEROS.match(line, at)
    return match.end() if match else at


def _next_record(objects: ObjectScanner, at: int) -> ObjectMatch | None:
    """Return the next complete record on the line.

    An incomplete record may end in complete inner objects, so an object only counts as a record if it has a type and an
    ID, and is followed by the end of the line or another object.
    """
    for candidate in objects.objects_from(at):
        sound = _is_record(candidate.fields, strict=candidate.inner)
        if sound and _SOUND_END.match(objects.text, candidate.stop):
            return candidate
    return None


def _is_record(fields: dict[str, Any], *, strict: bool) -> bool:
    if not isinstance(fields.get("type"), str):
        return False
    names = ("sessionId",) if strict else _ID_FIELDS
    return any(isinstance(fields.get(name), str) for name in names)


def _damaged_gap(line: bytes, offset: int, at: int, stop: int, *, after_record: bool) -> Gap:
    body = line[at:stop]
    span = Span(offset + at, len(body))
    if not body.strip(_BLANK):
        return Gap(span.offset, span.length, body)
    name, message = "not-json", ""
    if body.lstrip(_BLANK).startswith(b"{"):
        name = "torn"
        if nesting_depth(body) > MAX_DEPTH:
            name, message = "depth", f"{nesting_depth(body):,} levels"
    elif not after_record and _is_json(body):
        name = "not-object"
    return Gap(span.offset, span.length, body[:_HEAD_SIZE], (Damage(f"line.{name}", span, message),))


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True
