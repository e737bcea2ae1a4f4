"""Lines of bytes: into which pieces they fall, and what is noted about each."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from steno.format.lenient_json import decode_lenient, nesting_depth
from steno.format.lines import read_bytes, read_line_batches, read_pieces
from steno.format.records import Gap, Piece, Record
from steno.format.salvage import find_flaws
from steno.format.source import BytesSource, Damage

__all__ = ["answers"]

_TAG: Final = b'{"type":"tag","uuid":"a","tag":"x"}'
_MODE: Final = b'{"type":"mode","sessionId":"s","mode":"y"}'
_USER: Final = b'{"type":"user","uuid":"b","message":{"role":"user","content":[{"type":"text","text":"z"}]}}'
_LINES: Final[dict[str, bytes]] = {
    "nothing": b"",
    "a newline": b"\n",
    "two newlines": b"\n\n",
    "blanks": b"  \t\r\n",
    "a record": _TAG + b"\n",
    "a record, open": _TAG,
    "two records": _TAG + b"\n" + _MODE + b"\n",
    "an empty line between": _TAG + b"\n\n" + _MODE + b"\n",
    "glued": _TAG + _MODE + b"\n",
    "glued by a blank": _TAG + b" " + _MODE + b"\n",
    "three glued": _TAG + _MODE + _USER + b"\n",
    "glued, the second torn": _TAG + _MODE[:-9] + b"\n",
    "torn": _TAG[:-9] + b"\n",
    "torn, open": _TAG[:-9],
    "torn in a name": _TAG[:9] + b"\n",
    "torn, one behind it": _USER[:-9] + _MODE + b"\n",
    "torn inside, one behind it": _USER[:70] + _MODE + b"\n",
    "torn in a text, one behind it": _TAG[:-4] + _MODE + b"\n",
    "torn twice, one behind": _TAG[:-9] + _USER[:40] + _MODE + b"\n",
    "an inner object that looks like a record": b'{"type":"user","x":{"type":"tag","uuid":"c"},"y":' + _MODE + b"\n",
    "a list, one behind it": b"[1,2]" + _MODE + b"\n",
    "words, one behind them": b"no json " + _MODE + b"\n",
    "a record, words behind it": _TAG + b" no json\n",
    "a record, a brace behind it": _TAG + b"}\n",
    "a record, a list behind it": _TAG + b"[1]\n",
    "words": b"no json\n",
    "half a word": b"tru\n",
    "a list": b"[1,2]\n",
    "a text": b'"x"\n',
    "a number": b"5\n",
    "null": b"null\n",
    "an empty object": b"{}\n",
    "blanks around": b"  " + _TAG + b" \t\n",
    "a carriage return": _TAG + b"\r\n",
    "a carriage return alone": b"\r\n",
    "a mark": b"\xef\xbb\xbf" + _TAG + b"\n",
    "a mark alone": b"\xef\xbb\xbf\n",
    "a mark later": _TAG + b"\n\xef\xbb\xbf" + _MODE + b"\n",
    "zeros": b"\0" * 5,
    "zeros and a newline": b"\0" * 5 + b"\n",
    "zeros before": b"\0" * 5 + _TAG + b"\n",
    "zeros between": _TAG + b"\0" * 5 + _MODE + b"\n",
    "zeros behind": _TAG + b"\0" * 5 + b"\n",
    "zeros on a line of their own": _TAG + b"\n" + b"\0" * 5 + b"\n" + _MODE + b"\n",
    "zeros at the end": _TAG + b"\n" + b"\0" * 5,
    "zeros inside": _TAG[:9] + b"\0" * 5 + _TAG[9:] + b"\n",
    "zeros, then torn": b"\0" * 5 + _TAG[:-9] + b"\n",
    "many zeros": b"\0" * 5000 + b"\n" + _TAG + b"\n",
    "a raw control": _TAG.replace(b"x", b"\x01") + b"\n",
    "NaN": _TAG.replace(b'"x"', b"NaN") + b"\n",
    "infinities": _TAG.replace(b'"x"', b"[-Infinity,Infinity]") + b"\n",
    "bad UTF-8": _TAG.replace(b"x", b"\xff\xfe") + b"\n",
    "half a pair": _TAG.replace(b"x", b"\\ud83d") + b"\n",
    "the other half": _TAG.replace(b"x", b"\\uDE00") + b"\n",
    "a pair": _TAG.replace(b"x", b"\\ud83d\\ude00") + b"\n",
    "a pair, then half": _TAG.replace(b"x", b"\\ud83d\\ude00\\ud83d") + b"\n",
    "two first halves": _TAG.replace(b"x", b"\\ud83d\\ud83d") + b"\n",
    "an escaped backslash": _TAG.replace(b"x", b"\\\\ud83d") + b"\n",
    "a backslash and half": _TAG.replace(b"x", b"\\\\\\ud83d") + b"\n",
    "2**53": _TAG.replace(b'"x"', b"9007199254740992") + b"\n",
    "2**53 + 1": _TAG.replace(b'"x"', b"9007199254740993") + b"\n",
    "minus 2**53 - 1": _TAG.replace(b'"x"', b"-9007199254740993") + b"\n",
    "15 digits": _TAG.replace(b'"x"', b"9" * 15) + b"\n",
    "20 digits": _TAG.replace(b'"x"', b"1" * 20) + b"\n",
    "21 digits": _TAG.replace(b'"x"', b"1" * 21) + b"\n",
    "21 digits, zero": _TAG.replace(b'"x"', b"-" + b"0" * 1) + b"\n",
    "two big ones": _TAG.replace(b'"x"', b"[" + b"1" * 30 + b"," + b"2" * 30 + b"]") + b"\n",
    "a key twice": _TAG.replace(b'"tag":"x"', b'"tag":"x","tag":"y"') + b"\n",
    "two keys twice": _TAG.replace(b'"tag":"x"', b'"a":1,"b":2,"b":3,"a":4') + b"\n",
    "a key twice inside": _TAG.replace(b'"x"', b'{"a":1,"a":2}') + b"\n",
    "256 levels": _TAG.replace(b'"x"', b"[" * 255 + b"]" * 255) + b"\n",
    "257 levels": _TAG.replace(b'"x"', b"[" * 256 + b"]" * 256) + b"\n",
    "brackets in a text": _TAG.replace(b"x", b"[" * 300) + b"\n",
    "brackets side by side": _TAG.replace(b'"x"', b"[" + b"[]," * 300 + b"1]") + b"\n",
    "too deep": b"[" * 100_000 + b"\n",
    "type a number": b'{"type":5,"uuid":"a"}\n',
    "uuid a number": b'{"type":"user","uuid":5}\n',
    "message a list": b'{"type":"user","uuid":"a","message":[1]}\n',
    "no type": b'{"uuid":"a"}\n',
}
_VALUES: Final[dict[str, bytes]] = {
    "a text": b'"x"',
    "nothing": b"",
    "blanks around": b' \n{"a":1}\t',
    "zeros around": b'\0{"a":1}\0',
    "a mark": b'\xef\xbb\xbf{"a":1}',
    "bad bytes": b'{"a":"\xff"}',
    "half a pair": b'{"a\\ud83d":["\\ude00",{"b":"\\ud83d\\ude00"}]}',
    "constants": b'{"a":[NaN,Infinity,-Infinity]}',
    "a long integer": b"1" * 30,
    "3999 digits": b"1" * 3999,
    "4000 digits": b"1" * 4000,
    "a control": b'"a\x01b"',
    "cut": b'{"a":',
    "two": b"{}{}",
    "7 levels": b"[" * 7 + b"1" + b"]" * 7,
    "511 levels": b"[" * 511 + b"]" * 511,
    "512 levels": b"[" * 512 + b"]" * 512,
    "513 levels": b"[" * 513 + b"]" * 513,
    "deep in a text": b'"' + b"[" * 600 + b'"',
}


def _note(note: Damage) -> str:
    words = f" ({note.message})" if note.message else ""
    return f"{note.id} {note.span.offset}+{note.span.length}{words}"


def _piece(piece: Piece) -> str:
    if isinstance(piece, Gap):
        head = piece.head if len(piece.head) < 60 else piece.head[:20] + b"..." + piece.head[-9:]
        notes = "; ".join(map(_note, piece.damage))
        return f"gap {piece.offset}+{piece.length} {head!r} of {len(piece.head)} [{notes}]"
    notes = "; ".join(map(_note, piece.notes))
    odd = "; ".join(map(_note, find_flaws(piece.line, piece.offset)))
    whole = "whole" if piece.whole else "not whole"
    span = f"{piece.span.offset}+{piece.span.length} ending {piece.ending!r}"
    return f"record {span} {piece.kind!r} {piece.uuid} {whole} [{notes}] [{odd}]"


def _parted(data: bytes, cap: int = 4 << 10) -> str:
    found = list(read_bytes(data, cap=cap))
    assert b"".join(_bytes(data, piece) for piece in found) == data
    lines = [_piece(piece) for piece in found]
    return "\n    ".join(lines) or "no piece"


def _bytes(data: bytes, piece: Piece) -> bytes:
    return data[piece.offset : piece.offset + piece.length]


class _Chunked:
    """A source that gives its bytes in chunks of one size."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._chunk = data, size
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        for at in range(start, len(self._data), self._chunk):
            yield self._data[at : at + self._chunk]


