r"""Secrets in disguise: what a text is once its covers are taken off.

Every cover is known by needles, like the families. Base64 and hex hide the letters of a secret, but
the same letters always become the same ones: the stem `ghp_` is `Z2hwX`, `docF` or `naHBf`, by
where in a group of three it stands. The other covers leave marks: a percent sign, a backslash, a
colour of a terminal, a quote in the middle.
"""

import binascii
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

__all__ = ["EMPTY_QUOTES", "Cover", "covers_of"]

_BEFORE: Final = 400
"""Letters of a run that are looked at before a needle."""
_BEHIND: Final = 4_000
"""Letters of a run that are looked at behind it; what is masked is all of the run."""
_LONG_RUN: Final = 20_000
_OVERLAP: Final = 600
"""Letters by which two windows of a run overlap."""
_LINES: Final = 400
"""Lines of base64 that are masked before the one with the needle."""
_LINE: Final = 16
_HEXED: Final = 3
"""Bytes of a stem that are looked for in hex."""
_GROUP: Final = 4
_LONGEST: Final = 5
"""Letters of a needle; more would find no less, and cost more."""
_BASE64: Final = re.compile(
    rb"[A-Za-z0-9+/_-]++(?:(?:\\{1,7}r?\\{0,7}n|\r?\n)[A-Za-z0-9+/_-]{16,}+)*+"
    rb"(?:(?:\\{1,7}r?\\{0,7}n|\r?\n)(?=[A-Za-z0-9+/_-]{0,14}[A-Z0-9+/=])[A-Za-z0-9+/_-]{2,15}+(?==|\\{0,7}[\"']|\r?\n|\\{1,7}[rn]|\Z))?={0,3}"
)
_BROKEN: Final = re.compile(rb"\\{1,7}r?\\{0,7}n|\r?\n")
_HEX: Final = re.compile(rb"(?:[0-9a-fA-F]{2})++")
_PLAIN: Final = rb"A-Za-z0-9+/=._~:@\-"
_PIECE: Final = re.compile(rb"[" + _PLAIN + rb" ]++")
_LETTER: Final = re.compile(rb"[" + _PLAIN + rb" ]")
_ESCAPE: Final = re.compile(rb"\\{1,15}(?:u00|x)((?!1[bB])[0-7][0-9a-fA-F])")
_COLOUR: Final = re.compile(rb"(?:\\{1,15}(?:u001[bB]|x1[bB]|033|e)|\x1b)\[[0-9;]{0,16}[mK]")
_JOINT: Final = re.compile(rb"\\{0,7}[\"'`][ \t]{0,3}\+?[ \t]{0,3}\\{0,7}[\"'`]")
_PERCENT: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
_ENTITY: Final = re.compile(rb"&(?:#[xX]?[0-9A-Fa-f]{2,6}|amp|quot|apos|lt|gt);")
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")

Run = tuple[int, int, bytes]
"""Where a run begins and ends, and what it is without its cover."""
Hit = tuple[int, bytes]
"""A place, and the needle there."""
FamilyIn = Callable[[bytes], str]
"""Returns the family of a secret in a text, or nothing."""
Secret = tuple[int, int, str]
"""Where a secret begins and ends, and its family."""


class Cover(msgspec.Struct, frozen=True):
    """One way to write a text so that it is not seen."""

    id: str
    needles: tuple[bytes, ...]
    scan: Callable[[bytes, list[Hit], FamilyIn], Iterator[Secret]]
    """Finds the secrets under the cover, at needles in order; looks at no byte more than a few times."""


