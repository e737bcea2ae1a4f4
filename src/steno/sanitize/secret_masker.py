r"""Masks secrets, home directories and email addresses in a text, and counts them in a receipt.

Secrets are detected by families, plain or encoded. A mask names its family. The rest of the text is unchanged, so JSON
lines stay valid and records keep their meaning. Displayed text is masked more strictly (`display_masking`).

>>> masker = Masker()
>>> masker.mask_text("export K=ghp_4f9b2c8d1e7a6f5b3c0d9e8f7a6b5c4d3e2f in /home/ada/x")
'export K=<masked:github-token> in ~/x'
>>> masker.receipt.counts
{'github-token': 1, 'home': 1}
"""

import binascii
import re
from base64 import b64encode
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from steno.sanitize.secret_assignments import NAMED_FAMILIES
from steno.sanitize.secret_command_lines import COMMAND_LINE_FAMILIES
from steno.sanitize.secret_credentials import CREDENTIAL_FAMILIES, EMAIL_NEEDLE, HOME_NEEDLES, match_email, match_home
from steno.sanitize.secret_family import MASK_PREFIX, SecretFamily, find_mask_end, make_mask
from steno.sanitize.secret_tokens import PLATFORM_TOKENS, SERVICE_TOKENS

# Encoded secrets
#
# Every encoding is found by needles, like the families. In base64 and hex, the same text always becomes one of a few
# forms: the stem `ghp_` is `Z2hwX`, `docF` or `naHBf`, by its position in a group of three bytes. The other encodings
# leave marks: a percent sign, a backslash, a terminal colour, a quote in the middle.

_MAX_BEFORE: Final = 400
"""Number of characters of a run that are decoded before a needle."""
_MAX_AFTER: Final = 4_000
"""Number of characters of a run that are decoded after a needle; the whole run is masked."""
_MAX_RUN: Final = 20_000
_WINDOW_OVERLAP: Final = 600
"""Overlap of two windows of a run in characters."""
_LINES: Final = 400
"""Number of base64 lines that are masked before the one with the needle."""
_LINE: Final = 16
_HEX_STEM: Final = 3
"""Number of bytes of a stem that are searched for in hex."""
_GROUP: Final = 4
_LONGEST: Final = 5
"""Length of a needle; longer needles find the same secrets at a higher cost."""
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
"""Start and end of a run, and its decoded text."""
Hit = tuple[int, bytes]
"""A position and the needle found there."""
FamilyIn = Callable[[bytes], str]
"""Returns the family of a secret in a text, or an empty string."""
Secret = tuple[int, int, str]
"""Start and end of a secret, and its family."""


class SecretEncoding(msgspec.Struct, frozen=True):
    """One encoding that hides a text."""

    id: str
    needles: tuple[bytes, ...]
    scan: Callable[[bytes, list[Hit], FamilyIn], Iterator[Secret]]
    """Finds the encoded secrets at needles in order; reads no byte more than a few times."""


