r"""Secrets in disguise: what a text is once its covers are taken off.

Every cover is known by needles, like the families. Base64 and hex hide the letters of a secret, but
the same letters always become the same ones: the stem `ghp_` is `Z2hwX`, `docF` or `naHBf`, by
where in a group of three it stands. The other covers leave marks: a percent sign, a backslash, a
colour of a terminal, a quote in the middle.
"""

import binascii
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

__all__ = ["Cover", "covers_of"]

_BEFORE: Final = 400
"""Letters of a run that are looked at before a needle."""
_BEHIND: Final = 1_200
"""Letters of a run that are looked at behind it; what is masked is all of the run."""
_LONG_RUN: Final = 20_000
_GROUP: Final = 4
_LONGEST: Final = 5
"""Letters of a needle; more would find no less, and cost more."""
_BASE64: Final = re.compile(
    rb"[A-Za-z0-9+/_-]+(?:\\{1,7}r?\\{0,7}n[A-Za-z0-9+/_-]{16,})*={0,3}|[A-Za-z0-9+/_-]+"
)
_BROKEN: Final = re.compile(rb"\\+r?\\*n")
_HEX: Final = re.compile(rb"(?:[0-9a-fA-F]{2})+")
_PLAIN: Final = rb"A-Za-z0-9+/=._~:@\-"
_PIECE: Final = re.compile(rb"[" + _PLAIN + rb" ]+")
_LETTER: Final = re.compile(rb"[" + _PLAIN + rb" ]")
_ESCAPE: Final = re.compile(rb"\\+(?:u00|x)((?!1[bB])[0-7][0-9a-fA-F])")
_COLOUR: Final = re.compile(rb"(?:\\+(?:u001[bB]|x1[bB]|033|e)|\x1b)\[[0-9;]{0,16}[mK]")
_JOINT: Final = re.compile(rb"\\{0,7}[\"'`][ \t]{0,3}\+?[ \t]{0,3}\\{0,7}[\"'`]")
_PERCENT: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
_ENTITY: Final = re.compile(rb"&(?:#[xX]?[0-9A-Fa-f]{2,6}|amp|quot|apos|lt|gt);")
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")

Run = tuple[int, int, bytes]
"""Where a run begins and ends, and what it is without its cover."""


class Cover(msgspec.Struct, frozen=True):
    """One way to write a text so that it is not seen."""

    id: str
    needles: tuple[bytes, ...]
    run: Callable[[bytes, int, bytes], Run | None]
    """The run around a needle at a place."""
    whole: bool = True
    """Whether every needle of a run leads to the same."""


def covers_of(stems: Iterable[bytes]) -> tuple[Cover, ...]:
    """Return every cover, for secrets with some stems."""
    stems = tuple(stems)
    phases = {needle: phase for stem in stems for needle, phase in _in_base64(stem)}
    hexed = dict.fromkeys(
        needle
        for stem in stems
        for needle in (stem[:2].hex().encode(), stem[:2].hex().upper().encode())
    )
    return (
        Cover(
            "base64",
            tuple(phases),
            lambda data, at, needle: _base64(data, at, phases[needle]),
            whole=False,
        ),
        Cover("hex", tuple(hexed), _hex, whole=False),
        Cover(
            "percent",
            tuple(b"%%%d" % high for high in range(2, 8)),
            _marked(_PERCENT, unquote_to_bytes),
        ),
        Cover("escape", _ESCAPES, _marked(_ESCAPE, _unescaped)),
        Cover("entity", (b"&#", b"&quot;", b"&amp;"), _marked(_ENTITY, _unentitled)),
        Cover("colour", _COLOURS, _marked(_COLOUR, lambda run: _COLOUR.sub(b"", run), b" ")),
        Cover("split", _JOINTS, _split),
    )


_ESCAPES: Final = tuple(rb"\u00%d" % high for high in range(2, 8)) + tuple(
    rb"\x%d" % high for high in range(2, 8)
)
_COLOURS: Final = (rb"\u001b[", rb"\u001B[", rb"\x1b[", rb"\x1B[", rb"\033[", rb"\e[", b"\x1b[")
_JOINTS: Final = (
    *(b'" + ', b"' + ", b'"+', b"'+", b'""', b"''"),
    *(b'\\"\\"', b"\\'\\'", b'" "', b"' '", b'" \\"'),
)


# Base64 and hex


