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

_MAX_BEFORE: Final = 400
"""Letters of a run that are looked at before a needle."""
_MAX_AFTER: Final = 4_000
"""Letters of a run that are looked at behind it; what is masked is all of the run."""
_MAX_RUN: Final = 20_000
_WINDOW_OVERLAP: Final = 600
"""Letters by which two windows of a run overlap."""
_LINES: Final = 400
"""Lines of base64 that are masked before the one with the needle."""
_LINE: Final = 16
_HEX_STEM: Final = 3
"""Bytes of a stem that are looked for in hex."""
_GROUP: Final = 4
_LONGEST: Final = 5
"""Letters of a needle; more would find no less, and cost more."""
_BASE64: Final = re.compile(
    rb"[A-Za-z0-9+/_-]++(?:(?:\\{1,7}r?\\{0,7}n|\r?\n)[A-Za-z0-9+/_-]{16,}+)*+"
    rb"(?:(?:\\{1,7}r?\\{0,7}n|\r?\n)(?=[A-Za-z0-9+/_-]{0,14}[A-Z0-9+/=])[A-Za-z0-9+/_-]{2,15}+(?==|\\{0,7}[\"']|\r?\n|\\{1,7}[rn]|\Z))?={0,3}"
)
_LINE_BREAK: Final = re.compile(rb"\\{1,7}r?\\{0,7}n|\r?\n")
_HEX: Final = re.compile(rb"(?:[0-9a-fA-F]{2})++")
_PLAIN_CHARACTERS: Final = rb"A-Za-z0-9+/=._~:@\-"
_PIECE: Final = re.compile(rb"[" + _PLAIN_CHARACTERS + rb" ]++")
_LETTER: Final = re.compile(rb"[" + _PLAIN_CHARACTERS + rb" ]")
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


class SecretEncoding(msgspec.Struct, frozen=True):
    """One way to write a text so that it is not seen."""

    id: str
    needles: tuple[bytes, ...]
    scan: Callable[[bytes, list[Hit], FamilyIn], Iterator[Secret]]
    """Finds the secrets under the cover, at needles in order; looks at no byte more than a few times."""


def encodings_for(stems: Iterable[bytes]) -> tuple[SecretEncoding, ...]:
    """Return every cover, for secrets with some stems."""
    stems = tuple(stems)
    phases = {needle: phase for stem in stems for needle, phase in _base64_forms(stem)}
    hex_needles = dict.fromkeys(
        needle
        for stem in stems
        for needle in (stem[:_HEX_STEM].hex().encode(), stem[:_HEX_STEM].hex().upper().encode())
    )
    return (
        SecretEncoding(
            "base64", tuple(phases), lambda data, hits, family_in: _scan_base64(data, hits, family_in, phases)
        ),
        SecretEncoding("hex", tuple(hex_needles), _scan_hex),
        SecretEncoding(
            "percent", tuple(b"%%%d" % high for high in range(2, 8)), _marked_run_scanner(_PERCENT, unquote_to_bytes)
        ),
        SecretEncoding("escape", _ESCAPES, _marked_run_scanner(_ESCAPE, _unescape)),
        SecretEncoding("entity", (b"&#", b"&quot;", b"&amp;"), _marked_run_scanner(_ENTITY, _unescape_entities)),
        SecretEncoding(
            "colour", _COLOURS, _marked_run_scanner(_COLOUR, lambda run: _COLOUR.sub(b"", run), b" ", _splits_word)
        ),
        SecretEncoding("split", _JOINTS, _run_scanner(_joined_quotes_run)),
    )


_ESCAPES: Final = tuple(rb"\u00%d" % high for high in range(2, 8)) + tuple(rb"\x%d" % high for high in range(2, 8))
_COLOURS: Final = (rb"\u001b[", rb"\u001B[", rb"\x1b[", rb"\x1B[", rb"\033[", rb"\e[", b"\x1b[")
EMPTY_QUOTES: Final = (b'""', b"''")
_JOINTS: Final = (*(b'" + ', b"' + ", b'"+', b"'+", b'""', b"''"), *(b'\\"\\"', b"\\'\\'", b'" "', b"' '", b'" \\"'))