def encodings_for(stems: Iterable[bytes]) -> tuple[SecretEncoding, ...]:
    """Return all encodings, for secrets with these stems."""
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
    """Return the base64 forms of a stem for each position in a group of three bytes.

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
    """Decode the text around needles in windows: each alignment of a run once."""
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
        # The stem cannot begin where the first characters of its group are missing.
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
    """Return the start of multi-line base64, given the start of one of its lines."""
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
    # A single remaining character is not a byte; extra padding is ignored.
    return binascii.a2b_base64(run[: len(run) - (len(run) % _GROUP == 1)] + b"==")


_HEAD_LENGTH: Final = 16
"""Number of characters around a needle that show whether the decoded text is readable."""
_LETTERS: Final = re.compile(rb"[A-Za-z0-9+/]{16}")
_PRINTABLE_HEAD: Final = re.compile(rb"[^\x00-\x08\x0e-\x1f\x7f-\xff]{12}")
"""Random data is almost never printable."""
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
    """Return the start of the run that contains a position."""
    reversed_run = letters.match(data[max(0, position - _MAX_BEFORE) : position][::-1])
    return position - (reversed_run.end() if reversed_run else 0)


def _after_backslash(data: bytes, begin: int) -> int:
    """Return the start of a run after an escaped character."""
    backslash_start = begin
    while data[backslash_start - 1 : backslash_start] == b"\\":
        backslash_start -= 1
    if (begin - backslash_start) % 2 == 0:
        return begin
    return begin + (5 if data[begin : begin + 1] == b"u" else 1)


# Encodings with marks


def _run_scanner(
    run_at: Callable[[bytes, int, int], Run | None],
) -> Callable[[bytes, list[Hit], FamilyIn], Iterator[Secret]]:
    """Return a scanner that examines each run once, whatever the number of its needles."""

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
    """Return a scanner for runs of characters that contain marks of one kind."""
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
    """Return whether a colour sequence is inside a word, or between a name and its value."""
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
    """Return a run of adjacent quoted pieces."""
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


# Masking

SECRET_FAMILIES: Final[tuple[SecretFamily, ...]] = (
    *PLATFORM_TOKENS,
    *SERVICE_TOKENS,
    *CREDENTIAL_FAMILIES,
    *COMMAND_LINE_FAMILIES,
    *NAMED_FAMILIES,
)
"""All families, the most certain first. IDs are stable: receipts name them."""


_CHUNK_SIZE: Final = 1 << 20
"""Number of bytes of a text that are searched at once."""
_MAX_LOCATIONS: Final = 1_000
"""Maximum number of locations per family and text in a receipt."""
_HOME: Final = "home"
_EMAIL: Final = "e-mail"
PERSONAL_IDS: Final = frozenset((_HOME, _EMAIL))
"""Masked values that are not secrets."""
MASK_IDS: Final = (*(family.id for family in SECRET_FAMILIES), _HOME, _EMAIL)
"""IDs of all masks."""


class MaskEdit(msgspec.Struct, frozen=True, order=True, gc=False):
    """A range of a text that is replaced."""

    begin: int
    end: int
    family: str
    cover: str
    """Encoding of the secret; empty for plain text."""
    new: bytes


class MaskLocation(msgspec.Struct, frozen=True):
    """Location of a masked value, without the value."""

    where: str
    family: str
    cover: str
    at: int
    """Byte offset of its record in the file."""


class Receipt(msgspec.Struct):
    """Counts and locations of masked values."""

    counts: dict[str, int] = {}
    covers: dict[str, int] = {}
    texts: dict[str, dict[str, int]] = {}
    """Counts by family for each masked text."""
    places: list[MaskLocation] = []
    """Locations; home directories are only counted, because they are frequent."""

    @property
    def total(self) -> int:
        """Total number of masked values."""
        return sum(self.counts.values())

    def record(self, data: bytes, edits: Sequence[MaskEdit], where: str) -> None:
        """Record the masked values of a text."""
        family_counts = Counter([edit.family for edit in edits])
        text_counts = self.texts.setdefault(where, {}) if where else {}
        for family, count in family_counts.items():
            self.counts[family] = self.counts.get(family, 0) + count
            text_counts[family] = text_counts.get(family, 0) + count
        if len(family_counts) > (_HOME in family_counts):
            self._record_locations(data, [edit for edit in edits if edit.family != _HOME], where)

    def _record_locations(self, data: bytes, edits: Sequence[MaskEdit], where: str) -> None:
        starts = _line_starts(data)
        location_counts: Counter[str] = Counter()
        for edit in edits:
            if edit.cover:
                self.covers[edit.cover] = self.covers.get(edit.cover, 0) + 1
            location_counts[edit.family] += 1
            if location_counts[edit.family] > _MAX_LOCATIONS:
                continue
            line_start = starts[bisect_right(starts, edit.begin) - 1]
            place = MaskLocation(where, edit.family, edit.cover, line_start)
            if not self.places or self.places[-1] != place:
                self.places.append(place)


class Masker:
    """Masks texts, and records the masked values in a receipt."""

    def __init__(self) -> None:
        self.receipt = Receipt()

    def mask_text(self, text: str, where: str = "") -> str:
        """Return a masked text."""
        data = text.encode("utf-8", "surrogatepass")
        return self.mask_bytes(data, where).decode("utf-8", "surrogatepass")

    def mask_bytes(self, data: bytes, where: str = "") -> bytes:
        """Return the masked bytes of a text or of JSON lines."""
        edits = find_edits(data)
        self.record(data, edits, where)
        return apply_edits(data, edits) if edits else data

    def record(self, data: bytes, edits: Sequence[MaskEdit], where: str = "") -> None:
        """Record the masked values of a text that is masked elsewhere."""
        if edits:
            self.receipt.record(data, edits, where)


def apply_edits(data: bytes, edits: Sequence[MaskEdit]) -> bytes:
    """Return a text with ranges replaced; edits are in order and do not overlap."""
    parts: list[bytes] = []
    end = 0
    for edit in edits:
        parts += (data[end : edit.begin], edit.new)
        end = edit.end
    parts.append(data[end:])
    return b"".join(parts)


def _line_starts(data: bytes) -> list[int]:
    starts = [0]
    position = data.find(b"\n")
    while position >= 0:
        starts.append(position + 1)
        position = data.find(b"\n", position + 1)
    return starts


def find_edits(data: bytes) -> list[MaskEdit]:
    """Return all ranges to mask in a text, in order."""
    edits: list[MaskEdit] = []
    examined_until: dict[str, int] = {}
    for chunk_start in range(0, len(data), _CHUNK_SIZE):
        _scan_chunk(data, chunk_start, edits, examined_until)
    if all(edit_before.end <= edit_after.begin for edit_before, edit_after in pairwise(edits)):
        # The common case.
        return edits
    edits.sort(key=_edit_order)
    merged: list[MaskEdit] = []
    for edit in edits:
        previous = merged[-1] if merged else None
        if previous is None or edit.begin >= previous.end:
            merged.append(edit)
            continue
        if edit.family == _EMAIL and previous.family != _EMAIL:
            # A password that contains `@` is followed by a host: `ada:p@ss9@db.internal`.
            continue
        # Overlapping edits are merged under the more certain family.
        more_certain = min(previous, edit, key=_family_rank)
        end = max(previous.end, edit.end)
        merged[-1] = MaskEdit(previous.begin, end, more_certain.family, more_certain.cover, more_certain.new)
    return merged


def _edit_order(edit: MaskEdit) -> tuple[int, int, int]:
    return edit.begin, -edit.end, _family_rank(edit)


def _family_rank(edit: MaskEdit) -> int:
    return _RANKS[edit.family]


_RANKS: Final = {family: number for number, family in enumerate(MASK_IDS)}
_MASKS: Final = frozenset(map(make_mask, MASK_IDS))
_LONGEST_MASK: Final = max(map(len, _MASKS))


# Search


class _Needle(msgspec.Struct, frozen=True):
    """A byte string to search for, with the families and encodings that it indicates."""

    text: bytes
    families: tuple[SecretFamily, ...]
    covers: tuple[SecretEncoding, ...]
    mail: bool


class _NeedleIndex(msgspec.Struct, frozen=True):
    """Search index of all needles."""

    all: tuple[_Needle, ...]
    homes: frozenset[int]
    """Numbers of the needles for home directories."""
    quotes: frozenset[int]
    """Numbers of the needles for two adjacent quotes."""
    longest: int
    find: Callable[[bytes], list[tuple[int, int, int]]]
    """Returns the needle number, start and end of each match."""


@lru_cache(maxsize=1)
def _needles() -> _NeedleIndex:
    from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

    families: dict[bytes, list[SecretFamily]] = {}
    for family in SECRET_FAMILIES:
        for text in family.needles:
            families.setdefault(text, []).append(family)
    covers = encodings_for(dict.fromkeys(stem for family in SECRET_FAMILIES for stem in family.stems))
    encodings_by_text: dict[bytes, list[SecretEncoding]] = {}
    for cover in covers:
        for text in cover.needles:
            encodings_by_text.setdefault(text, []).append(cover)
    # Needles of families first, in order of certainty.
    texts = list(dict.fromkeys((*families, *encodings_by_text, *HOME_NEEDLES, EMAIL_NEEDLE)))
    needles = [
        _Needle(text, tuple(families.get(text, ())), tuple(encodings_by_text.get(text, ())), text == EMAIL_NEEDLE)
        for text in texts
    ]
    # One automaton finds hundreds of needles in a single pass.
    automaton = BytesAhoCorasick(texts, matchkind=MatchKind.Standard, implementation=Implementation.DFA)

    def find(data: bytes) -> list[tuple[int, int, int]]:
        return automaton.find_matches_as_indexes(data, overlapping=True)

    home_indexes = frozenset(map(texts.index, HOME_NEEDLES))
    quote_indexes = frozenset(map(texts.index, EMPTY_QUOTES))
    return _NeedleIndex(tuple(needles), home_indexes, quote_indexes, max(map(len, texts)), find)


def _scan_chunk(data: bytes, chunk_start: int, edits: list[MaskEdit], examined_until: dict[str, int]) -> None:
    """Find the values to mask whose needle begins in one chunk of a text.

    `examined_until` holds the position up to which each family has examined the text.
    """
    needles = _needles()
    all_needles, homes = needles.all, needles.homes
    encoded_hits: defaultdict[int, list[int]] = defaultdict(list)
    hits = needles.find(data[chunk_start : chunk_start + _CHUNK_SIZE + needles.longest - 1])
    for number, begin, _ in _hits_outside_masks(data, chunk_start, hits):
        if begin >= _CHUNK_SIZE:
            continue
        position = chunk_start + begin
        if number in homes:
            # Home directories are the most frequent match.
            home_match = match_home(data, position)
            if home_match is not None:
                edits.append(MaskEdit(home_match[0], home_match[1], _HOME, "", home_match[2]))
            continue
        if number in needles.quotes and data[position + 2 : position + 3] == data[position : position + 1]:
            # The start of a triple quote, as around multi-line strings.
            continue
        needle = all_needles[number]
        if needle.covers:
            encoded_hits[number].append(position)
        if needle.families:
            _examine_families(data, position, needle.families, edits, examined_until)
        email_span = match_email(data, position) if needle.mail else None
        if email_span is not None:
            edits.append(_make_edit(*email_span, _EMAIL))
    for cover, hits in _group_by_encoding(encoded_hits):
        edits += [
            _make_edit(start, end, family, cover.id) for start, end, family in cover.scan(data, hits, _find_family)
        ]


def _hits_outside_masks(data: bytes, chunk_start: int, hits: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the needles outside masks: `token` in a mask is not the name of a secret."""
    begins: list[int] = []
    ends: list[int] = []
    position = data.find(MASK_PREFIX, max(0, chunk_start - _LONGEST_MASK), chunk_start + _CHUNK_SIZE)
    while position >= 0:
        end = find_mask_end(data, position)
        if data[position:end] in _MASKS:
            begins.append(position)
            ends.append(end)
        position = data.find(MASK_PREFIX, position + 1, chunk_start + _CHUNK_SIZE)
    if not begins:
        return hits
    outside: list[tuple[int, int, int]] = []
    for hit in hits:
        absolute = chunk_start + hit[1]
        number = bisect_right(begins, absolute) - 1
        if number < 0 or absolute >= ends[number]:
            outside.append(hit)
    return outside


