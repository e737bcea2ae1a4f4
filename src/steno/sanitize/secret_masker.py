"""Masks secrets, home folders and e-mail addresses in a text, and counts them in a receipt.

Secrets are detected by families, plain or encoded. A mask names its family. Nothing else of a text
changes, so a line of JSON stays one, and its records stay the records they were. What is displayed
(`hide_secrets`) is masked more strictly than what is exported: long random words are masked as
well.

>>> masker = Masker()
>>> masker.mask_text("export K=ghp_4f9b2c8d1e7a6f5b3c0d9e8f7a6b5c4d3e2f in /home/ada/x")
'export K=<masked:github-token> in ~/x'
>>> masker.receipt.counts
{'github-token': 1, 'home': 1}
>>> hide_secrets("curl -H 'Authorization: Bearer abc123def456ghi7' https://ada:pw@host/x")
"curl -H 'Authorization: <masked>' https://<masked>@host/x"
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from steno.sanitize.secret_assignments import NAMED_FAMILIES
from steno.sanitize.secret_command_lines import COMMAND_LINE_FAMILIES
from steno.sanitize.secret_credentials import CREDENTIAL_FAMILIES
from steno.sanitize.secret_encodings import EMPTY_QUOTES, SecretEncoding, encodings_for
from steno.sanitize.secret_family import MASK_PREFIX, SecretFamily, find_mask_end, make_mask
from steno.sanitize.secret_tokens import PLATFORM_TOKENS, SERVICE_TOKENS

HOME_NEEDLES: Final = (b"/home/", b"/Users/", b"\\Users\\", b"-home-", b"-Users-", b"%2Fhome%2F", b"%2FUsers%2F")
EMAIL_NEEDLE: Final = b"@"
_USER_NAME: Final = rb"(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]{0,63})"
_HOME_PATH: Final = re.compile(rb"/(?:home|Users)/(?!(?:Shared|linuxbrew|runner|user)\b)" + _USER_NAME)
_UNPREFIXED_HOME: Final = re.compile(rb"(?<![A-Za-z0-9_.-])" + _HOME_PATH.pattern)
_ESCAPE_BEFORE: Final = re.compile(rb"(?:\\[nrtbf]|\\u00[01][0-9a-f]|m|/mnt/[a-z])\Z")
"""What may stand right before one without being a part of it: the end of an escape."""
_OTHER_HOME_FORMS: Final = (
    (b"\\", re.compile(rb"\\+Users\\+(?!(?:Public|Default)\b)" + _USER_NAME)),
    (b"-", re.compile(rb"-(?:home|Users)-(?P<name>[A-Za-z0-9]{1,32})(?=-|\b)")),
    (b"%", re.compile(rb"%2F(?:home|Users)%2F(?P<name>[A-Za-z0-9_]{1,64})")),
)
_DRIVE: Final = re.compile(rb"(?:[A-Za-z]:|/mnt/[a-z]|/[a-z])\Z")
_DOMAIN: Final = re.compile(rb"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,24}\b(?![(=])")
_IMPERSONAL_ADDRESS: Final = re.compile(
    rb"(?:(?:no-?reply|git|user|you|me|someone|name|email|foo|bar|test|hg|ssh|root|actions)@"
    rb"|[^@]{1,64}@(?:[a-z0-9-]+\.)*(?:example|test|invalid|localhost|local)(?:\.[a-z]{2,4})?\Z"
    rb"|[^@]{1,64}@users\.noreply\.)",
    re.IGNORECASE,
)
_FILE_EXTENSIONS: Final = frozenset(
    (
        b"py",
        b"js",
        b"ts",
        b"tsx",
        b"jsx",
        b"rs",
        b"go",
        b"sh",
        b"md",
        b"json",
        b"yml",
        b"yaml",
        b"toml",
        b"txt",
        b"html",
        b"css",
        b"service",
        b"timer",
        b"so",
        b"png",
        b"svg",
    )
)
"""What ends a file's name rather than a domain's."""
_MAX_LOCAL_PART: Final = 64
_MAILTO: Final = b"mailto:"


def match_home(data: bytes, place: int) -> tuple[int, int, bytes] | None:
    """Return where a home folder is named at a place, and what to write instead."""
    home = _UNPREFIXED_HOME.match(data, place)
    if home is not None:
        # Nearly every home is written so.
        return place, home.end(), b"~"
    first = data[place : place + 1]
    if first == b"/":
        home = _HOME_PATH.match(data, place)
        if home is None or not _ESCAPE_BEFORE.search(data[max(0, place - 6) : place]):
            # A folder called home inside of another one, as in a web address.
            return None
        return place, home.end(), b"~"
    for first_byte, pattern in _OTHER_HOME_FORMS:
        if first == first_byte:
            match = pattern.match(data, place)
            if match is None:
                return None
            if first == b"\\":
                begin, end = match.span()
                while data[begin - 1 : begin] == first:
                    begin -= 1
                drive = _DRIVE.search(data, max(0, begin - 6), begin)
                return drive.start() if drive else begin, end, b"~"
            begin, end = match.span("name")
            return begin, end, b"user"
    return None


def match_email(data: bytes, place: int) -> tuple[int, int] | None:
    """Return where the e-mail address is whose `@` stands at a place."""
    domain = _DOMAIN.match(data, place)
    if domain is None or domain[0].rpartition(b".")[2].lower() in _FILE_EXTENSIONS:
        return None
    reversed_before = data[max(0, place - _MAX_LOCAL_PART) : place][::-1]
    local = _REVERSED_LOCAL_PART.match(reversed_before)
    if local is None:
        return None
    begin = place - local.end()
    if data[begin - 1 : begin] == b"\\" and data[begin : begin + 1] in b"nrtbf":
        begin += 1
    is_mailto = data[max(0, begin - len(_MAILTO)) : begin].lower() == _MAILTO
    if begin >= place or (data[begin - 1 : begin] in (b":", b"/", b"@") and not is_mailto):
        # Behind a colon or a slash it is the one who logs in, in an address.
        return None
    return None if _IMPERSONAL_ADDRESS.match(data[begin : domain.end()]) else (begin, domain.end())


_REVERSED_LOCAL_PART: Final = re.compile(rb"[A-Za-z0-9._%+-]*[A-Za-z0-9_%+-]")


SECRET_FAMILIES: Final[tuple[SecretFamily, ...]] = (
    *PLATFORM_TOKENS,
    *SERVICE_TOKENS,
    *CREDENTIAL_FAMILIES,
    *COMMAND_LINE_FAMILIES,
    *NAMED_FAMILIES,
)
"""Every family, the most certain first. The ids are stable: receipts name them."""


_CHUNK_SIZE: Final = 1 << 20
"""Bytes of a text that are looked through at once."""
_MAX_LOCATIONS: Final = 1_000
"""Places of a family in one text that a receipt names."""
_HOME: Final = "home"
_EMAIL: Final = "e-mail"
PERSONAL_IDS: Final = frozenset((_HOME, _EMAIL))
"""What is masked but is no secret."""
MASK_IDS: Final = (*(family.id for family in SECRET_FAMILIES), _HOME, _EMAIL)
"""Whatever may be masked."""


class MaskEdit(msgspec.Struct, frozen=True, order=True, gc=False):
    """A stretch of a text that is replaced."""

    begin: int
    end: int
    family: str
    cover: str
    """What it was disguised as; nothing for what stood there plainly."""
    new: bytes


class MaskLocation(msgspec.Struct, frozen=True):
    """Where something was masked: never what."""

    where: str
    family: str
    cover: str
    at: int
    """The byte in the file where its record begins."""


class Receipt(msgspec.Struct):
    """What was masked."""

    counts: dict[str, int] = {}
    covers: dict[str, int] = {}
    texts: dict[str, dict[str, int]] = {}
    """The counts of each text by itself."""
    places: list[MaskLocation] = []
    """Where; home folders are only counted, because they stand everywhere."""

    @property
    def total(self) -> int:
        """How much was masked in all."""
        return sum(self.counts.values())

    def record(self, data: bytes, edits: Sequence[MaskEdit], where: str) -> None:
        """Write down what was masked in a text."""
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
    """Masks texts, one after the other, and notes what it did."""

    def __init__(self) -> None:
        self.receipt = Receipt()

    def mask_text(self, text: str, where: str = "") -> str:
        """Return a text as it may be shown to others."""
        data = text.encode("utf-8", "surrogatepass")
        return self.mask_bytes(data, where).decode("utf-8", "surrogatepass")

    def mask_bytes(self, data: bytes, where: str = "") -> bytes:
        """Return bytes of a text, or of lines of JSON, as they may be shown to others."""
        edits = find_edits(data)
        self.record(data, edits, where)
        return apply_edits(data, edits) if edits else data

    def record(self, data: bytes, edits: Sequence[MaskEdit], where: str = "") -> None:
        """Note what was found in a text that somebody else masks."""
        if edits:
            self.receipt.record(data, edits, where)


def apply_edits(data: bytes, edits: Sequence[MaskEdit]) -> bytes:
    """Return a text with stretches of it replaced; they stand in order, and none in another."""
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
    """Return everything that has to be masked in a text, in order."""
    edits: list[MaskEdit] = []
    examined_until: dict[str, int] = {}
    for chunk_start in range(0, len(data), _CHUNK_SIZE):
        _scan_chunk(data, chunk_start, edits, examined_until)
    if all(edit_before.end <= edit_after.begin for edit_before, edit_after in pairwise(edits)):
        # As nearly always.
        return edits
    edits.sort(key=_edit_order)
    merged: list[MaskEdit] = []
    for edit in edits:
        previous = merged[-1] if merged else None
        if previous is None or edit.begin >= previous.end:
            merged.append(edit)
            continue
        if edit.family == _EMAIL and previous.family != _EMAIL:
            # Behind a password with `@` comes a host: `ada:p@ss9@db.internal`.
            continue
        # Of two that overlap, one is made: the more certain of them names it.
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


# Looking


class _Needle(msgspec.Struct, frozen=True):
    """Letters that are looked for, and what they may be a part of."""

    text: bytes
    families: tuple[SecretFamily, ...]
    covers: tuple[SecretEncoding, ...]
    mail: bool


class _NeedleIndex(msgspec.Struct, frozen=True):
    """Everything that is looked for, in one go."""

    all: tuple[_Needle, ...]
    homes: frozenset[int]
    """Those that a home folder begins with."""
    quotes: frozenset[int]
    """Two quotes without anything between them."""
    longest: int
    find: Callable[[bytes], list[tuple[int, int, int]]]
    """Says which needle stands from where to where."""


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
    # Those of families first, which come in the order of what they are taken for.
    texts = list(dict.fromkeys((*families, *encodings_by_text, *HOME_NEEDLES, EMAIL_NEEDLE)))
    needles = [
        _Needle(text, tuple(families.get(text, ())), tuple(encodings_by_text.get(text, ())), text == EMAIL_NEEDLE)
        for text in texts
    ]
    # Hundreds of needles at the price of one: every byte is looked at once.
    automaton = BytesAhoCorasick(texts, matchkind=MatchKind.Standard, implementation=Implementation.DFA)

    def find(data: bytes) -> list[tuple[int, int, int]]:
        return automaton.find_matches_as_indexes(data, overlapping=True)

    home_indexes = frozenset(map(texts.index, HOME_NEEDLES))
    quote_indexes = frozenset(map(texts.index, EMPTY_QUOTES))
    return _NeedleIndex(tuple(needles), home_indexes, quote_indexes, max(map(len, texts)), find)


def _scan_chunk(data: bytes, chunk_start: int, edits: list[MaskEdit], examined_until: dict[str, int]) -> None:
    """Find what is to be masked and whose needle begins in one chunk of a text.

    `examined_until` says of each family up to where it looked already.
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
            # Nearly everything that is found is one.
            home_match = match_home(data, position)
            if home_match is not None:
                edits.append(MaskEdit(home_match[0], home_match[1], _HOME, "", home_match[2]))
            continue
        if number in needles.quotes and data[position + 2 : position + 3] == data[position : position + 1]:
            # The first of three, as around texts of several lines.
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
    """Return the needles that are not a part of a mask: `token` in it is no name of a secret."""
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
    """Find the secrets of families whose needle stands at a place."""
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
    """Return the places of needles by the cover that they belong to, in order."""
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
    """Return the most certain family of the secrets that stand in a text, or nothing."""
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