def covers_of(stems: Iterable[bytes]) -> tuple[Cover, ...]:
    """Return every cover, for secrets with some stems."""
    stems = tuple(stems)
    phases = {needle: phase for stem in stems for needle, phase in _in_base64(stem)}
    hexed = dict.fromkeys(
        needle
        for stem in stems
        for needle in (stem[:_HEXED].hex().encode(), stem[:_HEXED].hex().upper().encode())
    )
    return (
        Cover(
            "base64",
            tuple(phases),
            lambda data, hits, family_in: _base64(data, hits, family_in, phases),
        ),
        Cover("hex", tuple(hexed), _hex),
        Cover(
            "percent",
            tuple(b"%%%d" % high for high in range(2, 8)),
            _marked(_PERCENT, unquote_to_bytes),
        ),
        Cover("escape", _ESCAPES, _marked(_ESCAPE, _unescaped)),
        Cover("entity", (b"&#", b"&quot;", b"&amp;"), _marked(_ENTITY, _unentitled)),
        Cover(
            "colour",
            _COLOURS,
            _marked(_COLOUR, lambda run: _COLOUR.sub(b"", run), b" ", _parts_a_word),
        ),
        Cover("split", _JOINTS, _by_runs(_split)),
    )


_ESCAPES: Final = tuple(rb"\u00%d" % high for high in range(2, 8)) + tuple(
    rb"\x%d" % high for high in range(2, 8)
)
_COLOURS: Final = (rb"\u001b[", rb"\u001B[", rb"\x1b[", rb"\x1B[", rb"\033[", rb"\e[", b"\x1b[")
EMPTY_QUOTES: Final = (b'""', b"''")
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


def _base64(
    data: bytes, hits: list[Hit], family_in: FamilyIn, phases: dict[bytes, int]
) -> Iterator[Secret]:
    """Decode what stands around needles, in windows: each alignment of a run once."""
    done = [0] * _GROUP
    for at, needle in hits:
        group = at - phases[needle]
        if at < done[group % _GROUP]:
            continue
        head = data[group : group + _HEAD]
        if _LETTERS.fullmatch(head) and not _PRINTED.match(binascii.a2b_base64(head)):
            continue
        begin = _begin(_BASE64_LETTER, data, at)
        start = begin + (group - begin) % _GROUP
        limit = at + _BEHIND
        # Where the first letters of its group are missing, it cannot begin.
        found = _BASE64.match(data, start, limit) if start <= group else None
        if found is None:
            continue
        done[group % _GROUP] = min(found.end(), limit - _OVERLAP)
        family = family_in(_decoded(found[0]))
        if family:
            whole = _BASE64.match(data, start)
            end = whole.end() if whole else found.end()
            yield _fair(data, _first_line(data, begin)), end, family
            done = [end] * _GROUP


def _first_line(data: bytes, begin: int) -> int:
    """Return where base64 in lines begins whose line begins at a place."""
    for _ in range(_LINES):
        if data[begin - 1 : begin] == b"\n":
            end = begin - 1 - (data[begin - 2 : begin - 1] == b"\r")
        elif data[begin - 1 : begin + 1] == b"\\n":
            end = begin
            while data[end - 1 : end] == b"\\":
                end -= 1
        else:
            break
        before = _begin(_BASE64_LETTER, data, end)
        if end - before < _LINE:
            break
        begin = before
    return begin


def _decoded(run: bytes) -> bytes:
    run = _BROKEN.sub(b"", run).rstrip(b"=").translate(_URL_SAFE)
    # One letter alone is no byte; more padding than there has to be is ignored.
    return binascii.a2b_base64(run[: len(run) - (len(run) % _GROUP == 1)] + b"==")


_HEAD: Final = 16
"""Letters around a needle that say whether anybody wrote what they stand for."""
_LETTERS: Final = re.compile(rb"[A-Za-z0-9+/]{16}")
_PRINTED: Final = re.compile(rb"[^\x00-\x08\x0e-\x1f\x7f-\xff]{12}")
"""Of what was drawn by lot, hardly anything is."""
_BASE64_LETTER: Final = re.compile(rb"[A-Za-z0-9+/_-]*")
_HEX_LETTER: Final = re.compile(rb"[0-9A-Fa-f]*")
_ANY_LETTER: Final = re.compile(rb"[" + _PLAIN + rb" ]*")


