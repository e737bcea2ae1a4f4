"""Everything that is in the files of a session, as one JSON value.

Every record is there just as it was written, with where it stood; what is no record is there as
base64. Put together in order, they are the file again, where nothing was masked. With secrets, what
is deleted in a file in a dialect is left out: only its place is told.
"""

import os
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from steno.format.dialects.detection import is_converted
from steno.format.dialects.fields import without_results
from steno.format.encode import encode
from steno.format.loose import loose
from steno.format.records import Gap, Piece
from steno.format.source import BytesSource
from steno.report.export.opened import Cut, bytes_of, cut_of
from steno.safe.masking import Masker
from steno.session.transcript import load
from steno.store.discover import agents_of
from steno.store.found import Found
from steno.store.library import open_found

__all__ = ["lossless"]

_VERSION: Final = 1
_DELETED: Final = b'"isDeleted"'


def lossless(found: Found, masker: Masker | None) -> Iterator[bytes]:
    """Yield a session as stretches of one JSON object.

    Raises:
        Unreadable: it cannot be read.
    """
    with open_found(found) as session:
        facts: dict[str, Any] = {
            "steno": _VERSION,
            "session": session.id,
            "title": _said(session.title.text, masker),
            "project": _said(session.project, masker),
            "models": list(session.models),
            "versions": list(session.versions),
            "started": session.started,
            "ended": session.ended,
            "masked": masker is not None,
        }
    yield msgspec.json.encode(facts)[:-1] + b',"files":['
    for number, each in enumerate((found, *agents_of(found))):
        yield b"," if number else b""
        yield from _file(each, masker)
    yield b"]}\n"


def _said(text: str, masker: Masker | None) -> str:
    return masker.text(text) if masker is not None else text


def _file(found: Found, masker: Masker | None) -> Iterator[bytes]:
    data = bytes_of(found)
    name = os.path.basename(found.path)
    cut = cut_of(data, masker, name.removesuffix(".jsonl"))
    head = {"name": name, "agent": found.place.agent_id, "size": len(data)}
    yield msgspec.json.encode(head)[:-1] + b',"pieces":[\n'
    deleted = _deleted_in(data) if masker is not None else {}
    for number, piece in enumerate(_pieces(data)):
        yield b",\n" if number else b""
        yield _piece(piece, data, cut, deleted)
    yield b"\n]}"


def _deleted_in(data: bytes) -> dict[int, tuple[str, ...]]:
    """Return which records are deleted, and of which only some results are."""
    if _DELETED not in data:
        return {}
    source = load(BytesSource(data)).source
    return source.deleted() if is_converted(source) else {}


def _pieces(data: bytes) -> Iterator[Piece]:
    from steno.format.lines import read_bytes

    return read_bytes(data)


def _piece(piece: Piece, data: bytes, cut: Cut, deleted: dict[int, tuple[str, ...]]) -> bytes:
    place: dict[str, Any] = {"offset": piece.offset, "length": piece.length}
    end = piece.offset + piece.length
    if isinstance(piece, Gap):
        place["damage"] = [damage.id for damage in piece.damage]
        place["base64"] = b64encode(cut.of(data, piece.offset, end)).decode()
        return msgspec.json.encode(place)
    line = cut.of(data, piece.offset, end - len(piece.ending))
    place["kind"] = piece.kind
    place["ending"] = piece.ending.decode("latin-1")
    if piece.offset in deleted:
        place["deleted"] = True
        calls = deleted[piece.offset]
        fields = loose(line) if calls else None
        if isinstance(fields, dict):
            place["record"] = without_results(cast("dict[str, Any]", fields), calls)
        return encode(place)
    if not _is_json(line):
        place["base64"] = b64encode(line).decode()
        return msgspec.json.encode(place)
    return msgspec.json.encode(place)[:-1] + b',"record":' + line.strip() + b"}"


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
        line.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return b"\n" not in line and line == line.strip()