PLAIN_MASK: Final = "<masked>"
_AUTH_HEADER: Final = re.compile(
    r"(\b(?:proxy-)?authorization\b\s*[:=]\s*)(?:(?:bearer|basic|token)\s+)?[^\s\"'\\,;]+", re.IGNORECASE
)
_AUTH_SCHEME: Final = re.compile(r"(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
# Names are bounded behind the word that gives them away, and not looked at before it: in a long run
# of letters everything else takes the square of its length.
_NAMED_SECRET: Final = re.compile(
    r"((?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|auth)"
    r"[A-Za-z0-9_-]{0,64}(?:\s*[=:]\s*|\s+(?=[^\s-])))((?!<masked>)[^\s\"'\\,;&]{3,})",
    re.IGNORECASE,
)
_OPTION_NAME: Final = re.compile(r"(?:\A|[\s\"'])--?[A-Za-z0-9_-]*\Z")
_NAME_LENGTH: Final = 64
_URL_CREDENTIALS: Final = re.compile(r"(://)[^/\s\"'@]+@")
_LONG_RUN: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+_-]{32,}={0,2}(?![A-Za-z0-9+/_-])")
_MIN_DIGITS: Final = 4


def hide_secrets(text: str) -> str:
    """Return a text with everything masked in it that is, or looks like, a secret."""
    text = _key_pattern().sub(PLAIN_MASK, hide_known_secrets(text))
    text = _URL_CREDENTIALS.sub(rf"\1{PLAIN_MASK}@", text)
    text = _AUTH_HEADER.sub(rf"\1{PLAIN_MASK}", text)
    text = _AUTH_SCHEME.sub(rf"\1{PLAIN_MASK}", text)
    text = _NAMED_SECRET.sub(_mask_named, text)
    return _LONG_RUN.sub(_mask_long, text)