def _examine_families(
    data: bytes,
    position: int,
    families: tuple[SecretFamily, ...],
    edits: list[MaskEdit],
    examined_until: dict[str, int],
) -> None:
    """Find the secrets of families with a needle at a position."""
    for family in families:
        if position < examined_until.get(family.id, 0):
            continue
        match = family.at(data, position)
        if match is not None:
            examined_until[family.id] = match.examined
            edits += [_make_edit(*span, match.family or family.id) for span in match.spans]


def _group_by_encoding(
    positions_by_needle: dict[int, list[int]],
) -> list[tuple[SecretEncoding, list[tuple[int, bytes]]]]:
    """Return the needle positions of each encoding, in order."""
    needles = _needles().all
    hits_by_encoding: dict[str, tuple[SecretEncoding, list[tuple[int, bytes]]]] = {}
    for number, positions in positions_by_needle.items():
        needle = needles[number]
        for cover in needle.covers:
            hits = hits_by_encoding.setdefault(cover.id, (cover, []))[1]
            hits += [(position, needle.text) for position in positions]
    return [(cover, sorted(hits)) for cover, hits in hits_by_encoding.values()]


def _make_edit(begin: int, end: int, family: str, cover: str = "") -> MaskEdit:
    return MaskEdit(begin, end, family, cover, make_mask(family))


def _find_family(text: bytes) -> str:
    """Return the most certain family of the secrets in a text, or an empty string."""
    needles = _needles()
    examined_until: dict[str, int] = {}
    families: set[str] = set()
    for position, number in sorted((begin, number) for number, begin, _ in needles.find(text)):
        for family in needles.all[number].families:
            if position < examined_until.get(family.id, 0):
                continue
            match = family.at(text, position)
            if match is not None:
                examined_until[family.id] = match.examined
                families.update((match.family or family.id,) if match.spans else ())
    return min(families, key=_RANKS.__getitem__) if families else ""