def _hex(data: bytes, hits: list[Hit], family_in: FamilyIn) -> Iterator[Secret]:
    done = [0, 0]
    for at, _ in hits:
        if at < done[at % 2]:
            continue
        begin = _begin(_HEX_LETTER, data, at)
        start = begin + (at - begin) % 2
        limit = at + 2 * _BEHIND
        found = _HEX.match(data, start, limit)
        if found is None:
            continue
        done[at % 2] = min(found.end(), limit - _OVERLAP)
        family = family_in(binascii.unhexlify(found[0]))
        if family:
            whole = _HEX.match(data, start)
            end = whole.end() if whole else found.end()
            yield _fair(data, begin), end, family
            done = [end, end]


def _begin(letters: re.Pattern[bytes], data: bytes, at: int) -> int:
    """Return where the run begins that goes on at a place."""
    back = letters.match(data[max(0, at - _BEFORE) : at][::-1])
    return at - (back.end() if back else 0)


def _fair(data: bytes, begin: int) -> int:
    """Return where a run begins, behind a letter that belongs to a backslash before it."""
    back = begin
    while data[back - 1 : back] == b"\\":
        back -= 1
    if (begin - back) % 2 == 0:
        return begin
    return begin + (5 if data[begin : begin + 1] == b"u" else 1)


# Covers that leave marks


def _by_runs(
    run_at: Callable[[bytes, int, int], Run | None],
) -> Callable[[bytes, list[Hit], FamilyIn], Iterator[Secret]]:
    """Return what examines each run once, however many needles it has."""

    def scan(data: bytes, hits: list[Hit], family_in: FamilyIn) -> Iterator[Secret]:
        done = 0
        for at, _ in hits:
            if at < done:
                continue
            run = run_at(data, at, done)
            if run is None:
                continue
            begin, done, text = run
            family = family_in(text)
            if family:
                yield begin, done, family

    return scan


def _marked(
    mark: re.Pattern[bytes],
    uncover: Callable[[bytes], bytes],
    more: bytes = b"",
    fits: Callable[[bytes, int], bool] | None = None,
) -> Callable[[bytes, list[Hit], FamilyIn], Iterator[Secret]]:
    """Return what finds runs of letters with marks of one kind among them."""
    word = re.compile(rb"(?:" + mark.pattern + rb"|[" + _PLAIN + more + rb"])++")

    def run(data: bytes, at: int, low: int) -> Run | None:
        if fits is not None and not fits(data, at):
            return None
        for found in word.finditer(data, max(0, low, at - _BEFORE), at + _LONG_RUN):
            if found.end() > at:
                break
        else:
            return None
        if found.start() > at:
            return None
        begin = _fair(data, found.start())
        return begin, found.end(), uncover(data[begin : found.end()])

    return _by_runs(run)


_COLOURS_AND_LETTER: Final = re.compile(rb"(?:" + _COLOUR.pattern + rb"){1,16}+[" + _PLAIN + rb"]")


def _parts_a_word(data: bytes, at: int) -> bool:
    """Say whether a colour of a terminal stands inside of a word, or between a name and its value."""
    while at and data[at - 1 : at] == b"\\":
        at -= 1
    before = data[at - 1 : at]
    if before == b" ":
        before = data[at - 2 : at - 1]
        if before not in (b":", b"="):
            return False
    return _LETTER.match(before) is not None and _COLOURS_AND_LETTER.match(data, at) is not None


def _unescaped(run: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), run)


def _unentitled(run: bytes) -> bytes:
    from html import unescape

    return unescape(run.decode("latin-1")).encode()


def _split(data: bytes, at: int, low: int) -> Run | None:
    """Return a run of quoted pieces, one joined to the other."""
    while at > low and data[at - 1 : at] == b"\\":
        at -= 1
    if not at or _LETTER.match(data, at - 1) is None:
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