def hide_known_secrets(text: str) -> str:
    """Return a text with every secret masked that an export would mask; homes and addresses stay."""
    data = text.encode("utf-8", "surrogatepass")
    edits = [
        msgspec.structs.replace(edit, new=PLAIN_MASK.encode())
        for edit in find_edits(data)
        if edit.family not in PERSONAL_IDS
    ]
    return apply_edits(data, edits).decode("utf-8", "surrogatepass") if edits else text


@lru_cache(maxsize=1)
def _key_pattern() -> re.Pattern[str]:
    """Return what finds a word that begins as the secrets of a family do, if it is none of them.

    A brief or a list is read by anybody: what is cut off, or of a form that is new, goes too.
    """
    needles = {needle.decode() for family in SECRET_FAMILIES if family.prefix for needle in family.needles}
    needles.add("eyJ")
    stems = "|".join(sorted(map(re.escape, needles), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{stems})[A-Za-z0-9_.-]{{12,}}")


def _mask_named(match: re.Match[str]) -> str:
    """Mask what stands behind a name; behind a mere space not a word, as in `token streaming`."""
    name, value = match[1].rstrip(), match[2].rstrip(".!?)*_`")
    if name.endswith(("=", ":")) or not value.isalpha():
        return match[1] + PLAIN_MASK
    before = match.string[max(0, match.start() - _NAME_LENGTH) : match.start()]
    return match[1] + PLAIN_MASK if _OPTION_NAME.search(before + name) else match[0]


def _mask_long(match: re.Match[str]) -> str:
    """Mask a long run of letters and digits, unless it reads like words."""
    word = match[0]
    mixed = sum(character.isdigit() for character in word) >= _MIN_DIGITS
    return PLAIN_MASK if mixed and any(letter.isalpha() for letter in word) else word