def _in_base64(stem: bytes) -> list[tuple[bytes, int]]:
    """Return what becomes of a stem, by where in a group of three bytes it stands.

    >>> _in_base64(b"ghp_")
    [(b'Z2hwX', 0), (b'docF', 2), (b'naHBf', 3)]
    """
    found: list[tuple[bytes, int]] = []
    for shift in range(3):
        coded = b64encode(bytes(shift) + stem)
        first = -(-shift * 8 // 6)
        last = (shift + len(stem)) * 8 // 6
        found.append((coded[first:last][:_LONGEST], first))
    return found


def _base64(data: bytes, at: int, phase: int) -> Run | None:
    head = data[max(0, at - phase) : at - phase + _HEAD]
    if _LETTERS.fullmatch(head) and not _PRINTED.match(binascii.a2b_base64(head)):
        return None
    begin = _begin(_BASE64_LETTER, data, at)
    group = at - phase
    group -= max(0, group - begin) // _GROUP * _GROUP
    found = _BASE64.match(data, max(group, begin), at + _BEHIND)
    if found is None or group < begin:
        # The first letters of its group are missing: it cannot begin here.
        return None
    run = _BROKEN.sub(b"", found[0]).rstrip(b"=").translate(_URL_SAFE)
    run = run[: len(run) - (len(run) % _GROUP == 1)]
    try:
        text = binascii.a2b_base64(run + b"=" * (-len(run) % _GROUP))
    except binascii.Error:
        return None
    if not _PRINTED.match(text, max(0, at - phase - found.start()) * 3 // 4):
        return None
    whole = _BASE64.match(data, found.start())
    return _fair(data, begin), whole.end() if whole else found.end(), text


_HEAD: Final = 16
"""Letters around a needle that say whether anybody wrote what they stand for."""
_LETTERS: Final = re.compile(rb"[A-Za-z0-9+/]{16}")
_PRINTED: Final = re.compile(rb"[^\x00-\x08\x0e-\x1f\x7f-\xff]{12}")
"""Of what was drawn by lot, hardly anything is."""
_BASE64_LETTER: Final = re.compile(rb"[A-Za-z0-9+/_-]*")
_HEX_LETTER: Final = re.compile(rb"[0-9A-Fa-f]*")
_ANY_LETTER: Final = re.compile(rb"[" + _PLAIN + rb" ]*")


def _hex(data: bytes, at: int, _needle: bytes) -> Run | None:
    begin = _begin(_HEX_LETTER, data, at)
    found = _HEX.match(data, at - (at - begin) // 2 * 2)
    if found is None:
        return None
    return _fair(data, begin), found.end(), binascii.unhexlify(found[0][: _BEFORE + _BEHIND])


def _begin(letters: re.Pattern[bytes], data: bytes, at: int) -> int:
    """Return where the run begins that goes on at a place."""
    back = letters.match(data[max(0, at - _BEFORE) : at][::-1])
    return at - (back.end() if back else 0)


def _fair(data: bytes, begin: int) -> int:
    """Return where a run begins, behind a letter that belongs to a backslash before it."""
    back = begin
    while back > 0 and data[back - 1 : back] == b"\\":
        back -= 1
    if (begin - back) % 2 == 0:
        return begin
    return begin + (5 if data[begin : begin + 1] == b"u" else 1)


# Covers that leave marks


def _marked(
    mark: re.Pattern[bytes], uncover: Callable[[bytes], bytes], more: bytes = b""
) -> Callable[[bytes, int, bytes], Run | None]:
    """Return what finds runs of letters with marks of one kind among them."""
    word = re.compile(rb"(?:" + mark.pattern + rb"|[" + _PLAIN + more + rb"])+")

    def run(data: bytes, at: int, _needle: bytes) -> Run | None:
        for found in word.finditer(data, max(0, at - _BEFORE), at + _LONG_RUN):
            if found.end() > at:
                break
        else:
            return None
        if found.start() > at:
            return None
        begin = _fair(data, found.start())
        return begin, found.end(), uncover(data[begin : found.end()])

    return run


def _unescaped(run: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), run)


def _unentitled(run: bytes) -> bytes:
    from html import unescape

    return unescape(run.decode("latin-1")).encode("utf-8", "replace")


def _split(data: bytes, at: int, _needle: bytes) -> Run | None:
    """Return a run of quoted pieces, one joined to the other."""
    while at and data[at - 1 : at] == b"\\":
        at -= 1
    if not _LETTER.match(data, at - 1):
        return None
    joint = _JOINT.match(data, at)
    if joint is None or not _LETTER.match(data, joint.end()):
        return None
    begin = _begin(_ANY_LETTER, data, at)
    end = at
    pieces = [data[begin:at]]
    while joint is not None:
        word = _PIECE.match(data, joint.end())
        if word is None:
            break
        pieces.append(word[0])
        end = word.end()
        joint = _JOINT.match(data, end)
    return _fair(data, begin), end, b"".join(pieces)
