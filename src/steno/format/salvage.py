"""A line that is not one sound record: find every record in it, and account for the rest."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from steno.format.depth import MAX_DEPTH, depth_of
from steno.format.envelope import read_envelope
from steno.format.objects import Found, Objects
from steno.format.records import Gap, Piece, Record
from steno.format.spans import Damage, Span

__all__ = ["salvage"]

_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r"
_HEAD: Final = 4096
_ZEROS: Final = re.compile(b"\0+")
_BLANKS: Final = re.compile(rb"[ \t\r]*")
_NAMES_A_PLACE: Final = ("uuid", "sessionId", "messageId", "leafUuid", "hash")
_ENDS_WELL: Final = re.compile(r"[ \t\r\0]*(?:\{|\Z)")


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
    objects = Objects(line)
    end = len(line)
    behind_record = False
    found: Found | None = None
    while at < end:
        if line[at] == 0:
            stop = _run_of_zeros(line, at)
            zeros = Damage("line.nul-run", Span(offset + at, stop - at), f"{stop - at:,} bytes")
            yield Gap(offset + at, stop - at, line[at : min(stop, at + _HEAD)], (zeros,))
            notes.append(zeros)
            at = stop
            continue
        found = found or objects.at(at)
        if found is None:
            found = _next_record(objects, at + 1)
            start = found.start if found else end
            yield _torn(line, offset, at, start, behind=behind_record)
            notes.append(Damage("line.spliced", Span(offset + start, 0), "behind a cut record"))
            at = start
            continue
        record = _record(line, offset, at, found.stop, tuple(notes))
        found = None
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
    blanks = _BLANKS.match(line, stop)
    ending = blanks.group() if blanks else b""
    behind = stop + len(ending)
    if ending.endswith(b"\r") and behind == len(line):
        notes = (*notes, Damage("line.crlf", Span(offset + behind - 1, 1)))
    bare = body.lstrip(_BLANK)
    odd = _irregular(bare, offset + stop - len(bare))
    return Record(body, offset + at, ending, envelope, (*notes, *odd))


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


def _next_record(objects: Objects, at: int) -> Found | None:
    """Return the next whole record on the line.

    A torn record may end in whole inner objects, so an object is only taken for a record when it
    has a type and names a place, and what is behind it is the line's end or more of the same.
    """
    for found in objects.behind(at):
        sound = _is_record(found.fields, strict=found.inner)
        if sound and _ENDS_WELL.match(objects.text, found.stop):
            return found
    return None


def _is_record(fields: dict[str, Any], *, strict: bool) -> bool:
    if not isinstance(fields.get("type"), str):
        return False
    names = ("sessionId",) if strict else _NAMES_A_PLACE
    return any(isinstance(fields.get(name), str) for name in names)


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
