"""A line that is not one sound record: find every record in it, and account for the rest."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from steno.format.depth import MAX_DEPTH, depth_of
from steno.format.envelope import read_envelope
from steno.format.records import Gap, Piece, Record
from steno.format.spans import Damage, Span

__all__ = ["salvage"]

_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r"
_HEAD: Final = 4096
_START: Final = re.compile(r'\{"[A-Za-z_][A-Za-z0-9_]*":')
_ZEROS: Final = re.compile(b"\0+")
_NAMES_A_PLACE: Final = ("uuid", "sessionId", "messageId", "leafUuid", "hash")
_VALUE_MAY_FOLLOW: Final = ":[,"
_FORGIVING: Final = json.JSONDecoder(strict=False)


def salvage(line: bytes, offset: int, *, ended: bool, after_zeros: bool = False) -> Iterator[Piece]:
    """Yield pieces that tile the line and its newline, records wherever one can be read."""
    pieces = list(_pieces(line, offset, after_zeros=after_zeros))
    tail = b"\n" if ended else b""
    last = pieces.pop() if pieces else Gap(offset, 0, b"")
    yield from pieces
    if isinstance(last, Record):
        yield Record(last.line, last.offset, last.ending + tail, last.envelope, last.notes)
    else:
        head = last.head + tail if len(last.head) == last.length else last.head
        yield Gap(last.offset, last.length + len(tail), head, last.damage)


def _pieces(line: bytes, offset: int, *, after_zeros: bool) -> Iterator[Piece]:
    """Yield the pieces of a line without its newline."""
    at = 0
    notes: list[Damage] = []
    if after_zeros:
        notes.append(Damage("line.nul-run", Span(offset, 0), "zero bytes stand before it"))
    if line.startswith(_BOM):
        bom = Damage("line.bom", Span(offset, len(_BOM)))
        yield Gap(offset, len(_BOM), _BOM, (bom,))
        at = len(_BOM)
    text = line.decode("latin-1")  # one character per byte: positions are byte offsets
    end = len(line)
    behind_record = False
    while at < end:
        if line[at] == 0:
            stop = _run_of_zeros(line, at)
            zeros = Damage("line.nul-run", Span(offset + at, stop - at), f"{stop - at:,} bytes")
            yield Gap(offset + at, stop - at, line[at : min(stop, at + _HEAD)], (zeros,))
            notes.append(zeros)
            at = stop
            continue
        stop = _object_end(text, at)
        if stop is None:
            start = _next_record(text, at + 1)
            torn = _torn(line, offset, at, end if start is None else start, behind=behind_record)
            yield torn
            if start is None:
                return
            notes.append(Damage("line.spliced", Span(offset + start, 0), "behind a cut record"))
            at = start
            continue
        record = _record(line, offset, at, stop, tuple(notes))
        if record is None:
            yield _torn(line, offset, at, end, behind=behind_record)
            return
        yield record
        at = record.offset - offset + record.length
        behind_record = True
        notes = [Damage("line.glued", Span(offset + at, 0), "no newline before it")]


def _record(
    line: bytes, offset: int, at: int, stop: int, notes: tuple[Damage, ...]
) -> Record | None:
    """Make the record in `line[at:stop]`; blanks behind it become its ending."""
    body = line[at:stop]
    envelope = read_envelope(body)
    if envelope is None:
        return None
    rest = line[stop:]
    blanks = len(rest) - len(rest.lstrip(_BLANK))
    ending = rest[:blanks]
    if ending.endswith(b"\r") and stop + blanks == len(line):
        notes = (*notes, Damage("line.crlf", Span(offset + stop + blanks - 1, 1)))
    lead = len(body) - len(body.lstrip(_BLANK))
    return Record(
        body, offset + at, ending, envelope, (*notes, *_irregular(body, offset + at + lead))
    )


def _irregular(body: bytes, offset: int) -> Iterator[Damage]:
    """Yield what makes a strict reader, as the real client is, refuse the line."""
    whole = Span(offset, len(body))
    text = body.decode("utf-8", "replace").strip()
    constants: list[str] = []
    try:
        json.JSONDecoder(parse_constant=constants.append).decode(text)
    except json.JSONDecodeError as error:
        if "control character" in error.msg:
            yield Damage("line.control", whole, error.msg)
    except (ValueError, RecursionError):
        return
    if constants:
        yield Damage("line.number", whole, constants[0])


def _run_of_zeros(line: bytes, at: int) -> int:
    match = _ZEROS.match(line, at)
    return match.end() if match else at


def _object_end(text: str, at: int) -> int | None:
    """Return where the JSON object beginning at `at` ends, or None when there is none."""
    start = at
    while start < len(text) and text[start] in " \t\r":
        start += 1
    if not text.startswith("{", start):
        return None
    try:
        value, stop = _FORGIVING.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return stop if isinstance(value, dict) else None


def _next_record(text: str, at: int) -> int | None:
    """Return where the next whole record on the line begins.

    A torn record may end in whole inner objects, so an object is only taken for a record when it
    has a type and names a place, and what is behind it is the line's end or more of the same.
    """
    for match in _START.finditer(text, at):
        start = match.start()
        stop = _object_end(text, start)
        if stop is None:
            continue
        fields = cast("dict[str, Any]", _FORGIVING.raw_decode(text, start)[0])
        inner = text[start - 1] in _VALUE_MAY_FOLLOW
        if _is_record(fields, strict=inner) and _ends_well(text, stop):
            return start
    return None


def _is_record(fields: dict[str, Any], *, strict: bool) -> bool:
    if not isinstance(fields.get("type"), str):
        return False
    names = ("sessionId",) if strict else _NAMES_A_PLACE
    return any(isinstance(fields.get(name), str) for name in names)


def _ends_well(text: str, stop: int) -> bool:
    rest = text[stop:].lstrip(" \t\r\0")
    return not rest or rest.startswith("{")


def _torn(line: bytes, offset: int, at: int, stop: int, *, behind: bool) -> Gap:
    """Name what kind of wreck the bytes are."""
    body = line[at:stop]
    span = Span(offset + at, len(body))
    if not body.strip(_BLANK):
        return Gap(span.offset, span.length, body)
    name, message = "not-json", ""
    if body.lstrip(_BLANK).startswith(b"{"):
        name = "torn"
        if depth_of(body) > MAX_DEPTH:
            name, message = "depth", f"{depth_of(body):,} levels"
    elif not behind and _is_json(body):
        name = "not-object"
    return Gap(span.offset, span.length, body[:_HEAD], (Damage(f"line.{name}", span, message),))


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True