def _same_in_chunks(data: bytes) -> str:
    """Return whether the records are the same however the bytes come in."""
    whole = _found(read_bytes(data, cap=90))
    parted = [_found(read_pieces(_Chunked(data, size), cap=90)) for size in (1, 2, 3, 5, 7, 64)]
    return "the same" if all(each == whole for each in parted) else "not the same"


def _found(pieces: Iterable[Piece]) -> list[tuple[int, bytes, bytes, bool]]:
    records = (piece for piece in pieces if isinstance(piece, Record))
    return [(each.offset, each.line, each.ending, each.whole) for each in records]


def _stretched(data: bytes, cap: int) -> str:
    told: list[str] = []
    for part in read_line_batches(BytesSource(data), cap=cap):
        if isinstance(part, Gap):
            told.append(f"gap {part.offset}+{part.length}")
        else:
            marks = f"{'ended' if part.ended else 'open'}{', after zeros' * part.after_zeros}"
            count = len(list(part.lines()))
            told.append(f"{part.offset}+{len(part.data)} {count} lines {marks}")
    return "; ".join(told)


def answers() -> Iterator[tuple[str, str]]:
    """Yield each file or value, and what is read from it."""
    for name, data in _LINES.items():
        yield f"pieces of {name}", _parted(data)
    short = {name: data for name, data in _LINES.items() if len(data) < 400}
    odd = [name for name, data in short.items() if _same_in_chunks(data) != "the same"]
    yield "not the same in chunks", f"{odd} of {len(short)}"
    for cap in (len(_TAG) - 1, len(_TAG), len(_TAG) + 1):
        yield f"with a cap of {cap}", _parted(_TAG + b"\n" + _MODE + b"\n" + _TAG, cap)
    yield "a long line that is open", _parted(_TAG + b"\n" + b"x" * 5000, 100)
    many = (_TAG + b"\n") * 40
    for cap in (35, 36, 72, 200, 4096):
        yield f"stretches of up to {cap}", _stretched(many, cap)
    yield "stretches with zeros", _stretched(many[:72] + b"\0" * 9 + many[:36] + b"\0" * 4, 4096)
    for name, raw in _VALUES.items():
        value = repr(decode_lenient(raw))
        yield f"value of {name}", value if len(value) < 200 else f"{len(value)} characters"
    depths: dict[str, Callable[[int], bytes]] = {
        "lists": lambda n: b"[" * n + b"]" * n,
        "objects": lambda n: b'{"a":' * n + b"1" + b"}" * n,
        "a text that never ends": lambda n: b'"' + b"[" * n,
        "an escaped quote": lambda n: b'["\\"' + b"[" * n + b'"]',
        "one after the other": lambda n: b"[]" * n,
    }
    for name, make in depths.items():
        yield (f"depth of {name}", ", ".join(str(nesting_depth(make(n))) for n in (255, 256, 257, 300)))