# Base64 and hex


def _base64_forms(stem: bytes) -> list[tuple[bytes, int]]:
    """Return what becomes of a stem, by where in a group of three bytes it stands.

    >>> _base64_forms(b"ghp_")
    [(b'Z2hwX', 0), (b'docF', 2), (b'naHBf', 3)]
    """
    forms: list[tuple[bytes, int]] = []
    for shift in range(3):
        encoded = b64encode(bytes(shift) + stem)
        first = -(-shift * 8 // 6)
        last = (shift + len(stem)) * 8 // 6
        forms.append((encoded[first:last][:_LONGEST], first))
    return forms


def _scan_base64(data: bytes, hits: list[Hit], family_in: FamilyIn, phases: dict[bytes, int]) -> Iterator[Secret]:
    """Decode what stands around needles, in windows: each alignment of a run once."""
    done_until = [0] * _GROUP
    for position, needle in hits:
        group = position - phases[needle]
        if position < done_until[group % _GROUP]:
            continue
        head = data[group : group + _HEAD_LENGTH]
        if _LETTERS.fullmatch(head) and not _PRINTABLE_HEAD.match(binascii.a2b_base64(head)):
            continue
        begin = _run_start(_BASE64_LETTER, data, position)
        start = begin + (group - begin) % _GROUP
        limit = position + _MAX_AFTER
        # Where the first letters of its group are missing, it cannot begin.
        match = _BASE64.match(data, start, limit) if start <= group else None
        if match is None:
            continue
        done_until[group % _GROUP] = min(match.end(), limit - _WINDOW_OVERLAP)
        family = family_in(_decode_base64(match[0]))
        if family:
            full_match = _BASE64.match(data, start)
            end = full_match.end() if full_match else match.end()
            yield _after_backslash(data, _first_line_start(data, begin)), end, family
            done_until = [end] * _GROUP


def _first_line_start(data: bytes, begin: int) -> int:
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
        line_start = _run_start(_BASE64_LETTER, data, end)
        if end - line_start < _LINE:
            break
        begin = line_start
    return begin


def _decode_base64(run: bytes) -> bytes:
    run = _LINE_BREAK.sub(b"", run).rstrip(b"=").translate(_URL_SAFE)
    # One letter alone is no byte; more padding than there has to be is ignored.
    return binascii.a2b_base64(run[: len(run) - (len(run) % _GROUP == 1)] + b"==")


_HEAD_LENGTH: Final = 16
"""Letters around a needle that say whether anybody wrote what they stand for."""
_LETTERS: Final = re.compile(rb"[A-Za-z0-9+/]{16}")
_PRINTABLE_HEAD: Final = re.compile(rb"[^\x00-\x08\x0e-\x1f\x7f-\xff]{12}")
"""Of what was drawn by lot, hardly anything is."""
_BASE64_LETTER: Final = re.compile(rb"[A-Za-z0-9+/_-]*")
_HEX_LETTER: Final = re.compile(rb"[0-9A-Fa-f]*")
_ANY_LETTER: Final = re.compile(rb"[" + _PLAIN_CHARACTERS + rb" ]*")


def _scan_hex(data: bytes, hits: list[Hit], family_in: FamilyIn) -> Iterator[Secret]:
    done_until = [0, 0]
    for position, _ in hits:
        if position < done_until[position % 2]:
            continue
        begin = _run_start(_HEX_LETTER, data, position)
        start = begin + (position - begin) % 2
        limit = position + 2 * _MAX_AFTER
        match = _HEX.match(data, start, limit)
        if match is None:
            continue
        done_until[position % 2] = min(match.end(), limit - _WINDOW_OVERLAP)
        family = family_in(binascii.unhexlify(match[0]))
        if family:
            full_match = _HEX.match(data, start)
            end = full_match.end() if full_match else match.end()
            yield _after_backslash(data, begin), end, family
            done_until = [end, end]


def _run_start(letters: re.Pattern[bytes], data: bytes, position: int) -> int:
    """Return where the run begins that goes on at a place."""
    reversed_run = letters.match(data[max(0, position - _MAX_BEFORE) : position][::-1])
    return position - (reversed_run.end() if reversed_run else 0)


def _after_backslash(data: bytes, begin: int) -> int:
    """Return where a run begins, behind a letter that belongs to a backslash before it."""
    backslash_start = begin
    while data[backslash_start - 1 : backslash_start] == b"\\":
        backslash_start -= 1
    if (begin - backslash_start) % 2 == 0:
        return begin
    return begin + (5 if data[begin : begin + 1] == b"u" else 1)


# Covers that leave marks


def _run_scanner(
    run_at: Callable[[bytes, int, int], Run | None],
) -> Callable[[bytes, list[Hit], FamilyIn], Iterator[Secret]]:
    """Return what examines each run once, however many needles it has."""

    def scan(data: bytes, hits: list[Hit], family_in: FamilyIn) -> Iterator[Secret]:
        done_until = 0
        for position, _ in hits:
            if position < done_until:
                continue
            run = run_at(data, position, done_until)
            if run is None:
                continue
            begin, done_until, text = run
            family = family_in(text)
            if family:
                yield begin, done_until, family

    return scan


def _marked_run_scanner(
    mark: re.Pattern[bytes],
    decode: Callable[[bytes], bytes],
    extra_characters: bytes = b"",
    fits: Callable[[bytes, int], bool] | None = None,
) -> Callable[[bytes, list[Hit], FamilyIn], Iterator[Secret]]:
    """Return what finds runs of letters with marks of one kind among them."""
    word = re.compile(rb"(?:" + mark.pattern + rb"|[" + _PLAIN_CHARACTERS + extra_characters + rb"])++")

    def run(data: bytes, position: int, low: int) -> Run | None:
        if fits is not None and not fits(data, position):
            return None
        for match in word.finditer(data, max(0, low, position - _MAX_BEFORE), position + _MAX_RUN):
            if match.end() > position:
                break
        else:
            return None
        if match.start() > position:
            return None
        begin = _after_backslash(data, match.start())
        return begin, match.end(), decode(data[begin : match.end()])

    return _run_scanner(run)


_COLOURS_AND_LETTER: Final = re.compile(rb"(?:" + _COLOUR.pattern + rb"){1,16}+[" + _PLAIN_CHARACTERS + rb"]")


def _splits_word(data: bytes, position: int) -> bool:
    """Say whether a colour of a terminal stands inside of a word, or between a name and its value."""
    while position and data[position - 1 : position] == b"\\":
        position -= 1
    before = data[position - 1 : position]
    if before == b" ":
        before = data[position - 2 : position - 1]
        if before not in (b":", b"="):
            return False
    return _LETTER.match(before) is not None and _COLOURS_AND_LETTER.match(data, position) is not None


def _unescape(run: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), run)


def _unescape_entities(run: bytes) -> bytes:
    from html import unescape

    return unescape(run.decode("latin-1")).encode()


def _joined_quotes_run(data: bytes, position: int, low: int) -> Run | None:
    """Return a run of quoted pieces, one joined to the other."""
    while position > low and data[position - 1 : position] == b"\\":
        position -= 1
    if not position or _LETTER.match(data, position - 1) is None:
        return None
    joint = _JOINT.match(data, position)
    if joint is None or not _LETTER.match(data, joint.end()):
        return None
    begin = _run_start(_ANY_LETTER, data, position)
    end = position
    pieces = [data[begin:position]]
    while joint is not None:
        word = _PIECE.match(data, joint.end())
        if word is None:
            break
        pieces.append(word[0])
        end = word.end()
        joint = _JOINT.match(data, end)
    return _after_backslash(data, begin), end, b"".join(pieces)
